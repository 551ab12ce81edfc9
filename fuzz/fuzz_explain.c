/* fuzz_explain.c - promises of explain: what it says is JSON, and nobody is told that an address of
 * the host's own network may be reached, nor a name that leads to nothing else. */
#include "egress/explain.h"
#include "fuzz/must.h"
#include "wire/json.h"

static bool is_inside(const char *question)
{
	struct bytes text = bytes_str(question), host = text;
	uint32_t ip;

	(void)bytes_cut(&text, ':', &host);
	return ip4_parse(host, &ip) && ip4_kind(ip) != IP4_PUBLIC;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct policy_ground open = { .mode = POLICY_OPEN };
	AUTO(buf_done) struct buf out = BUF_MAX(EXPLAIN_OUT_MAX);
	static const struct dns_addresses inside = { { 0x0a000001, 0x7f000001 }, 2, 1 };
	AUTO(json_decrefp) json_t *v = NULL;
	AUTO(explain_done) struct explain x = { 0 };
	const json_t *answer;
	struct err err = { 0 };
	bool resolved;

	if (explain_begin(&x, &open, (struct bytes){ data, size }, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	resolved = x.name[0] != '\0';
	if (resolved)
		explain_found(&x, DNS_ANSWERED, &inside);
	MUST(explain_tell(&x, &out, &err) == 0);
	MUST(json_decode(buf_view(&out), EXPLAIN_OUT_MAX, 10, &v, &err) == 0);
	answer = json_object_get(v, "answer");
	if (answer && json_is_true(json_object_get(answer, "allowed")))
		MUST(!resolved &&
		     !is_inside(json_string_value(json_object_get(answer, "question"))));
	return 0;
}
