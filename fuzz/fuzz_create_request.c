/* fuzz_create_request.c - promises of the create parser: within limits, and what it gives node is
 * JSON that means the same when read again. The first byte chooses the version.
 */
#include "fuzz/must.h"
#include "gateway/parse/create_request.h"
#include "gateway/parse/network_request.h"
#include "wire/json.h"

static void must_be_strings(const json_t *text, const char *name)
{
	const json_t *o = json_object_get(text, name);
	const char *key;
	json_t *v;

	MUST(json_is_object(o));
	json_object_foreach((json_t *)(uintptr_t)o, key, v) MUST(json_is_string(v));
}

/* What is clean stays as it is. */
static void must_stay(const json_t *network)
{
	static const char *const names[] = { "allowOut", "denyOut", "rules" };
	AUTO(json_decrefp) json_t *again = NULL;
	struct err err;

	if (!network)
		return;
	MUST(network_request_take(network, "", &again, &err) == 0);
	for (size_t i = 0; i < COUNT(names); i++) {
		json_t *a = json_object_get(network, names[i]);
		json_t *b = json_object_get(again, names[i]);

		MUST((!a && !b) || json_equal(a, b));
	}
}

static void check(const struct create_request *r, enum api_version version)
{
	AUTO(json_decrefp) json_t *text = NULL;
	AUTO(buf_done) struct buf out = { 0 };
	struct err err = { 0 };
	size_t n = strnlen(r->template.name, sizeof(r->template.name));

	MUST(n > 0 && n <= NODE_ID_MAX);
	MUST(strspn(r->template.name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n);
	MUST(r->timeout_s >= 1 && r->timeout_s <= NODE_TIMEOUT_MAX_S + 1);
	MUST(r->pause_memory || (r->auto_pause && !r->auto_resume));
	MUST(version == API_V1 || r->secure);
	MUST(r->secure || !r->private);
	MUST(strnlen(r->ignored, sizeof(r->ignored)) < sizeof(r->ignored));
	if (create_request_text(r, &out, &err) < 0) {
		must_say_why(&err);
		return;
	}
	MUST(out.len > 0 && out.len <= NODE_TEXT_MAX);
	MUST(!memchr(out.ptr, 0, out.len));
	MUST(json_decode(buf_view(&out), NODE_TEXT_MAX, CREATE_DEPTH_MAX, &text, &err) == 0);
	must_be_strings(text, "metadata");
	must_be_strings(text, "envVars");
	must_stay(json_object_get(text, "network"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	enum api_version version = size > 0 && data[0] == '2' ? API_V2 : API_V1;
	struct create_request r;
	struct err err = { 0 };

	if (create_request_parse(bytes_tail(in, 1), version, &r, &err) < 0) {
		must_say_why(&err);
		MUST(err.code == ERR_INVALID || err.code == ERR_NOT_FOUND ||
		     err.code == ERR_DENIED);
		MUST(!r.text);
		return 0;
	}
	check(&r, version);
	create_request_done(&r);
	return 0;
}
