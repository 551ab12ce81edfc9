/* auth.c - from a key to its team; the store is asked once in a while, the cache every time. */
#include "gateway/api/auth.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/api/answer.h"
#include "gateway/api/api.h"

enum { TELL_MS = 60 * 1000 }; /* a key in use is written down this often */

static bool key_ok(struct bytes key)
{
	if (key.len != API_KEY_SIZE - 1 || !bytes_starts(key, BYTES_LIT("e2b_")))
		return false;
	for (size_t i = 4; i < key.len; i++)
		if (!memchr("0123456789abcdef", key.ptr[i], 16))
			return false;
	return true;
}

/* The key as it was sent; false when there is none or more than one. */
static bool find_key(const struct api_call *c, struct bytes *ret)
{
	const struct http1_head *head = http_request_head(c->rq);
	struct bytes bearer = { 0 };
	size_t n = http1_find(head, "X-API-KEY", ret);

	if (n > 0 || c->route->auth != AUTH_EITHER)
		return n == 1 && ret->len > 0;
	if (http1_find(head, "Authorization", &bearer) != 1 ||
	    !bytes_eq_nocase(bytes_head(bearer, 7), BYTES_LIT("Bearer ")))
		return false;
	*ret = bytes_trim(bytes_tail(bearer, 7));
	return ret->len > 0;
}

static void on_told(struct store_call *call, const struct store_result *ret, const struct err *err)
{
	(void)call;
	(void)ret;
	if (err)
		log_warn("write down that a key is in use: %s", err->msg);
}

static void tell_used(struct api *a, struct key_entry *e, uint64_t now_ms)
{
	struct store_request rq = { .verb = STORE_KEY_USED, .key.used_ns = clock_wall_ns() };
	struct err err;

	if (a->used_call.job || (e->told_ms && now_ms - e->told_ms < TELL_MS))
		return;
	memcpy(rq.key.id, e->key_id, sizeof(rq.key.id));
	if (store_ask(a->store, &a->used_call, &rq, on_told, &err) == 0)
		e->told_ms = now_ms;
}

static void accept_key(struct api_call *c, struct key_entry *e)
{
	tell_used(c->g->api, e, loop_now_ms(c->g->loop));
	c->team = e->team;
	c->limits = e->limits;
	memcpy(c->key_id, e->key_id, sizeof(c->key_id));
	memcpy(c->family, e->family, sizeof(c->family));
	memcpy(c->services, e->services, sizeof(c->services));
	api_proceed(c);
}

static void on_found(struct api_call *c, const struct store_result *ret, const struct err *err)
{
	struct api *a = c->g->api;
	struct key_entry *old;

	if (ret) {
		accept_key(c, key_cache_put(a->keys, c->hash, &ret->keys[0], &ret->teams[0],
					    c->key_count, loop_now_ms(c->g->loop)));
		return;
	}
	if (err->code == ERR_NOT_FOUND) {
		key_cache_drop(a->keys, c->hash);
		api_fail(c, 401, "Invalid API key");
		return;
	}
	/* what was true a while ago is better than no service */
	old = key_cache_find(a->keys, c->hash);
	if (old)
		accept_key(c, old);
	else
		api_fail(c, 503, "keys cannot be checked now: %s", err->msg);
}

static void ask_store(struct api_call *c)
{
	struct store_request rq = { .verb = STORE_KEY_FIND };
	struct key_entry *old;
	struct err err;

	sha256_hex_of(bytes_str(c->key), rq.key.hash);
	c->on_store_any = on_found;
	c->key_count = key_cache_count(c->g->api->keys);
	if (store_ask(c->g->api->store, &c->store, &rq, api_on_store_any, &err) == 0)
		return;
	old = key_cache_find(c->g->api->keys, c->hash);
	if (old)
		accept_key(c, old);
	else
		api_fail(c, 503, "%s", err.msg);
}

void auth_start(struct api_call *c)
{
	struct bytes key = { 0 };
	struct key_entry *e;

	if (c->route->auth == AUTH_NONE || c->route->auth == AUTH_ADMIN) {
		api_proceed(c);
		return;
	}
	if (!find_key(c, &key)) {
		api_fail(c, 401, "API key is missing: send it once, as X-API-KEY");
		return;
	}
	if (!key_ok(key) || !bytes_to_str(key, c->key, sizeof(c->key))) {
		api_fail(c, 401, "Invalid API key");
		return;
	}
	sha256_of(key, c->hash);
	e = key_cache_find(c->g->api->keys, c->hash);
	if (e && key_entry_fresh(e, loop_now_ms(c->g->loop)))
		accept_key(c, e);
	else
		ask_store(c);
}
