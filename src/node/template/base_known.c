/* base_known.c - which templates are whole, damaged or gone, who needs them, and which may go.
 *
 * What is paused, or kept as a snapshot, is a difference from a template, and nothing without it.
 * So one that is in use is never dropped, whatever is wrong with it, and one that is damaged is
 * kept aside and told of.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/folder.h"
#include "base/log.h"
#include "node/template/base_find.h"
#include "node/node.h"
#include "node/life/snapshot_take.h"

static struct base_known *find(const struct node *n, const char *id)
{
	struct base_known *k = n->base.known;

	while (k && strcmp(k->id, id) != 0)
		k = k->next;
	return k;
}

/* NULL: there are too many, or no memory. */
static struct base_known *find_or_add(struct node *n, const char *id)
{
	struct base_known *k = find(n, id);
	size_t count = 0;

	if (k)
		return k;
	for (k = n->base.known; k; k = k->next)
		count++;
	k = count < BASE_KNOWN_MAX ? calloc(1, sizeof(*k)) : NULL;
	if (!k)
		return NULL;
	snprintf(k->id, sizeof(k->id), "%s", id);
	k->next = n->base.known;
	n->base.known = k;
	return k;
}

void base_known_close(struct node *n)
{
	struct base_known *k;

	files_cancel(&n->base.reading);
	while ((k = n->base.known)) {
		n->base.known = k->next;
		free(k);
	}
}

/* --- what is learned ---------------------------------------------------------------------- */

static void say(const struct node *n, struct base_known *k, const char *what)
{
	bool news = strcmp(k->why, what) != 0;

	const char *then = "nothing needs it, and it may be removed by hand";

	if (base_in_use(n, k->id))
		then = k->bad || k->absent ? "what differs from it waits for it to be put back"
					   : "it is kept, and no new sandbox is made of it";
	snprintf(k->why, sizeof(k->why), "%s", what);
	if (news && what[0])
		log_error("template %s: %s; %s", k->id, what, then);
}

void base_learn(struct node *n, const char *id, const struct files_opened *got)
{
	struct base_known *k = got->base == FILES_BASE_UNREAD ? NULL : find_or_add(n, id);
	char what[sizeof(k->why)];

	if (!k)
		return;
	k->absent = got->base == FILES_BASE_ABSENT;
	k->read = !k->absent;
	k->bad = k->read ? got->base_bad : 0;
	memcpy(k->vmm, got->base_vmm, sizeof(k->vmm));
	k->at_ms = loop_now_ms(n->loop);
	if (k->absent)
		say(n, k, "it is not there");
	else if (k->bad == UINT32_MAX)
		say(n, k, "its manifest is damaged");
	else if (k->bad) {
		snprintf(what, sizeof(what), "its %s is damaged",
			 manifest_file_name((enum manifest_file)__builtin_ctz(k->bad)));
		say(n, k, what);
	} else if (!k->unfit) {
		say(n, k, "");
	}
}

bool base_learn_unfit(struct node *n, const char *id, const struct err *why)
{
	struct base_known *k = find_or_add(n, id);

	if (!k)
		return false;
	k->unfit = true;
	say(n, k, why->msg);
	return true;
}

void base_learn_whole(struct node *n, const char *id)
{
	struct base_known *k = find_or_add(n, id);

	if (!k)
		return;
	k->read = true;
	k->absent = k->unfit = false;
	k->bad = 0;
	if (strcmp(id, n->base.id) == 0)
		memcpy(k->vmm, n->base.manifest.made_with.vmm_version, sizeof(k->vmm));
	say(n, k, "");
}

bool base_is_unfit(const struct node *n, const char *id)
{
	const struct base_known *k = find(n, id);

	return k && (k->unfit || k->bad);
}

void base_fill_order(const struct node *n, struct files_order *o)
{
	const struct base_known *k = find(n, o->template_id);
	bool fresh = k && k->read &&
		     (k->bad == 0 || loop_now_ms(n->loop) - k->at_ms < BASE_READ_AGAIN_MS);

	o->read_base = !fresh;
	o->base_bad = fresh ? k->bad : 0;
}

/* --- who needs it ------------------------------------------------------------------------- */

bool base_in_use(const struct node *n, const char *id)
{
	for (const struct sandbox *s = n->table.all; s; s = s->next)
		if (strcmp(s->base_id, id) == 0)
			return true;
	for (const struct create *c = n->creates.all; c; c = c->all_next)
		if (strcmp(c->ground, id) == 0)
			return true;
	return snapshots_need(n, id) || takings_need(n, id) || quarantine_needs(n, id);
}

bool base_has_row(const char *id, void *context)
{
	const struct node *n = context;

	return table_find(&n->table, id) || snapshots_by_id(n, id) ||
	       quarantine_has(n, QUARANTINE_SANDBOX, id) ||
	       quarantine_has(n, QUARANTINE_SNAPSHOT, id);
}

static void on_old_dropped(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;

	(void)c;
	if (err)
		log_warn("drop %s: %s", warden_request_of(r)->template_id, err->msg);
}

/* One earlier `base` that nothing differs from, or that was not finished; the next goes at the next
 * start. */
