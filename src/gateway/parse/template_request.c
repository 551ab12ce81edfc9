/* template_request.c - names, tags and sizes of a template, each within its limits. */
#include "gateway/parse/template_request.h"

enum { DEPTH_MAX = 4 };

static int decode(struct bytes body, json_t **ret, struct err *err)
{
	if (json_decode(body, TEMPLATE_REQUEST_MAX, DEPTH_MAX, ret, err) < 0) {
		err->code = ERR_INVALID;
		return -1;
	}
	if (json_is_object(*ret))
		return 0;
	return err_set(err, ERR_INVALID, 0, "the body must be a JSON object");
}

static int take_ref(struct bytes in, struct template_ref *ret, struct err *err)
{
	if (in.len > TEMPLATE_NAME_MAX)
		return err_set(err, ERR_INVALID, 0, "a template's name has at most %d characters",
			       TEMPLATE_NAME_MAX);
	if (template_ref_parse(in, ret, err) < 0)
		return -1;
	if (ret->tag[0] && !template_tag_parse(bytes_str(ret->tag), ret->tag))
		return err_set(err, ERR_INVALID, 0, "invalid tag '%s'", ret->tag);
	return 0;
}

static bool has(const json_t *all, const char *tag)
{
	const json_t *t;
	size_t i;

	json_array_foreach(all, i, t)
	{
		if (strcmp(json_string_value(t), tag) == 0)
			return true;
	}
	return false;
}

static int add_tag(json_t *all, const char *tag, struct err *err)
{
	if (has(all, tag))
		return 0;
	if (json_array_size(all) >= TEMPLATE_REQUEST_TAGS_MAX)
		return err_set(err, ERR_INVALID, 0, "at most %d tags at once",
			       TEMPLATE_REQUEST_TAGS_MAX);
	if (json_array_append_new(all, json_string(tag)) < 0)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory");
	return 0;
}

/* Into the member `tags` of ret->text, after the tag of the name, if there is one. */
static int take_tags(const json_t *body, const char *first, struct template_request *ret,
		     struct err *err)
{
	json_t *tags = NULL, *all = json_array(), *t;
	char tag[NODE_ID_MAX + 1];
	size_t i;

	if (json_object_set_new(ret->text, "tags", all) < 0)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory");
	if (json_may_array(body, "tags", &tags, err) < 0 ||
	    (first[0] && add_tag(all, first, err) < 0))
		return -1;
	json_array_foreach(tags, i, t)
	{
		if (!json_is_string(t) || !template_tag_parse(json_bytes(t), tag))
			return err_set(err, ERR_INVALID, 0,
				       "invalid tag: a tag is letters, digits, - _ and .");
		if (add_tag(all, tag, err) < 0)
			return -1;
	}
	return 0;
}

static int copy_number(const json_t *body, const char *name, json_t *to, struct err *err)
{
	int64_t value = INT64_MIN;

	if (json_may_int(body, name, INT32_MIN, INT32_MAX, &value, err) < 0)
		return -1;
	if (value != INT64_MIN && json_object_set_new(to, name, json_integer(value)) < 0)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory");
	return 0;
}

static int take_name(const json_t *body, const char *slug, struct template_ref *ref,
		     struct template_request *ret, struct err *err)
{
	struct bytes name = { 0 };

	if (json_may_string(body, "name", &name, err) < 0 ||
	    (name.len == 0 && json_want_string(body, "alias", &name, err) < 0) ||
	    take_ref(name, ref, err) < 0)
		return -1;
	if (ref->has_namespace && strcmp(ref->namespace, slug) != 0)
		return err_set(err, ERR_DENIED, 0,
			       "namespace '%s' is not your team's, which is '%s'", ref->namespace,
			       slug);
	memcpy(ret->name, ref->name, sizeof(ret->name));
	return 0;
}

static int parse_create(const json_t *body, const char *slug, struct template_request *ret,
			struct err *err)
{
	struct template_ref ref;

	ret->text = json_pack("{s:s}", "namespace", slug);
	if (!ret->text)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory");
	if (take_name(body, slug, &ref, ret, err) < 0 || take_tags(body, ref.tag, ret, err) < 0 ||
	    copy_number(body, "cpuCount", ret->text, err) < 0 ||
	    copy_number(body, "memoryMB", ret->text, err) < 0)
		return -1;
	return copy_number(body, "minFreeDiskMb", ret->text, err);
}

static int parse_tags(const json_t *body, bool removes, const char *slug,
		      struct template_request *ret, struct err *err)
{
	struct template_ref ref;
	struct bytes name;

	ret->text = json_object();
	if (!ret->text)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory");
	if (json_want_string(body, removes ? "name" : "target", &name, err) < 0 ||
	    take_ref(name, &ref, err) < 0 || take_tags(body, "", ret, err) < 0)
		return -1;
	if (removes && ref.tag[0])
		return err_set(err, ERR_INVALID, 0, "name must not have a tag");
	if (json_array_size(json_object_get(ret->text, "tags")) == 0)
		return err_set(err, ERR_INVALID, 0, "tags must not be empty");
	memcpy(ret->name, ref.name, sizeof(ret->name));
	memcpy(ret->tag, ref.tag, sizeof(ret->tag));
	return template_ref_check(&ref, slug, err);
}

int template_create_parse(struct bytes body, const char *slug, struct template_request *ret,
			  struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	*ret = (struct template_request){ 0 };
	if (decode(body, &v, err) == 0 && parse_create(v, slug, ret, err) == 0)
		return 0;
	template_request_done(ret);
	return -1;
}

int template_tags_parse(struct bytes body, bool removes, const char *slug,
			struct template_request *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	*ret = (struct template_request){ 0 };
	if (decode(body, &v, err) == 0 && parse_tags(v, removes, slug, ret, err) == 0)
		return 0;
	template_request_done(ret);
	return -1;
}

void template_request_done(struct template_request *r)
{
	json_decref(TAKE(r->text));
}
