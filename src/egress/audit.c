/* audit.c - see audit.h. */
#include "egress/audit.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "wire/ip.h"
#include "wire/json.h"
#include "wire/rfc3339.h"

struct audit_kept {
	uint64_t at_ns; /* wall clock */
	enum sandbox_egress_kind kind;
	enum audit_verdict verdict;
	uint32_t ip;
	uint16_t port;
	size_t why;  /* where it begins in `text` */
	char text[]; /* name, NUL, why */
};

static const char *const kinds[] = { "name", "tcp", "tls", "http" };
static const char *const verdicts[] = { "refused", "allowed", "failed" };

/* --- the log -------------------------------------------------------------------------------- */

static void say_unsaid(struct audit *a, const char *id)
{
	if (a->unsaid > 0)
		log_info("sandbox %s: %lu more decisions are not written here", id, a->unsaid);
	a->unsaid = 0;
}

static bool may_say(struct audit *a, const char *id)
{
	uint64_t now = clock_mono_ns();

	if (a->since_ns == 0 || now - a->since_ns >= AUDIT_LINES_S * NSEC_PER_SEC) {
		say_unsaid(a, id);
		a->since_ns = now;
		a->lines = 0;
	}
	if (a->lines < AUDIT_LINES) {
		a->lines++;
		return true;
	}
	a->unsaid++;
	return false;
}

static void say(const char *id, const struct audit_entry *e)
{
	char ip[IP4_TEXT_MAX] = "", port[8] = "";

	if (e->ip)
		ip4_text(e->ip, ip);
	if (e->port)
		snprintf(port, sizeof(port), ":%u", e->port);
	log_info("sandbox %s: %s %s%s%s%s %s: %s", id, kinds[e->kind], e->name,
		 e->name[0] && e->ip ? " " : "", ip, port, verdicts[e->verdict], e->why);
}

/* --- what is kept --------------------------------------------------------------------------- */

static struct audit_kept *keep(const struct audit_entry *e)
{
	size_t name = strlen(e->name) + 1, why = strlen(e->why) + 1;
	struct audit_kept *k = malloc(sizeof(*k) + name + why);

	if (!k)
		return NULL;
	*k = (struct audit_kept){ clock_wall_ns(), e->kind, e->verdict, e->ip, e->port, name };
	memcpy(k->text, e->name, name);
	memcpy(k->text + name, e->why, why);
	return k;
}

void audit_add(struct audit *a, const char *id, const struct audit_entry *e)
{
	struct audit_kept *k;

	if (may_say(a, id))
		say(id, e);
	if (!a->kept)
		a->kept = calloc(AUDIT_KEPT, sizeof(struct audit_kept *));
	k = a->kept ? keep(e) : NULL;
	if (!k)
		return;
	free(a->kept[a->next]);
	a->kept[a->next] = k;
	a->next = (a->next + 1) % AUDIT_KEPT;
	a->n += a->n < AUDIT_KEPT;
}

void audit_done(struct audit *a, const char *id)
{
	say_unsaid(a, id);
	for (size_t i = 0; i < a->n; i++)
		free(a->kept[i]);
	free(a->kept);
	*a = (struct audit){ 0 };
}

static json_t *one(const struct audit_kept *k)
{
	char at[RFC3339_SIZE], ip[IP4_TEXT_MAX];
	json_t *v;

	rfc3339_put(k->at_ns, 3, at);
	ip4_text(k->ip, ip);
	v = json_pack("{ss ss ss}", "at", at, "kind", kinds[k->kind], "verdict",
		      verdicts[k->verdict]);
	if (v && ((k->text[0] && json_object_set_new(v, "name", json_string(k->text)) < 0) ||
		  (k->ip && json_object_set_new(v, "address", json_string(ip)) < 0) ||
		  (k->port && json_object_set_new(v, "port", json_integer(k->port)) < 0) ||
		  json_object_set_new(v, "why", json_text(bytes_str(k->text + k->why))) < 0)) {
		json_decref(v);
		return NULL;
	}
	return v;
}

int audit_tell(const struct audit *a, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *all = json_array();

	for (size_t i = 0; i < a->n; i++) {
		const struct audit_kept *k =
			a->kept[(a->next + AUDIT_KEPT - a->n + i) % AUDIT_KEPT];

		if (json_array_append_new(all, one(k)) < 0)
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "tell the decisions");
	}
	return json_encode(all, out, err);
}
