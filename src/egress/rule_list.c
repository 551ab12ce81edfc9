/* rule_list.c - see rule_list.h. */
#include "egress/rule_list.h"

#include <errno.h>

static bool read_entry(struct bytes entry, struct rule *ret, char text[static DOMAIN_SIZE])
{
	ret->is_range = cidr_parse(entry, &ret->range);
	if (ret->is_range)
		return bytes_to_str(entry, text, DOMAIN_SIZE);
	return domain_pattern(entry, text);
}

int rule_list_add(struct rule_list *l, struct bytes entry, struct err *err)
{
	char text[DOMAIN_SIZE];
	struct rule r = { 0 }, *more;

	if (l->n == RULES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d entries", RULES_MAX);
	if (!read_entry(entry, &r, text))
		return err_set(err, ERR_INVALID, 0,
			       "'%.*s' is neither an address, a range nor a name of hosts",
			       (int)bytes_head(entry, 64).len, (const char *)entry.ptr);
	more = reallocarray(l->all, l->n + 1, sizeof(*more));
	if (!more)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a rule");
	l->all = more;
	r.text = strdup(text);
	if (!r.text)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a rule");
	r.len = strlen(text);
	l->all[l->n++] = r;
	return 0;
}

void rule_list_done(struct rule_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->all[i].text);
	free(l->all);
	*l = (struct rule_list){ 0 };
}

/* Most are told apart by this: there may be a thousand, and each connection asks. */
static bool may_match(const struct rule *r, size_t len)
{
	return !r->is_range && (r->text[0] == '*' ? r->len <= len : r->len == len);
}

const struct rule *rule_list_name(const struct rule_list *l, const char *name)
{
	const struct rule *best = NULL;
	size_t len = strlen(name);

	for (size_t i = 0; i < l->n; i++) {
		const struct rule *r = &l->all[i];

		if (may_match(r, len) && domain_match(r->text, name) &&
		    (!best || domain_is_closer(r->text, best->text)))
			best = r;
	}
	return best;
}

const struct rule *rule_list_ip(const struct rule_list *l, uint32_t ip)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->all[i].is_range && cidr_has(&l->all[i].range, ip))
			return &l->all[i];
	return NULL;
}

bool rule_list_has_all(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->all[i].is_range && cidr_is_all(&l->all[i].range))
			return true;
	return false;
}
