/* fuzz_agent_message.c - promises of what reads the messages of process.Process. */
#include <signal.h>

#include "agent/process/start_request.h"
#include "fuzz/must.h"
#include "wire/base64.h"

enum { LIMIT = 256 * 1024 };

/* A refusal says why; what is accepted obeys `rc == 0`. */
static bool accepted(int rc, const struct err *err)
{
	if (rc < 0)
		must_say_why(err);
	return rc == 0;
}

static void check_argv(const struct start_request *r)
{
	MUST(r->argv.n >= 1 && r->argv.v[0][0] != '\0' && !r->argv.v[r->argv.n]);
	for (size_t i = 0; i < r->argv.n; i++)
		MUST(r->argv.v[i]);
	MUST(!r->has_tag || r->tag.len <= PROCESS_TAG_MAX);
}

/* What a list shows is, asked for again, the same. */
static void check_config(const struct start_request *r)
{
	AUTO(buf_done) struct buf again = BUF_MAX(8 * LIMIT);
	struct start_request second;
	struct err err = { 0 };

	MUST(buf_add(&again, BYTES_LIT("{\"process\":"), &err) == 0);
	MUST(start_request_config(r, &again, &err) == 0);
	MUST(buf_add(&again, BYTES_LIT("}"), &err) == 0);
	MUST(start_request_parse(buf_view(&again), again.len, &second, &err) == 0);
	MUST(second.argv.n == r->argv.n && bytes_eq(second.cwd, r->cwd));
	for (size_t i = 0; i < r->argv.n; i++)
		MUST(strcmp(second.argv.v[i], r->argv.v[i]) == 0);
	MUST(json_object_size(second.envs) == json_object_size(r->envs));
	start_request_done(&second);
}

static void check_start(struct bytes in)
{
	struct start_request r;
	struct err err = { 0 };
	char text[64];

	if (!accepted(start_request_parse(in, LIMIT, &r, &err), &err))
		return;
	check_argv(&r);
	check_config(&r);
	start_request_text(&r, text, sizeof(text));
	MUST(memchr(text, 0, sizeof(text)));
	start_request_done(&r);
}

static void check_selector(const json_t *message, struct bytes in)
{
	struct process_selector which;
	struct err err = { 0 };

	if (!accepted(selector_parse(message, &which, &err), &err))
		return;
	MUST(which.by_tag == (which.tag.ptr != NULL));
	MUST(which.tag.len <= in.len && (!which.by_tag || which.pid == 0));
}

/* The bytes, encoded as we do it, are read the same. */
static void check_input(const json_t *message, struct bytes in)
{
	AUTO(buf_done) struct buf data = BUF_MAX(LIMIT), again = BUF_MAX(2 * LIMIT);
	AUTO(buf_done) struct buf second = BUF_MAX(LIMIT);
	AUTO(json_decrefp) json_t *repeated = NULL;
	struct err err = { 0 };
	bool to_pty, second_pty;

	if (!accepted(input_parse(message, &to_pty, &data, &err), &err))
		return;
	MUST(data.len <= in.len);
	MUST(buf_printf(&again, &err, "{\"input\":{\"%s\":\"", to_pty ? "pty" : "stdin") == 0);
	MUST(base64_encode(buf_view(&data), &again, &err) == 0);
	MUST(buf_add(&again, BYTES_LIT("\"}}"), &err) == 0);
	MUST(json_decode(buf_view(&again), again.len, 3, &repeated, &err) == 0);
	MUST(input_parse(repeated, &second_pty, &second, &err) == 0);
	MUST(second_pty == to_pty && bytes_eq(buf_view(&second), buf_view(&data)));
}

static void check_others(const json_t *message)
{
	enum stream_input_kind kind = STREAM_INPUT_KEEPALIVE;
	struct err err = { 0 };
	struct pty_size size;
	json_t *inside = NULL;
	bool has_pty;
	int signo;

	if (accepted(signal_parse(message, &signo, &err), &err))
		MUST(signo == 0 || signo == SIGKILL || signo == SIGTERM);
	err = (struct err){ 0 };
	if (accepted(pty_parse(message, &has_pty, &size, &err), &err))
		MUST(has_pty || (size.cols == 0 && size.rows == 0));
	err = (struct err){ 0 };
	if (accepted(stream_input_parse(message, &kind, &inside, &err), &err))
		MUST(json_is_object(inside) && kind <= STREAM_INPUT_KEEPALIVE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	AUTO(json_decrefp) json_t *message = NULL;
	struct err err = { 0 };

	check_start(in);
	if (!accepted(json_decode(in, LIMIT, PROCESS_JSON_DEPTH, &message, &err), &err))
		return 0;
	check_selector(message, in);
	check_input(message, in);
	check_others(message);
	return 0;
}
