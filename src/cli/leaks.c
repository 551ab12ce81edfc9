/* leaks.c - `hotcell doctor --leaks`: does what is on this host agree with what node says?
 *
 * A sandbox is a folder, a control group and a process of a uid of its own. Each of the three is
 * listed and compared with the others and with node's list. What is being made or removed looks
 * wrong for a moment, so it is looked at twice, and only what is wrong both times is told.
 */
#include "cli/leaks.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/read_all.h"
#include "cli/ask.h"
#include "cli/places.h"
#include "cli/say.h"
#include "cli/table.h"

enum { LEAKS_PATH_MAX = 2 * CONF_VALUE_MAX };

struct sight {             /* one look; sets of ids are JSON objects */
	json_t *listed;    /* by node: those that run, the pool's, and its own */
	json_t *paused;    /* by node */
	json_t *snapshots; /* by node, hidden ones included */
	json_t *set_aside; /* by node: rows it makes no sense of */
	json_t *folders;   /* below state_dir/vms */
	json_t *groups;    /* control groups, in any hierarchy */
	json_t *members;   /* id -> pid of a process in its group */
	json_t *leaks;     /* what is wrong */
	bool node_knows;   /* is there a list? */
};

enum { BETWEEN_MS = 3000, SMALL_FILE = 4096, ID_TEXT_MAX = 64 };

static void sight_done(struct sight *s)
{
	json_decref(s->listed);
	json_decref(s->paused);
	json_decref(s->snapshots);
	json_decref(s->set_aside);
	json_decref(s->folders);
	json_decref(s->groups);
	json_decref(s->members);
	json_decref(s->leaks);
}

static bool sight_init(struct sight *s)
{
	*s = (struct sight){ json_object(), json_object(), json_object(),
			     json_object(), json_object(), json_object(),
			     json_object(), json_array(),  false };
	return s->listed && s->paused && s->snapshots && s->set_aside && s->folders && s->groups &&
	       s->members && s->leaks;
}

static void sight_put(json_t *set, const char *id, json_t *value)
{
	if (json_object_set_new(set, id, value) < 0)
		abort(); /* out of memory */
}

static void sight_wrong(struct sight *s, const char *kind, const char *what, const char *why)
{
	json_t *leak = json_pack("{s:s,s:o,s:s}", "kind", kind, "what", json_text(bytes_str(what)),
				 "why", why);

	if (!leak || json_array_append_new(s->leaks, leak) < 0)
		abort(); /* out of memory */
}

/* Every folder in `path`, but those with one of `not` in their names. */
static void names_in(const char *path, const char * not, json_t *set)
{
	DIR *d = opendir(path);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.' && !strpbrk(e->d_name, not))
			sight_put(set, e->d_name, json_true());
	if (d)
		closedir(d);
}

static void look_folders(const struct places *c, struct sight *s)
{
	char path[LEAKS_PATH_MAX];

	snprintf(path, sizeof(path), "%s/vms", c->folders[FOLDER_STATE].path);
	names_in(path, "", s->folders);
}

static void look_groups(const struct places *c, struct sight *s)
{
	static const char *const trees[] = { "", "/memory", "/cpu", "/pids", "/unified" };
	char path[LEAKS_PATH_MAX];

	for (size_t i = 0; i < COUNT(trees); i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", trees[i], c->cgroup);
		names_in(path, "_.", s->groups); /* neither warden's own nor systemd's units */
	}
}

/* Which VM's group is it in? /proc/PID/cgroup has lines `N:controllers:/PARENT/ID`. */
static bool vm_of(const struct places *c, const char *pid, char ret[static ID_TEXT_MAX])
{
	char path[64], text[SMALL_FILE], want[256];
	const char *p;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%.20s/cgroup", pid);
	snprintf(want, sizeof(want), "/%.200s/", c->cgroup);
	if (read_text(AT_FDCWD, path, text, sizeof(text)) < 0 || !(p = strstr(text, want)))
		return false;
	p += strlen(want);
	n = strcspn(p, "/\n");
	return *p != '_' && !memchr(p, '.', n) &&
	       bytes_to_str((struct bytes){ (const uint8_t *)p, n }, ret, ID_TEXT_MAX);
}

static uint64_t uid_of(const char *pid)
{
	char path[64], text[SMALL_FILE];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
	if (read_text(AT_FDCWD, path, text, sizeof(text)) < 0 || !(line = strstr(text, "\nUid:")))
		return UINT64_MAX;
	return strtoull(line + strlen("\nUid:"), NULL, 10);
}

