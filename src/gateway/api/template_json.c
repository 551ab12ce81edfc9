/* template_json.c - every member that the SDKs' models want, in their words. */
#include "gateway/api/template_json.h"

#include "base/bytes.h"
#include "gateway/api/sandbox_json.h"
#include "wire/rfc3339.h"

/* The host's template has one build, which E2B's clients want a UUID of. */
#define NO_BUILD "00000000-0000-0000-0000-000000000000"

const char *template_text(const json_t *t, const char *name)
{
	const char *s = json_string_value(json_object_get(t, name));

	return s ? s : "";
}

static json_t *number_of(const json_t *t, const char *name)
{
	return json_integer(json_integer_value(json_object_get(t, name)));
}

static json_t *copy_of(const json_t *t, const char *name)
{
	json_t *v = json_object_get(t, name);

	return v ? json_incref(v) : json_null();
}

static json_t *time_of(const json_t *t, const char *name)
{
	const char *given = template_text(t, name);
	char text[RFC3339_SIZE];

	if (given[0])
		return json_string(given);
	rfc3339_put(0, 0, text);
	return json_string(text);
}

json_t *template_names(const json_t *t)
{
	const char *name = template_text(t, "name");

	return name[0] ? json_pack("[o]",
				   json_sprintf("%s/%s", template_text(t, "namespace"), name))
		       : json_array();
}

json_t *template_aliases(const json_t *t)
{
	const char *name = template_text(t, "name");

	return name[0] ? json_pack("[s]", name) : json_array();
}

json_t *template_json(const json_t *t)
{
	const json_t *b = json_object_get(t, "build");
	const char *id = template_text(b, "buildID"), *status = template_text(b, "status");

	return json_pack(
		"{s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:n, s:o, s:o, s:o, "
		"s:s, s:s}",
		"templateID", template_text(t, "templateID"), "buildID", id[0] ? id : NO_BUILD,
		"cpuCount", number_of(b, "cpuCount"), "memoryMB", number_of(b, "memoryMB"),
		"diskSizeMB", number_of(b, "diskSizeMB"), "public",
		json_is_true(json_object_get(t, "public")), "aliases", template_aliases(t), "names",
		template_names(t), "createdAt", time_of(t, "createdAt"), "updatedAt",
		time_of(t, "updatedAt"), "createdBy", "lastSpawnedAt", copy_of(t, "lastSpawnedAt"),
		"spawnCount", number_of(t, "spawnCount"), "buildCount", number_of(t, "buildCount"),
		"envdVersion", SANDBOX_ENVD_VERSION, "buildStatus", status[0] ? status : "waiting");
}

static json_t *host_names(const json_t *t)
{
	return json_pack("[s]", template_text(t, "alias"));
}

json_t *template_json_host(const json_t *t)
{
	const char *status = template_text(t, "buildStatus");

	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:n, s:n, s:i, s:i, "
			 "s:s, s:s}",
			 "templateID", template_text(t, "templateID"), "buildID", NO_BUILD,
			 "cpuCount", number_of(t, "cpuCount"), "memoryMB", number_of(t, "memoryMB"),
			 "diskSizeMB", number_of(t, "diskSizeMB"), "public", 1, "aliases",
			 host_names(t), "names", host_names(t), "createdAt",
			 time_of(t, "createdAt"), "updatedAt", time_of(t, "createdAt"), "createdBy",
			 "lastSpawnedAt", "spawnCount", 0, "buildCount", 1, "envdVersion",
			 SANDBOX_ENVD_VERSION, "buildStatus", status[0] ? status : "ready");
}

/* One build of a template's list. */
static json_t *listed_build(const json_t *b)
{
	const char *ended = template_text(b, "finishedAt");
	json_t *v = json_pack(
		"{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "buildID", template_text(b, "buildID"),
		"status", template_text(b, "status"), "createdAt", time_of(b, "createdAt"),
		"updatedAt", time_of(b, ended[0] ? "finishedAt" : "createdAt"), "cpuCount",
		number_of(b, "cpuCount"), "memoryMB", number_of(b, "memoryMB"), "diskSizeMB",
		number_of(b, "diskSizeMB"), "envdVersion", SANDBOX_ENVD_VERSION);

	if (!v || !ended[0] || json_object_set_new(v, "finishedAt", json_string(ended)) == 0)
		return v;
	json_decref(v);
	return NULL;
}

json_t *template_builds_json(const json_t *t, size_t first, size_t shown)
{
	const json_t *all = json_object_get(t, "builds");
	json_t *builds = json_array();

	for (size_t i = first; i < first + shown; i++)
		if (json_array_append_new(builds, listed_build(json_array_get(all, i))) < 0) {
			json_decref(builds);
			return NULL;
		}
	return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "templateID",
			 template_text(t, "templateID"), "public",
			 json_is_true(json_object_get(t, "public")), "aliases", template_aliases(t),
			 "names", template_names(t), "createdAt", time_of(t, "createdAt"),
			 "updatedAt", time_of(t, "updatedAt"), "lastSpawnedAt",
			 copy_of(t, "lastSpawnedAt"), "spawnCount", number_of(t, "spawnCount"),
			 "builds", builds);
}

/* Why it failed. The step is left out where there is none. */
static int add_reason(json_t *to, const json_t *b)
{
	const json_t *reason = json_object_get(b, "reason");
	const char *step = template_text(reason, "step");
	json_t *v;

	if (!json_is_object(reason))
		return 0;
	v = json_pack("{s:s, s:[]}", "message", template_text(reason, "message"), "logEntries");
	if (!v || (step[0] && json_object_set_new(v, "step", json_string(step)) < 0)) {
		json_decref(v);
		return -1;
	}
	return json_object_set_new(to, "reason", v);
}

json_t *template_build_json(const json_t *b)
{
	json_t *v = json_pack("{s:s, s:s, s:s, s:[], s:o}", "templateID",
			      template_text(b, "templateID"), "buildID",
			      template_text(b, "buildID"), "status", template_text(b, "status"),
			      "logs", "logEntries", copy_of(b, "logEntries"));

	if (v && add_reason(v, b) == 0)
		return v;
	json_decref(v);
	return NULL;
}
