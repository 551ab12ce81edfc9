/* rule.c - see rule.h. */
#include "injector/worker/rule.h"

#include <errno.h>

static int read_fields(const json_t *headers, struct rule *ret, struct err *err)
{
	if (json_array_size(headers) > RULES_FIELDS_MAX)
		return err_set(err, ERR_INVALID, 0, "too many headers");
	for (size_t i = 0; i < json_array_size(headers); i++) {
		const json_t *pair = json_array_get(headers, i);
		const json_t *name = json_array_get(pair, 0), *value = json_array_get(pair, 1);

		if (!json_is_string(name) || !json_is_string(value))
			return err_set(err, ERR_INVALID, 0, "not a header");
		ret->fields[ret->n_fields++] =
			(struct http1_field){ json_bytes(name), json_bytes(value) };
	}
	return 0;
}

static int read_rule(const json_t *v, struct rule *ret, struct err *err)
{
	struct bytes host, refuse;
	json_t *headers;

	if (json_want_string(v, "host", &host, err) < 0 ||
	    json_want_string(v, "refuse", &refuse, err) < 0 ||
	    json_want_bool(v, "secret", &ret->secret, err) < 0 ||
	    json_want_array(v, "headers", &headers, err) < 0)
		return -1;
	if (!domain_pattern(host, ret->host) ||
	    !bytes_to_str(refuse, ret->refuse, sizeof(ret->refuse)))
		return err_set(err, ERR_INVALID, 0, "not a rule");
	return read_fields(headers, ret, err);
}

int rules_read(const json_t *array, struct rules *ret, struct err *err)
{
	AUTO(rules_done) struct rules r = { 0 };
	size_t n = json_array_size(array);

	if (n > RULES_HOSTS_MAX)
		return err_set(err, ERR_INVALID, 0, "%zu rules", n);
	if (n == 0) {
		*ret = r;
		return 0;
	}
	r.all = calloc(n, sizeof(*r.all));
	if (!r.all)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "rules");
	for (; r.n < n; r.n++)
		if (read_rule(json_array_get(array, r.n), &r.all[r.n], err) < 0)
			return -1;
	*ret = r;
	r = (struct rules){ 0 };
	return 0;
}

void rules_done(struct rules *r)
{
	free(r->all);
	*r = (struct rules){ 0 };
}

const struct rule *rules_find(const struct rules *r, const char *name)
{
	const struct rule *best = NULL;

	for (size_t i = 0; i < r->n; i++)
		if (domain_match(r->all[i].host, name) &&
		    (!best || domain_is_closer(r->all[i].host, best->host)))
			best = &r->all[i];
	return best;
}
