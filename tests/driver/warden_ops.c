/* warden_ops.c - the operations that are one verb of warden's, and the link to it. */
#include "tests/driver/driver.h"

#include <errno.h>
#include <fcntl.h>

#include "base/log.h"

static void on_up(struct warden_client *k)
{
	struct driver *d = CONTAINER_OF(k, struct driver, warden);

	if (d->reconnecting)
		run_facts(TAKE(d->reconnecting));
	if (d->ready)
		return;
	d->ready = true;
	lines_say(d, json_pack("{s:b, s:o}", "ready", 1, "warden", facts_json(&k->facts)));
	lines_begin(d);
}

static void on_down(struct warden_client *k)
{
	struct driver *d = CONTAINER_OF(k, struct driver, warden);

	d->n_slots = 0;
	templates_forget(d, NULL);
}

/* Whether the old connection is known to be dead or not, another one is made. */
void run_reconnect(struct op *o)
{
	struct driver *d = o->d;
	struct err err;

	if (d->reconnecting) {
		err_set(&err, ERR_EXISTS, 0, "another reconnect is under way");
		op_fail(o, &err);
		return;
	}
	d->reconnecting = o;
	link_hang_up(&d->warden.link);
}

void driver_connect(struct driver *d)
{
	static const struct warden_client_ops ops = { on_up, on_down };

	warden_client_open(&d->warden, d->loop, d->warden_path, &DEFAULT_SIZES, &ops);
}

int driver_ask(struct driver *d, struct link_call *c, const struct warden_request *rq,
	       const int *fds, size_t n_fds, link_done_fn *on_done, struct err *err)
{
	const struct warden_asked what = { rq, fds, n_fds, DRIVER_WARDEN_MS };

	return warden_once_fds(&d->warden, c, &what, on_done, err);
}

json_t *facts_json(const struct warden_facts *f)
{
	return json_pack("{s:s#, s:s#, s:s#, s:s#, s:b}", "vmm_version", f->vmm_version,
			 (int)strnlen(f->vmm_version, sizeof(f->vmm_version)), "cpu_model",
			 f->cpu_model, (int)strnlen(f->cpu_model, sizeof(f->cpu_model)), "accel",
			 f->accel, (int)strnlen(f->accel, sizeof(f->accel)), "arguments",
			 f->arguments, (int)strnlen(f->arguments, sizeof(f->arguments)), "emulated",
			 (int)f->emulated);
}

static int number_of(const json_t *args, const char *name, uint32_t *ret, struct err *err)
{
	int64_t n = *ret;

	if (json_may_int(args, name, 0, UINT32_MAX, &n, err) < 0)
		return -1;
	*ret = (uint32_t)n;
	return 0;
}

int sizes_of(const json_t *args, struct warden_sizes *ret, struct err *err)
{
	if (number_of(args, "vcpus", &ret->vcpus, err) < 0 ||
	    number_of(args, "memoryMib", &ret->memory_mib, err) < 0 ||
	    number_of(args, "overheadMib", &ret->overhead_mib, err) < 0 ||
	    number_of(args, "cpuPercent", &ret->cpu_percent, err) < 0)
		return -1;
	return number_of(args, "pidsMax", &ret->pids_max, err);
}

int id_of(const json_t *args, const char *name, char ret[static WARDEN_ID_MAX + 1], struct err *err)
{
	struct bytes id;

	if (json_want_string(args, name, &id, err) < 0)
		return -1;
	if (!bytes_to_str(id, ret, WARDEN_ID_MAX + 1))
		return err_set(err, ERR_INVALID, 0, "%s is longer than %d", name, WARDEN_ID_MAX);
	return 0;
}

json_t *steps_json(const struct steps *s)
{
	json_t *v = json_object();

	for (size_t i = 0; i < s->n; i++)
		json_object_set_new(v, s->at[i].name,
				    json_integer((json_int_t)(s->at[i].after_ns / 1000)));
	return v;
}

void run_ping(struct op *o)
{
	op_ok(o, NULL);
}

/* --- one verb ----------------------------------------------------------------------------- */

struct verb_op {
	struct link_call call;
	struct op *op;
	json_t *(*answer)(struct driver *d, const struct warden_reply *reply, size_t n_fds);
	bool raw; /* an error of warden's is an answer */
};

static void on_verb(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct verb_op *v = CONTAINER_OF(c, struct verb_op, call);
	struct op *o = v->op;

	if (err && v->raw && err->code != ERR_UNAVAILABLE && err->code != ERR_TIMEOUT)
		op_ok(o, json_pack("{s:s, s:i, s:o}", "reply_code", err_name(err->code), "errno",
				   err->sys, "message", json_text(bytes_str(err->msg))));
	else if (err)
		op_fail(o, err);
	else
		op_ok(o, v->answer(o->d, warden_reply_of(r), r->n_fds));
	free(v);
}

static void ask_verb(struct op *o, const struct warden_request *rq, const int *fds, size_t n_fds,
		     bool raw,
		     json_t *(*answer)(struct driver *d, const struct warden_reply *reply,
				       size_t n_fds))
{
	struct verb_op *v = calloc(1, sizeof(*v));
	struct err err;

	if (!v)
		abort();
	v->op = o;
	v->answer = answer;
	v->raw = raw;
	if (driver_ask(o->d, &v->call, rq, fds, n_fds, on_verb, &err) < 0) {
		free(v);
		op_fail(o, &err);
	}
}

