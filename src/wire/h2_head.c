/* h2_head.c - see h2_head.h. */
#include "wire/h2_head.h"

#include "wire/http1_body.h"
#include "wire/http1_chars.h"
#include "wire/http1_host.h"

enum {
	TEXT_MAX = 2 * H2_LIST_MAX, /* the fields, and the cookies joined behind them */
	CRUMB = 2,                  /* "; " */
};

/* The bits of h2_head_in.seen, in the order of `pseudos`. */
enum { METHOD, SCHEME, AUTHORITY, PATH, PROTOCOL, PSEUDOS };
static const char *const pseudos[PSEUDOS] = { ":method", ":scheme", ":authority", ":path",
					      ":protocol" };

/* Before each field in `text`, whose memory moves while it grows. */
struct entry {
	uint32_t name, value; /* lengths */
};

static int malformed(struct err *err, const char *why)
{
	return err_set(err, ERR_INVALID, 0, "%s", why);
}

void h2_head_done(struct h2_head_in *in)
{
	buf_done(&in->text);
	*in = (struct h2_head_in){ 0 };
}

/* --- one field ------------------------------------------------------------------------------- */

static bool is_lower_tchar(uint8_t c)
{
	return is_tchar(c) && !(c >= 'A' && c <= 'Z');
}

static bool has_blank_edge(struct bytes v)
{
	return bytes_trim(v).len != v.len;
}

static int check_pseudo(struct h2_head_in *in, struct bytes name, struct bytes value,
			struct err *err)
{
	if (in->regular)
		return malformed(err, "a pseudo-field behind the fields");
	for (unsigned int i = 0; i < PSEUDOS; i++) {
		if (!bytes_eq(name, bytes_str(pseudos[i])))
			continue;
		if (in->seen & (1U << i))
			return malformed(err, "a repeated pseudo-field");
		if (value.len == 0)
			return malformed(err, "an empty pseudo-field");
		in->seen |= 1U << i;
		return 0;
	}
	return malformed(err, "an unknown pseudo-field");
}

