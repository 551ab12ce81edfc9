/* fuzz_node_request.c - promises of node's door: what is let through is safe to use as it is. */
#include "fuzz/must.h"
#include "node/door/request_check.h"

static void must_be_plain(const char *s, size_t size)
{
	size_t len = strnlen(s, size);

	MUST(len < size);
	for (size_t i = 0; i < len; i++)
		MUST(s[i] > ' ' && s[i] <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size }, text = { 0 }, again_text = { 0 };
	struct node_request rq, again;
	struct err err = { 0 };
	unsigned int needs;

	if (request_check(in, &rq, &text, &err) < 0) {
		must_say_why(&err);
		MUST(size >= sizeof(rq) || rq.tag == 0);
		return 0;
	}
	MUST(err.code == ERR_NONE);
	MUST(rq.verb < NODE_VERBS && rq.tag != 0);
	needs = node_verb_needs(rq.verb);
	must_be_plain(rq.team, sizeof(rq.team));
	must_be_plain(rq.id, sizeof(rq.id));
	must_be_plain(rq.template_id, sizeof(rq.template_id));
	must_be_plain(rq.template_tag, sizeof(rq.template_tag));
	must_be_plain(rq.key_id, sizeof(rq.key_id));
	must_be_plain(rq.idempotency, sizeof(rq.idempotency));
	must_be_plain(rq.token, sizeof(rq.token));
	MUST(!(needs & NODE_NEEDS_ID) || rq.id[0]);
	MUST(!(needs & NODE_NEEDS_TOKEN) || rq.token[0]);
	MUST(!(needs & NODE_NEEDS_TEAM) || rq.team[0]);
	MUST(!(needs & NODE_NEEDS_TEMPLATE) || rq.template_id[0]);
	MUST(rq.verb != NODE_FORK || (rq.count >= 1 && rq.count <= NODE_FORK_MAX));
	MUST(rq.verb != NODE_SOCKETS || (rq.count >= 1 && rq.count <= NODE_FDS_MAX));
	MUST(inside(text, in) && text.len == rq.text_len && text.len <= NODE_TEXT_MAX);
	MUST(sizeof(rq) + text.len == size);
	MUST(text.len == 0 || !memchr(text.ptr, 0, text.len));
	/* what was accepted says the same when sent again */
	MUST(request_check(in, &again, &again_text, &err) == 0);
	MUST(memcmp(&rq, &again, sizeof(rq)) == 0 && again_text.ptr == text.ptr);
	return 0;
}