static void look_process(const struct places *c, struct sight *s, const char *pid)
{
	char id[ID_TEXT_MAX], what[64];
	uint64_t uid = uid_of(pid);

	if (vm_of(c, pid, id)) {
		sight_put(s->members, id, json_integer((json_int_t)strtoll(pid, NULL, 10)));
		return;
	}
	if (uid < c->uid_base || uid >= c->uid_base + c->uids)
		return;
	snprintf(what, sizeof(what), "pid %.20s, uid %llu", pid, (unsigned long long)uid);
	sight_wrong(s, "process", what, "its uid is a sandbox's, and it is in no sandbox's group");
}

static void look_processes(const struct places *c, struct sight *s)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			look_process(c, s, e->d_name);
	if (d)
		closedir(d);
}

/* Sandboxes that wait in the pool, and those of builds, are node's own: they are in no list. */
static void take_pool(const json_t *pool, json_t *set)
{
	const json_t *id;
	size_t i;

	json_array_foreach(pool, i, id) if (json_is_string(id))
		sight_put(set, json_string_value(id), json_true());
}

static void take_ids(const json_t *rows, const char *member, json_t *set)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		const char *id = json_string_value(json_object_get(row, member));

		if (id)
			sight_put(set, id, json_true());
	}
}

/* A paused one is files of node's alone. */
static void take_rows(const json_t *rows, struct sight *s)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		const char *id = json_string_value(json_object_get(row, "sandboxID"));
		const char *state = json_string_value(json_object_get(row, "state"));
		bool paused = state && strcmp(state, "paused") == 0;

		if (id)
			sight_put(paused ? s->paused : s->listed, id, json_true());
	}
}

static int look_list(const struct cli *c, struct sight *s, struct err *err)
{
	AUTO(json_decrefp) json_t *rows = NULL, *status = NULL, *snapshots = NULL;
	const json_t *node;

	if (cli_list(c, &(struct cli_request){ .path = "/admin/sandboxes" }, &rows, err) < 0 ||
	    cli_list(c, &(struct cli_request){ .path = "/admin/snapshots" }, &snapshots, err) < 0 ||
	    cli_ask(c, &(struct cli_request){ .path = "/admin/status" }, &status, err) < 0)
		return -1;
	node = json_object_get(status, "node");
	take_rows(rows, s);
	take_ids(snapshots, "snapshotID", s->snapshots); /* as clients see it: ID:TAG, perhaps */
	take_pool(json_object_get(node, "pooledIDs"), s->listed);
	take_pool(json_object_get(node, "builderIDs"), s->listed);
	/* what node set aside is in no list: what there is of it is kept */
	take_ids(json_object_get(node, "quarantine"), "id", s->set_aside);
	s->node_knows = true;
	return 0;
}

static void compare(struct sight *s)
{
	const char *id;
	json_t *v;

	json_object_foreach(s->folders, id, v)
	{
		if (s->node_knows && !json_object_get(s->listed, id) &&
		    !json_object_get(s->set_aside, id))
			sight_wrong(s, "folder", id, "node does not know this sandbox");
		if (!json_object_get(s->members, id))
			sight_wrong(s, "folder", id, "no process runs in it");
	}
	json_object_foreach(s->groups, id, v) if (!json_object_get(s->folders, id))
		sight_wrong(s, "cgroup", id, "it has no folder");
	json_object_foreach(s->members, id, v) if (!json_object_get(s->folders, id))
		sight_wrong(s, "process", id, "it has no folder");
	json_object_foreach(s->listed, id, v) if (!json_object_get(s->folders, id))
		sight_wrong(s, "sandbox", id, "node lists it, and it has no folder");
}

/* --- node's data_dir: a folder for each row, and in it what belongs to its state -------------- */

typedef bool known_fn(const struct sight *s, const char *name);
typedef const char *fault_fn(const struct sight *s, const char *folder, const char *name);

static bool is_sandbox(const struct sight *s, const char *name)
{
	return json_object_get(s->listed, name) || json_object_get(s->paused, name);
}

static bool is_snapshot(const struct sight *s, const char *name)
{
	return json_object_get(s->snapshots, name);
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* NULL: it belongs there. */
static const char *sandbox_fault(const struct sight *s, const char *folder, const char *name)
{
	static const char *const saved[] = { "pages",     "state",     "row",
					     "pages.new", "state.new", "row.new" };

	if (!strcmp(name, "disk") || !strcmp(name, "blank"))
		return NULL;
	if (!is_one_of(name, saved, COUNT(saved)))
		return "no file of a sandbox has this name";
	/* those of one that is being paused are gone, or it is paused, at the second look */
	return json_object_get(s->paused, folder) ? NULL : "it runs, and nothing of it is saved";
}

static const char *snapshot_fault(const struct sight *s, const char *folder, const char *name)
{
	static const char *const files[] = { "memory", "state", "manifest", "row", "row.new" };
	const char *layer = "layer";

	(void)s, (void)folder;
	if (is_one_of(name, files, COUNT(files)) || !strncmp(name, layer, strlen(layer)))
		return NULL;
	return "no file of a snapshot has this name";
}

static const struct kept_in {
	const char *name, *stranger; /* below data_dir; what one without a row is called */
	known_fn *is_known;
	fault_fn *fault;
} places[] = {
	{ "sandboxes", "no sandbox has this folder", is_sandbox, sandbox_fault },
	{ "snapshots", "no snapshot has this folder", is_snapshot, snapshot_fault },
};

static void look_inside(struct sight *s, const struct kept_in *p, const char *path, const char *id)
{
	DIR *d = opendir(path);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		const char *why = strcmp(e->d_name, ".") && strcmp(e->d_name, "..")
					  ? p->fault(s, id, e->d_name)
					  : NULL;
		char what[LEAKS_PATH_MAX];

		snprintf(what, sizeof(what), "%s/%s/%s", p->name, id, e->d_name);
		if (why)
			sight_wrong(s, "file", what, why);
	}
	if (d)
		closedir(d);
}

