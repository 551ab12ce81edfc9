/* setup_say.c - how `hotcell setup` says what it does. People read standard error; what is on
 * standard output is for a shell, or JSON. */
#include <stdarg.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "cli/people.h"
#include "cli/say.h"
#include "cli/setup.h"
#include "cli/table.h"

enum { BAR = 20, COLUMNS = 80, COLUMNS_LEAST = 40, COLUMNS_MOST = 100, LINE_SIZE = 1024 };

static const char *const words[] = {
	[SETUP_KEPT] = "ok",         [SETUP_DONE] = "done", [SETUP_WOULD] = "would",
	[SETUP_SKIPPED] = "skipped", [SETUP_WARN] = "warn", [SETUP_FAILED] = "FAIL",
};

int setup_fix(struct setup *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(s->fix, sizeof(s->fix), fmt, args);
	va_end(args);
	return -1;
}

void setup_said(struct setup_said *ret, enum setup_state state, const char *fmt, ...)
{
	va_list args;

	ret->state = state;
	va_start(args, fmt);
	vsnprintf(ret->what, sizeof(ret->what), fmt, args);
	va_end(args);
}

void setup_begin(struct setup *s, const char *step)
{
	s->step = step;
	s->began_ns = clock_mono_ns();
	s->shown[0] = '\0';
}

static double seconds(const struct setup *s)
{
	return (double)(clock_mono_ns() - s->began_ns) / (double)NSEC_PER_SEC;
}

static size_t width(void)
{
	struct winsize size = { 0 };

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < COLUMNS_LEAST)
		return COLUMNS;
	return size.ws_col;
}

/* --- lines ---------------------------------------------------------------------------------- */

static void add_json(struct setup *s, const char *of, const struct setup_said *said,
		     const char *fix)
{
	json_t *one = json_pack("{s:s, s:s, s:o, s:f}", "step", of, "state", words[said->state],
				"what", json_text(bytes_str(said->what)), "seconds", seconds(s));

	if (fix && fix[0])
		json_object_set_new(one, "fix", json_text(bytes_str(fix)));
	json_array_append_new(s->steps, one);
}

/* Behind `head`, in lines that a terminal has room for; elsewhere in one, which can be searched. */
static void print_text(const char *head, const char *text)
{
	char clean[LINE_SIZE];
	size_t wide = width() < COLUMNS_MOST ? width() : COLUMNS_MOST;
	size_t room = wide - strlen(head), first = room;

	snprintf(clean, sizeof(clean), "%s", text);
	table_clean(clean);
	if (!isatty(STDERR_FILENO) || strlen(clean) <= room) {
		fprintf(stderr, "%s%s\n", head, clean);
		return;
	}
	while (first > 0 && clean[first] != ' ')
		first--;
	first = first ?: room; /* one long word */
	fprintf(stderr, "%s%.*s\n", head, (int)first, clean);
	table_wrap(stderr, clean + first + (clean[first] == ' '), strlen(head), wide);
}

static void print_line(const char *of, const struct setup_said *said, const char *took,
		       const char *fix)
{
	char head[32], text[LINE_SIZE];

	snprintf(head, sizeof(head), "%-7s  %-12s  ", words[said->state], of);
	snprintf(text, sizeof(text), "%s%s%s%s", said->what, took[0] ? " (" : "", took,
		 took[0] ? ")" : "");
	print_text(head, text);
	if (!fix || !fix[0])
		return;
	snprintf(text, sizeof(text), "fix: %s", fix);
	snprintf(head, sizeof(head), "%23s", "");
	print_text(head, text);
}

void setup_line(struct setup *s, const struct setup_said *said, const char *fix)
{
	char took[32];

	s->changed |= said->state == SETUP_DONE;
	add_json(s, s->step, said, fix);
	setup_clear(s);
	snprintf(took, sizeof(took), "%.1f s", seconds(s));
	if (!s->cli.json)
		print_line(s->step, said, took, fix);
}

void setup_warn(struct setup *s, const char *of, const char *what, const char *fix)
{
	struct setup_said said;

	setup_said(&said, SETUP_WARN, "%s", what);
	add_json(s, of, &said, fix);
	setup_clear(s);
	if (!s->cli.json)
		print_line(of, &said, "", fix);
}

/* --- progress ------------------------------------------------------------------------------- */

static bool is_drawn(const struct setup *s)
{
	return !s->cli.json && isatty(STDERR_FILENO);
}

void setup_clear(const struct setup *s)
{
	if (is_drawn(s) && s->shown[0])
		fprintf(stderr, "\r\033[K");
}

