/* templates_say.c - what node says of templates, made short. --json has all of it. */
#include "cli/templates_say.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/table.h"
#include "wire/rfc3339.h"

enum {
	WIDTH = 100,
	NAME_MAX_SHOWN = 34,
	CELL_SIZE = 48,
	LINE_SIZE = 256,
	MESSAGE_SIZE = 1024,
	LABEL_WIDTH = 12
};

/* What is not in these columns is below them, or in `show`. */
static const struct column list_columns[] = { { "NAME", "said.name", NAME_MAX_SHOWN },
					      { "PUB", "public" },
					      { "CPUS", "said.cpus" },
					      { "MIB", "said.mib", 7 },
					      { "DISK", "said.disk" },
					      { "BUILD", "said.state", 8 },
					      { "POOL", "said.pool", 12 },
					      { "RUN", "running", 5 },
					      { "USED", "said.used" } };

static const struct column build_columns[] = {
	{ "BUILD", "buildID", 36 }, { "STATE", "status", 8 }, { "CREATED", "said.created" },
	{ "TOOK", "said.took" },    { "DISK", "said.disk" },  { "RUN", "running", 5 },
	{ "TAGS", "tagNames", 13 },
};

const char *templates_text(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s ? s : "";
}

void templates_name(const json_t *t, char ret[static TEMPLATE_NAME_SIZE])
{
	const char *name = templates_text(t, "name"), *alias = templates_text(t, "alias");

	if (name[0])
		snprintf(ret, TEMPLATE_NAME_SIZE, "%s/%s", templates_text(t, "namespace"), name);
	else
		snprintf(ret, TEMPLATE_NAME_SIZE, "%s",
			 alias[0] ? alias : templates_text(t, "templateID"));
}

/* --- cells -------------------------------------------------------------------------------- */

static void size_text(const json_t *bytes, char ret[static CELL_SIZE])
{
	static const char units[] = "KMGTP";
	double n = (double)json_integer_value(bytes) / 1024;
	size_t unit = 0;

	snprintf(ret, CELL_SIZE, "-");
	if (!json_is_integer(bytes))
		return;
	while (n >= 1000 && unit + 2 < sizeof(units)) {
		n /= 1024;
		unit++;
	}
	snprintf(ret, CELL_SIZE, n < 10 && unit > 0 ? "%.1f%c" : "%.0f%c", n, units[unit]);
}

