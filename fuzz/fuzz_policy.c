/* fuzz_policy.c - promises of policy: whatever a sandbox's rules say, nothing is reached that is
 * not public, that the operator's list has not, or that all of denyOut was to keep away. */
#include "egress/policy.h"
#include "fuzz/must.h"
#include "wire/json.h"

static const uint32_t not_public[] = { 0x7f000001, 0x0a010203, 0xa9fea9fe, 0xc0a80101, 0xe0000001 };

static void must_be_closed(const struct policy *p)
{
	for (size_t i = 0; i < COUNT(not_public); i++) {
		MUST(!policy_address(p, not_public[i]).yes);
		MUST(!policy_answer(p, "a.example.com", not_public[i]).yes);
	}
	MUST(!policy_name(p, "db.hotcell.internal").yes || p->services);
}

static int read_policy(struct policy *ret, const struct policy_ground *g, struct bytes text,
		       struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	return policy_decode(text, &v, err) < 0 ? -1 : policy_of(ret, g, v, err);
}

static void must_not_widen(struct bytes in, const struct policy_ground *g)
{
	AUTO(policy_done) struct policy p = { 0 };
	struct err err = { 0 };

	if (read_policy(&p, g, in, &err) < 0) {
		must_say_why(&err);
		return;
	}
	must_be_closed(&p);
	MUST(!policy_address(&p, 0x08080808).yes);
	MUST(!policy_name(&p, "b.example.com").yes || p.packages.n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct policy_ground open = { .mode = POLICY_OPEN };
	struct bytes in = { data, size };
	AUTO(policy_ground_done)
	struct policy_ground list = { .mode = POLICY_ALLOWLIST, .packages = true };
	AUTO(policy_done) struct policy p = { 0 };
	struct err err = { 0 };

	MUST(policy_ground_allow(&list, BYTES_LIT("a.example.com 9.9.9.9"), &err) == 0);
	must_not_widen(in, &list);
	if (read_policy(&p, &open, in, &err) < 0)
		return 0;
	must_be_closed(&p);
	if (p.allow.n == 0 && rule_list_has_all(&p.deny))
		MUST(!policy_name(&p, "a.com").yes && !policy_address(&p, 0x08080808).yes);
	return 0;
}
