/* sandbox_json.c - every member that clients require, whether they use it or not. */
#include "gateway/api/sandbox_json.h"

#include "gateway/api/answer.h"

enum { TEXT_DEPTH = 32 };

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
	return set(o, name, api_time(ns));
}

static int set_domain(json_t *o, const char *domain)
{
	return set_text(o, "domain", domain);
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

/* What its ports want to see; of one that is open to everybody there is none. */
static int set_traffic(json_t *o, const struct node_sandbox *s)
{
	if (s->traffic_token[0])
		return set_text(o, "trafficAccessToken", s->traffic_token);
	return set(o, "trafficAccessToken", json_null());
}

json_t *sandbox_json(const struct node_sandbox *s, const char *domain)
{
	json_t *o = start(s);

	return whole(o, set_token(o, s) | set_traffic(o, s) | set_domain(o, domain));
}

/* Ours: only of one that stands still, or that the host does not find. */
static int set_stalled(json_t *o, const struct node_sandbox *s)
{
	if (s->flags & NODE_ABSENT)
		return set_text(o, "stalled", "vm_absent");
	return s->flags & NODE_STALLED ? set_text(o, "stalled", "disk_full") : 0;
}

static int set_message(json_t *o, const struct node_sandbox *s)
{
	if (!(s->flags & NODE_ABSENT))
		return 0;
	return set_text(
		o, "message",
		"The host does not find the virtual machine of this sandbox. It is kept, with "
		"its disk, until it is found or certainly lost; its time goes on.");
}

static const char *state_of(const struct node_sandbox *s)
{
	if (s->reason != NODE_ALIVE)
		return "ended";
	return s->state == NODE_PAUSED ? "paused" : s->state == NODE_ENDING ? "ending" : "running";
}

/* Of a paused one: when it was paused. */
static uint64_t end_of(const struct node_sandbox *s)
{
	return s->state == NODE_PAUSED && s->ended_ns ? s->ended_ns : s->end_ns;
}

json_t *sandbox_listed_json(const struct node_sandbox *s, const json_t *text)
{
	json_t *o = start(s), *metadata = json_object_get(text, "metadata");
	int rc;

	rc = set_time(o, "startedAt", s->started_ns) | set_time(o, "endAt", end_of(s)) |
	     set(o, "cpuCount", json_integer(s->vcpus)) |
	     set(o, "memoryMB", json_integer(s->memory_mib)) |
	     set(o, "diskSizeMB", json_integer(s->disk_mib)) | set_text(o, "state", state_of(s)) |
	     set_stalled(o, s) |
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

	rc = set_token(o, s) | set_domain(o, domain) | set_message(o, s) |
	     set(o, "allowInternetAccess",
		 json_is_boolean(internet) ? json_incref(internet) : json_null()) |
	     set_network(o, json_object_get(text, "network")) |
	     set(o, "lifecycle",
		 json_pack("{s:s, s:b}", "onTimeout", s->flags & NODE_AUTO_PAUSE ? "pause" : "kill",
			   "autoResume", (s->flags & NODE_AUTO_RESUME) != 0));
	return whole(o, rc);
}

int sandbox_add_end(json_t *o, uint32_t reason, uint64_t ended_ns)
{
	const char *name = node_reason_name(reason);

	if (!name)
		return 0;
	return set_text(o, "reason", name) | (ended_ns ? set_time(o, "endedAt", ended_ns) : 0);
}

json_t *sandbox_why_json(const struct node_sandbox *s, const char *id)
{
	json_t *o = json_object();
	int rc = set_text(o, "sandboxID", id) | set_text(o, "state", state_of(s)) |
		 (s->team[0] ? set_text(o, "teamID", s->team) : 0) |
		 (s->template_id[0] ? set_text(o, "templateID", s->template_id) : 0) |
		 (s->started_ns ? set_time(o, "startedAt", s->started_ns) : 0);

	if (s->reason != NODE_ALIVE)
		rc |= sandbox_add_end(o, s->reason, s->ended_ns);
	else if (s->state == NODE_PAUSED)
		rc |= set_time(o, "pausedAt", end_of(s));
	else
		rc |= set_time(o, "endAt", s->end_ns) | set_stalled(o, s) | set_message(o, s);
	return whole(o, rc);
}

json_t *sandbox_tombstone_json(const struct node_tombstone *t)
{
	json_t *o = json_object();

	return whole(o, set_text(o, "sandboxID", t->id) | set_text(o, "teamID", t->team) |
				set_text(o, "templateID", t->template_id) |
				set_time(o, "startedAt", t->started_ns) |
				sandbox_add_end(o, t->reason, t->ended_ns));
}
