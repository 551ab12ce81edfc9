/* run.c - `hotcell run` and `hotcell exec`: what was typed, in which sandbox, how it went.
 *
 *	the code is read -> a sandbox -> the code runs there -> the sandbox is ended, if it was made
 */
#include "cli/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/own.h"
#include "base/read_all.h"
#include "cli/run_execution.h"
#include "cli/say.h"
#include "cli/shell.h"
#include "cli/table.h"

enum {
	CODE_MAX = 8 * 1024 * 1024,
	BODY_MAX = 32 * 1024 * 1024, /* what the server in the sandbox reads */
	TIMEOUT_S = 300,
	SIGNALLED = 128, /* the exit status, and the number of the signal */
};

struct job {
	struct cli *c;
	struct run_session s;
	struct run_files files;
	struct buf body;
	uint64_t seconds;
	bool found; /* the sandbox is there */
};

/* --- what was typed ------------------------------------------------------------------------- */

static const struct {
	const char *ending, *language;
} endings[] = {
	{ ".py", "python" },     { ".js", "javascript" }, { ".mjs", "javascript" },
	{ ".ts", "typescript" }, { ".sh", "bash" },       { ".bash", "bash" },
	{ ".r", "r" },           { ".java", "java" },
};

static const char *language_of(const char *file)
{
	const char *dot = strrchr(file, '.');

	for (size_t i = 0; dot && i < COUNT(endings); i++)
		if (strcasecmp(dot, endings[i].ending) == 0)
			return endings[i].language;
	return NULL;
}

/* "-": standard input. */
static int read_code(const char *path, struct buf *ret, struct err *err)
{
	bool input = strcmp(path, "-") == 0;
	AUTO(auto_close) int fd = input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	const char *name = input ? "standard input" : path;

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INVALID, errno, "%s",
			       name);
	return read_all(fd, ret, err) < 0 ? err_wrap(err, "%s", name) : 0;
}

static json_t *envs_of(const struct cli *c)
{
	json_t *envs = json_object();

	for (size_t i = 0; i < c->n_envs; i++) {
		struct bytes value = bytes_str(c->envs[i]), name;

		if (bytes_cut(&value, '=', &name) &&
		    json_object_setn_new(envs, (const char *)name.ptr, name.len, json_text(value)) <
			    0) {
			json_decref(envs);
			return NULL;
		}
	}
	return envs;
}

/* The request. Without a context or a language it is Python, as for the SDKs. */
static int make_body(struct job *j, struct bytes code, const char *language, struct err *err)
{
	json_t *text = json_stringn(code.len ? (const char *)code.ptr : "", code.len);
	AUTO(json_decrefp) json_t *body = NULL;

	if (!text)
		return err_set(err, ERR_INVALID, 0, "the code is not UTF-8");
	body = json_pack("{s:o, s:s*, s:s*, s:o}", "code", text, "context_id", j->c->context,
			 "language", j->c->context ? NULL : language, "env_vars", envs_of(j->c));
	if (!body)
		return err_set(err, ERR_INVALID, 0, "names and values must be UTF-8");
	return json_encode(body, &j->body, err);
}

/* --- how it went ---------------------------------------------------------------------------- */

#define WHERE                                                                               \
	"set E2B_DOMAIN to the server's domain, or E2B_API_URL and E2B_SANDBOX_URL to its " \
	"address, and see that hotcell-gateway runs"

