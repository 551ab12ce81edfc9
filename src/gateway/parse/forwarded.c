/* forwarded.c - see forwarded.h. */
#include "gateway/parse/forwarded.h"

bool forwarded_trusts(const struct forwarded_trust *t, const struct ip *who)
{
	for (size_t i = 0; i < t->n; i++)
		if (ip_range_has(&t->at[i], who))
			return true;
	return false;
}

/* --- entries, from the last one on -------------------------------------------------------- */

struct walk {
	const struct http1_head *h;
	const char *name;
	size_t fields; /* so many of the head were not looked at */
	struct bytes rest;
	bool open; /* `rest` is what is left of a field, if only an empty entry */
};

static bool next_field(struct walk *w)
{
	struct bytes name = bytes_str(w->name);

	while (w->fields > 0) {
		const struct http1_field *f = &w->h->fields[--w->fields];

		if (!bytes_eq_nocase(f->name, name))
			continue;
		w->rest = f->value;
		w->open = true;
		return true;
	}
	return false;
}

static bool previous(struct walk *w, struct bytes *ret)
{
	size_t at;

	if (!w->open && !next_field(w))
		return false;
	for (at = w->rest.len; at > 0 && w->rest.ptr[at - 1] != ',';)
		at--;
	*ret = bytes_trim(bytes_tail(w->rest, at));
	w->open = at > 0;
	w->rest = bytes_head(w->rest, at > 0 ? at - 1 : 0);
	return true;
}

/* --- what an entry says ------------------------------------------------------------------- */

static bool is_port(struct bytes text)
{
	uint64_t port;

	return text.len > 0 && text.len <= 5 && bytes_to_u64(text, &port) && port <= UINT16_MAX;
}

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80". */
static bool read_entry(struct bytes text, struct ip *ret)
{
	struct bytes ip, rest = text;

	if (bytes_starts(text, BYTES_LIT("["))) {
		rest = bytes_tail(text, 1);
		if (!bytes_cut(&rest, ']', &ip) || !memchr(ip.ptr, ':', ip.len))
			return false;
		return ip_parse(ip, ret) &&
		       (rest.len == 0 || (rest.ptr[0] == ':' && is_port(bytes_tail(rest, 1))));
	}
	if (ip_parse(text, ret))
		return true;
	return bytes_cut(&rest, ':', &ip) && is_port(rest) && ip_parse(ip, ret);
}

bool forwarded_client(const struct http1_head *h, const struct forwarded_trust *t, struct ip *who)
{
	struct walk w = { .h = h, .name = "x-forwarded-for", .fields = h->n_fields };
	struct bytes entry;
	struct ip next;
	size_t hops;

	for (hops = 0; hops < FORWARDED_HOPS_MAX && forwarded_trusts(t, who); hops++) {
		if (!previous(&w, &entry) || !read_entry(entry, &next))
			break;
		*who = next;
	}
	return hops > 0;
}

bool forwarded_proto(const struct http1_head *h, bool *ret_secure)
{
	struct walk w = { .h = h, .name = "x-forwarded-proto", .fields = h->n_fields };
	struct bytes word;

	if (!previous(&w, &word))
		return false;
	*ret_secure = bytes_eq_nocase(word, BYTES_LIT("https")) ||
		      bytes_eq_nocase(word, BYTES_LIT("wss"));
	return true;
}

/* --- their names --------------------------------------------------------------------------- */

static uint8_t folded(uint8_t c)
{
	c = byte_lower(c);
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
}

static bool begins(struct bytes name, const char *with)
{
	size_t i;

	for (i = 0; with[i] != '\0' && i < name.len; i++)
		if (folded(name.ptr[i]) != (uint8_t)with[i])
			return false;
	return with[i] == '\0';
}

bool forwarded_is_field(struct bytes name)
{
	static const char *const whole[] = { "forwarded", "x-real-ip" };

	for (size_t i = 0; i < COUNT(whole); i++)
		if (name.len == strlen(whole[i]) && begins(name, whole[i]))
			return true;
	return begins(name, "x-forwarded-");
}
