/* network_rules.c - see network_rules.h. */
#include "gateway/parse/network_rules.h"

#include "wire/domain.h"
#include "wire/placeholder.h"

/* Where a header stands: a message says both, what it complains of and whose it is. */
struct header {
	const char *host, *name;
	struct bytes value;
};

struct secrets { /* that one rule names */
	char names[NETWORK_SECRETS_MAX][SECRET_NAME_SIZE];
	size_t n;
};

#define SHOWN "\"%.128s\"" /* as many bytes of what was given as network_request.h shows */

/* They say where a message ends, whom it is for, or are for the next hop alone. */
static bool is_framing(struct bytes name)
{
	static const char *const names[] = { "Host",       "Content-Length", "Transfer-Encoding",
					     "Connection", "Upgrade",        "Keep-Alive",
					     "TE",         "Trailer",        "Proxy-Connection",
					     "Expect" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (bytes_eq_nocase(name, bytes_str(names[i])))
			return true;
	return false;
}

static bool is_token(struct bytes name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] <= ' ' || name.ptr[i] >= 127 ||
		    strchr("\"(),/:;<=>?@[\\]{}", name.ptr[i]))
			return false;
	return true;
}

static bool is_value(struct bytes value)
{
	for (size_t i = 0; i < value.len; i++)
		if ((value.ptr[i] < ' ' && value.ptr[i] != '\t') || value.ptr[i] == 127)
			return false;
	return true;
}

static int check_name(const struct header *h, struct err *err)
{
	struct bytes name = bytes_str(h->name);

	if (name.len == 0)
		return err_set(err, ERR_INVALID, 0,
			       "Header name in rule for domain " SHOWN " must not be empty.",
			       h->host);
	if (!is_token(name))
		return err_set(err, ERR_INVALID, 0,
			       "Header name \"%.64s\" in rule for domain " SHOWN
			       " must contain only valid HTTP token characters.",
			       h->name, h->host);
	if (name.len > NETWORK_HEADER_NAME_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "Header name \"%.64s\" in rule for domain " SHOWN
			       " exceeds maximum length of %d characters.",
			       h->name, h->host, NETWORK_HEADER_NAME_MAX);
	if (is_framing(name))
		return err_set(err, ERR_INVALID, 0,
			       "Header name \"%.64s\" in rule for domain " SHOWN
			       " is not one that a rule may set.",
			       h->name, h->host);
	return 0;
}

static int check_value(const struct header *h, struct err *err)
{
	if (!is_value(h->value))
		return err_set(err, ERR_INVALID, 0,
			       "Value for header \"%.64s\" in rule for domain " SHOWN
			       " contains invalid characters.",
			       h->name, h->host);
	if (h->value.len > NETWORK_HEADER_VALUE_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "Value for header \"%.64s\" in rule for domain " SHOWN
			       " exceeds maximum length of %d characters.",
			       h->name, h->host, NETWORK_HEADER_VALUE_MAX);
	return 0;
}

static int add_secret(struct secrets *s, const struct placeholder *p, const char *host,
		      struct err *err)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->names[i], p->secret) == 0)
			return 0;
	if (s->n == NETWORK_SECRETS_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "Rule domain " SHOWN " references more than %d secrets.", host,
			       NETWORK_SECRETS_MAX);
	memcpy(s->names[s->n++], p->secret, sizeof(p->secret));
	return 0;
}

static int check_placeholders(const struct header *h, struct secrets *s, struct err *err)
{
	struct bytes rest = h->value;
	struct placeholder p;

	for (;;) {
		switch (placeholder_next(&rest, &p)) {
		case PLACEHOLDER_NONE:
			return 0;
		case PLACEHOLDER_SECRET:
			if (add_secret(s, &p, h->host, err) < 0)
				return -1;
			break;
		case PLACEHOLDER_IDENTITY:
			return err_set(err, ERR_INVALID, 0,
				       "identity tokens in network rules are not supported yet");
		case PLACEHOLDER_BROKEN:
			return err_set(err, ERR_INVALID, 0,
				       "Network transform header contains a malformed E2B "
				       "placeholder.");
		}
	}
}

