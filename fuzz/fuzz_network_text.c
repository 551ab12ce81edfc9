/* fuzz_network_text.c - promises of network_text: whatever the text of a sandbox is, egress is told
 * the hosts of its rules and nothing that is in them; new rules replace the old ones whole.
 *
 * The input is two texts with a NUL between them: what a sandbox has, and what is said now. */
#include "fuzz/must.h"
#include "node/network/network_text.h"
#include "node/protocol.h"
#include "wire/rule_secrets.h"

enum { DEPTH_MAX = 64 };

static json_t *read_back(struct bytes text)
{
	json_t *v = NULL;
	struct err err;

	MUST(json_decode(text, 2 * NETWORK_RULES_MAX, DEPTH_MAX, &v, &err) == 0);
	MUST(json_is_object(v));
	return v;
}

static void must_hide_rules(const char *text, const char *known)
{
	const struct network_from from = { .text = text, .known = known };
	AUTO(buf_done) struct buf out = BUF_MAX(NETWORK_RULES_MAX);
	AUTO(json_decrefp) json_t *v = NULL;
	struct err err = { 0 };
	const char *host;
	json_t *value;

	if (network_text_rules(&from, &out, &err) < 0) {
		must_say_why(&err);
		return;
	}
	v = read_back(buf_view(&out));
	MUST(!json_object_get(v, "sealed"));
	/* clang-format off */
	json_object_foreach(json_object_get(json_object_get(v, "network"), "rules"), host, value)
		MUST(json_is_array(value) && json_array_size(value) == 0);
	/* clang-format on */
}

static void check_opened(const char *text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NETWORK_RULES_MAX);
	AUTO(json_decrefp) json_t *v = NULL;
	struct err err = { 0 };

	if (network_text_opened(text, true, &out, &err) < 0) {
		must_say_why(&err);
		return;
	}
	if (out.len == 0)
		return;
	v = read_back(buf_view(&out));
	MUST(json_object_size(json_object_get(v, "rules")) > 0 ||
	     (json_is_object(json_object_get(v, "rules")) &&
	      json_is_true(json_object_get(v, "refusalPages"))));
}

/* What is there and the other is not, or is null. */
static const json_t *said(const json_t *v, const char *name)
{
	const json_t *member = json_object_get(v, name);

	return json_is_null(member) ? NULL : member;
}

static void must_replace(const char *text, struct bytes put)
{
	AUTO(json_decrefp) json_t *wanted = NULL, *now = NULL;
	AUTO(auto_free) char *all = NULL;
	const json_t *rules;
	struct err err = { 0 };

	if (network_text_put(text, put, NODE_TEXT_MAX, &all, &err) < 0) {
		must_say_why(&err);
		MUST(!all);
		return;
	}
	MUST(strlen(all) <= NODE_TEXT_MAX);
	wanted = read_back(put.len ? put : BYTES_LIT("{}"));
	now = read_back(bytes_str(all));
	rules = json_object_get(json_object_get(wanted, "network"), "rules");
	MUST(json_equal(json_object_get(json_object_get(now, "network"), "rules"), rules) ||
	     (!rules && !json_object_get(json_object_get(now, "network"), "rules")));
	MUST(said(wanted, "sealed") ? json_equal(said(wanted, "sealed"), said(now, "sealed"))
				    : !said(now, "sealed"));
}

/* A secret's new value goes to who names it, and is gone when it is deleted. */
static void check_secret(const char *text)
{
	AUTO(json_decrefp) json_t *value = json_string("new"), *v = NULL, *names = NULL;
	AUTO(auto_free) char *with = NULL, *without = NULL;
	struct err err = { 0 };

	if (network_text_secret(text, "key", value, &with, &err) < 0) {
		must_say_why(&err);
		return;
	}
	if (!with)
		return;
	v = read_back(bytes_str(with));
	names = rule_secrets(v);
	MUST(json_object_get(names, "key"));
	MUST(json_equal(json_object_get(json_object_get(v, "sealed"), "key"), value));
	MUST(network_text_secret(with, "key", NULL, &without, &err) == 0 && without);
	json_decref(v);
	v = read_back(bytes_str(without));
	MUST(!json_object_get(json_object_get(v, "sealed"), "key"));
}

static void check_known(struct bytes in)
{
	AUTO(json_decrefp) json_t *v = NULL;
	AUTO(auto_free) char *kept = NULL, *again = NULL;
	struct err err = { 0 };

	if (network_text_known(in, &kept, &err) < 0) {
		must_say_why(&err);
		MUST(!kept);
	} else if (kept) {
		MUST(json_decode(bytes_str(kept), NETWORK_RULES_MAX, DEPTH_MAX, &v, &err) == 0);
		MUST(json_array_size(v) >= 1 && json_array_size(v) <= NETWORK_KNOWN_MAX);
		MUST(network_text_known(bytes_str(kept), &again, &err) == 0);
		MUST(again && strcmp(kept, again) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *both = calloc(1, size + 2);
	struct bytes second;
	const char *text;

	MUST(both);
	if (size > 0)
		memcpy(both, data, size);
	text = both;
	second = (struct bytes){ data + size, 0 };
	if (strlen(text) < size)
		second = bytes_tail((struct bytes){ data, size }, strlen(text) + 1);
	must_hide_rules(text, NULL);
	check_opened(text);
	must_replace(text, second);
	check_secret(text);
	check_known(second);
	return 0;
}