static void look_one(struct sight *s, const struct kept_in *p, const char *folder, const char *name)
{
	char path[LEAKS_PATH_MAX], what[LEAKS_PATH_MAX];

	if (!strcmp(name, ".") || !strcmp(name, "..") || json_object_get(s->set_aside, name))
		return;
	if (p->is_known(s, name)) {
		if (snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path))
			look_inside(s, p, path, name);
		return;
	}
	snprintf(what, sizeof(what), "%s/%s", p->name, name);
	sight_wrong(s, "folder", what, p->stranger);
}

static void look_files(const struct places *c, struct sight *s)
{
	for (size_t i = 0; i < COUNT(places); i++) {
		char path[LEAKS_PATH_MAX];
		const struct dirent *e;
		DIR *d;

		snprintf(path, sizeof(path), "%s/%s", c->folders[FOLDER_DATA].path, places[i].name);
		d = opendir(path);
		if (!d)
			sight_wrong(s, "folder", path,
				    "it cannot be read: name node's data_dir with --data");
		while (d && (e = readdir(d)))
			look_one(s, &places[i], path, e->d_name);
		if (d)
			closedir(d);
	}
}

/* --- two looks, and what both saw ---------------------------------------------------------- */

/* Node is asked in between: what was there before and after must be known to it. */
static int look(const struct cli *c, const struct places *at, struct sight *s, struct err *err)
{
	if (!sight_init(s))
		return err_set(err, ERR_INTERNAL, ENOMEM, "out of memory");
	look_folders(at, s);
	look_groups(at, s);
	look_processes(at, s);
	if (look_list(c, s, err) < 0)
		return -1;
	compare(s);
	look_files(at, s);
	return 0;
}

/* What was wrong both times. */
static json_t *lasting(const json_t *first, const json_t *second)
{
	json_t *both = json_array();
	const json_t *a, *b;
	size_t i, k;

	json_array_foreach(first, i, a) json_array_foreach(
		second, k,
		b) if (json_equal(a, b) && json_array_append(both, (json_t *)(uintptr_t)a) < 0)
		abort(); /* out of memory */
	return both;
}

static int report(const struct cli *c, const struct sight *s, const json_t *leaks)
{
	static const struct column columns[] = { { "KIND", "kind" },
						 { "WHAT", "what" },
						 { "WHY", "why" } };
	int status = json_array_size(leaks) ? CLI_FAILED : CLI_FINE;

	if (c->json)
		return cli_print_json(leaks) == CLI_FINE ? status : CLI_FAILED;
	if (status == CLI_FINE) {
		printf("ok    nothing is left over; %zu sandboxes are whole\n",
		       json_object_size(s->folders));
		return status;
	}
	table_print(stdout, leaks, columns, COUNT(columns));
	printf("  fix: restart hotcell-warden and hotcell-node; they remove what is not whole\n");
	return status;
}

int leaks_run(struct cli *c)
{
	AUTO(sight_done) struct sight first = { 0 }, second = { 0 };
	AUTO(json_decrefp) json_t *leaks = NULL, *status = NULL;
	struct places at;
	struct err err = { 0 };

	if (geteuid() != 0) {
		err_set(&err, ERR_DENIED, 0, "doctor --leaks: only root sees everything");
		return cli_fail(c, &err);
	}
	if (cli_ask(c, &(struct cli_request){ .path = "/admin/status", .ms = ASK_LOOK_MS }, &status,
		    &err) < 0)
		return cli_fail(c, &err);
	places_find(&at, c, json_object_get(status, "node"));
	if (look(c, &at, &first, &err) < 0)
		return cli_fail(c, &err);
	if (json_array_size(first.leaks) == 0)
		return report(c, &first, first.leaks);
	poll(NULL, 0, BETWEEN_MS);
	if (look(c, &at, &second, &err) < 0)
		return cli_fail(c, &err);
	leaks = lasting(first.leaks, second.leaks);
	return report(c, &second, leaks);
}
