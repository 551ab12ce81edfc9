/* vm_mock_qemu.h - a QEMU that answers the commands of a build and a restore, or misbehaves. */
#pragma once

#include "tests/unit/check.h"

#include "net/addr.h"
#include "net/listen.h"
#include "wire/qmp.h"

enum { MOCK_COMMANDS = 32 };

struct mock_qemu {
	/* How it is to behave; all zero: well. */
	const char *status;    /* answer to query-status; NULL: what is right */
	const char *die_at;    /* closes instead of answering this command */
	const char *error_at;  /* answers this command with an error */
	const char *mute_at;   /* does not answer this command */
	const char *load;      /* how it ends; NULL: completed. "": never */
	const char *job_error; /* of the overlay */
	size_t silent;         /* so many connections hear nothing, not even a greeting */
	bool again;            /* it may be connected to more than once */
	bool events_first;     /* before the answer of the command that causes them */
	/* What happened. */
	char commands[MOCK_COMMANDS][64];
	size_t n_commands;
	bool connected;
	size_t n_connections;
	/* Its own. */
	struct listener door;
	struct stream *s;
	struct stream_user user;
	struct buf in;
	size_t scanned;
	bool incoming, running, stopped, loaded;
	char saved[256]; /* how it was told to save its devices */
	char path[108];  /* where it listens; empty: it chooses */
};

static inline void mock_qemu_say(struct mock_qemu *q, const char *text)
{
	struct err err;

	if (q->s && stream_write(q->s, bytes_str(text), &err) < 0)
		fail_msg("mock: %s", err.msg);
}

static inline void mock_qemu_event(struct mock_qemu *q, const char *name, const char *data)
{
	char line[300];

	snprintf(line, sizeof(line),
		 "{\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}, \"event\": \"%s\", "
		 "\"data\": %s}\r\n",
		 name, data);
	mock_qemu_say(q, line);
}

static inline void mock_qemu_migration(struct mock_qemu *q, const char *end)
{
	char data[64];

	mock_qemu_event(q, "MIGRATION", "{\"status\": \"setup\"}");
	mock_qemu_event(q, "MIGRATION", "{\"status\": \"active\"}");
	if (end && !end[0])
		return;
	snprintf(data, sizeof(data), "{\"status\": \"%s\"}", end ? end : "completed");
	mock_qemu_event(q, "MIGRATION", data);
}

/* What a command causes besides its answer. */
static inline void mock_qemu_effects(struct mock_qemu *q, const char *command)
{
	static const char *const steps[] = { "created", "running", "waiting", "pending",
					     "concluded" };
	char data[64];

	if (strcmp(command, "migrate-incoming") == 0) {
		q->loaded = true;
		mock_qemu_migration(q, q->load);
	} else if (strcmp(command, "cont") == 0) {
		q->running = true;
		mock_qemu_event(q, "RESUME", "{}");
	} else if (strcmp(command, "stop") == 0) {
		q->running = false;
		mock_qemu_event(q, "STOP", "{}");
	} else if (strcmp(command, "blockdev-create") == 0) {
		for (size_t i = 0; i < COUNT(steps); i++) {
			snprintf(data, sizeof(data), "{\"status\": \"%s\", \"id\": \"overlay\"}",
				 steps[i]);
			mock_qemu_event(q, "JOB_STATUS_CHANGE", data);
		}
	}
}

static inline const char *mock_qemu_return(const struct mock_qemu *q, const char *command)
{
	static char text[200];

	snprintf(text, sizeof(text), "{}");
	if (strcmp(command, "query-status") == 0)
		snprintf(text, sizeof(text), "{\"status\": \"%s\", \"running\": %s}",
			 q->status   ? q->status
			 : q->loaded ? "paused"
				     : "prelaunch",
			 q->running ? "true" : "false");
	else if (strcmp(command, "query-jobs") == 0)
		snprintf(text, sizeof(text),
			 "[{\"id\": \"overlay\", \"status\": \"concluded\", \"type\": \"create\""
			 "%s%s%s}]",
			 q->job_error ? ", \"error\": \"" : "", q->job_error ? q->job_error : "",
			 q->job_error ? "\"" : "");
	return text;
}

static inline void mock_qemu_close(struct mock_qemu *q)
{
	if (q->s)
		stream_close(TAKE(q->s));
	buf_clear(&q->in);
}