const char *run_fix(const struct run_session *s, const struct err *err)
{
	static const char *const fixes[ERR_CODES] = {
		[ERR_UNAVAILABLE] = WHERE,
		[ERR_TIMEOUT] = WHERE,
		[ERR_DENIED] = "set E2B_API_KEY to a key of this server: hotcell keys add TEAM",
		[ERR_NOT_FOUND] =
			"list what there is: hotcell templates; guest/interpreter/README.md "
			"says how code-interpreter-v1 is made",
		[ERR_EXHAUSTED] = "a limit was reached: hotcell status",
		[ERR_INVALID] = "hotcell --help",
	};
	const struct cli_e2b *e = &s->c->e2b;

	if (!e->key || (!e->domain && !e->api_url))
		return "`hotcell keys add TEAM` prints a key; " WHERE;
	if (err->code == ERR_DENIED && s->x.status == 0)
		return "set SSL_CERT_FILE to a file with the certificate of the server's "
		       "authority: "
		       "docs/tls.md";
	if (err->code == ERR_NOT_FOUND && s->c->sandbox)
		return "list what there is: hotcell ps";
	return fixes[err->code] ? fixes[err->code] : "see the gateway's log";
}

static const char *fix_of_execution(const struct err *err)
{
	static const char *const fixes[ERR_CODES] = {
		[ERR_UNAVAILABLE] = "see whether it still runs, hotcell why SANDBOX, and is of "
				    "code-interpreter-v1: there a server answers on port " RUN_PORT,
		[ERR_EXHAUSTED] = "give it longer, --timeout S, or let it say less at once",
		[ERR_NOT_FOUND] = "leave --context out: contexts end with their sandbox",
		[ERR_INTERNAL] = "name a language that the template has: python, javascript, "
				 "typescript, bash, r, java",
	};

	return fixes[err->code] ? fixes[err->code] : "see the code, and hotcell --help";
}

/* A signal says enough. */
static int fail(struct job *j, const struct err *err, const char *fix)
{
	int signo = run_session_signal(&j->s);
	int status;

	if (signo)
		return SIGNALLED + signo;
	status = cli_fail_fix(j->c, err, fix);
	return j->found ? CLI_FAILED : status;
}

static int worse(int a, int b)
{
	return a != CLI_FINE ? a : b;
}

