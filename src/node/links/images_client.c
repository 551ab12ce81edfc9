/* images_client.c - the words of the images daemon. */
/* #syscalls: memfd_create pwrite64 fstat pread64 close */
#include "node/links/images_client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "wire/json.h"

static_assert(offsetof(struct images_reply, code) == offsetof(struct link_head, what),
	      "a reply begins as all do");

static struct bytes bytes_of(const struct images_request *rq)
{
	return (struct bytes){ (const uint8_t *)rq, sizeof(*rq) };
}

/* --- what it is --------------------------------------------------------------------------- */

static int keep_facts(struct images_client *k, int fd, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(IMAGES_FACTS_MAX);
	AUTO(json_decrefp) json_t *facts = NULL;
	struct bytes key, agent = { 0 };

	if (memory_file_read(fd, &text, err) < 0 ||
	    json_decode(buf_view(&text), IMAGES_FACTS_MAX, 2, &facts, err) < 0 ||
	    json_want_string(facts, "sealKey", &key, err) < 0 ||
	    json_want_string(facts, "agent", &agent, err) < 0)
		return -1;
	if (!bytes_to_str(agent, k->agent, sizeof(k->agent)))
		return err_set(err, ERR_INVALID, 0, "its agent has no digest");
	free(k->seal_key);
	k->seal_key = strndup((const char *)key.ptr, key.len);
	return 0;
}

static void on_facts(struct link_call *c, const struct link_reply *r)
{
	struct images_client *k = CONTAINER_OF(c, struct images_client, facts);
	struct err err;

	if (r->err || keep_facts(k, link_reply_fd(r), &err) < 0)
		log_error("images: what it says of itself: %s", r->err ? r->err->msg : err.msg);
}

/* --- the link ----------------------------------------------------------------------------- */

static void on_up(struct link *l)
{
	struct images_client *k = CONTAINER_OF(l, struct images_client, link);
	const struct images_request rq = { .verb = IMAGES_FACTS };
	struct err err;

	if (link_exists(l) && link_ask(l, &k->facts, &(struct link_ask){ .request = bytes_of(&rq) },
				       on_facts, &err) < 0)
		log_error("%s", err.msg);
}

static void on_down(struct link *l)
{
	(void)l; /* what was under way has failed */
}

static bool on_more(struct link_call *c, const struct link_reply *reply)
{
	struct images_make *m = CONTAINER_OF(c, struct images_make, call);
	struct images_reply r;

	memcpy(&r, reply->head.ptr, sizeof(r));
	if (!r.more)
		return false;
	r.text[sizeof(r.text) - 1] = '\0';
	m->ops->on_text(m, r.text);
	return true;
}

void images_client_open(struct images_client *k, struct loop *l, const char *path)
{
	static const struct link_words words = {
		.name = "images",
		.own_name = "node",
		.min = IMAGES_VERSION_MIN,
		.max = IMAGES_VERSION_MAX,
		.request_max = sizeof(struct images_request),
		.reply_min = sizeof(struct images_reply),
		.reply_max = sizeof(struct images_reply),
		.msg = offsetof(struct images_reply, text),
		.msg_size = sizeof(((struct images_reply *)0)->text),
		.calls_max = IMAGES_MAKES_MAX,
		.fds_max = 1,
		.batch = 16,
	};
	static const struct link_ops ops = { .on_up = on_up,
					     .on_down = on_down,
					     .on_more = on_more };

	*k = (struct images_client){ 0 };
	link_open(&k->link, l, path, &words, &ops);
}

void images_client_close(struct images_client *k)
{
	link_close(&k->link);
	free(k->seal_key);
	k->seal_key = NULL;
}

/* --- one image ---------------------------------------------------------------------------- */

/* No reply came. */
static void say_why(const struct link_call *c, struct err *err)
{
	if (err->code == ERR_TIMEOUT)
		(void)err_set(err, ERR_TIMEOUT, 0, IMAGES_SILENT);
	else if (err->code == ERR_UNAVAILABLE)
		(void)err_set(err, ERR_UNAVAILABLE, 0, "%s",
			      c->n_sends > 0 ? IMAGES_LOST : IMAGES_DOWN);
}

static void on_made(struct link_call *c, const struct link_reply *reply)
{
	AUTO(buf_done) struct buf config = BUF_MAX(IMAGES_CONFIG_MAX);
	struct images_make *m = CONTAINER_OF(c, struct images_make, call);
	struct images_reply r = { 0 };
	struct err err;

	m->client = NULL;
	if (reply->err) {
		err = *reply->err;
		if (reply->head.len == 0)
			say_why(c, &err);
		m->ops->on_done(m, NULL, (struct bytes){ 0 }, &err);
		return;
	}
	memcpy(&r, reply->head.ptr, sizeof(r));
	r.digest[sizeof(r.digest) - 1] = '\0';
	if (memory_file_read(link_reply_fd(reply), &config, &err) < 0)
		m->ops->on_done(m, NULL, (struct bytes){ 0 }, &err);
	else
		m->ops->on_done(m, r.digest, buf_view(&config), NULL);
}

/* The order, as a file in memory; -1: *err. */
static int order_file(const struct images_make_spec *spec, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(IMAGES_ASK_MAX);
	AUTO(json_decrefp) json_t *v = json_pack("{s:s}", "team", spec->team);

	if (!v ||
	    (spec->reference[0] &&
	     json_object_set_new(v, "reference", json_text(bytes_str(spec->reference))) < 0) ||
	    (spec->sealed &&
	     json_object_set_new(v, "sealed", json_text(bytes_str(spec->sealed))) < 0))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "an order of an image");
	if (json_encode(v, &text, err) < 0)
		return -1;
	return memory_file_make("image-order", buf_view(&text), err);
}

int images_make(struct images_client *k, struct images_make *m, const struct images_make_spec *spec,
		const struct images_make_ops *ops, struct err *err)
{
	const struct images_request rq = { .verb = IMAGES_MAKE,
					   .flags = (spec->disk >= 0 ? IMAGES_DISK : 0) |
						    (spec->archive >= 0 ? IMAGES_ARCHIVE : 0),
					   .disk_mib = spec->disk >= 0 ? spec->disk_mib : 0 };
	int fds[IMAGES_FDS_MAX] = { -1 };
	struct link_ask what = {
		.request = bytes_of(&rq), .fds = fds, .n_fds = 1, .deadline_ms = IMAGES_MAKE_MS
	};

	if (spec->disk >= 0)
		fds[what.n_fds++] = spec->disk;
	if (spec->archive >= 0)
		fds[what.n_fds++] = spec->archive;
	*m = (struct images_make){ .ops = ops };
	fds[0] = link_exists(&k->link) ? order_file(spec, err)
				       : err_set(err, ERR_UNAVAILABLE, 0, IMAGES_NONE);
	if (fds[0] < 0) {
		for (size_t i = 1; i < what.n_fds; i++)
			close(fds[i]);
		return -1;
	}
	if (link_ask(&k->link, &m->call, &what, on_made, err) < 0) {
		say_why(&m->call, err);
		return -1;
	}
	m->client = k;
	return 0;
}

void images_make_cancel(struct images_make *m)
{
	struct images_request rq = { .verb = IMAGES_CANCEL, .of = m->call.tag };
	struct images_client *k = TAKE(m->client);
	bool sent = m->call.state == LINK_SENT;
	struct err err;

	if (!k)
		return;
	link_cancel(&m->call);
	if (sent && link_ask(&k->link, NULL, &(struct link_ask){ .request = bytes_of(&rq) }, NULL,
			     &err) < 0)
		log_warn("%s", err.msg);
}
