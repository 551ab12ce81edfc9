/* copy.c - `hotcell cp`: what was typed, which way it goes, and how it went. */
#include "cli/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "cli/say.h"

enum { SIGNALLED = 128 };

/* Cuts "SANDBOX:PATH" in two; NULL: it is a path here. As with scp, ./a:b is a file. */
static char *remote_path(char *word)
{
	size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n > 0 && word[n] == ':' ? word + n : NULL;
}

/* What is behind the colon at `at`; without anything it is the user's folder. Called once. */
static char *path_of(char *at)
{
	if (at[1])
		return at + 1;
	*at = '.';
	return at;
}

static bool is_local_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool ends_as_dir(const char *path)
{
	size_t len = strlen(path);

	return len == 0 || path[len - 1] == '/' || strcmp(path, ".") == 0 ||
	       (len > 2 && strcmp(path + len - 2, "/.") == 0);
}

/* Is `to` a folder, into which things go by their names? */
static int is_into(struct copying *c, bool up, const char *to, int n, bool *ret, struct err *err)
{
	struct copy_entry e = { 0 };
	bool there = up ? copy_stat(c, to, &e, err) == 0 : is_local_dir(to);

	if (up && !there && err->code != ERR_NOT_FOUND)
		return -1;
	*ret = up ? e.dir || (!there && ends_as_dir(to)) : there;
	if (*ret || n == 1)
		return 0;
	return err_set(err, ERR_INVALID, 0, "%.128s is no folder, and there are %d to copy", to, n);
}

static int copy_all(struct copying *c, bool up, struct err *err)
{
	const struct cli *cli = c->s.c;
	int n = cli->n_words - 1;
	char *last = cli->words[n];
	const char *to = up ? path_of(remote_path(last)) : last;
	bool into = false;

	if (is_into(c, up, to, n, &into, err) < 0)
		return -1;
	for (int i = 0; i < n; i++) {
		char *from = up ? cli->words[i] : path_of(remote_path(cli->words[i]));

		if ((up ? copy_up(c, from, to, into, err) : copy_down(c, from, to, into, err)) < 0)
			return -1;
	}
	return 0;
}

/* One side is one sandbox, the other this machine. NULL: no. */
static char *sandbox_of(const struct cli *c, bool *ret_up)
{
	int last = c->n_words - 1;
	AUTO(auto_free) char *id = NULL;

	*ret_up = remote_path(c->words[last]) != NULL;
	for (int i = 0; i <= last; i++) {
		char *at = remote_path(c->words[i]);
		size_t len = at ? (size_t)(at - c->words[i]) : 0;

		if ((at != NULL) != (*ret_up == (i == last)))
			return NULL;
		if (at && id && (strlen(id) != len || strncmp(id, c->words[i], len) != 0))
			return NULL;
		if (at && !id)
			id = strndup(c->words[i], len);
	}
	return TAKE(id);
}

static int say_done(const struct copying *c)
{
	AUTO(json_decrefp) json_t *all = NULL;

	if (!c->s.c->json)
		return c->skipped ? CLI_FAILED : CLI_FINE;
	all = json_pack("{s:I, s:I, s:I}", "files", (json_int_t)c->files, "bytes",
			(json_int_t)c->bytes, "skipped", (json_int_t)c->skipped);
	if (!all || cli_print_json(all) != CLI_FINE)
		return CLI_FAILED;
	return c->skipped ? CLI_FAILED : CLI_FINE;
}

static int failed(struct copying *c, const struct err *err, const char *fix)
{
	int signo = run_session_signal(&c->s);

	copy_progress_end(c);
	return signo ? SIGNALLED + signo : cli_fail_fix(c->s.c, err, fix);
}

static int copy_with(struct copying *c, bool up)
{
	struct err err = { 0 };
	int rc;

	c->s.answer.max = COPY_LIST_MAX;
	copy_progress_begin(c);
	run_keep_begin(&c->keep, &c->s);
	rc = copy_all(c, up, &err);
	run_keep_end(&c->keep);
	if (rc < 0)
		return failed(c, &err,
			      "see that both paths are there and may be used: hotcell exec "
			      "SANDBOX -- ls -l PATH; as another user: --user");
	copy_progress_end(c);
	return say_done(c);
}

int copy_run(struct cli *cli)
{
	struct copying c = { .to = -1 };
	struct err err = { 0 };
	bool up = false;
	char *id = sandbox_of(cli, &up);
	int status;

	if (!id)
		return cli_usage(cli);
	cli->sandbox = id;
	if (run_session_open(&c.s, cli, &err) < 0 ||
	    run_session_find(&c.s, id, RUN_KEEP_S, &err) < 0)
		status = failed(&c, &err, run_fix(&c.s, &err));
	else
		status = copy_with(&c, up);
	run_session_close(&c.s);
	free(id);
	return status;
}