static inline bool mock_is(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

static inline void mock_qemu_command(struct mock_qemu *q, const char *command, json_int_t id)
{
	char line[400];

	assert_true(q->n_commands < MOCK_COMMANDS);
	snprintf(q->commands[q->n_commands++], 64, "%s", command);
	if (mock_is(q->die_at, command)) {
		mock_qemu_close(q);
		return;
	}
	if (mock_is(q->mute_at, command))
		return;
	if (q->events_first && !mock_is(q->error_at, command))
		mock_qemu_effects(q, command);
	if (mock_is(q->error_at, command))
		snprintf(line, sizeof(line),
			 "{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\"}, \"id\": "
			 "%lld}\r\n",
			 (long long)id);
	else
		snprintf(line, sizeof(line), "{\"return\": %s, \"id\": %lld}\r\n",
			 mock_qemu_return(q, command), (long long)id);
	mock_qemu_say(q, line);
	if (!q->events_first && !mock_is(q->error_at, command))
		mock_qemu_effects(q, command);
	if (strcmp(command, "quit") == 0)
		mock_qemu_close(q);
}

static inline void mock_qemu_hears(struct stream_user *u, struct bytes in)
{
	struct mock_qemu *q = CONTAINER_OF(u, struct mock_qemu, user);
	struct err err;
	struct bytes line;
	size_t used;

	if (q->n_connections <= q->silent)
		return;
	assert_int_equal(buf_add(&q->in, in, &err), 0);
	while (q->s && qmp_line(buf_view(&q->in), &q->scanned, &line, &used, &err) == DECODE_OK) {
		AUTO(json_decrefp) json_t *v = NULL;

		assert_int_equal(json_decode(line, 4096, 16, &v, &err), 0);
		q->scanned = 0;
		if (memmem(line.ptr, line.len, "xen-save", 8))
			snprintf(q->saved, sizeof(q->saved), "%.*s", (int)line.len,
				 (const char *)line.ptr);
		buf_drop(&q->in, used);
		mock_qemu_command(q, json_string_value(json_object_get(v, "execute")),
				  json_integer_value(json_object_get(v, "id")));
	}
}

static inline void mock_qemu_over(struct stream_user *u)
{
	mock_qemu_close(CONTAINER_OF(u, struct mock_qemu, user));
}

static inline void mock_qemu_drain(struct stream_user *u)
{
	(void)u;
}

static inline void mock_qemu_failed(struct stream_user *u, const struct err *err)
{
	(void)err;
	mock_qemu_over(u);
}

static inline void mock_qemu_accept(struct listener *ln, struct stream *s, const struct addr *peer)
{
	static const struct stream_user_ops ops = { mock_qemu_hears, mock_qemu_over,
						    mock_qemu_drain, mock_qemu_failed };
	struct mock_qemu *q = CONTAINER_OF(ln, struct mock_qemu, door);

	(void)peer;
	assert_true(q->again || !q->connected);
	q->connected = true;
	q->n_connections++;
	q->s = s;
	q->user.ops = &ops;
	stream_set_user(s, &q->user);
	stream_read(s, true);
	if (q->n_connections <= q->silent)
		return;
	mock_qemu_say(q,
		      "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 2, \"minor\": 0, "
		      "\"major\": 10}, \"package\": \"mock\"}, \"capabilities\": [\"oob\"]}}\r\n");
}

static inline void mock_qemu_start(struct mock_qemu *q, struct loop *l)
{
	static const struct listener_ops ops = { mock_qemu_accept };
	struct addr at;
	struct err err;

	q->in = BUF_MAX(64 * 1024);
	if (!q->path[0])
		snprintf(q->path, sizeof(q->path), "/tmp/hotcell-mock-%d.sock", (int)getpid());
	assert_int_equal(addr_unix(q->path, &at, &err), 0);
	if (listener_open(&q->door, l, &ops, &at, 0600, 4, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void mock_qemu_end(struct mock_qemu *q)
{
	listener_close(&q->door);
	mock_qemu_close(q);
	buf_done(&q->in);
}

static inline bool mock_qemu_heard(const struct mock_qemu *q, const char *command)
{
	for (size_t i = 0; i < q->n_commands; i++)
		if (strcmp(q->commands[i], command) == 0)
			return true;
	return false;
}
