/* layout.c - prints node/protocol.h as JSON: the Python client is made of it, and cannot drift. */
#include <stddef.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "node/protocol.h"

struct row {
	const char *name;
	size_t offset, size;
};

#define FIELD(type, field)                                                 \
	{                                                                  \
		#type "." #field, offsetof(struct type, field),            \
		sizeof(((struct type *)0)->field) /* of this field only */ \
	}
#define SIZE(type)      { #type, 0, sizeof(struct type) }
#define VALUE(constant) { #constant, 0, (size_t)(constant) }

static const struct row rows[] = {
	SIZE(node_request),
	FIELD(node_request, verb),
	FIELD(node_request, tag),
	FIELD(node_request, team),
	FIELD(node_request, id),
	FIELD(node_request, template_id),
	FIELD(node_request, key_id),
	FIELD(node_request, idempotency),
	FIELD(node_request, limits),
	FIELD(node_request, team_limits),
	FIELD(node_request, after_ns),
	FIELD(node_request, until_ns),
	FIELD(node_request, timeout_s),
	FIELD(node_request, flags),
	FIELD(node_request, count),
	FIELD(node_request, text_len),
	SIZE(node_sandbox),
	FIELD(node_sandbox, id),
	FIELD(node_sandbox, team),
	FIELD(node_sandbox, template_id),
	FIELD(node_sandbox, alias),
	FIELD(node_sandbox, access_token),
	FIELD(node_sandbox, traffic_token),
	FIELD(node_sandbox, started_ns),
	FIELD(node_sandbox, end_ns),
	FIELD(node_sandbox, vcpus),
	FIELD(node_sandbox, memory_mib),
	FIELD(node_sandbox, disk_mib),
	FIELD(node_sandbox, state),
	FIELD(node_sandbox, generation),
	FIELD(node_sandbox, flags),
	FIELD(node_sandbox, reason),
	FIELD(node_sandbox, ended_ns),
	SIZE(node_reply),
	FIELD(node_reply, tag),
	FIELD(node_reply, code),
	FIELD(node_reply, event),
	FIELD(node_reply, msg),
	FIELD(node_reply, sandbox),
	FIELD(node_reply, count),
	FIELD(node_reply, resumed),
	FIELD(node_reply, retry_s),
	FIELD(node_reply, text_len),
	SIZE(node_limits),
	FIELD(node_limits, sandboxes),
	FIELD(node_limits, vcpus),
	FIELD(node_limits, memory_mib),
	FIELD(node_limits, disk_mib),
	FIELD(node_limits, paused),
	SIZE(node_tombstone),
	FIELD(node_tombstone, id),
	FIELD(node_tombstone, team),
	FIELD(node_tombstone, template_id),
	FIELD(node_tombstone, started_ns),
	FIELD(node_tombstone, ended_ns),
	FIELD(node_tombstone, reason),
	SIZE(node_forked),
	FIELD(node_forked, code),
	FIELD(node_forked, msg),
	FIELD(node_forked, sandbox),
	SIZE(node_entry),
	FIELD(node_entry, sandbox),
	FIELD(node_entry, text_len),
	VALUE(NODE_VERSION_MIN),
	VALUE(NODE_VERSION_MAX),
	VALUE(NODE_MESSAGE_MAX),
	VALUE(NODE_FDS_MAX),
#define VERB(verb, needs, serve) VALUE(verb),
#include "node/verbs.def"
	VALUE(NODE_ABSENT),
	VALUE(NODE_GONE),
	VALUE(NODE_LOST),
	VALUE(NODE_VMM_CRASH),
	VALUE(NODE_GUEST_PANIC),
	VALUE(NODE_OOM_HOST),
	VALUE(NODE_LIFETIME),
	VALUE(NODE_KILLED),
	VALUE(NODE_SECURE),
	VALUE(NODE_PRIVATE),
	VALUE(NODE_AUTO_PAUSE),
	VALUE(NODE_AUTO_RESUME),
	VALUE(NODE_NEWEST),
	VALUE(NODE_NO_MEMORY),
	VALUE(NODE_ALSO_PAUSED),
	VALUE(NODE_TO_AGENT),
	VALUE(NODE_RUNNING),
	VALUE(NODE_PAUSED),
};

int main(void)
{
	printf("{");
	for (size_t i = 0; i < COUNT(rows); i++)
		printf("\"%s\":[%zu,%zu],", rows[i].name, rows[i].offset, rows[i].size);
	printf("\"errors\":[");
	for (int code = 0; code < ERR_CODES; code++)
		printf("%s\"%s\"", code ? "," : "", err_name((enum err_code)code));
	printf("]}\n");
	return 0;
}
