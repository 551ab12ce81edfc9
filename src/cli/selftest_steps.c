/* selftest_steps.c - what `hotcell selftest` tries, in this order. */
#include <errno.h>
#include <stdio.h>

#include "cli/ask.h"
#include "cli/guest_process.h"
#include "cli/selftest.h"
#include "cli/table.h"

enum { LIVES_S = 900, OUTPUT_MAX = 64 * 1024, SAID_MAX = 160 };

static const char note[] = "/tmp/hotcell-selftest";
static const char written[] = "written by hotcell selftest\n";
/* nobody may have it: RFC 2606 */
static const char denied_name[] = "selftest.hotcell.example";

static enum selftest_result judge(int rc)
{
	return rc < 0 ? STEP_FAIL : STEP_PASS;
}

/* --- what steps are made of ----------------------------------------------------------------- */

static void remember(struct selftest *t)
{
	if (t->n_made < SELFTEST_MADE_MAX)
		snprintf(t->made[t->n_made++], sizeof(t->made[0]), "%s", t->s.id);
}

static int create(struct selftest *t, const char *template, struct err *err)
{
	AUTO(json_decrefp)
	json_t *body =
		json_pack("{s:o, s:i, s:b, s:{s:s}}", "templateID", json_text(bytes_str(template)),
			  "timeout", LIVES_S, "secure", 1, "metadata", "hotcell", "selftest");
	AUTO(json_decrefp) json_t *answer = NULL;

	if (run_session_ask(&t->s, "POST", "/sandboxes", body, err) < 0 ||
	    json_decode(buf_view(&t->s.answer), RUN_ANSWER_MAX, ANSWER_DEPTH, &answer, err) < 0 ||
	    run_session_take(&t->s, answer, err) < 0)
		return -1;
	remember(t);
	return 0;
}

/* A request about a sandbox, whose answer is JSON or nothing. */
static int ask_about(struct selftest *t, const char *method, const char *id, const char *suffix,
		     const json_t *body, json_t **ret, struct err *err)
{
	char target[RUN_ID_MAX + 64];

	snprintf(target, sizeof(target), "/sandboxes/%s%s", id, suffix);
	if (run_session_ask(&t->s, method, target, body, err) < 0)
		return -1;
	return ret ? json_decode(buf_view(&t->s.answer), RUN_ANSWER_MAX, ANSWER_DEPTH, ret, err)
		   : 0;
}

/* The sandbox that all is done with, again; resumed, if it is paused. */
static int back_to_first(struct selftest *t, struct err *err)
{
	AUTO(json_decrefp) json_t *body = json_pack("{s:i}", "timeout", LIVES_S), *answer = NULL;

	if (ask_about(t, "POST", t->first, "/connect", body, &answer, err) < 0)
		return -1;
	return run_session_take(&t->s, answer, err);
}

/* A line of shell; what it prints must be `wanted`, unless that is NULL. */
static int run_line(struct selftest *t, const char *line, const char *wanted, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(OUTPUT_MAX);
	const char *const argv[] = { "/bin/sh", "-c", line, NULL };
	char text[SAID_MAX];
	int code;

	if (guest_process_capture(&t->s, argv, &out, &code, err) < 0)
		return -1;
	if (!bytes_to_str(bytes_head(buf_view(&out), sizeof(text) - 1), text, sizeof(text)))
		text[0] = '\0';
	if (code != 0 || (wanted && strcmp(text, wanted) != 0)) {
		err_set(err, ERR_INTERNAL, 0, "`%s` ended with %d and said: %.100s", line, code,
			text);
		table_clean(err->msg);
		return -1;
	}
	text[strcspn(text, "\n")] = '\0';
	table_clean(text);
	snprintf(t->detail, sizeof(t->detail), "%s", text);
	return 0;
}

static int read_note(struct selftest *t, struct err *err)
{
	char line[128];

	snprintf(line, sizeof(line), "cat %s", note);
	return run_line(t, line, written, err);
}

static int end_one(struct selftest *t, const char *id, struct err *err)
{
	if (ask_about(t, "DELETE", id, "", NULL, NULL, err) < 0)
		return -1;
	for (size_t i = 0; i < t->n_made; i++)
		if (strcmp(t->made[i], id) == 0)
			t->made[i][0] = '\0';
	return 0;
}

