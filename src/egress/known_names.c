/* known_names.c - see known_names.h. */
#include "egress/known_names.h"

#include <errno.h>

#include "wire/ip.h"

/* --- the pairs ------------------------------------------------------------------------------ */

/* Its place, or n. */
static size_t find(const struct known_names *k, const char *name, uint32_t ip)
{
	size_t i = k->n;

	while (i > 0 && (k->all[i - 1].ip != ip || strcmp(k->all[i - 1].name, name) != 0))
		i--;
	return i > 0 ? i - 1 : k->n;
}

static struct known_name take_out(struct known_names *k, size_t at)
{
	struct known_name one = k->all[at];

	k->n--;
	memmove(&k->all[at], &k->all[at + 1], (k->n - at) * sizeof(one));
	return one;
}

static void add(struct known_names *k, const char *name, uint32_t ip)
{
	size_t at = find(k, name, ip);
	struct known_name one = { ip, NULL };

	if (at < k->n)
		one = take_out(k, at);
	else
		one.name = strdup(name);
	if (!one.name)
		return;
	if (k->n == KNOWN_NAMES_MAX)
		free(take_out(k, 0).name);
	k->all[k->n++] = one;
}

void known_names_add(struct known_names *k, const char *name, const struct dns_addresses *given)
{
	if (!k->all)
		k->all = calloc(KNOWN_NAMES_MAX, sizeof(*k->all));
	for (size_t i = 0; k->all && i < given->n; i++)
		add(k, name, given->ip[i]);
}

const char *known_names_of(const struct known_names *k, uint32_t ip, size_t at)
{
	for (size_t i = k->n; i > 0; i--)
		if (k->all[i - 1].ip == ip && at-- == 0)
			return k->all[i - 1].name;
	return NULL;
}

void known_names_done(struct known_names *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->all[i].name);
	free(k->all);
	*k = (struct known_names){ 0 };
}

/* --- as text -------------------------------------------------------------------------------- */

int known_names_tell(const struct known_names *k, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *all = json_array();
	char ip[IP4_TEXT_MAX];

	for (size_t i = k->n > KNOWN_TOLD_MAX ? k->n - KNOWN_TOLD_MAX : 0; i < k->n; i++) {
		ip4_text(k->all[i].ip, ip);
		if (json_array_append_new(all, json_pack("[ss]", k->all[i].name, ip)) < 0)
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "tell the names");
	}
	return json_encode(all, out, err);
}

static bool read_pair(const json_t *pair, char name[static DOMAIN_SIZE], struct dns_addresses *ret)
{
	const json_t *host = json_array_get(pair, 0), *ip = json_array_get(pair, 1);

	ret->n = 1;
	return json_array_size(pair) == 2 && json_is_string(host) && json_is_string(ip) &&
	       domain_normal(json_bytes(host), name) && ip4_parse(json_bytes(ip), &ret->ip[0]);
}

static int check(const json_t *all, struct err *err)
{
	struct dns_addresses one = { 0 };
	char name[DOMAIN_SIZE];

	if (json_array_size(all) > KNOWN_NAMES_MAX)
		return err_set(err, ERR_INVALID, 0, "known: more than %d", KNOWN_NAMES_MAX);
	for (size_t i = 0; i < json_array_size(all); i++)
		if (!read_pair(json_array_get(all, i), name, &one))
			return err_set(err, ERR_INVALID, 0,
				       "known: not pairs of a name and an address");
	return 0;
}

int known_names_read(struct known_names *k, const json_t *rules, struct err *err)
{
	struct dns_addresses one = { 0 };
	char name[DOMAIN_SIZE];
	json_t *all = NULL;

	if (json_may_array(rules, "known", &all, err) < 0 || check(all, err) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(all); i++)
		if (read_pair(json_array_get(all, i), name, &one))
			known_names_add(k, name, &one);
	return 0;
}
