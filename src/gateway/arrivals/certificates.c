/* certificates.c - see certificates.h. */
/* OpenSSL sorts: libc's qsort asks how much memory there is. */
/* #syscalls: openat openat2 getdents64 fcntl fstat newfstatat read close lseek sysinfo */
#include "gateway/arrivals/certificates.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "wire/rfc3339.h"

struct cert_slot { /* of one folder; name[0] is 0: free */
	struct certificates *of;
	char name[CERT_NAME_MAX + 1];
	struct cert_stamp stamp; /* of what was read last */
	uint64_t seen_ms;
	struct chain *served; /* NULL: none */
	struct chain *wanted; /* sound, and the signer's word is waited for */
	struct link_call has;
	bool told;     /* that the signer has not its key */
	char why[160]; /* what is in the file is not served; "": it is */
};

/* --- taking one ----------------------------------------------------------------------------- */

static void refuse(struct cert_slot *s, const char *why)
{
	snprintf(s->why, sizeof(s->why), "%.*s", (int)sizeof(s->why) - 1, why);
	log_warn("%s/%s is not served: %s%s", s->name, CERT_CHAIN_FILE, why,
		 s->served ? "; the one of before stays" : "");
}

static void serve(struct cert_slot *s)
{
	char id[SIGN_ID_HEX + 1];

	chain_free(s->served);
	s->served = TAKE(s->wanted);
	s->why[0] = '\0';
	s->told = false;
	sign_id_text(chain_key_id(s->served), id);
	log_info("%s is served for %s%s, with key %s", s->name,
		 chain_names(s->served) ? chain_name(s->served, 0) : "its address",
		 chain_names(s->served) > 1 ? " and others" : "", id);
}

static void refuse_without_key(struct cert_slot *s)
{
	char id[SIGN_ID_HEX + 1], why[128];

	s->told = true;
	sign_id_text(chain_key_id(s->wanted), id);
	snprintf(why, sizeof(why),
		 "the signer has not its key, %s: is %s of it, and the signer's to read?", id,
		 CERT_KEY_FILE);
	refuse(s, why);
}

static void on_has(struct link_call *call, const struct link_reply *r)
{
	struct cert_slot *s = CONTAINER_OF(call, struct cert_slot, has);

	if (!r->err)
		serve(s);
	else if (r->err->code != ERR_NOT_FOUND || s->told)
		snprintf(s->why, sizeof(s->why), "%.*s", (int)sizeof(s->why) - 1, r->err->msg);
	else
		refuse_without_key(s);
	s->of->on_answer(s->of);
}

/* Again at each look, until the signer has it. */
static void ask_for_key(struct certificates *c, struct cert_slot *s)
{
	struct err err;

	if (!s->wanted || s->has.link)
		return;
	if (signer_link_has(c->signer, &s->has, chain_key_id(s->wanted), on_has, &err) < 0)
		snprintf(s->why, sizeof(s->why), "%.*s", (int)sizeof(s->why) - 1, err.msg);
}

static void read_chain(struct certificates *c, struct cert_slot *s)
{
	AUTO(buf_done) struct buf text = BUF_MAX(CHAIN_TEXT_MAX);
	struct err err = { 0 };

	link_cancel(&s->has);
	chain_free(TAKE(s->wanted));
	s->told = false;
	if (cert_dir_read(c->dir, s->name, CERT_CHAIN_FILE, &text, &err) < 0 ||
	    chain_load(c->service, buf_view(&text), &s->wanted, &err) < 0)
		refuse(s, err.msg);
	else
		snprintf(s->why, sizeof(s->why), "the signer was not asked yet");
}

/* --- the folder ----------------------------------------------------------------------------- */

static struct cert_slot *find_slot(struct certificates *c, const char *name)
{
	struct cert_slot *room = NULL;

	for (size_t i = 0; i < CERT_DIR_MAX; i++) {
		if (strcmp(c->slots[i].name, name) == 0)
			return &c->slots[i];
		if (!room && !c->slots[i].name[0])
			room = &c->slots[i];
	}
	if (room) {
		room->of = c;
		memcpy(room->name, name, strlen(name) + 1);
	}
	return room;
}

static void empty_slot(struct cert_slot *s)
{
	link_cancel(&s->has);
	chain_free(s->served);
	chain_free(s->wanted);
	*s = (struct cert_slot){ 0 };
}

static void take_file(struct certificates *c, const struct cert_file *f)
{
	struct cert_slot *s = find_slot(c, f->name);

	if (!s)
		return; /* its room is that of one which was just removed */
	s->seen_ms = loop_now_ms(c->loop);
	if (!cert_stamp_eq(&s->stamp, &f->stamp)) {
		s->stamp = f->stamp;
		read_chain(c, s);
	}
	ask_for_key(c, s);
}

static void drop_removed(struct certificates *c)
{
	for (size_t i = 0; i < CERT_DIR_MAX; i++) {
		struct cert_slot *s = &c->slots[i];

		if (!s->name[0] || loop_now_ms(c->loop) - s->seen_ms < CERT_GONE_MS)
			continue;
		log_info("%s was removed, and is served no more", s->name);
		empty_slot(s);
	}
}

static void tell(struct certificates *c, const char *what)
{
	if (!c->told)
		log_warn("tls_dir: %s", what);
	c->told = true;
}

void certificates_look(struct certificates *c)
{
	struct err err;

	if (cert_dir_look(c->dir, CERT_CHAIN_FILE, c->files, &err) < 0) {
		tell(c, err.msg);
		return;
	}
	if (c->files->left_out > 0)
		tell(c, "it holds more certificates than are served");
	else
		c->told = false;
	for (size_t i = 0; i < c->files->n; i++)
		take_file(c, &c->files->file[i]);
	drop_removed(c);
}