/* --- steps ---------------------------------------------------------------------------------- */

static enum selftest_result step_create(struct selftest *t, struct err *err)
{
	const char *template = t->c->template ? t->c->template : "base";

	if (create(t, template, err) < 0)
		return STEP_FAIL;
	snprintf(t->first, sizeof(t->first), "%s", t->s.id);
	snprintf(t->detail, sizeof(t->detail), "%s of %.64s", t->first, template);
	return STEP_PASS;
}

static enum selftest_result step_run(struct selftest *t, struct err *err)
{
	return judge(run_line(t, "uname -sr", NULL, err));
}

/* With the content type that newer clients send. */
static int send_file(struct selftest *t, const char *method, struct bytes body, struct err *err)
{
	char target[256];
	struct client_ask ask;

	run_session_to_agent(&t->s, "application/octet-stream", &ask);
	snprintf(target, sizeof(target), "/files?username=user&path=%s", note);
	ask.method = method;
	ask.target = target;
	ask.body = body;
	ask.reply_ms = RUN_ASK_MS;
	if (run_session_send(&t->s, &ask, err) < 0)
		return -1;
	return t->s.x.status == 200 ? 0 : run_session_refused(&t->s, "sandbox", err);
}

static enum selftest_result step_write(struct selftest *t, struct err *err)
{
	return judge(send_file(t, "POST", bytes_str(written), err));
}

static enum selftest_result step_read(struct selftest *t, struct err *err)
{
	if (send_file(t, "GET", (struct bytes){ 0 }, err) < 0)
		return STEP_FAIL;
	if (bytes_eq(buf_view(&t->s.answer), bytes_str(written)))
		return STEP_PASS;
	err_set(err, ERR_INTERNAL, 0, "the file has not what was written to it");
	return STEP_FAIL;
}

static int interpret(struct selftest *t, struct err *err)
{
	static const char code[] = "{\"code\":\"6 * 7\",\"language\":\"python\"}";
	struct client_ask ask = {
		.to = &t->s.interp,
		.method = "POST",
		.target = "/execute",
		.fields = { { BYTES_LIT("content-type"), BYTES_LIT("application/json") },
			    { BYTES_LIT("e2b-sandbox-id"), bytes_str(t->s.id) },
			    { BYTES_LIT("e2b-sandbox-port"), BYTES_LIT(RUN_PORT) },
			    { BYTES_LIT("x-access-token"), bytes_str(t->s.token) } },
		.n_fields = t->s.token[0] ? 4 : 3,
		.body = bytes_str(code),
		.reply_ms = RUN_ASK_MS,
	};
	struct bytes said;

	if (run_session_send(&t->s, &ask, err) < 0)
		return -1;
	if (t->s.x.status != 200)
		return run_session_refused(&t->s, "sandbox", err);
	said = buf_view(&t->s.answer);
	if (said.len > 0 && memmem(said.ptr, said.len, "\"42\"", 4))
		return 0;
	return err_set(err, ERR_INTERNAL, 0, "6 * 7 is not 42 there");
}

/* In a sandbox of its template, where that was made. */
static enum selftest_result step_interpret(struct selftest *t, struct err *err)
{
	char id[RUN_ID_MAX + 1];
	int rc;

	if (create(t, CLI_CODE_TEMPLATE, err) < 0) {
		snprintf(t->detail, sizeof(t->detail), "there is no template " CLI_CODE_TEMPLATE);
		return err->code == ERR_NOT_FOUND ? STEP_SKIP : STEP_FAIL;
	}
	snprintf(id, sizeof(id), "%s", t->s.id);
	rc = interpret(t, err);
	if (rc == 0)
		rc = end_one(t, id, err);
	if (rc == 0)
		rc = back_to_first(t, err);
	snprintf(t->detail, sizeof(t->detail), "6 * 7 is 42");
	return judge(rc);
}

/* A name that the operator lets everybody reach: the first that is no pattern, no range and not
 * `packages`, which stands for names of their own. */