static void on_file(struct run_files *f, const char *name)
{
	struct job *j = CONTAINER_OF(f, struct job, files);
	AUTO(buf_done) struct buf path = BUF_MAX(8192);
	AUTO(json_decrefp) json_t *event = NULL;
	AUTO(auto_free) char *text = NULL;
	struct err err;

	if (buf_printf(&path, &err, "%s%s%s", f->path ? f->path : "", f->path ? "/" : "", name) < 0)
		return;
	if (!j->c->json) {
		table_clean((char *)path.ptr);
		fprintf(stderr, "hotcell: wrote %s\n", (const char *)path.ptr);
		return;
	}
	event = json_pack("{s:s, s:o}", "type", "file", "path", json_text(buf_view(&path)));
	text = event ? json_dumps(event, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	if (text && dprintf(STDOUT_FILENO, "%s\n", text) < 0)
		fprintf(stderr, "hotcell: could not write\n");
}

/* --- all of it ------------------------------------------------------------------------------ */

static int get_sandbox(struct job *j)
{
	uint64_t lives = j->seconds + RUN_SPARE_S;
	struct err err = { 0 };

	if ((j->c->sandbox ? run_session_find(&j->s, j->c->sandbox, lives, &err)
			   : run_session_make(&j->s, lives, &err)) < 0)
		return fail(j, &err, run_fix(&j->s, &err));
	j->found = true;
	if (j->c->json)
		dprintf(STDOUT_FILENO, "{\"type\":\"sandbox\",\"sandboxID\":\"%s\"}\n", j->s.id);
	return CLI_FINE;
}

static int execute(struct job *j)
{
	struct run_execution e = { .s = &j->s,
				   .out = run_out_open(STDOUT_FILENO, j->s.signals),
				   .err_out = run_out_open(STDERR_FILENO, j->s.signals),
				   .files = j->files.dir >= 0 ? &j->files : NULL };
	struct err err = { 0 };

	if (run_execution_run(&e, buf_view(&j->body), j->seconds, &err) == 0)
		return e.raised || e.incomplete ? CLI_FAILED : CLI_FINE;
	return e.closed ? CLI_FAILED : fail(j, &err, fix_of_execution(&err));
}

/* Also after a signal, whatever it interrupted. */
static int end_sandbox(struct job *j)
{
	struct err err = { 0 };

	if (!j->s.made)
		return CLI_FINE;
	if (j->c->keep && j->found && !j->s.signo) {
		if (!j->c->json)
			fprintf(stderr,
				"hotcell: sandbox %s stays for %llu seconds: hotcell exec %s CODE, "
				"hotcell kill %s\n",
				j->s.id, (unsigned long long)j->seconds + RUN_SPARE_S, j->s.id,
				j->s.id);
		return CLI_FINE;
	}
	if (run_session_kill(&j->s, &err) == 0)
		return CLI_FINE;
	err_wrap(&err, "sandbox %s was not ended", j->s.id);
	return cli_fail_fix(j->c, &err,
			    "it ends by itself in some minutes, or: hotcell kill SANDBOX");
}

static int run_in_sandbox(struct job *j)
{
	struct err err = { 0 };
	int status;

	if (run_session_open(&j->s, j->c, &err) < 0) {
		status = cli_fail_fix(j->c, &err, run_fix(&j->s, &err));
	} else {
		status = get_sandbox(j);
		if (status == CLI_FINE)
			status = execute(j);
		status = worse(status, end_sandbox(j));
	}
	run_session_close(&j->s);
	return status;
}

/* With --json the results are in what is printed. */
static int run_job(struct job *j, const char *source)
{
	struct err err = { 0 };
	int status;

	j->files = (struct run_files){ .dir = -1, .on_file = on_file };
	j->seconds = j->c->timeout ? j->c->timeout : TIMEOUT_S;
	if ((!j->c->json || j->c->out) && run_files_open(&j->files, j->c->out, source, &err) < 0)
		return cli_fail_fix(j->c, &err, "name a folder that you may write to: --out DIR");
	status = run_in_sandbox(j);
	run_files_close(&j->files);
	return status;
}

int run_run(struct cli *c)
{
	AUTO(buf_done) struct buf code = BUF_MAX(CODE_MAX);
	struct job j = { .c = c, .body = BUF_MAX(BODY_MAX) };
	const char *file = c->words[0], *language = c->lang ? c->lang : language_of(file);
	struct err err = { 0 };
	int status;

	if ((c->lang && c->context) || (c->sandbox && (c->template || c->keep)) ||
	    (c->context && !c->sandbox))
		return cli_usage(c);
	c->template = c->template ?: CLI_CODE_TEMPLATE;
	if (!language && !c->context) {
		fprintf(stderr,
			"hotcell: no language has this ending: %s\n  fix: --lang LANGUAGE\n", file);
		return CLI_USAGE;
	}
	if (read_code(file, &code, &err) < 0 || make_body(&j, buf_view(&code), language, &err) < 0)
		return cli_fail_fix(c, &err, "name a file with code, at most 8 MiB");
	status = run_job(&j, file);
	buf_done(&j.body);
	return status;
}

int exec_run(struct cli *c)
{
	AUTO(buf_done) struct buf code = BUF_MAX(CODE_MAX);
	struct job j = { .c = c, .body = BUF_MAX(BODY_MAX) };
	bool input = strcmp(c->words[1], "-") == 0;
	struct err err = { 0 };
	int status;

	if (c->n_behind > 0)
		return command_run(c);
	if (c->n_words != 2 || (c->lang && c->context) || c->input || c->user)
		return cli_usage(c);
	c->sandbox = c->words[0];
	if ((input ? read_code("-", &code, &err) : buf_add(&code, bytes_str(c->words[1]), &err)) <
		    0 ||
	    make_body(&j, buf_view(&code), c->lang ? c->lang : "python", &err) < 0)
		return cli_fail_fix(c, &err, "give it code, at most 8 MiB");
	status = run_job(&j, NULL);
	buf_done(&j.body);
	return status;
}
