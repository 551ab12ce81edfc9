/* http1_field.c - questions about the fields of a parsed head. */
#include "wire/http1_field.h"

#include "wire/http1_chars.h"

size_t http1_find(const struct http1_head *h, const char *name, struct bytes *ret)
{
	struct bytes want = bytes_str(name);
	size_t n = 0;

	for (size_t i = 0; i < h->n_fields; i++)
		if (bytes_eq_nocase(h->fields[i].name, want) && n++ == 0)
			*ret = h->fields[i].value;
	return n;
}

static bool list_has(struct bytes list, struct bytes token)
{
	struct bytes element;

	while (bytes_cut(&list, ',', &element))
		if (bytes_eq_nocase(bytes_trim(element), token))
			return true;
	return bytes_eq_nocase(bytes_trim(list), token);
}

bool http1_list_has(const struct http1_head *h, const char *name, const char *token)
{
	struct bytes want = bytes_str(name), element = bytes_str(token);

	for (size_t i = 0; i < h->n_fields; i++)
		if (bytes_eq_nocase(h->fields[i].name, want) &&
		    list_has(h->fields[i].value, element))
			return true;
	return false;
}

bool http1_keep_alive(const struct http1_head *h)
{
	if (h->body == HTTP1_BODY_CLOSE || http1_list_has(h, "connection", "close"))
		return false;
	/* what follows a CONNECT was meant for somebody else, also when it is refused */
	if (h->form == HTTP1_AUTHORITY && h->status == 0)
		return false;
	return h->minor >= 1 || http1_list_has(h, "connection", "keep-alive");
}

bool http1_expects_continue(const struct http1_head *h)
{
	/* a client of HTTP/1.0 cannot read the answer */
	return h->minor >= 1 && http1_list_has(h, "expect", "100-continue");
}

struct bytes http1_upgrade(const struct http1_head *h)
{
	struct bytes protocol = { 0 };

	if (h->minor == 0 || !http1_list_has(h, "connection", "upgrade") ||
	    http1_find(h, "upgrade", &protocol) != 1)
		return (struct bytes){ 0 };
	return protocol;
}

static void hops_add(struct http1_hops *hops, struct bytes element)
{
	struct bytes name = bytes_trim(element);

	if (name.len > 0 && name.len <= HTTP1_NAME_MAX && hops->n < HTTP1_LIST_MAX)
		hops->at[hops->n++] = name;
}

void http1_hops_cut(const struct http1_head *h, struct http1_hops *ret)
{
	struct bytes rest, one;

	ret->n = 0;
	for (size_t i = 0; i < h->n_fields; i++) {
		if (!bytes_eq_nocase(h->fields[i].name, BYTES_LIT("connection")))
			continue;
		rest = h->fields[i].value;
		while (bytes_next(&rest, ',', &one))
			hops_add(ret, one);
	}
}

bool http1_is_hop_field(const struct http1_hops *hops, struct bytes name)
{
	static const struct bytes fixed[] = {
		BYTES_LIT("connection"), BYTES_LIT("keep-alive"), BYTES_LIT("proxy-connection"),
		BYTES_LIT("te"),         BYTES_LIT("trailer"),    BYTES_LIT("transfer-encoding"),
		BYTES_LIT("upgrade"),
	};

	for (size_t i = 0; i < COUNT(fixed); i++)
		if (bytes_eq_nocase(name, fixed[i]))
			return true;
	for (size_t i = 0; i < hops->n; i++)
		if (bytes_eq_nocase(name, hops->at[i]))
			return true;
	return false;
}
