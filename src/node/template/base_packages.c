/* base_packages.c - where sandboxes may fetch packages: what their template says.
 *
 * Sandboxes that run are given their rules again as soon as node has started, before warden was
 * reached and the template was checked. Until then the newest one that is here counts.
 */
/* #syscalls: openat openat2 getdents64 fcntl newfstatat lseek close */
#include "node/template/base_packages.h"

#include <fcntl.h>

#include "base/folder.h"
#include "node/node.h"

static int look_at(int dir, const char *name, void *context, struct err *err)
{
	struct manifest *newest = context, m;
	AUTO(auto_close) int folder = -1;

	if (strncmp(name, BASE_ALIAS "-", strlen(BASE_ALIAS) + 1) != 0)
		return 0;
	folder = folder_open(dir, name, O_RDONLY | O_DIRECTORY, 0, err);
	if (folder >= 0 && template_manifest_read(folder, &m, err) == 0 &&
	    strcmp(m.created, newest->created) > 0)
		*newest = m;
	return 0; /* what cannot be read now is built anew later */
}

void base_packages_open(struct node *n)
{
	AUTO(auto_close) int dir = -1;
	char path[TEMPLATE_PATH_MAX];
	struct manifest newest = { 0 };
	struct err err;
	int k = snprintf(path, sizeof(path), "%s/" WARDEN_TEMPLATE_PATH, n->set[SET_STATE_DIR].text,
			 ".");

	if (k < 0 || (size_t)k >= sizeof(path))
		return;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && folder_each(dir, look_at, &newest, &err) == 0)
		base_packages_learn(n, &newest);
}

void base_packages_learn(struct node *n, const struct manifest *m)
{
	memcpy(n->base.packages, m->packages, sizeof(n->base.packages));
}

json_t *base_packages(const struct node *n)
{
	AUTO(json_decrefp) json_t *all = json_array();
	struct bytes rest = bytes_str(n->base.packages), host;

	while (bytes_next(&rest, ' ', &host))
		if (json_array_append_new(all, json_text(host)) < 0)
			return NULL;
	return TAKE(all);
}