static void on_look(struct timer *t)
{
	certificates_look(CONTAINER_OF(t, struct certificates, look));
}

/* --- choosing ------------------------------------------------------------------------------- */

/* Of two that are served: is `a` the better one? NULL is the worst. */
static bool is_better(const struct cert_slot *a, const struct cert_slot *b)
{
	if (!b)
		return true;
	if (chain_until(a->served) != chain_until(b->served))
		return chain_until(a->served) > chain_until(b->served);
	return strcmp(a->name, b->name) < 0;
}

static const struct cert_slot *find_for(const struct certificates *c, const char *name)
{
	const struct cert_slot *best[CHAIN_EXACT + 1] = { NULL };

	for (size_t i = 0; i < CERT_DIR_MAX; i++) {
		const struct cert_slot *s = &c->slots[i];
		enum chain_fit fit = s->served ? chain_fits(s->served, name) : CHAIN_NO_FIT;

		if (fit != CHAIN_NO_FIT && is_better(s, best[fit]))
			best[fit] = s;
	}
	return best[CHAIN_EXACT] ? best[CHAIN_EXACT] : best[CHAIN_WILDCARD];
}

static const struct cert_slot *find_default(const struct certificates *c)
{
	const struct cert_slot *first = NULL, *own;
	struct bytes domain = bytes_str(c->domain), host;
	char name[DOMAIN_SIZE];

	if (!bytes_cut(&domain, ':', &host))
		host = domain;
	own = domain_normal(host, name) ? find_for(c, name) : NULL;
	for (size_t i = 0; !own && i < CERT_DIR_MAX; i++)
		if (c->slots[i].served && (!first || strcmp(c->slots[i].name, first->name) < 0))
			first = &c->slots[i];
	return own ? own : first;
}

static int choose(struct tls_chooser *chooser, const char *name, const struct identity **ret,
		  struct err *err)
{
	const struct certificates *c = CONTAINER_OF(chooser, struct certificates, chooser);
	const struct cert_slot *s = name[0] ? find_for(c, name) : NULL;

	if (!s)
		s = find_default(c);
	if (!s)
		return err_set(err, ERR_UNAVAILABLE, 0,
			       "no certificate is served: see tls of hotcell status");
	*ret = chain_identity(s->served);
	return 0;
}

/* --- open and close ------------------------------------------------------------------------- */

int certificates_open(struct certificates *c, struct loop *l, const char *path, const char *domain,
		      struct err *err)
{
	*c = (struct certificates){ .chooser = { choose }, .loop = l, .domain = domain };
	c->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dir < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open tls_dir = %s", path);
	c->slots = calloc(CERT_DIR_MAX, sizeof(*c->slots));
	c->files = calloc(1, sizeof(*c->files));
	if (!c->slots || !c->files)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate certificates");
	timer_init(&c->look, l, on_look);
	return 0;
}

void certificates_begin(struct certificates *c, struct tls_service *s, struct signer_link *signer,
			void (*on_answer)(struct certificates *c))
{
	c->service = s;
	c->signer = signer;
	c->on_answer = on_answer;
	timer_repeat(&c->look, CERT_LOOK_MS);
	certificates_look(c);
}

void certificates_close(struct certificates *c)
{
	if (!c->loop)
		return;
	timer_stop(&c->look);
	for (size_t i = 0; c->slots && i < CERT_DIR_MAX; i++)
		empty_slot(&c->slots[i]);
	free(c->slots);
	free(c->files);
	auto_close(&c->dir);
	*c = (struct certificates){ 0 };
}

size_t certificates_served(const struct certificates *c)
{
	size_t n = 0;

	for (size_t i = 0; i < CERT_DIR_MAX; i++)
		n += c->slots[i].served != NULL;
	return n;
}

bool certificates_settled(const struct certificates *c)
{
	for (size_t i = 0; i < CERT_DIR_MAX; i++)
		if (c->slots[i].wanted && !c->slots[i].told)
			return false;
	return true;
}

/* --- the status ----------------------------------------------------------------------------- */

static json_t *names_json(const struct chain *c)
{
	json_t *all = json_array();

	for (size_t i = 0; c && i < chain_names(c); i++)
		json_array_append_new(all, json_text(bytes_str(chain_name(c, i))));
	return all;
}

static json_t *slot_json(const struct cert_slot *s)
{
	int64_t until = s->served ? chain_until(s->served) : 0;
	int64_t left = until - (int64_t)(clock_wall_ns() / NSEC_PER_SEC);
	char text[RFC3339_SIZE] = "", id[SIGN_ID_HEX + 1] = "";

	if (s->served) {
		rfc3339_put((uint64_t)until * NSEC_PER_SEC, 0, text);
		sign_id_text(chain_key_id(s->served), id);
	}
	return json_pack("{s:o, s:b, s:o, s:s, s:s, s:I, s:o}", "name",
			 json_text(bytes_str(s->name)), "served", s->served != NULL, "names",
			 names_json(s->served), "key", id, "expires", text, "secondsLeft",
			 (json_int_t)(s->served ? left : 0), "refused",
			 s->why[0] ? json_text(bytes_str(s->why)) : json_null());
}

json_t *certificates_json(const struct certificates *c)
{
	json_t *all = json_array();

	for (size_t i = 0; i < CERT_DIR_MAX; i++)
		if (c->slots[i].name[0])
			json_array_append_new(all, slot_json(&c->slots[i]));
	return all;
}