static bool find_allowed(struct selftest *t, char ret[static 256])
{
	const struct cli_request rq = { .path = "/admin/sandboxes/",
					.id = t->first,
					.suffix = "/explain" };
	AUTO(json_decrefp) json_t *told = NULL;
	const json_t *lists[2], *one;
	struct err ignored;
	size_t i;

	if (!t->as_operator || cli_ask(t->c, &rq, &told, &ignored) < 0)
		return false;
	lists[0] = json_object_get(json_object_get(told, "operator"), "allow");
	lists[1] = json_object_get(told, "packages");
	for (size_t k = 0; k < COUNT(lists); k++)
		json_array_foreach(lists[k], i, one)
		{
			const char *name = json_string_value(one);

			if (name && strlen(name) < 256 &&
			    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") ==
				    strlen(name) &&
			    strpbrk(name, "abcdefghijklmnopqrstuvwxyz") && strchr(name, '.')) {
				snprintf(ret, 256, "%s", name);
				return true;
			}
		}
	return false;
}

static int resolves(struct selftest *t, const char *name, bool *ret, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(OUTPUT_MAX);
	const char *const argv[] = { "getent", "ahosts", name, NULL };
	int code = 0;

	if (guest_process_capture(&t->s, argv, &out, &code, err) < 0)
		return -1;
	*ret = code == 0;
	return 0;
}

static enum selftest_result step_allowed(struct selftest *t, struct err *err)
{
	char name[256];
	bool found = false;

	if (!find_allowed(t, name)) {
		snprintf(t->detail, sizeof(t->detail), "no name is known that it may reach");
		return STEP_SKIP;
	}
	if (resolves(t, name, &found, err) < 0)
		return STEP_FAIL;
	snprintf(t->detail, sizeof(t->detail),
		 found ? "%.200s resolves" : "%.150s does not resolve: hotcell explain, egress log",
		 name);
	return found ? STEP_PASS : STEP_WARN;
}

/* Egress must have said no: that a name does not resolve may have many reasons. */
static bool was_refused(struct selftest *t)
{
	const struct cli_request rq = { .path = "/admin/sandboxes/",
					.id = t->first,
					.suffix = "/egress" };
	AUTO(json_decrefp) json_t *log = NULL;
	const json_t *entry;
	struct err ignored;
	size_t i;

	if (cli_ask(t->c, &rq, &log, &ignored) < 0)
		return false;
	json_array_foreach(log, i, entry)
	{
		const char *name = json_string_value(json_object_get(entry, "name"));
		const char *verdict = json_string_value(json_object_get(entry, "verdict"));

		if (name && verdict && strcmp(name, denied_name) == 0 &&
		    strcmp(verdict, "refused") == 0)
			return true;
	}
	return false;
}

static enum selftest_result step_denied(struct selftest *t, struct err *err)
{
	bool found = false;

	if (resolves(t, denied_name, &found, err) < 0)
		return STEP_FAIL;
	if (found) {
		err_set(err, ERR_DENIED, 0, "%s resolves, which nobody allowed", denied_name);
		return STEP_FAIL;
	}
	if (t->as_operator && !was_refused(t)) {
		snprintf(t->detail, sizeof(t->detail),
			 "%s does not resolve, and egress does not say why", denied_name);
		return STEP_WARN;
	}
	snprintf(t->detail, sizeof(t->detail), "%s is refused", denied_name);
	return STEP_PASS;
}

static enum selftest_result step_pause(struct selftest *t, struct err *err)
{
	return judge(ask_about(t, "POST", t->first, "/pause", NULL, NULL, err));
}

static enum selftest_result step_resume(struct selftest *t, struct err *err)
{
	return judge(back_to_first(t, err) < 0 ? -1 : read_note(t, err));
}

static enum selftest_result step_fork(struct selftest *t, struct err *err)
{
	AUTO(json_decrefp)
	json_t *body = json_pack("{s:i, s:i}", "count", 1, "timeout", LIVES_S), *answer = NULL;
	char copy[RUN_ID_MAX + 1];

