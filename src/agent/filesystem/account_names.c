/* account_names.c - see account_names.h. */
#include "agent/filesystem/account_names.h"

#include "agent/machine/files_small.h"

enum { PATH_TEXT_MAX = 512 };

static void load(struct buf *into, const char *dir, const char *name)
{
	char path[PATH_TEXT_MAX];
	struct err err;

	*into = BUF_MAX(ACCOUNTS_FILE_MAX);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (file_read(path, into, &err) < 0)
		buf_clear(into);
}

void account_names_load(struct account_names *n, const char *dir)
{
	*n = (struct account_names){ 0 };
	load(&n->passwd, dir, "passwd");
	load(&n->group, dir, "group");
}

void account_names_done(struct account_names *n)
{
	buf_done(&n->passwd);
	buf_done(&n->group);
}

/* `name:x:id:...`, in either file. */
static bool line_has(struct bytes line, uint32_t id, struct bytes *ret)
{
	struct bytes password, number;
	uint64_t v;

	if (!bytes_cut(&line, ':', ret) || !bytes_cut(&line, ':', &password))
		return false;
	if (!bytes_cut(&line, ':', &number))
		return false;
	return ret->len > 0 && bytes_to_u64(number, &v) && v == id;
}

static void search(struct bytes text, struct account_name *n)
{
	struct bytes line, name;

	while (bytes_next(&text, '\n', &line))
		if (line_has(line, n->id, &name) && bytes_to_str(name, n->name, sizeof(n->name)))
			return;
	snprintf(n->name, sizeof(n->name), "%u", n->id);
}

static const char *find(const struct buf *text, struct account_name *kept, uint32_t id)
{
	struct account_name *at = &kept[id % ACCOUNT_NAMES_KEPT];

	if (!at->known || at->id != id) {
		*at = (struct account_name){ .known = true, .id = id };
		search(buf_view(text), at);
	}
	return at->name;
}

const char *account_names_user(struct account_names *n, uid_t uid)
{
	return find(&n->passwd, n->users, uid);
}

const char *account_names_group(struct account_names *n, gid_t gid)
{
	return find(&n->group, n->groups, gid);
}
