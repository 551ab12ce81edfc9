/* leaks_files.c - node's data_dir: a folder for each row, and in it what belongs to its state. */
#include <dirent.h>
#include <errno.h>

#include "cli/leaks.h"

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

	if (!strcmp(name, "disk"))
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

static const struct place {
	const char *name, *stranger; /* below data_dir; what one without a row is called */
	known_fn *is_known;
	fault_fn *fault;
} places[] = {
	{ "sandboxes", "no sandbox has this folder", is_sandbox, sandbox_fault },
	{ "snapshots", "no snapshot has this folder", is_snapshot, snapshot_fault },
};

static void look_inside(struct sight *s, const struct place *p, const char *path, const char *id)
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

static void look_one(struct sight *s, const struct place *p, const char *folder, const char *name)
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

void leaks_look_files(const struct cli *c, struct sight *s)
{
	for (size_t i = 0; i < COUNT(places); i++) {
		char path[LEAKS_PATH_MAX];
		const struct dirent *e;
		DIR *d;

		snprintf(path, sizeof(path), "%s/%s", c->data_dir, places[i].name);
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