static void span_text(uint64_t seconds, char ret[static CELL_SIZE])
{
	static const struct {
		uint64_t seconds;
		char unit;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
	size_t i = 0;

	while (i + 1 < COUNT(units) && seconds < 2 * units[i].seconds)
		i++;
	snprintf(ret, CELL_SIZE, "%" PRIu64 "%c", seconds / units[i].seconds, units[i].unit);
}

/* False: there is no such time. */
static bool time_of(const json_t *o, const char *name, uint64_t *ret_ns)
{
	const char *text = templates_text(o, name);
	struct err err;

	return text[0] && rfc3339_parse(bytes_str(text), ret_ns, &err) == 0;
}

static void age_text(const json_t *o, const char *name, char ret[static CELL_SIZE])
{
	uint64_t at, now = clock_wall_ns();

	if (!time_of(o, name, &at))
		snprintf(ret, CELL_SIZE, "never");
	else
		span_text(now > at ? (now - at) / NSEC_PER_SEC : 0, ret);
}

static void put(json_t *to, const char *name, const char *text)
{
	(void)json_object_set_new(to, name, json_text(bytes_str(text)));
}

static void put_size(json_t *to, const json_t *of)
{
	char text[CELL_SIZE];

	size_text(json_object_get(of, "diskBytes"), text);
	put(to, "disk", text);
}

/* ready/wanted and MiB */
static void pool_text(const json_t *t, char ret[static CELL_SIZE])
{
	const json_int_t ready = json_integer_value(json_object_get(t, "poolReady"));
	const json_int_t wanted = json_integer_value(json_object_get(t, "poolWanted"));
	const json_int_t mib = json_integer_value(json_object_get(t, "poolMemoryMB"));

	if (ready == 0 && wanted == 0 && mib == 0)
		snprintf(ret, CELL_SIZE, "-");
	else
		snprintf(ret, CELL_SIZE, "%lld/%lld %lldM", (long long)ready, (long long)wanted,
			 (long long)mib);
}

/* --- a list ------------------------------------------------------------------------------- */

static void add_tags(const json_t *t, char *text, size_t size)
{
	const json_t *tag;
	size_t i, n = strlen(text);

	json_array_foreach(json_object_get(t, "tagNames"), i, tag)
	{
		if (json_is_string(tag) && n < size)
			n += (size_t)snprintf(text + n, size - n, "%c%s", i ? ',' : ':',
					      json_string_value(tag));
	}
}

/* One of a team has its newest build where the host's have theirs. */
static void flatten(json_t *t)
{
	json_t *said = json_object(), *b = json_object_get(t, "build");
	char name[TEMPLATE_NAME_SIZE + LINE_SIZE], text[CELL_SIZE];
	bool own = templates_text(t, "name")[0] != '\0';

	templates_name(t, name);
	add_tags(t, name, sizeof(name));
	put(said, "name", name);
	(void)json_object_set(said, "cpus", json_object_get(own ? b : t, "cpuCount"));
	(void)json_object_set(said, "mib", json_object_get(own ? b : t, "memoryMB"));
	(void)json_object_set(said, "state",
			      json_object_get(own ? b : t, own ? "status" : "buildStatus"));
	put_size(said, t);
	pool_text(t, text);
	put(said, "pool", text);
	age_text(t, "lastSpawnedAt", text);
	put(said, "used", text);
	(void)json_object_set_new(t, "said", said);
}

/* What is wrong of one of the host's, or is done about one of a team's that does not fit the host
 * any more. Empty: all is well. */
static void message_text(const json_t *t, char *ret, size_t size)
{
	const json_t *again = json_object_get(t, "refreeze");
	const char *state = templates_text(again, "state");
	const char *why = templates_text(state[0] ? again : t, "message");

	snprintf(ret, size, "%s%s%s", state, state[0] && why[0] ? ": " : "", why);
}

static void say_message(const json_t *t)
{
	char line[TEMPLATE_NAME_SIZE + 4], message[MESSAGE_SIZE], name[TEMPLATE_NAME_SIZE];

	message_text(t, message, sizeof(message));
	if (!message[0])
		return;
	templates_name(t, name);
	snprintf(line, sizeof(line), "\n%s:", name);
	table_clean(line + 1);
	printf("%s\n", line);
	table_wrap(stdout, message, 2, WIDTH);
}

void templates_say_all(json_t *all)
{
	json_t *t;
	size_t i;

	json_array_foreach(all, i, t) flatten(t);
	table_print(stdout, all, list_columns, COUNT(list_columns));
	json_array_foreach(all, i, t) say_message(t);
}

/* --- one of them -------------------------------------------------------------------------- */

PRINTF(2, 3) static void say(const char *label, const char *fmt, ...)
{
	char text[LINE_SIZE];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	table_clean(text);
	printf("%-*s%.*s\n", LABEL_WIDTH, label, WIDTH - LABEL_WIDTH, text);
}

static void say_head(const json_t *t)
{
	const json_t *b = json_object_get(t, "build"), *sized = b ? b : t;
	char name[TEMPLATE_NAME_SIZE], own[CELL_SIZE], shared[CELL_SIZE], used[CELL_SIZE];
	bool team = templates_text(t, "teamID")[0] != '\0';

	templates_name(t, name);
	size_text(json_object_get(t, "diskBytes"), own);
	size_text(json_object_get(t, "sharedBytes"), shared);
	age_text(t, "lastSpawnedAt", used);
	say("template", "%s", templates_text(t, "templateID"));
	say("name", "%s", name);
	say("team", "%s", team ? templates_text(t, "teamID") : "none: it is the host's");
	say("public", "%s", !team || json_is_true(json_object_get(t, "public")) ? "yes" : "no");
	say("sizes", "%lld vCPUs, %lld MiB of memory, a disk of %lld MiB",
	    (long long)json_integer_value(json_object_get(sized, "cpuCount")),
	    (long long)json_integer_value(json_object_get(sized, "memoryMB")),
	    (long long)json_integer_value(json_object_get(sized, "diskSizeMB")));
	say("on disk", team ? "%s of its own, %s shared with other templates and steps" : "%s", own,
	    shared);
	say("used", strcmp(used, "never") == 0 ? "%s" : "%s ago", used);
}

static void say_use(const json_t *t)
{
	char pool[CELL_SIZE];

	pool_text(t, pool);
	say("pool", strcmp(pool, "-") == 0 ? "none" : "%s (ready/wanted, MiB)", pool);
	say("sandboxes", "%lld, of which %lld run",
	    (long long)json_integer_value(json_object_get(t, "sandboxes")),
	    (long long)json_integer_value(json_object_get(t, "running")));
	if (json_object_get(t, "snapshots"))
		say("snapshots", "%lld differ from it",
		    (long long)json_integer_value(json_object_get(t, "snapshots")));
}

static void flatten_build(json_t *b)
{
	json_t *said = json_object();
	uint64_t begun, ended;
	char text[CELL_SIZE];

	snprintf(text, sizeof(text), "%.16s", templates_text(b, "createdAt"));
	put(said, "created", text);
	if (time_of(b, "createdAt", &begun) && time_of(b, "finishedAt", &ended) && ended >= begun) {
		span_text((ended - begun) / NSEC_PER_SEC, text);
		put(said, "took", text);
	}
	put_size(said, b);
	(void)json_object_set_new(b, "said", said);
}

/* Why it failed, and what keeps what came of it. */
static void say_build(const json_t *b)
{
	const json_t *reason = json_object_get(b, "reason"), *line;
	const json_t *why = json_object_get(b, "why");
	const char *step = templates_text(reason, "step");
	char head[LINE_SIZE];
	size_t i;

	if (!json_is_object(reason) && json_array_size(why) == 0)
		return;
	snprintf(head, sizeof(head), "%s%s%s:", templates_text(b, "buildID"),
		 json_is_object(reason) ? " failed" : " is kept", step[0] ? " at step " : "");
	if (step[0])
		snprintf(head + strlen(head) - 1, sizeof(head) - strlen(head), "%s:", step);
	printf("\n");
	table_wrap(stdout, head, 0, WIDTH);
	if (json_is_object(reason))
		table_wrap(stdout, templates_text(reason, "message"), 2, WIDTH);
	json_array_foreach(why, i, line) if (json_is_string(line))
		table_wrap(stdout, json_string_value(line), 2, WIDTH);
}

void templates_say_one(json_t *t)
{
	json_t *builds = json_object_get(t, "builds"), *b;
	size_t i;

	say_head(t);
	say_use(t);
	say_message(t);
	if (!builds)
		return;
	json_array_foreach(builds, i, b) flatten_build(b);
	printf("\n");
	table_print(stdout, builds, build_columns, COUNT(build_columns));
	json_array_foreach(builds, i, b) say_build(b);
}
