/* rule_secrets.c - see rule_secrets.h. */
#include "wire/rule_secrets.h"

#include "wire/placeholder.h"

static void add_names(const json_t *value, json_t *names)
{
	struct bytes rest = json_bytes(value);
	enum placeholder_kind kind;
	struct placeholder p;

	if (!json_is_string(value))
		return;
	while ((kind = placeholder_next(&rest, &p)) == PLACEHOLDER_SECRET ||
	       kind == PLACEHOLDER_IDENTITY)
		if (kind == PLACEHOLDER_SECRET)
			json_object_set_new(names, p.secret, json_null());
}

static void add_names_of_rule(const json_t *rule, json_t *names)
{
	json_t *headers = json_object_get(json_object_get(rule, "transform"), "headers");
	const char *key;
	json_t *value;

	json_object_foreach(headers, key, value)
	{
		add_names(value, names);
	}
}

json_t *rule_secrets(const json_t *text)
{
	json_t *rules = json_object_get(json_object_get(text, "network"), "rules");
	json_t *names = json_object(), *of_host, *rule;
	const char *host;
	size_t i;

	json_object_foreach(rules, host, of_host)
	{
		json_array_foreach(of_host, i, rule)
		{
			add_names_of_rule(rule, names);
		}
	}
	return names;
}