static void draw(const struct setup *s, size_t n, size_t of, const char *what)
{
	char bar[BAR + 1], line[LINE_SIZE], took[PEOPLE_SIZE];
	size_t full = of ? n * BAR / of : 0;

	for (size_t i = 0; i < BAR; i++)
		bar[i] = i < full ? '#' : '.';
	bar[BAR] = '\0';
	people_span((uint64_t)seconds(s), took);
	snprintf(line, sizeof(line), "[%s]  %s: %s, %s", bar, s->step, what, took);
	table_clean(line);
	if (width() <= sizeof(line))
		line[width() - 1] = '\0';
	fprintf(stderr, "\r%s\033[K", line);
}

void setup_progress(struct setup *s, size_t n, size_t of, const char *what)
{
	char now[SETUP_WHAT_SIZE];

	if (of)
		snprintf(now, sizeof(now), "step %zu of %zu, %s", n, of, what);
	else
		snprintf(now, sizeof(now), "%s", what);
	if (is_drawn(s))
		draw(s, n, of, now);
	else if (!s->cli.json && strcmp(now, s->shown) != 0) { /* once each */
		char clean[SETUP_WHAT_SIZE];

		snprintf(clean, sizeof(clean), "%s", now);
		table_clean(clean);
		fprintf(stderr, "...      %-12s  %s\n", s->step, clean);
	}
	snprintf(s->shown, sizeof(s->shown), "%s", now);
}

/* --- the end -------------------------------------------------------------------------------- */

static void trusted_path(const struct setup *s, char ret[static SETUP_PATH_SIZE])
{
	snprintf(ret, SETUP_PATH_SIZE, "%.900s/authority/" SETUP_TRUSTED, s->tls_dir);
}

#define TEST "hotcell selftest"

/* All of them the whole list: Python's two take it in place of their own. */
static const char *const trust_names[] = { "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
					   "NODE_EXTRA_CA_CERTS" };

/* Another one, since this is no first run. */
static void key_line(const struct setup *s, char ret[static SETUP_WHAT_SIZE])
{
	const char *quote = strchr(s->found_team, ' ') ? "'" : "";

	snprintf(ret, SETUP_WHAT_SIZE, "sudo hotcell keys add %s%s%s", quote,
		 s->found_team[0] ? s->found_team : "TEAM", quote);
}

/* Lines that a shell may eval: what is not an assignment is a comment. */
static void print_exports(const struct setup *s)
{
	char trusted[SETUP_PATH_SIZE], more[SETUP_WHAT_SIZE];

	trusted_path(s, trusted);
	key_line(s, more);
	printf("# in the shell of your client:\n");
	printf("export E2B_DOMAIN=%s\n", s->domain);
	for (size_t i = 0; s->own_authority && i < COUNT(trust_names); i++)
		printf("export %s=%s\n", trust_names[i], trusted);
	if (s->cli.key_file)
		printf("export E2B_API_KEY=\"$(cat '%s')\"\n", s->cli.key_file);
	else if (s->key[0])
		printf("export E2B_API_KEY=%s\n# the key is shown this once; another: %s\n", s->key,
		       more);
	else
		printf("# export E2B_API_KEY=...: there is a key, and it is not kept; another: "
		       "%s\n",
		       more);
	printf("# a test: " TEST "\n");
}

static json_t *environment(const struct setup *s)
{
	json_t *all = json_pack("{s:s}", "E2B_DOMAIN", s->domain);
	char trusted[SETUP_PATH_SIZE];

	trusted_path(s, trusted);
	for (size_t i = 0; s->own_authority && i < COUNT(trust_names); i++)
		json_object_set_new(all, trust_names[i], json_text(bytes_str(trusted)));
	if (s->key[0] && !s->cli.key_file)
		json_object_set_new(all, "E2B_API_KEY", json_string(s->key));
	return all;
}

static int print_json(const struct setup *s)
{
	AUTO(json_decrefp)
	json_t *all =
		json_pack("{s:b, s:O, s:o, s:s, s:s}", "changed", s->changed, "steps", s->steps,
			  "environment", environment(s), "team", s->found_team, "test", TEST);

	if (all && json_array_size(s->journal) > 0)
		json_object_set(all, "journal", s->journal);
	if (all && s->cli.key_file)
		json_object_set_new(all, "keyFile", json_text(bytes_str(s->cli.key_file)));
	return all ? cli_print_json(all) : CLI_FAILED;
}

int setup_end(struct setup *s)
{
	if (s->cli.json)
		return print_json(s);
	if (s->cli.dry_run)
		fprintf(stderr, "Nothing was changed (--dry-run).\n");
	else
		print_exports(s);
	return CLI_FINE;
}
