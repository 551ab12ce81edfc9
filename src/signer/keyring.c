/* keyring.c - see keyring.h. */
/* OpenSSL finds who reads keys in sorted lists: libc's qsort asks how much memory there is. */
/* #syscalls: openat openat2 getdents64 fcntl fstat newfstatat read close sysinfo */
#include "signer/keyring.h"

#include <errno.h>

#include "base/log.h"

enum { OTHERS = 077 };

struct slot { /* of one folder; name[0] is 0: free */
	char name[CERT_NAME_MAX + 1];
	struct cert_stamp stamp; /* of what was read last, usable or not */
	uint64_t seen_ms;
	struct kept {
		struct sign_key *key;
		uint64_t used_ms;
	} kept[KEYRING_KEPT]; /* the newest first */
};

struct keyring {
	struct loop *loop;
	struct timer look;
	int dir;
	struct slot slots[CERT_DIR_MAX];
	struct cert_files files;
	bool told; /* that the folder cannot be read, or holds too much */
};

/* --- one folder ----------------------------------------------------------------------------- */

static struct slot *find_slot(struct keyring *k, const char *name)
{
	struct slot *room = NULL;

	for (size_t i = 0; i < CERT_DIR_MAX; i++) {
		if (strcmp(k->slots[i].name, name) == 0)
			return &k->slots[i];
		if (!room && k->slots[i].name[0] == '\0')
			room = &k->slots[i];
	}
	if (room)
		memcpy(room->name, name, strlen(name) + 1);
	return room;
}

static void empty_slot(struct slot *s)
{
	for (size_t i = 0; i < KEYRING_KEPT; i++)
		sign_key_free(s->kept[i].key);
	*s = (struct slot){ 0 };
}

static bool is_same(const struct sign_key *a, const struct sign_key *b)
{
	return a && memcmp(sign_key_id(a), sign_key_id(b), SIGN_ID) == 0;
}

/* Whose room the next one gets: that of the key which was not used for the longest time. */
static size_t find_room(const struct slot *s)
{
	size_t at = KEYRING_KEPT - 1;

	for (size_t i = 0; i < KEYRING_KEPT; i++) {
		if (!s->kept[i].key)
			return i;
		if (s->kept[i].used_ms < s->kept[at].used_ms)
			at = i;
	}
	return at;
}

static void put_key(struct keyring *k, struct slot *s, struct sign_key *key)
{
	char id[SIGN_ID_HEX + 1];
	size_t at;

	if (is_same(s->kept[0].key, key)) {
		sign_key_free(key);
		return;
	}
	at = find_room(s);
	sign_key_free(s->kept[at].key);
	for (; at > 0; at--)
		s->kept[at] = s->kept[at - 1];
	s->kept[0] = (struct kept){ key, loop_now_ms(k->loop) };
	sign_id_text(sign_key_id(key), id);
	log_info("%s: has key %s", s->name, id);
}

static void read_key(struct keyring *k, struct slot *s)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(SIGN_TEXT_MAX);
	struct sign_key *key = NULL;
	struct err err = { 0 };

	loop_forget(k->loop);
	if (cert_dir_read(k->dir, s->name, CERT_KEY_FILE, &text, &err) < 0 ||
	    sign_key_load(buf_view(&text), &key, &err) < 0)
		log_warn("%s/%s is not used: %s%s", s->name, CERT_KEY_FILE, err.msg,
			 s->kept[0].key ? "; the key of before stays" : "");
	else
		put_key(k, s, key);
}

static void take_file(struct keyring *k, const struct cert_file *f)
{
	struct slot *s = find_slot(k, f->name);

	if (!s)
		return; /* its room is that of one which was just removed */
	s->seen_ms = loop_now_ms(k->loop);
	if (cert_stamp_eq(&s->stamp, &f->stamp))
		return;
	s->stamp = f->stamp;
	if (f->mode & OTHERS)
		log_warn("%s/%s can be read by others than its owner: chmod 0400", f->name,
			 CERT_KEY_FILE);
	read_key(k, s);
}

/* --- all of them ---------------------------------------------------------------------------- */

static void drop_removed(struct keyring *k)
{
	uint64_t now = loop_now_ms(k->loop);

	for (size_t i = 0; i < CERT_DIR_MAX; i++) {
		struct slot *s = &k->slots[i];

		if (!s->name[0] || now - s->seen_ms < CERT_GONE_MS)
			continue;
		log_info("%s: its key was removed", s->name);
		empty_slot(s);
	}
}

static void tell(struct keyring *k, const char *what)
{
	if (!k->told)
		log_warn("%s", what);
	k->told = true;
}

static void look(struct keyring *k)
{
	struct err err;

	if (cert_dir_look(k->dir, CERT_KEY_FILE, &k->files, &err) < 0) {
		tell(k, err.msg);
		return;
	}
	if (k->files.left_out > 0)
		tell(k, "more folders of certificates than are served");
	else
		k->told = false;
	for (size_t i = 0; i < k->files.n; i++)
		take_file(k, &k->files.file[i]);
	drop_removed(k);
}

static void on_look(struct timer *t)
{
	look(CONTAINER_OF(t, struct keyring, look));
}

int keyring_open(struct keyring **ret, struct loop *l, int dir, struct err *err)
{
	AUTO(auto_close) int own = dir;
	struct keyring *k = calloc(1, sizeof(*k));

	if (!k)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate keys");
	k->loop = l;
	k->dir = take_fd(&own);
	timer_init(&k->look, l, on_look);
	timer_repeat(&k->look, CERT_LOOK_MS);
	look(k);
	*ret = k;
	return 0;
}

void keyring_close(struct keyring *k)
{
	if (!k)
		return;
	timer_stop(&k->look);
	for (size_t i = 0; i < CERT_DIR_MAX; i++)
		empty_slot(&k->slots[i]);
	close(k->dir);
	free(k);
}

const struct sign_key *keyring_find(struct keyring *k, const uint8_t id[static SIGN_ID])
{
	for (size_t i = 0; i < CERT_DIR_MAX; i++)
		for (size_t j = 0; j < KEYRING_KEPT; j++) {
			struct kept *one = &k->slots[i].kept[j];

			if (!one->key || memcmp(sign_key_id(one->key), id, SIGN_ID) != 0)
				continue;
			one->used_ms = loop_now_ms(k->loop);
			return one->key;
		}
	return NULL;
}

size_t keyring_count(const struct keyring *k)
{
	size_t n = 0;

	for (size_t i = 0; i < CERT_DIR_MAX; i++)
		n += k->slots[i].kept[0].key != NULL;
	return n;
}
