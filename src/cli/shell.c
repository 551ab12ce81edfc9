/* shell.c - `hotcell exec SANDBOX -- COMMAND` and `hotcell shell SANDBOX`.
 *
 * The terminal of a shell is handed to the guest as it is: that is what was asked for. Of a command
 * a terminal gets only what it does not obey.
 */
#include "cli/shell.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/guest_process.h"
#include "cli/run.h"
#include "cli/run_out.h"
#include "cli/say.h"

enum { TIMEOUT_S = 300, SIGNALLED = 128, COLS_USUAL = 80, ROWS_USUAL = 24 };

struct job {
	struct guest_process p;
	struct run_session s;
	struct run_out out, err_out;
	struct termios before;
	bool raw;    /* the terminal is, and has to be as before */
	bool closed; /* nobody reads our output any more */
};

/* bash, as people expect; what has none has sh */
static const char *const login_shell[] = {
	"/bin/sh", "-c",
	"if command -v bash >/dev/null; then exec bash -i -l; else exec sh -i -l; fi"
};

/* --- the terminal --------------------------------------------------------------------------- */

static void window(struct guest_process *p, uint16_t *ret_cols, uint16_t *ret_rows)
{
	struct winsize size = { 0 };

	(void)p;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		size = (struct winsize){ 0 };
	*ret_cols = size.ws_col ? size.ws_col : COLS_USUAL;
	*ret_rows = size.ws_row ? size.ws_row : ROWS_USUAL;
}

/* Every key goes to the guest, Ctrl-C too. */
static void make_raw(struct job *j)
{
	struct termios raw;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &j->before) < 0)
		return;
	raw = j->before;
	cfmakeraw(&raw);
	j->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void make_cooked(struct job *j)
{
	if (j->raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &j->before);
	j->raw = false;
}

static int open_winch(struct err *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "block SIGWINCH");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_set(err, ERR_INTERNAL, errno, "signalfd") : fd;
}

/* --- both ----------------------------------------------------------------------------------- */

static int on_output(struct guest_process *p, bool is_error, struct bytes piece, struct err *err)
{
	struct job *j = CONTAINER_OF(p, struct job, p);
	int rc = run_out_bytes(is_error ? &j->err_out : &j->out, piece, err);

	j->closed = rc < 0 && err->sys == EPIPE;
	return rc;
}

static json_t *envs_of(const struct cli *c, bool terminal)
{
	json_t *envs = json_object();

	if (terminal)
		json_object_set_new(envs, "TERM",
				    json_text(bytes_str(c->term ? c->term : "xterm")));
	for (size_t i = 0; i < c->n_envs; i++) {
		struct bytes value = bytes_str(c->envs[i]), name;

		if (bytes_cut(&value, '=', &name))
			json_object_setn_new(envs, (const char *)name.ptr, name.len,
					     json_text(value));
	}
	return envs;
}

static json_t *message_of(struct job *j, const char *const *argv, int n)
{
	json_t *message = guest_process_command(argv, n), *size;
	uint16_t cols, rows;

	json_object_set_new(json_object_get(message, "process"), "envs", envs_of(j->s.c, j->p.pty));
	json_object_set_new(message, "stdin", json_boolean(j->p.input >= 0));
	if (!j->p.pty)
		return message;
	window(&j->p, &cols, &rows);
	size = json_pack("{s:{s:i, s:i}}", "size", "cols", cols, "rows", rows);
	json_object_set_new(message, "pty", size);
	return message;
}

static int failed(struct job *j, const struct err *err, const char *fix)
{
	int signo = run_session_signal(&j->s);

	make_cooked(j);
	if (signo)
		return SIGNALLED + signo;
	return j->closed ? (int)CLI_CLOSED : cli_fail_fix(j->s.c, err, fix);
}

/* The status of what ran there, or ours. */
static int run_there(struct job *j, const char *const *argv, int n, uint64_t ms)
{
	AUTO(json_decrefp) json_t *message = message_of(j, argv, n);
	struct err err = { 0 };

	if (!message) {
		err_set(&err, ERR_INVALID, 0, "words and variables must be UTF-8");
		return failed(j, &err, "hotcell exec --help");
	}
	if (j->p.pty)
		make_raw(j);
	if (guest_process_run(&j->p, message, ms, &err) < 0)
		return failed(j, &err,
			      "see whether it still runs: hotcell why SANDBOX; and that the "
			      "command and the user are there");
	make_cooked(j);
	if (j->p.exit_code != 0 && *j->p.error && strncmp(j->p.error, "exit status", 11) != 0)
		fprintf(stderr, "hotcell: %s\n", j->p.error);
	return j->p.exit_code;
}

static int open_job(struct job *j, struct cli *c, uint64_t lives, struct err *err)
{
	c->sandbox = c->words[0];
	if (run_session_open(&j->s, c, err) < 0 ||
	    run_session_find(&j->s, c->sandbox, lives, err) < 0)
		return -1;
	j->out = run_out_open(STDOUT_FILENO, j->s.signals);
	j->err_out = run_out_open(STDERR_FILENO, j->s.signals);
	j->p.s = &j->s;
	j->p.on_output = on_output;
	j->p.on_winch = window;
	return 0;
}

int command_run(struct cli *c)
{
	struct job j = { .p = { .input = c->input ? STDIN_FILENO : -1, .winch = -1 } };
	uint64_t seconds = c->timeout ? c->timeout : TIMEOUT_S;
	struct err err = { 0 };
	int status;

	if (c->lang || c->context || c->out || c->json || c->n_words < 2)
		return cli_usage(c);
	if (open_job(&j, c, seconds + RUN_SPARE_S, &err) < 0)
		status = failed(&j, &err, run_fix(&j.s, &err));
	else
		status = run_there(&j, (const char *const *)c->words + 1, c->n_words - 1,
				   seconds * 1000);
	run_session_close(&j.s);
	return status;
}

int shell_run(struct cli *c)
{
	struct job j = { .p = { .pty = true, .keep = true, .input = STDIN_FILENO, .winch = -1 } };
	AUTO(auto_close) int winch = -1;
	struct err err = { 0 };
	int status;

	if (c->json)
		return cli_usage(c);
	if (!isatty(STDIN_FILENO)) {
		err_set(&err, ERR_INVALID, 0, "standard input is no terminal");
		return cli_fail_fix(c, &err, "hotcell exec --stdin SANDBOX -- sh");
	}
	if (open_job(&j, c, RUN_KEEP_S, &err) < 0) {
		status = failed(&j, &err, run_fix(&j.s, &err));
	} else {
		winch = j.p.winch = open_winch(&err);
		j.out.terminal = false; /* the guest's, as it is */
		status = run_there(&j, login_shell, (int)COUNT(login_shell), 0);
	}
	run_session_close(&j.s);
	return status;
}
