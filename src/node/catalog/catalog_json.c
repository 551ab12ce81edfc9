/* catalog_json.c - templates, builds and tags as JSON: node/door/README.md has the shapes. */
#include "node/catalog/catalog_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/rfc3339.h"

const char *build_status_name(const struct build *b)
{
	static const char *const names[BUILD_STATUSES] = { "waiting", "building", "ready",
							   "error" };

	return names[b->noting ? BUILD_BUILDING : b->row.status];
}

static json_t *time_json(uint64_t ns)
{
	char at[RFC3339_SIZE];

	if (ns == 0)
		return json_null();
	rfc3339_put(ns, 6, at);
	return json_string(at);
}

/* NULL where nothing came of it. */
static json_t *reason_json(const struct build *b)
{
	if (b->row.status != BUILD_ERROR)
		return json_null();
	return json_pack("{s:o, s:s}", "message",
			 json_text(bytes_str(b->row.reason ? b->row.reason : "it failed")), "step",
			 b->row.step);
}

json_t *build_json(const struct build *b)
{
	const struct journal_build *r = &b->row;

	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:s, s:b, s:I, s:o}", "buildID",
			 r->id, "templateID", b->template->row.id, "status", build_status_name(b),
			 "createdAt", time_json(r->created_ns), "finishedAt",
			 time_json(r->finished_ns), "cpuCount", (json_int_t)r->vcpus, "memoryMB",
			 (json_int_t)r->memory_mib, "diskSizeMB", (json_int_t)r->disk_mib,
			 "snapshotID", b->snapshot ? r->snapshot_id : "", "copied", (int)r->copied,
			 "sandboxes", (json_int_t)build_users(b), "reason", reason_json(b));
}

/* Of the first build that is frozen again, or should be: {"state", "message"}; else null. */
static json_t *refreeze_json(const struct template *t)
{
	const struct build *b = t->builds;

	while (b && !refreeze_name(b))
		b = b->next;
	if (!b)
		return json_null();
	return json_pack("{s:s, s:s, s:o}", "buildID", b->row.id, "state", refreeze_name(b),
			 "message", json_text(bytes_str(b->refreeze.why.msg)));
}

json_t *template_tags_json(const struct template *t)
{
	json_t *all = json_array();

	for (size_t i = 0; all && i < t->tags.n; i++) {
		const struct template_tag *g = &t->tags.all[i];

		(void)json_array_append_new(all, json_pack("{s:s, s:s, s:o}", "tag", g->name,
							   "buildID", g->build_id, "createdAt",
							   time_json(g->created_ns)));
	}
	return all;
}

/* Without its reason, which may be long: lists must fit. */
static json_t *short_build(const struct build *b)
{
	json_t *v = b ? build_json(b) : json_null();

	if (b && v)
		(void)json_object_del(v, "reason");
	return v;
}

json_t *template_json(const struct template *t)
{
	const struct journal_template *r = &t->row;
	char created[32];

	snprintf(created, sizeof(created), "%" PRIu64, r->created_ns);
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:o, s:o}",
			 "templateID", r->id, "teamID", r->team, "namespace", r->namespace, "name",
			 r->name, "public", (int)r->public, "createdAt", time_json(r->created_ns),
			 "createdNs", created, "updatedAt", time_json(r->updated_ns),
			 "lastSpawnedAt", time_json(r->spawned_ns), "spawnCount",
			 (json_int_t)r->spawns, "buildCount", (json_int_t)t->n_builds, "sandboxes",
			 (json_int_t)template_users(t), "build", short_build(t->builds), "refreeze",
			 refreeze_json(t));
}

json_t *template_with_builds_json(const struct template *t)
{
	json_t *v = template_json(t), *builds = json_array();

	for (const struct build *b = t->builds; builds && b; b = b->next)
		(void)json_array_append_new(builds, short_build(b));
	if (v && json_object_set_new(v, "builds", builds) == 0 &&
	    json_object_set_new(v, "tags", template_tags_json(t)) == 0)
		return v;
	json_decref(v);
	return NULL;
}
