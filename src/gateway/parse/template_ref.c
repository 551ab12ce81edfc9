/* template_ref.c - the grammar of template references. */
#include "gateway/parse/template_ref.h"

#include <stdio.h>

static bool is_name_char(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Lower case; 1 to NODE_ID_MAX characters of a name, or of a tag, which may have dots. */
static bool take(struct bytes in, bool tag, char ret[static NODE_ID_MAX + 1])
{
	if (in.len == 0 || in.len > NODE_ID_MAX)
		return false;
	for (size_t i = 0; i < in.len; i++) {
		uint8_t c = in.ptr[i];

		if (c >= 'A' && c <= 'Z')
			c = (uint8_t)(c - 'A' + 'a');
		if (!is_name_char(c) && !(tag && c == '.'))
			return false;
		ret[i] = (char)c;
	}
	ret[in.len] = '\0';
	return true;
}

int template_ref_parse(struct bytes in, struct template_ref *ret, struct err *err)
{
	struct bytes rest = bytes_trim(in), part;
	bool ok = true;

	*ret = (struct template_ref){ 0 };
	if (bytes_cut(&rest, '/', &part)) {
		ret->has_namespace = true;
		ok = take(part, false, ret->namespace);
	}
	if (bytes_cut(&rest, ':', &part))
		ok = ok && take(rest, true, ret->tag);
	else
		part = rest;
	if (!ok || !take(part, false, ret->name))
		return err_set(err, ERR_INVALID, 0, "invalid template reference");
	return 0;
}

int template_ref_check(const struct template_ref *t, const char *slug, struct err *err)
{
	if (t->has_namespace && strcmp(t->namespace, slug) != 0)
		return err_set(err, ERR_NOT_FOUND, 0, "template '%s' not found", t->name);
	return 0;
}

int template_ref_name(const struct template_ref *t, const char *slug,
		      char ret[static NODE_ID_MAX + 1], struct err *err)
{
	bool own = !t->has_namespace || strcmp(t->namespace, slug) == 0;
	int n = own ? snprintf(ret, NODE_ID_MAX + 1, "%s", t->name)
		    : snprintf(ret, NODE_ID_MAX + 1, "%s/%s", t->namespace, t->name);

	if (n > NODE_ID_MAX)
		return err_set(err, ERR_NOT_FOUND, 0, "template '%s' not found", t->name);
	return 0;
}

static bool is_uuid(const char *tag)
{
	for (size_t i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? tag[i] != '-' : !tag[i] || !strchr("0123456789abcdef", tag[i]))
			return false;
	}
	return tag[36] == '\0';
}

bool template_tag_parse(struct bytes in, char ret[static NODE_ID_MAX + 1])
{
	return take(bytes_trim(in), true, ret) && !is_uuid(ret);
}
