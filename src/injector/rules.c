/* rules.c - see rules.h. */
#include "injector/rules.h"

#include <errno.h>

#include "http/http_rewrite.h"
#include "wire/domain.h"
#include "wire/http1_encode.h"
#include "wire/placeholder.h"

enum { DEPTH_MAX = 12 };

/* One host's rule while it is made. */
struct draft {
	const json_t *sealed;
	const char *team;
	const struct seal_key *key;
	json_t *headers; /* borrowed */
	size_t size;
	bool secret;
	char refuse[RULES_WHY_MAX]; /* empty: nothing is wrong with it */
};

static void refuse(struct draft *d, struct bytes header, const char *why, const char *name)
{
	if (!d->refuse[0])
		snprintf(d->refuse, sizeof(d->refuse), "header %.*s: %s%s",
			 (int)bytes_head(header, 64).len, (const char *)header.ptr, why, name);
}

/* --- values --------------------------------------------------------------------------------- */

/* False: it cannot be had. */
static bool add_secret(struct draft *d, const char *name, struct buf *out)
{
	const json_t *sealed = json_object_get(d->sealed, name);
	char label[SEAL_LABEL_MAX];
	struct err err;
	int n = snprintf(label, sizeof(label), "%s/%s", d->team, name);

	if (!json_is_string(sealed) || n < 0 || (size_t)n >= sizeof(label))
		return false;
	return unseal(d->key, bytes_str(label), json_bytes(sealed), out, &err) == 0;
}

/* False: the reason is in d->refuse. */
static bool fill_value(struct draft *d, struct bytes header, struct bytes value, struct buf *out)
{
	struct placeholder p;
	enum placeholder_kind kind;
	struct err err;

	do {
		kind = placeholder_next(&value, &p);
		if (kind == PLACEHOLDER_BROKEN) {
			refuse(d, header, "a placeholder that cannot be read", "");
			return false;
		}
		if (kind == PLACEHOLDER_IDENTITY) {
			refuse(d, header, "there are no identity tokens here", "");
			return false;
		}
		d->secret |= kind == PLACEHOLDER_SECRET;
		if (buf_add(out, p.before, &err) < 0 ||
		    (kind == PLACEHOLDER_SECRET && !add_secret(d, p.secret, out))) {
			refuse(d, header, "no such secret, or too long: ",
			       kind == PLACEHOLDER_SECRET ? p.secret : "");
			return false;
		}
	} while (kind != PLACEHOLDER_NONE);
	return true;
}

/* Would a server read this, and only this, as that header? */
static bool can_be_sent(struct bytes name, struct bytes value)
{
	AUTO(buf_done) struct buf line = BUF_SECRET(HTTP1_NAME_MAX + RULES_VALUE_MAX + 8);
	struct err err;

	return http1_put_field(&line, name, value, &err) == 0;
}

static int add_header(struct draft *d, struct bytes name, struct bytes value, struct err *err)
{
	AUTO(buf_done) struct buf filled = BUF_SECRET(RULES_VALUE_MAX + 1); /* unseal() wants one */
	json_t *text;

	if (!can_be_sent(name, BYTES_LIT("x")) || !http_rewrite_may_set(name))
		return err_set(err, ERR_INVALID, 0, "a rule cannot set the header %.*s",
			       (int)bytes_head(name, 64).len, (const char *)name.ptr);
	if (json_array_size(d->headers) == RULES_FIELDS_MAX)
		return err_set(err, ERR_INVALID, 0, "more than %d headers", RULES_FIELDS_MAX);
	if (!fill_value(d, name, value, &filled))
		return 0;
	d->size += name.len + filled.len + 4;
	text = json_stringn((const char *)filled.ptr, filled.len);
	if (filled.len == 0)
		text = json_string("");
	if (d->size > RULES_FIELDS_SIZE || !text || !can_be_sent(name, buf_view(&filled))) {
		json_decref(text);
		refuse(d, name, "its value cannot stand in a header", "");
		return 0;
	}
	if (json_array_append_new(d->headers, json_pack("[s%,o]", name.ptr, name.len, text)) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a header");
	return 0;
}

/* --- hosts ---------------------------------------------------------------------------------- */

static int add_headers(struct draft *d, const json_t *one, struct err *err)
{
	json_t *transform = NULL, *headers = NULL, *value;
	const char *name;

	if (!json_is_object(one))
		return err_set(err, ERR_INVALID, 0, "it is not an object");
	if (json_may_object(one, "transform", &transform, err) < 0 ||
	    (transform && json_may_object(transform, "headers", &headers, err) < 0))
		return -1;
	json_object_foreach(headers, name, value)
	{
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID, 0, "a header that is not a string");
		if (add_header(d, bytes_str(name), json_bytes(value), err) < 0)
			return -1;
	}
	return 0;
}

