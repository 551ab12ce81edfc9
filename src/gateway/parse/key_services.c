/* key_services.c - names with a space between them; what they are is egress's to know. */
#include "gateway/parse/key_services.h"

#include "wire/domain.h"

/* One label: it is what stands before .hotcell.internal. */
static bool service_name(const json_t *v, char ret[static DOMAIN_SIZE])
{
	return json_is_string(v) && domain_normal(json_bytes(v), ret) && !strchr(ret, '.');
}

int key_services_read(const json_t *names, char ret[static STORE_SERVICES_SIZE], struct err *err)
{
	char name[DOMAIN_SIZE];
	const json_t *v;
	size_t n = 0, i;

	ret[0] = '\0';
	json_array_foreach(names, i, v)
	{
		if (!service_name(v, name))
			return err_set(err, ERR_INVALID, 0,
				       "services: a name is 1 to 63 letters, digits and '-'");
		n += (size_t)snprintf(ret + n, STORE_SERVICES_SIZE - n, "%s%s", n ? " " : "", name);
		if (n >= STORE_SERVICES_SIZE)
			return err_set(err, ERR_INVALID, 0,
				       "services: their names are longer than %d bytes together",
				       STORE_SERVICES_SIZE - 1);
	}
	return 0;
}

json_t *key_services_json(const char *services)
{
	struct bytes rest = bytes_str(services), name;
	json_t *all = json_array();

	while (bytes_next(&rest, ' ', &name))
		if (name.len > 0 && json_array_append_new(all, json_text(name)) < 0) {
			json_decref(all);
			return NULL;
		}
	return all;
}

int key_services_add(const char *services, json_t *text, struct err *err)
{
	if (json_object_set_new(text, "services", key_services_json(services)) < 0)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory");
	return 0;
}

bool key_services_has(const json_t *published, struct bytes name)
{
	const json_t *v;
	size_t i;

	if (!json_is_array(published))
		return true;
	json_array_foreach(published, i, v)
	{
		if (json_is_string(v) && bytes_eq(json_bytes(v), name))
			return true;
	}
	return false;
}
