/* fuzz_injector_rules.c - promises of the injector's rules: what a worker is given can be written
 * into the head of a request without saying more than it should, and a host whose headers are not
 * whole is refused. */
#include "fuzz/must.h"
#include "http/http_rewrite.h"
#include "injector/rules.h"
#include "injector/worker/rule.h"
#include "wire/http1_field.h"

static void must_be_writable(const struct rule *r)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n";
	const struct http_rewrite add = { r->fields, r->n_fields, false };
	AUTO(buf_done) struct buf out = BUF_MAX(HTTP1_HEAD_MAX);
	struct http1_head h, again;
	struct err err;

	MUST(http1_parse_request(BYTES_LIT(head), &h, &err) == 0);
	MUST(http_rewrite_head(&add, BYTES_LIT(head), &h, &out, &err) == 0);
	MUST(http1_parse_request(buf_view(&out), &again, &err) == 0);
	MUST(again.n_fields == 1 + r->n_fields && again.body == HTTP1_BODY_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_decrefp) json_t *filled = NULL;
	AUTO(rules_done) struct rules rules = { 0 };
	struct seal_key *key = NULL;
	struct err err = { 0 };

	MUST(seal_key_new(&key, &err) == 0);
	if (rules_fill((struct bytes){ data, size }, "team", key, &filled, &err) < 0)
		must_say_why(&err);
	else
		MUST(rules_read(json_object_get(filled, "rules"), &rules, &err) == 0);
	for (size_t i = 0; i < rules.n; i++) {
		must_be_writable(&rules.all[i]);
		MUST(!rules.all[i].secret ||
		     rules.all[i].refuse[0]); /* none opens with a new key */
	}
	seal_key_free(key);
	return 0;
}
