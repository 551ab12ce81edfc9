/* process_event.c - proto3 JSON by hand: fields of value zero are left out. */
#include "agent/process/process_event.h"

#include <signal.h>

#include "wire/base64.h"

enum { STATUS_MAX = 64 };

int event_put_start(struct buf *out, pid_t pid, struct err *err)
{
	return buf_printf(out, err, "{\"event\":{\"start\":{\"pid\":%d}}}", pid);
}

int event_put_output(struct buf *out, enum process_output from, struct bytes piece, struct err *err)
{
	static const char *const names[] = {
		[PROCESS_STDOUT] = "stdout",
		[PROCESS_STDERR] = "stderr",
		[PROCESS_PTY] = "pty",
	};

	if (buf_printf(out, err, "{\"event\":{\"data\":{\"%s\":\"", names[from]) < 0 ||
	    base64_encode(piece, out, err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT("\"}}}"), err);
}

size_t event_piece_max(enum process_output from)
{
	return from == PROCESS_PTY ? EVENT_PTY_PIECE_MAX : EVENT_PIECE_MAX;
}

/* The words that clients compare with. */
static const char *signal_word(int signo)
{
	static const char *const words[] = {
		[SIGHUP] = "hangup",
		[SIGINT] = "interrupt",
		[SIGQUIT] = "quit",
		[SIGILL] = "illegal instruction",
		[SIGTRAP] = "trace/breakpoint trap",
		[SIGABRT] = "aborted",
		[SIGBUS] = "bus error",
		[SIGFPE] = "floating point exception",
		[SIGKILL] = "killed",
		[SIGUSR1] = "user defined signal 1",
		[SIGSEGV] = "segmentation fault",
		[SIGUSR2] = "user defined signal 2",
		[SIGPIPE] = "broken pipe",
		[SIGALRM] = "alarm clock",
		[SIGTERM] = "terminated",
	};

	return signo > 0 && (size_t)signo < COUNT(words) ? words[signo] : NULL;
}

static void status_text(const struct process_end *end, char ret[static STATUS_MAX])
{
	const char *word = signal_word(end->signo), *core = end->core ? " (core dumped)" : "";

	if (end->exited)
		snprintf(ret, STATUS_MAX, "exit status %d", end->code);
	else if (word)
		snprintf(ret, STATUS_MAX, "signal: %s%s", word, core);
	else
		snprintf(ret, STATUS_MAX, "signal: signal %d%s", end->signo, core);
}

int event_put_end(struct buf *out, const struct process_end *end, struct err *err)
{
	int code = end->exited ? end->code : -1;
	char status[STATUS_MAX];

	status_text(end, status);
	if (buf_add(out, BYTES_LIT("{\"event\":{\"end\":{"), err) < 0)
		return -1;
	if (code != 0 && buf_printf(out, err, "\"exitCode\":%d,", code) < 0)
		return -1;
	if (end->exited && buf_add(out, BYTES_LIT("\"exited\":true,"), err) < 0)
		return -1;
	if (buf_printf(out, err, "\"status\":\"%s\"", status) < 0)
		return -1;
	if (code != 0 &&
	    buf_printf(out, err, ",\"error\":\"%s%s\"", status, end->oom ? EVENT_OOM : "") < 0)
		return -1;
	return buf_add(out, BYTES_LIT("}}}"), err);
}