static int drop_old(int dir, const char *name, void *context, struct err *err)
{
	struct node *n = context;
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_DROP };
	const struct base_known *k;

	(void)err;
	if (n->reconcile.n_others > 0 || installation_is_younger(&n->installation, dir, name))
		return 0; /* another installation may need it */
	if (strncmp(name, WARDEN_OPEN_PREFIX, strlen(WARDEN_OPEN_PREFIX)) == 0)
		name += strlen(WARDEN_OPEN_PREFIX);
	k = find(n, name);
	if (strncmp(name, BASE_ALIAS "-", strlen(BASE_ALIAS) + 1) != 0 ||
	    strlen(name) < BASE_INPUTS_LENGTH || strlen(name) >= sizeof(rq.template_id) ||
	    strcmp(name, n->base.id) == 0 || (k && (k->unfit || k->bad)) || base_in_use(n, name))
		return 0;
	log_info("template %s is not used any more: it is dropped", name);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", name);
	warden_again(&n->warden, &n->base.drop, &rq, WARDEN_CALL_MS, on_old_dropped);
	return -1;
}

/* Whoever's folder is in no row may come back, when its row does: nobody knows what it needs. */
void base_drop_old(struct node *n)
{
	struct err err;
	AUTO(auto_close) int dir = base_open_folder(n, ".", &err);

	if (dir >= 0 && !n->base.drop.link && files_all_known(n->files, base_has_row, n))
		(void)!folder_each(dir, drop_old, n, &err);
}

/* --- reading what is used ----------------------------------------------------------------- */

static bool wants_reading(const struct node *n, const char *id)
{
	const struct base_known *k = id[0] ? find(n, id) : NULL;

	return id[0] && (!k || (!k->read && !k->absent && k->at_ms == 0));
}

static const char *next_to_read(const struct node *n)
{
	for (const struct sandbox *s = n->table.all; s; s = s->next)
		if (wants_reading(n, s->base_id))
			return s->base_id;
	for (const struct snapshot *p = n->snapshots.all; p; p = p->next)
		if (wants_reading(n, p->row.base_id))
			return p->row.base_id;
	return NULL;
}

/* What could not be read now is when somebody wants it. */
static void on_read(struct files_call *c, struct files_opened *got, const struct err *err)
{
	struct node *n = CONTAINER_OF(c, struct node, base.reading);
	struct base_known *k = find_or_add(n, n->base.read_id);

	base_learn(n, n->base.read_id, got);
	if (err && got->base == FILES_BASE_UNREAD)
		log_warn("template %s cannot be read: %s", n->base.read_id, err->msg);
	if (!k)
		return;
	k->at_ms = loop_now_ms(n->loop);
	base_read_used(n);
}

void base_read_used(struct node *n)
{
	const char *id = n->base.reading.job ? NULL : next_to_read(n);
	struct files_order o = { .verb = FILES_BASE };
	struct err err;

	if (!id)
		return;
	snprintf(n->base.read_id, sizeof(n->base.read_id), "%s", id);
	snprintf(o.id, sizeof(o.id), "%s", id);
	snprintf(o.template_id, sizeof(o.template_id), "%s", id);
	if (files_ask(n->files, &n->base.reading, &o, on_read, &err) < 0)
		log_warn("template %s cannot be read: %s", id, err.msg);
}

/* --- what is told ------------------------------------------------------------------------- */

static bool is_elsewhere(const struct node *n, const struct sandbox *s, const char *here)
{
	const struct base_known *k = s->snapshot || s->host ? NULL : find(n, s->base_id);
	const char *vmm = s->host ? s->host->vmm_version : k ? k->vmm : "";

	return vmm[0] && strcmp(vmm, here) != 0;
}

size_t base_saved_elsewhere(const struct node *n)
{
	const char *here = n->warden.facts.vmm_version;
	size_t count = 0;

	if (!here[0])
		return 0;
	for (const struct sandbox *s = n->table.all; s; s = s->next)
		count += s->state == SANDBOX_PAUSED && s->saved_bytes > 0 &&
			 is_elsewhere(n, s, here);
	return count;
}

static bool is_lost(const struct node *n, const struct base_known *k)
{
	return k->unfit || k->bad || (k->absent && base_in_use(n, k->id));
}

int base_describe_lost(const struct node *n, json_t *to, struct err *err)
{
	for (const struct base_known *k = n->base.known; k; k = k->next) {
		json_t *one;

		if (!is_lost(n, k))
			continue;
		one = json_pack("{s:s, s:s, s:I, s:I, s:s, s:b, s:o}", "templateID", k->id, "alias",
				"", "cpuCount", (json_int_t)n->sizes.vcpus, "memoryMB",
				(json_int_t)n->sizes.memory_mib, "buildStatus",
				k->absent ? "missing" : "damaged", "inUse",
				(int)base_in_use(n, k->id), "message",
				json_text(bytes_str(k->why)));
		if (!one || json_array_append_new(to, one) < 0)
			return err_set(err, ERR_EXHAUSTED, ENOMEM, "describe the templates");
	}
	return 0;
}

json_t *base_lost_ids(const struct node *n)
{
	json_t *ids = json_array();

	for (const struct base_known *k = n->base.known; ids && k; k = k->next)
		if (is_lost(n, k))
			json_array_append_new(ids, json_text(bytes_str(k->id)));
	return ids;
}