/* A connection has streams of its own for what these said in HTTP/1.1. */
static bool is_of_connection(struct bytes name)
{
	static const char *const names[] = { "connection", "keep-alive", "proxy-connection",
					     "transfer-encoding", "upgrade" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (bytes_eq(name, bytes_str(names[i])))
			return true;
	return false;
}

static int check_regular(struct h2_head_in *in, struct bytes name, struct bytes value,
			 struct err *err)
{
	in->regular = true;
	if (name.len == 0 || !bytes_all(name, is_lower_tchar))
		return malformed(err, "malformed field name");
	if (name.len > HTTP1_NAME_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "field name over %d bytes", HTTP1_NAME_MAX);
	if (is_of_connection(name))
		return malformed(err, "a field that speaks of the connection");
	if (bytes_eq(name, BYTES_LIT("te")) && !bytes_eq_nocase(value, BYTES_LIT("trailers")))
		return malformed(err, "te is not `trailers`");
	if (bytes_eq(name, BYTES_LIT("cookie")))
		in->cookies += value.len + CRUMB;
	return 0;
}

int h2_head_add(struct h2_head_in *in, struct bytes name, struct bytes value, struct err *err)
{
	bool is_pseudo = name.len > 0 && name.ptr[0] == ':';
	struct entry e;

	in->list += name.len + value.len + H2_FIELD_COST;
	if (in->list > H2_LIST_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "head over %d KiB", H2_LIST_MAX / 1024);
	if (is_pseudo ? check_pseudo(in, name, value, err) < 0
		      : check_regular(in, name, value, err) < 0)
		return -1;
	if (!bytes_all(value, is_text) || has_blank_edge(value))
		return malformed(err, "malformed field value");
	e = (struct entry){ (uint32_t)name.len, (uint32_t)value.len };
	in->text.max = TEXT_MAX;
	if (buf_add(&in->text, (struct bytes){ (const uint8_t *)&e, sizeof(e) }, err) < 0 ||
	    buf_add(&in->text, name, err) < 0 || buf_add(&in->text, value, err) < 0)
		return -1;
	return 0;
}

/* --- the whole head -------------------------------------------------------------------------- */

struct parts {
	struct bytes pseudo[PSEUDOS];
	struct bytes host; /* of the field */
	bool has_host;
	bool tunnel;
};

static bool next_field(struct bytes *rest, struct http1_field *ret)
{
	struct entry e;

	if (rest->len < sizeof(e))
		return false;
	memcpy(&e, rest->ptr, sizeof(e));
	*rest = bytes_tail(*rest, sizeof(e));
	ret->name = bytes_head(*rest, e.name);
	*rest = bytes_tail(*rest, e.name);
	ret->value = bytes_head(*rest, e.value);
	*rest = bytes_tail(*rest, e.value);
	return true;
}

static int add_field(struct http1_head *h, struct bytes name, struct bytes value, struct err *err)
{
	if (h->n_fields == HTTP1_FIELDS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d fields", HTTP1_FIELDS_MAX);
	h->fields[h->n_fields++] = (struct http1_field){ name, value };
	return 0;
}

static int take_host(struct parts *p, struct bytes value, struct err *err)
{
	if (p->has_host)
		return malformed(err, "repeated host");
	p->has_host = true;
	p->host = value;
	return 0;
}

/* HTTP/2 may cut a cookie into crumbs, so that they compress better. The room was reserved. */
static void join_cookie(struct buf *text, size_t from, struct bytes crumb)
{
	if (crumb.len == 0) /* else the whole would end in a blank */
		return;
	if (text->len > from) {
		memcpy(text->ptr + text->len, "; ", CRUMB);
		buf_claim(text, CRUMB);
	}
	memcpy(text->ptr + text->len, crumb.ptr, crumb.len);
	buf_claim(text, crumb.len);
}

static int take_field(struct h2_head_in *in, size_t cookies_at, struct http1_field f,
		      struct parts *p, struct http1_head *h, struct err *err)
{
	for (size_t i = 0; i < PSEUDOS && f.name.ptr[0] == ':'; i++)
		if (bytes_eq(f.name, bytes_str(pseudos[i]))) {
			p->pseudo[i] = f.value;
			return 0;
		}
	if (bytes_eq(f.name, BYTES_LIT("host")))
		return take_host(p, f.value, err);
	if (bytes_eq(f.name, BYTES_LIT("cookie"))) {
		join_cookie(&in->text, cookies_at, f.value);
		return 0;
	}
	if (p->tunnel && bytes_eq(f.name, BYTES_LIT("sec-websocket-key")))
		return 0; /* means nothing here */
	return add_field(h, f.name, f.value, err);
}

static int take_fields(struct h2_head_in *in, struct parts *p, struct http1_head *h,
		       struct err *err)
{
	size_t cookies_at = in->text.len;
	struct http1_field f;
	struct bytes rest;
	uint8_t *room;

	/* from here on the memory stays where it is */
	in->text.max = TEXT_MAX;
	if (buf_reserve(&in->text, in->cookies + 1, &room, err) < 0)
		return -1;
	rest = buf_view(&in->text);
	while (next_field(&rest, &f))
		if (take_field(in, cookies_at, f, p, h, err) < 0)
			return -1;
	if (in->cookies == 0)
		return 0;
	return add_field(h, BYTES_LIT("cookie"), bytes_tail(buf_view(&in->text), cookies_at), err);
}

static int check_method(struct bytes method, struct err *err)
{
	if (!bytes_all(method, is_tchar) || bytes_eq(method, BYTES_LIT("PRI")))
		return malformed(err, "malformed method");
	if (method.len > HTTP1_METHOD_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "method over %d bytes", HTTP1_METHOD_MAX);
	return 0;
}

static int check_path(struct bytes path, struct err *err)
{
	if (!bytes_all(path, is_target))
		return malformed(err, "malformed path");
	if (path.len > HTTP1_TARGET_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "target over %d bytes", HTTP1_TARGET_MAX);
	return 0;
}

/* Which pseudo-fields a request must have, and may not. */
static int check_seen(unsigned int seen, bool connect, struct err *err)
{
	const unsigned int usual = 1U << METHOD | 1U << SCHEME | 1U << PATH;
	bool tunnel = seen & (1U << PROTOCOL);

	if (connect && !tunnel)
		return seen == (1U << METHOD | 1U << AUTHORITY)
			       ? 0
			       : malformed(err, "CONNECT with a scheme or a path");
	if (!connect && tunnel)
		return malformed(err, "a protocol without CONNECT");
	if (tunnel && !(seen & (1U << AUTHORITY)))
		return malformed(err, "CONNECT without an authority");
	return (seen & usual) == usual ? 0 : malformed(err, "a pseudo-field is missing");
}

static int set_target(const struct parts *p, bool connect, struct http1_head *h, struct err *err)
{
	struct bytes path = p->pseudo[PATH], scheme = p->pseudo[SCHEME];

	if (connect && !p->tunnel) {
		h->form = HTTP1_AUTHORITY;
		h->target = p->pseudo[AUTHORITY];
		return 0;
	}
	if (!bytes_eq(scheme, BYTES_LIT("http")) && !bytes_eq(scheme, BYTES_LIT("https")))
		return malformed(err, "an unknown scheme");
	if (check_path(path, err) < 0)
		return -1;
	h->target = path;
	if (path.ptr[0] == '/')
		h->form = HTTP1_ORIGIN;
	else if (bytes_eq(path, BYTES_LIT("*")) && bytes_eq(h->method, BYTES_LIT("OPTIONS")))
		h->form = HTTP1_ASTERISK;
	else
		return malformed(err, "target of an unknown form");
	return 0;
}

/* One host, whether the field says it, or the pseudo-field, or both. */
static int set_host(const struct parts *p, struct http1_head *h, struct err *err)
{
	struct bytes authority = p->pseudo[AUTHORITY];

	if (authority.len > 0 && p->has_host && !bytes_eq_nocase(authority, p->host))
		return malformed(err, "host and authority disagree");
	if (authority.len == 0 && !p->has_host)
		return malformed(err, "missing host");
	return add_field(h, BYTES_LIT("host"), authority.len > 0 ? authority : p->host, err);
}

static int set_upgrade(const struct parts *p, struct bytes key, struct http1_head *h,
		       struct err *err)
{
	if (!bytes_eq_nocase(p->pseudo[PROTOCOL], BYTES_LIT("websocket")))
		return err_set(err, ERR_NOT_FOUND, 0,
			       "CONNECT for another protocol than websocket");
	h->method = BYTES_LIT("GET");
	if (add_field(h, BYTES_LIT("connection"), BYTES_LIT("Upgrade"), err) < 0 ||
	    add_field(h, BYTES_LIT("upgrade"), BYTES_LIT("websocket"), err) < 0)
		return -1;
	return add_field(h, BYTES_LIT("sec-websocket-key"), key, err);
}

static int set_body(struct http1_head *h, bool ended, bool connect, struct err *err)
{
	if (connect) { /* what follows is no body */
		h->body = HTTP1_BODY_NONE;
		h->length = 0;
		return 0;
	}
	if (ended && h->body == HTTP1_BODY_LENGTH && h->length > 0)
		return malformed(err, "the body is shorter than was promised");
	if (!ended && h->body == HTTP1_BODY_NONE)
		h->body = HTTP1_BODY_CHUNKED;
	return 0;
}

int h2_head_end(struct h2_head_in *in, bool ended, struct bytes key, struct http1_head *ret,
		struct err *err)
{
	struct parts p = { .tunnel = in->seen & (1U << PROTOCOL) };
	bool connect;

	http1_head_reset(ret);
	ret->minor = 1;
	if (take_fields(in, &p, ret, err) < 0)
		return -1;
	ret->method = p.pseudo[METHOD];
	connect = bytes_eq(ret->method, BYTES_LIT("CONNECT"));
	if (check_seen(in->seen, connect, err) < 0 || check_method(ret->method, err) < 0 ||
	    set_target(&p, connect, ret, err) < 0 || set_host(&p, ret, err) < 0 ||
	    http1_check_lists(ret, err) < 0 || http1_check_host(ret, err) < 0 ||
	    http1_decide_request(ret, err) < 0)
		return -1;
	if (p.tunnel && ended)
		return malformed(err, "a tunnel that is over before it begins");
	if (p.tunnel && set_upgrade(&p, key, ret, err) < 0)
		return -1;
	return set_body(ret, ended, connect, err);
}

bool h2_head_is_tunnel(const struct h2_head_in *in)
{
	return in->seen & (1U << PROTOCOL);
}

/* --- the body, and answers ------------------------------------------------------------------- */

void h2_length_init(struct h2_length *b, const struct http1_head *h)
{
	*b = (struct h2_length){ h->body == HTTP1_BODY_LENGTH, h->length };
}

bool h2_length_take(struct h2_length *b, size_t n)
{
	if (!b->has_length)
		return true;
	if (n > b->left)
		return false;
	b->left -= n;
	return true;
}

bool h2_length_end(const struct h2_length *b)
{
	return !b->has_length || b->left == 0;
}

int h2_lower_name(struct bytes name, struct bytes value, struct buf *room, struct bytes *ret,
		  struct err *err)
{
	uint8_t *at;

	if (name.len == 0 || name.len > HTTP1_NAME_MAX || !bytes_all(name, is_tchar))
		return malformed(err, "refuse to write a malformed field name");
	if (!bytes_all(value, is_text) || has_blank_edge(value))
		return err_set(err, ERR_INVALID, 0, "refuse to write a malformed value of %.*s",
			       (int)name.len, (const char *)name.ptr);
	if (buf_reserve(room, name.len, &at, err) < 0)
		return -1;
	for (size_t i = 0; i < name.len; i++)
		at[i] = byte_lower(name.ptr[i]);
	buf_claim(room, name.len);
	*ret = (struct bytes){ at, name.len };
	return 0;
}