static json_t *facts_answer(struct driver *d, const struct warden_reply *reply, size_t n_fds)
{
	(void)d, (void)n_fds;
	return json_pack("{s:o}", "facts", facts_json(&reply->facts));
}

void run_facts(struct op *o)
{
	struct warden_request rq = { .verb = WARDEN_FACTS, .sizes = DEFAULT_SIZES };
	struct err err;

	if (sizes_of(o->args, &rq.sizes, &err) < 0)
		op_fail(o, &err);
	else
		ask_verb(o, &rq, NULL, 0, false, facts_answer);
}

static json_t *slot_answer(struct driver *d, const struct warden_reply *reply, size_t n_fds)
{
	(void)n_fds;
	if (d->n_slots < DRIVER_SLOTS_MAX)
		d->slots[d->n_slots++] = reply->slot;
	return json_pack("{s:I, s:I}", "slot", (json_int_t)reply->slot, "pooled",
			 (json_int_t)d->n_slots);
}

void run_slot(struct op *o)
{
	ask_verb(o, &(struct warden_request){ .verb = WARDEN_SLOT_MAKE }, NULL, 0, false,
		 slot_answer);
}

static json_t *no_answer(struct driver *d, const struct warden_reply *reply, size_t n_fds)
{
	(void)d, (void)reply, (void)n_fds;
	return NULL;
}

void run_template_drop(struct op *o)
{
	struct warden_request rq = { .verb = WARDEN_TEMPLATE_DROP };
	struct err err;

	if (id_of(o->args, "template", rq.template_id, &err) < 0) {
		op_fail(o, &err);
		return;
	}
	templates_forget(o->d, rq.template_id);
	ask_verb(o, &rq, NULL, 0, false, no_answer);
}

/* --- any verb, as it is ------------------------------------------------------------------- */

static const char *const verb_names[] = {
#define VERB(verb, serve, needs, fds_min, fds_max) &#verb[sizeof("WARDEN_") - 1],
#include "warden/verbs.def"
};

/* A name, in any case, or the number itself, so that unknown verbs can be tried. */
static int verb_of(const json_t *args, uint32_t *ret, struct err *err)
{
	const json_t *verb = json_object_get(args, "verb");

	if (json_is_integer(verb)) {
		*ret = (uint32_t)json_integer_value(verb);
		return 0;
	}
	for (uint32_t i = 0; i < COUNT(verb_names); i++)
		if (json_is_string(verb) &&
		    strcasecmp(json_string_value(verb), verb_names[i]) == 0) {
			*ret = i;
			return 0;
		}
	return err_set(err, ERR_INVALID, 0, "verb must be a name or a number");
}

static int raw_request(const json_t *args, struct warden_request *ret, struct err *err)
{
	struct bytes id = { 0 }, template_id = { 0 };

	if (verb_of(args, &ret->verb, err) < 0 || sizes_of(args, &ret->sizes, err) < 0 ||
	    number_of(args, "slot", &ret->slot, err) < 0 ||
	    number_of(args, "count", &ret->count, err) < 0 ||
	    json_may_string(args, "name", &id, err) < 0 ||
	    json_may_string(args, "template", &template_id, err) < 0)
		return -1;
	/* as given, too long ones cut: what is refused is warden's to say */
	memcpy(ret->id, id.ptr ? id.ptr : (const uint8_t *)"", bytes_head(id, sizeof(ret->id)).len);
	memcpy(ret->template_id, template_id.ptr ? template_id.ptr : (const uint8_t *)"",
	       bytes_head(template_id, sizeof(ret->template_id)).len);
	return 0;
}

static int open_files(const json_t *args, int *fds, size_t *ret_n, struct err *err)
{
	json_t *files = NULL;
	size_t n = 0;

	if (json_may_array(args, "files", &files, err) < 0)
		return -1;
	for (; n < json_array_size(files); n++) {
		const char *path = json_string_value(json_array_get(files, n));

		fds[n] = n < WARDEN_FDS_MAX && path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (fds[n] >= 0)
			continue;
		err_set(err, ERR_INVALID, errno, "open file %zu", n);
		while (n > 0)
			close(fds[--n]);
		return -1;
	}
	*ret_n = n;
	return 0;
}

static json_t *raw_answer(struct driver *d, const struct warden_reply *reply, size_t n_fds)
{
	(void)d;
	return json_pack("{s:s, s:I, s:I, s:I}", "reply_code", "none", "slot",
			 (json_int_t)reply->slot, "count", (json_int_t)reply->count, "descriptors",
			 (json_int_t)n_fds);
}

void run_verb(struct op *o)
{
	struct warden_request rq = { .sizes = DEFAULT_SIZES, .slot = WARDEN_NO_SLOT };
	int fds[WARDEN_FDS_MAX + 1];
	size_t n = 0;
	struct err err = { 0 };

	if (raw_request(o->args, &rq, &err) < 0 || open_files(o->args, fds, &n, &err) < 0)
		op_fail(o, &err);
	else
		ask_verb(o, &rq, fds, n, true, raw_answer);
}
