/* fuzz_injector_over.c - promises of what egress does with a worker's word that a connection is
 * over: whatever it says why, the decisions that are told remain JSON, of bounded size, and its
 * words are one member of one of them. */
#include "base/log.h"
#include "egress/audit.h"
#include "fuzz/must.h"
#include "injector/protocol.h"
#include "wire/json.h"

static void add(struct audit *a, const struct injector_over *over)
{
	char why[sizeof(over->why) + 1];
	const struct audit_entry e = {
		.kind = SANDBOX_EGRESS_TLS, .name = "a.com", .ip = 1, .port = 443, .why = why
	};

	snprintf(why, sizeof(why), "%.*s", (int)sizeof(over->why), over->why);
	audit_add(a, "sandbox", &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf out = BUF_MAX(AUDIT_TEXT_MAX);
	AUTO(json_decrefp) json_t *all = NULL;
	struct injector_over over = { 0 };
	struct audit audit = { 0 };
	struct err err = { 0 };

	log_init("fuzz", LOG_ERROR); /* the log is not what is looked at */
	if (size > 0)
		memcpy(over.why, data, size < sizeof(over.why) ? size : sizeof(over.why));
	for (int i = 0; i < 3; i++)
		add(&audit, &over);
	MUST(audit_tell(&audit, &out, &err) == 0);
	MUST(out.len <= 3 * (AUDIT_TEXT_MAX / AUDIT_KEPT));
	MUST(json_decode(buf_view(&out), AUDIT_TEXT_MAX, 4, &all, &err) == 0);
	MUST(json_array_size(all) == 3);
	MUST(json_object_size(json_array_get(all, 0)) == 7);
	MUST(json_is_string(json_object_get(json_array_get(all, 0), "why")));
	audit_done(&audit, "sandbox");
	return 0;
}
