/* accounts.c - two colon-separated files. */
#include "agent/accounts.h"

#include "agent/machine/files_small.h"

enum { PASSWD_FIELDS = 7, GROUP_FIELDS = 4, PATH_TEXT_MAX = 512 };

/* Exactly n fields. */
static bool split(struct bytes line, struct bytes *fields, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (!bytes_cut(&line, ':', &fields[i]))
			return false;
	fields[n - 1] = line;
	return line.len == 0 || !memchr(line.ptr, ':', line.len);
}

/* The largest number means "none" to the kernel, so nobody may have it. */
static bool parse_id(struct bytes text, uint32_t *ret)
{
	uint64_t v;

	if (!bytes_to_u64(text, &v) || v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool parse_user(struct bytes line, struct bytes name, struct account *ret)
{
	struct bytes f[PASSWD_FIELDS];

	if (!split(line, f, COUNT(f)) || !bytes_eq(f[0], name))
		return false;
	if (!parse_id(f[2], &ret->uid) || !parse_id(f[3], &ret->gid))
		return false;
	if (f[5].len == 0 || f[5].ptr[0] != '/')
		f[5] = BYTES_LIT("/");
	return bytes_to_str(f[0], ret->name, sizeof(ret->name)) &&
	       bytes_to_str(f[5], ret->home, sizeof(ret->home));
}

static bool is_member(struct bytes members, struct bytes name)
{
	struct bytes one;

	while (bytes_cut(&members, ',', &one))
		if (bytes_eq(one, name))
			return true;
	return bytes_eq(members, name);
}

static void add_group(struct account *a, gid_t gid)
{
	for (size_t i = 0; i < a->n_groups; i++)
		if (a->groups[i] == gid)
			return;
	if (a->n_groups < ACCOUNT_GROUPS_MAX)
		a->groups[a->n_groups++] = gid;
}

static void parse_groups(struct bytes text, struct account *ret)
{
	struct bytes line, f[GROUP_FIELDS], name = bytes_str(ret->name);
	gid_t gid;

	add_group(ret, ret->gid);
	while (bytes_next(&text, '\n', &line))
		if (split(line, f, COUNT(f)) && is_member(f[3], name) && parse_id(f[2], &gid))
			add_group(ret, gid);
}

int account_parse(struct bytes passwd, struct bytes group, struct bytes name, struct account *ret,
		  struct err *err)
{
	struct bytes line;
	struct account a = { 0 };

	/* an empty name would match a line that begins with a colon */
	while (name.len > 0 && bytes_next(&passwd, '\n', &line)) {
		if (!parse_user(line, name, &a))
			continue;
		parse_groups(group, &a);
		*ret = a;
		return 0;
	}
	return err_set(err, ERR_NOT_FOUND, 0, "no such user");
}

int account_find(const char *dir, struct bytes name, struct account *ret, struct err *err)
{
	AUTO(buf_done) struct buf passwd = BUF_MAX(ACCOUNTS_FILE_MAX);
	AUTO(buf_done) struct buf group = BUF_MAX(ACCOUNTS_FILE_MAX);
	char path[PATH_TEXT_MAX];

	snprintf(path, sizeof(path), "%s/passwd", dir);
	if (file_read(path, &passwd, err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/group", dir);
	if (file_read_if_any(path, &group, err) < 0)
		return -1;
	return account_parse(buf_view(&passwd), buf_view(&group), name, ret, err);
}