/* {"Authorization":"Bearer x"} */
static int check_headers(const char *host, const json_t *headers, struct secrets *s,
			 struct err *err)
{
	struct header h = { .host = host };
	json_t *value;

	if (json_object_size(headers) > NETWORK_HEADERS_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "Domain " SHOWN " can have at most %d headers per rule.", host,
			       NETWORK_HEADERS_MAX);
	json_object_foreach((json_t *)(uintptr_t)headers, h.name, value)
	{
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID, 0,
				       "headers in rule for domain " SHOWN " must be strings",
				       host);
		h.value = json_bytes(value);
		if (check_name(&h, err) < 0 || check_value(&h, err) < 0 ||
		    check_placeholders(&h, s, err) < 0)
			return -1;
	}
	return 0;
}

/* One of a host's rules: what is known of it, appended to `to`. */
static int take_rule(const char *host, const json_t *rule, json_t *to, struct err *err)
{
	AUTO(json_decrefp) json_t *clean = json_object();
	json_t *transform = NULL, *headers = NULL;
	struct secrets s = { .n = 0 };

	if (json_may_object(rule, "transform", &transform, err) < 0 ||
	    (transform && json_may_object(transform, "headers", &headers, err) < 0) ||
	    check_headers(host, headers, &s, err) < 0)
		return -1;
	if (transform)
		json_object_set_new(clean, "transform",
				    headers ? json_pack("{s:O}", "headers", headers)
					    : json_object());
	if (json_array_append(to, clean) < 0)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory");
	return 0;
}

/* A host as it is compared; * alone is none. */
static int check_host(const char *host, char ret[static DOMAIN_SIZE], struct err *err)
{
	size_t len = strlen(host);

	if (len == 0)
		return err_set(err, ERR_INVALID, 0, "Rule domain must not be empty.");
	if (len > NETWORK_RULE_NAME_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "Rule domain " SHOWN " exceeds maximum length of %d characters.",
			       host, NETWORK_RULE_NAME_MAX);
	if (!domain_pattern(bytes_str(host), ret) || strcmp(ret, "*") == 0)
		return err_set(err, ERR_INVALID, 0,
			       "Rule domain " SHOWN " is not a valid domain name.", host);
	return 0;
}

static int take_host(const char *host, const json_t *rules, json_t *to, struct err *err)
{
	AUTO(json_decrefp) json_t *clean = json_array();
	char name[DOMAIN_SIZE];

	if (check_host(host, name, err) < 0)
		return -1;
	if (!json_is_array(rules))
		return err_set(err, ERR_INVALID, 0, "rules of domain " SHOWN " must be an array",
			       host);
	if (json_array_size(rules) > 1)
		return err_set(err, ERR_INVALID, 0,
			       "Domain " SHOWN " can have at most 1 transform rule.", host);
	if (json_object_get(to, name))
		return err_set(err, ERR_INVALID, 0, "Rule domain " SHOWN " is given twice.", name);
	if (json_array_size(rules) == 1 &&
	    take_rule(host, json_array_get(rules, 0), clean, err) < 0)
		return -1;
	if (json_object_set(to, name, clean) < 0)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory");
	return 0;
}

int network_rules_take(const json_t *rules, json_t **ret, struct err *err)
{
	AUTO(json_decrefp) json_t *clean = json_object();
	const char *host;
	json_t *of_host;

	if (json_object_size(rules) > NETWORK_RULES_MAX)
		return err_set(err, ERR_INVALID, 0, "Network rules can have at most %d domains.",
			       NETWORK_RULES_MAX);
	json_object_foreach((json_t *)(uintptr_t)rules, host, of_host)
	{
		if (take_host(host, of_host, clean, err) < 0)
			return -1;
	}
	*ret = TAKE(clean);
	return 0;
}
