/* process_request.c - see process_request.h. Unknown members are ignored, as proto3 wants it. */
#include "agent/process/process_request.h"

#include <signal.h>

#include "wire/base64.h"

int selector_parse(const json_t *message, struct process_selector *ret, struct err *err)
{
	json_t *which = NULL;
	int64_t pid = -1;

	*ret = (struct process_selector){ 0 };
	if (json_want_object(message, "process", &which, err) < 0 ||
	    json_may_int(which, "pid", 0, UINT32_MAX, &pid, err) < 0 ||
	    json_may_string(which, "tag", &ret->tag, err) < 0)
		return -1;
	ret->by_tag = ret->tag.ptr != NULL;
	ret->pid = pid < 0 ? 0 : (uint32_t)pid;
	if ((pid >= 0) == ret->by_tag)
		return err_set(err, ERR_INVALID, 0, "process: either pid or tag");
	return 0;
}

int input_parse(const json_t *message, bool *ret_pty, struct buf *data, struct err *err)
{
	struct bytes in = { 0 }, pty = { 0 };
	json_t *input = NULL;

	if (json_want_object(message, "input", &input, err) < 0 ||
	    json_may_string(input, "stdin", &in, err) < 0 ||
	    json_may_string(input, "pty", &pty, err) < 0)
		return -1;
	if (!in.ptr == !pty.ptr)
		return err_set(err, ERR_INVALID, 0, "input: either stdin or pty");
	*ret_pty = pty.ptr != NULL;
	if (base64_decode(*ret_pty ? pty : in, data, err) < 0)
		return err_wrap(err, "input");
	return 0;
}

static const struct {
	const char *name;
	int64_t number;
	int signo; /* 0: not implemented */
} signals[] = {
	{ "SIGNAL_UNSPECIFIED", 0, 0 },
	{ "SIGNAL_SIGKILL", 9, SIGKILL },
	{ "SIGNAL_SIGTERM", 15, SIGTERM },
};

static int signal_by_name(struct bytes name, int *ret, struct err *err)
{
	for (size_t i = 0; i < COUNT(signals); i++)
		if (bytes_eq(name, bytes_str(signals[i].name))) {
			*ret = signals[i].signo;
			return 0;
		}
	return err_set(err, ERR_INVALID, 0, "signal: there is no such one");
}

int signal_parse(const json_t *message, int *ret, struct err *err)
{
	const json_t *v = json_object_get(message, "signal");
	int64_t number = 0;

	*ret = 0;
	if (json_is_string(v))
		return signal_by_name(json_bytes(v), ret, err);
	if (json_may_int(message, "signal", INT32_MIN, INT32_MAX, &number, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(signals); i++)
		if (signals[i].number == number)
			*ret = signals[i].signo;
	return 0;
}

int pty_parse(const json_t *message, bool *ret_has, struct pty_size *ret, struct err *err)
{
	json_t *pty = NULL, *size = NULL;
	int64_t cols = 0, rows = 0;

	*ret = (struct pty_size){ 0 };
	if (json_may_object(message, "pty", &pty, err) < 0)
		return -1;
	*ret_has = pty != NULL;
	if (!pty)
		return 0;
	if (json_may_object(pty, "size", &size, err) < 0)
		return -1;
	if (size && (json_may_int(size, "cols", 0, UINT16_MAX, &cols, err) < 0 ||
		     json_may_int(size, "rows", 0, UINT16_MAX, &rows, err) < 0))
		return -1;
	*ret = (struct pty_size){ (uint16_t)cols, (uint16_t)rows };
	return 0;
}

int stream_input_parse(const json_t *message, enum stream_input_kind *ret_kind, json_t **ret,
		       struct err *err)
{
	static const char *const names[] = {
		[STREAM_INPUT_START] = "start",
		[STREAM_INPUT_DATA] = "data",
		[STREAM_INPUT_KEEPALIVE] = "keepalive",
	};
	size_t found = 0;

	for (size_t i = 0; i < COUNT(names); i++) {
		json_t *v = NULL;

		if (json_may_object(message, names[i], &v, err) < 0)
			return -1;
		if (!v)
			continue;
		*ret = v;
		*ret_kind = (enum stream_input_kind)i;
		found++;
	}
	if (found != 1)
		return err_set(err, ERR_INVALID, 0, "one of start, data and keepalive");
	return 0;
}
