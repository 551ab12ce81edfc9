/* sandbox_json.c - every member that clients require, whether they use it or not. */
#include "gateway/sandbox_json.h"

#include "wire/rfc3339.h"

enum { TIME_DIGITS = 6, TEXT_DEPTH = 32 }; /* Python's clocks go to microseconds */

json_t *sandbox_text(struct bytes text)
{
	json_t *v = NULL;
	struct err err;

	if (text.len == 0 || json_decode(text, NODE_TEXT_MAX, TEXT_DEPTH, &v, &err) < 0)
		return NULL;
	return v;
}

static int set(json_t *o, const char *name, json_t *v)
{
	return json_object_set_new(o, name, v);
}

static int set_text(json_t *o, const char *name, const char *value)
{
	return set(o, name, json_text(bytes_str(value)));
}

static int set_time(json_t *o, const char *name, uint64_t ns)
{
	char text[RFC3339_SIZE];

	rfc3339_put(ns, TIME_DIGITS, text);
	return set(o, name, json_string(text));
}

static int set_domain(json_t *o, const char *domain)
{
	return domain[0] ? set_text(o, "domain", domain) : set(o, "domain", json_null());
}

/* What all three have. */
static json_t *start(const struct node_sandbox *s)
{
	json_t *o = json_object();

	if (set_text(o, "sandboxID", s->id) < 0 || set_text(o, "templateID", s->template_id) < 0 ||
	    set_text(o, "clientID", SANDBOX_CLIENT_ID) < 0 ||
	    set_text(o, "envdVersion", SANDBOX_ENVD_VERSION) < 0 ||
	    (s->alias[0] && set_text(o, "alias", s->alias) < 0)) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static json_t *whole(json_t *o, int rc) /* or nothing */
{
	if (rc < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

static int set_token(json_t *o, const struct node_sandbox *s)
{
	return s->access_token[0] ? set_text(o, "envdAccessToken", s->access_token) : 0;
}

json_t *sandbox_json(const struct node_sandbox *s, const char *domain)
{
	json_t *o = start(s);

	return whole(o, set_token(o, s) | set(o, "trafficAccessToken", json_null()) |
				set_domain(o, domain));
}

json_t *sandbox_listed_json(const struct node_sandbox *s, const json_t *text)
{
	json_t *o = start(s), *metadata = json_object_get(text, "metadata");
	int rc;

	rc = set_time(o, "startedAt", s->started_ns) | set_time(o, "endAt", s->end_ns) |
	     set(o, "cpuCount", json_integer(s->vcpus)) |
	     set(o, "memoryMB", json_integer(s->memory_mib)) |
	     set(o, "diskSizeMB", json_integer(s->disk_mib)) | set_text(o, "state", "running") |
	     (metadata ? json_object_set(o, "metadata", metadata)
		       : set(o, "metadata", json_object()));
	return whole(o, rc);
}

/* The password of a proxy is for the proxy. */
static int set_network(json_t *o, const json_t *network)
{
	json_t *copy;

	if (!json_is_object(network))
		return 0;
	copy = json_deep_copy(network);
	json_object_del(json_object_get(copy, "egressProxy"), "password");
	json_object_del(json_object_get(copy, "egress_proxy"), "password");
	return set(o, "network", copy);
}

json_t *sandbox_detail_json(const struct node_sandbox *s, const json_t *text, const char *domain)
{
	json_t *o = sandbox_listed_json(s, text);
	json_t *internet = json_object_get(text, "allowInternetAccess");
	int rc;

	rc = set_token(o, s) | set_domain(o, domain) |
	     set(o, "allowInternetAccess",
		 json_is_boolean(internet) ? json_incref(internet) : json_null()) |
	     set_network(o, json_object_get(text, "network")) |
	     set(o, "lifecycle", json_pack("{s:s, s:b}", "onTimeout", "kill", "autoResume", 0));
	return whole(o, rc);
}
