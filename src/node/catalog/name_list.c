/* name_list.c - the grammar of names and tags, at node. */
#include "node/catalog/name_list.h"

static bool ok(struct bytes name, const char *may)
{
	for (size_t i = 0; i < name.len; i++)
		if (!name.ptr[i] || !strchr(may, name.ptr[i]))
			return false;
	return name.len > 0 && name.len <= NODE_ID_MAX;
}

bool template_name_ok(const char *name)
{
	return ok(bytes_str(name), "abcdefghijklmnopqrstuvwxyz0123456789-_");
}

static bool has(const struct name_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->all[i], name) == 0)
			return true;
	return false;
}

int name_list_take(const json_t *body, bool need, struct name_list *ret, struct err *err)
{
	json_t *tags = NULL, *tag;
	size_t i;

	*ret = (struct name_list){ 0 };
	if (json_may_array(body, "tags", &tags, err) < 0)
		return -1;
	if (json_array_size(tags) > COUNT(ret->all))
		return err_set(err, ERR_INVALID, 0, "at most %zu tags at once", COUNT(ret->all));
	json_array_foreach(tags, i, tag)
	{
		struct bytes name = json_is_string(tag) ? json_bytes(tag) : (struct bytes){ 0 };
		char *at = ret->all[ret->n];

		if (!ok(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") ||
		    !bytes_to_str(name, at, sizeof(ret->all[0])))
			return err_set(err, ERR_INVALID, 0, "invalid tag");
		ret->n += !has(ret, at);
	}
	if (need && ret->n == 0)
		return err_set(err, ERR_INVALID, 0, "tags must not be empty");
	return 0;
}