static json_t *host_json(const struct draft *d, const char *host)
{
	return json_pack("{s:s,s:b,s:s,s:O}", "host", host, "secret", d->secret, "refuse",
			 d->refuse, "headers", d->headers);
}

static int add_host(struct draft *d, const char *host, const json_t *list, json_t *into,
		    struct err *err)
{
	AUTO(json_decrefp) json_t *headers = json_array();
	char pattern[DOMAIN_SIZE];

	d->headers = headers;
	if (!domain_pattern(bytes_str(host), pattern) || strcmp(pattern, "*") == 0)
		return err_set(err, ERR_INVALID, 0, "a rule for '%.64s', which is no host", host);
	if (json_array_size(into) == RULES_HOSTS_MAX)
		return err_set(err, ERR_INVALID, 0, "rules for more than %d hosts",
			       RULES_HOSTS_MAX);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (add_headers(d, json_array_get(list, i), err) < 0)
			return err_wrap(err, "rule for %s", pattern);
	if (json_array_append_new(into, host_json(d, pattern)) < 0)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a rule");
	return 0;
}

static int fill_all(const json_t *rules, const struct draft *common, json_t *into, struct err *err)
{
	const char *host;
	json_t *list;

	/* foreach wants what it does not change to be changeable */
	json_object_foreach((json_t *)(uintptr_t)rules, host, list)
	{
		struct draft d = *common;

		if (add_host(&d, host, list, into, err) < 0)
			return -1;
	}
	return 0;
}

/* It shows refusals as pages, or it has rules, or nobody needs it. */
static int wrap_up(json_t *all, bool pages, json_t **ret, struct err *err)
{
	if (json_array_size(all) == 0 && !pages)
		return err_set(err, ERR_INVALID, 0, "there are no rules");
	*ret = json_pack("{s:O,s:b}", "rules", all, "refusalPages", pages);
	return *ret ? 0 : err_set(err, ERR_EXHAUSTED, ENOMEM, "rules");
}

int rules_fill(struct bytes text, const char *team, const struct seal_key *key, json_t **ret,
	       struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	AUTO(json_decrefp) json_t *all = json_array();
	json_t *rules = NULL, *sealed = NULL;
	struct draft d = { .team = team, .key = key };
	bool pages = false;

	if (json_decode(text, RULES_TEXT_MAX, DEPTH_MAX, &v, err) < 0)
		return err_wrap(err, "the rules of a sandbox");
	if (!json_is_object(v))
		return err_set(err, ERR_INVALID, 0, "the rules of a sandbox are an object");
	if (json_want_object(v, "rules", &rules, err) < 0 ||
	    json_may_object(v, "sealed", &sealed, err) < 0 ||
	    json_may_bool(v, "refusalPages", &pages, err) < 0)
		return -1;
	d.sealed = sealed;
	if (fill_all(rules, &d, all, err) < 0)
		return -1;
	return wrap_up(all, pages, ret, err);
}
