/* layout.c - prints protocol.h as JSON, so that the Python client can be compared with it. */
#include <stddef.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "copier/protocol.h"
#include "warden/protocol.h"

struct row {
	const char *name;
	size_t value;
};

#define FIELD(type, field) { #type "." #field, offsetof(struct type, field) }
#define SIZE(type)         { #type, sizeof(struct type) }
#define VALUE(constant)    { #constant, (size_t)(constant) }

static const struct row rows[] = {
	SIZE(warden_sizes),
	FIELD(warden_sizes, vcpus),
	FIELD(warden_sizes, memory_mib),
	FIELD(warden_sizes, overhead_mib),
	FIELD(warden_sizes, cpu_percent),
	FIELD(warden_sizes, pids_max),
	FIELD(warden_sizes, disk_mib),
	SIZE(warden_request),
	FIELD(warden_request, verb),
	FIELD(warden_request, tag),
	FIELD(warden_request, id),
	FIELD(warden_request, template_id),
	FIELD(warden_request, installation),
	FIELD(warden_request, sizes),
	FIELD(warden_request, slot),
	FIELD(warden_request, count),
	FIELD(warden_request, flags),
	SIZE(warden_facts),
	FIELD(warden_facts, vmm_version),
	FIELD(warden_facts, cpu_model),
	FIELD(warden_facts, accel),
	FIELD(warden_facts, arguments),
	FIELD(warden_facts, emulated),
	SIZE(warden_cell),
	FIELD(warden_cell, id),
	FIELD(warden_cell, installation),
	FIELD(warden_cell, state),
	FIELD(warden_cell, slot),
	FIELD(warden_cell, pid),
	FIELD(warden_cell, uid),
	SIZE(warden_reply),
	FIELD(warden_reply, tag),
	FIELD(warden_reply, code),
	FIELD(warden_reply, sys),
	FIELD(warden_reply, msg),
	FIELD(warden_reply, slot),
	FIELD(warden_reply, count),
	FIELD(warden_reply, facts),
	FIELD(warden_reply, cells),
	VALUE(WARDEN_VERSION_MIN),
	VALUE(WARDEN_VERSION_MAX),
	VALUE(WARDEN_ID_MAX),
	VALUE(WARDEN_FDS_MAX),
	VALUE(WARDEN_LIST_MAX),
#define VERB(verb, serve, needs, fds_min, fds_max) VALUE(verb), { "fds." #verb, fds_min },
#include "warden/verbs.def"
	VALUE(WARDEN_VERBS),
	VALUE(WARDEN_STARTING),
	VALUE(WARDEN_RUNNING),
	VALUE(WARDEN_STOPPING),
	VALUE(WARDEN_EXITED),
};

int main(void)
{
	const char *const files[] = { WARDEN_TEMPLATE_FILES };

	printf("{\n");
	for (size_t i = 0; i < COUNT(rows); i++)
		printf("\t\"%s\": %zu,\n", rows[i].name, rows[i].value);
	for (int code = ERR_NONE; code < ERR_CODES; code++)
		printf("\t\"err.%d\": \"%s\",\n", code, err_name((enum err_code)code));
	printf("\t\"template_files\": [");
	for (size_t i = 0; i < COUNT(files); i++)
		printf("%s\"%s\"", i ? ", " : "", files[i]);
	printf("],\n\t\"qmp_path\": \"%s\"\n}\n", WARDEN_QMP_PATH);
	return 0;
}