	if (ask_about(t, "POST", t->first, "/fork", body, &answer, err) < 0)
		return STEP_FAIL;
	if (run_session_take(&t->s, json_object_get(json_array_get(answer, 0), "sandbox"), err) < 0)
		return STEP_FAIL;
	remember(t);
	snprintf(copy, sizeof(copy), "%s", t->s.id);
	if (read_note(t, err) < 0 || end_one(t, copy, err) < 0)
		return STEP_FAIL;
	snprintf(t->detail, sizeof(t->detail), "the copy had the file");
	return judge(back_to_first(t, err));
}

static int drop_snapshot(struct selftest *t, struct err *err)
{
	char target[RUN_ID_MAX + 32];

	snprintf(target, sizeof(target), "/templates/%s", t->snapshot);
	if (run_session_ask(&t->s, "DELETE", target, NULL, err) < 0)
		return -1;
	t->snapshot[0] = '\0';
	return 0;
}

static int take_snapshot(struct selftest *t, struct err *err)
{
	AUTO(json_decrefp) json_t *body = json_object(), *answer = NULL;
	struct bytes id;

	if (ask_about(t, "POST", t->first, "/snapshots", body, &answer, err) < 0 ||
	    json_want_string(answer, "snapshotID", &id, err) < 0)
		return -1;
	id = bytes_head(id, strcspn((const char *)id.ptr, ":"));
	if (!bytes_to_str(id, t->snapshot, sizeof(t->snapshot)))
		return err_set(err, ERR_INTERNAL, 0, "the id of the snapshot is too long");
	return 0;
}

static enum selftest_result step_snapshot(struct selftest *t, struct err *err)
{
	char copy[RUN_ID_MAX + 1];

	if (take_snapshot(t, err) < 0 || create(t, t->snapshot, err) < 0)
		return STEP_FAIL;
	snprintf(copy, sizeof(copy), "%s", t->s.id);
	if (read_note(t, err) < 0 || end_one(t, copy, err) < 0 || drop_snapshot(t, err) < 0)
		return STEP_FAIL;
	snprintf(t->detail, sizeof(t->detail), "a sandbox made of it had the file");
	return STEP_PASS;
}

static enum selftest_result step_kill(struct selftest *t, struct err *err)
{
	if (end_one(t, t->first, err) < 0)
		return STEP_FAIL;
	if (ask_about(t, "GET", t->first, "", NULL, NULL, err) == 0) {
		err_set(err, ERR_EXISTS, 0, "%s was killed and is still there", t->first);
		return STEP_FAIL;
	}
	return err->code == ERR_NOT_FOUND ? STEP_PASS : STEP_FAIL;
}

static enum selftest_result step_left(struct selftest *t, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;

	if (run_session_ask(&t->s, "GET", "/v2/sandboxes?metadata=hotcell%3Dselftest", NULL, err) <
		    0 ||
	    json_decode(buf_view(&t->s.answer), RUN_ANSWER_MAX, ANSWER_DEPTH, &all, err) < 0)
		return STEP_FAIL;
	if (json_array_size(all) == 0)
		return STEP_PASS;
	err_set(err, ERR_EXISTS, 0, "%zu sandboxes of a selftest are there: hotcell ps --all",
		json_array_size(all));
	return STEP_FAIL;
}

const struct selftest_step selftest_steps[] = {
	{ "create", step_create },
	{ "run a command", step_run },
	{ "write a file", step_write },
	{ "read it", step_read },
	{ "interpret code", step_interpret },
	{ "allowed name", step_allowed },
	{ "denied name", step_denied },
	{ "pause", step_pause },
	{ "resume", step_resume },
	{ "fork", step_fork },
	{ "snapshot", step_snapshot },
	{ "kill", step_kill },
	{ "nothing is left", step_left },
};
const size_t n_selftest_steps = COUNT(selftest_steps);

bool selftest_clean(struct selftest *t)
{
	struct err err = { 0 };
	bool clean = true;

	for (size_t i = 0; i < t->n_made; i++) {
		char id[RUN_ID_MAX + 1];

		snprintf(id, sizeof(id), "%s", t->made[i]);
		if (id[0] && end_one(t, id, &err) < 0 && err.code != ERR_NOT_FOUND)
			clean = false;
	}
	if (t->snapshot[0] && drop_snapshot(t, &err) < 0 && err.code != ERR_NOT_FOUND)
		clean = false;
	return clean;
}
