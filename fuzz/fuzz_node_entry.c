/* fuzz_node_entry.c - promises of what the gateway takes from node: nothing read beyond a message,
 * strings that end, entries that add up to what was there. */
#include "fuzz/must.h"
#include "gateway/node_link.h"
#include "gateway/node_reply.h"

static void must_end(const struct node_sandbox *b)
{
	MUST(strnlen(b->id, sizeof(b->id)) < sizeof(b->id));
	MUST(strnlen(b->team, sizeof(b->team)) < sizeof(b->team));
	MUST(strnlen(b->template_id, sizeof(b->template_id)) < sizeof(b->template_id));
	MUST(strnlen(b->alias, sizeof(b->alias)) < sizeof(b->alias));
	MUST(strnlen(b->access_token, sizeof(b->access_token)) < sizeof(b->access_token));
}

static void check_entries(struct bytes in)
{
	struct bytes after = in, text;
	struct node_sandbox box;
	size_t taken = 0;

	for (;;) {
		struct bytes before = after;

		if (!node_entry_next(&after, &box, &text)) {
			MUST(after.ptr == before.ptr && after.len == before.len);
			break;
		}
		must_end(&box);
		MUST(inside(text, in) && inside(after, in));
		taken += sizeof(struct node_entry) + text.len;
		MUST(taken + after.len == in.len);
		/* the bytes lie where they should */
		MUST(memcmp(&box, before.ptr, sizeof(box)) == 0);
	}
}

static void check_tombstones(struct bytes in)
{
	struct bytes after = in;
	struct node_tombstone t;

	for (;;) {
		struct bytes before = after;

		if (!node_tombstone_next(&after, &t)) {
			MUST(after.ptr == before.ptr && after.len == before.len);
			break;
		}
		MUST(strnlen(t.id, sizeof(t.id)) < sizeof(t.id));
		MUST(strnlen(t.team, sizeof(t.team)) < sizeof(t.team));
		MUST(strnlen(t.template_id, sizeof(t.template_id)) < sizeof(t.template_id));
		MUST(after.len + sizeof(t) == before.len && inside(after, in));
	}
}

static void check_forked(struct bytes in)
{
	struct bytes after = in;
	struct node_forked f;

	for (;;) {
		struct bytes before = after;

		if (!node_forked_next(&after, &f)) {
			MUST(after.ptr == before.ptr && after.len == before.len);
			break;
		}
		must_end(&f.sandbox);
		MUST(f.code < ERR_CODES && strnlen(f.msg, sizeof(f.msg)) < sizeof(f.msg));
		MUST(after.len + sizeof(f) == before.len && inside(after, in));
	}
}

static void check_reply(struct bytes in)
{
	struct node_reply r;

	if (in.len < sizeof(r))
		return;
	memcpy(&r, in.ptr, sizeof(r));
	if (!node_reply_ok(&r, in.len))
		return;
	must_end(&r.sandbox);
	MUST(r.text_len == in.len - sizeof(r) && r.code < ERR_CODES);
	check_entries(bytes_tail(in, sizeof(r)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_head((struct bytes){ data, size }, NODE_MESSAGE_MAX);

	check_entries(in);
	check_tombstones(in);
	check_forked(in);
	check_reply(in);
	return 0;
}
