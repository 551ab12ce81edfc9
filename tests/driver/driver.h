/* driver.h - the state of the driver, and what its operations are made of.
 *
 * An operation is a line of JSON on the standard input, answered by a line on the standard output
 * when it is done; any number run at the same time.
 */
#pragma once

#include "net/stream.h"
#include "node/template/template_build.h"
#include "vm/agent_dial.h"
#include "vm/agent_identity.h"
#include "vm/manifest_check.h"
#include "vm/restore.h"
#include "vm/template_job.h"
#include "wire/json.h"

enum {
	DRIVER_LINE_MAX = 1024 * 1024,
	DRIVER_OUT_MAX = 64 * 1024 * 1024,
	DRIVER_OPS_MAX = 2048,
	DRIVER_SLOTS_MAX = 1024,
	DRIVER_PATH_MAX = 512,
	DRIVER_WARDEN_MS = 60 * 1000,
	DRIVER_AGENT_MS = 30 * 1000,
};

struct known_template;
struct sandbox;

struct driver {
	struct loop *loop;
	const char *warden_path, *state_dir;
	struct warden_client warden;
	bool ready;              /* the first line was said */
	struct op *reconnecting; /* waits for a new connection */
	struct stream *in, *out; /* out NULL: the standard output is a file */
	struct stream_user in_user, out_user;
	struct buf line, unsent;
	size_t n_ops;
	bool input_ended;
	struct addr agent;
	struct sandbox *sandboxes;
	struct known_template *templates;
	uint32_t slots[DRIVER_SLOTS_MAX]; /* made and not used */
	size_t n_slots;
};

struct op { /* ended, and freed, by op_ok() or op_fail() */
	struct driver *d;
	json_t *id, *args;
};

void op_ok(struct op *o, json_t *fields); /* steals fields; NULL: none */
void op_fail(struct op *o, const struct err *err);
void op_refuse(struct op *o, enum manifest_reason reason, const struct err *err);

/* operations.c: what the lines may ask for */
void operations_run(struct driver *d, struct bytes line);

/* lines.c: the two streams. */
int lines_open(struct driver *d, struct err *err);
void lines_begin(struct driver *d);
void lines_say(struct driver *d, json_t *line); /* steals it */
void lines_close(struct driver *d);
void lines_op_ended(struct driver *d); /* maybe it was the last */

/* warden_ops.c */
void driver_connect(struct driver *d); /* the ready line, then the input is read */
int driver_ask(struct driver *d, struct link_call *c, const struct warden_request *rq,
	       const int *fds, size_t n_fds, link_done_fn *on_done, struct err *err) NODISCARD;
json_t *facts_json(const struct warden_facts *f);
/* vcpus, memory_mib, overhead_mib, cpu_percent, pids_max of args; absent ones keep *ret's. */
int sizes_of(const json_t *args, struct warden_sizes *ret, struct err *err) NODISCARD;
#define DEFAULT_SIZES           \
	((struct warden_sizes){ \
		.vcpus = 1, .memory_mib = 512, .overhead_mib = 256, .pids_max = 64 })
/* An id of warden's among the arguments. */
int id_of(const json_t *args, const char *name, char ret[static WARDEN_ID_MAX + 1],
	  struct err *err) NODISCARD;

json_t *steps_json(const struct steps *s); /* in microseconds */

/* sandboxes.c: those this driver made. */
struct sandbox {
	struct driver *d;
	char id[WARDEN_ID_MAX + 1], template_id[WARDEN_ID_MAX + 1];
	uint32_t slot;
	int32_t pid;
	struct warden_sizes sizes;
	int overlay; /* its disk: has no name, and is kept while it is paused */
	struct machine machine;
	struct machine_user machine_user;
	struct restore restore;
	struct agent_identity identity;
	struct sandbox *next;
};
struct sandbox *sandbox_add(struct driver *d, const char *id);
struct sandbox *sandbox_find(struct driver *d, const char *id);
void sandbox_drop(struct sandbox *s); /* closes its monitor; its process is not touched */
void sandboxes_drop_all(struct driver *d);

/* templates.c: what is known of templates; checked once in this driver's life. */
struct template_wait { /* embedded by the one who waits; all zero: does not wait */
	/* `m` is borrowed for the call. */
	void (*on_done)(struct template_wait *w, const struct manifest *m,
			enum manifest_reason reason, const struct err *err);
	struct template_wait *next;
};
void template_want(struct driver *d, const char *id, struct template_wait *w);
void template_learned(struct driver *d, const struct manifest *m); /* built and sealed here */
void templates_forget(struct driver *d, const char *id);           /* NULL: all */

/* reach.c: a connection to the agent of any sandbox. */
struct reach {
	struct driver *d;
	struct link_call call;
	struct agent_dial dial;
	void (*on_done)(struct reach *r, struct stream *s, const struct err *err);
};
void reach_start(struct reach *r, struct driver *d, const char *sandbox,
		 void (*on_done)(struct reach *r, struct stream *s, const struct err *err));

/* The operations. */
void run_ping(struct op *o);
void run_facts(struct op *o);
void run_slot(struct op *o);
void run_verb(struct op *o);
void run_list(struct op *o);
void run_reconnect(struct op *o);
void run_template(struct op *o);
void run_template_drop(struct op *o);
void run_create(struct op *o);
void run_cont(struct op *o);
void run_pause(struct op *o);
void run_resume(struct op *o);
void run_status(struct op *o);
void run_stop(struct op *o);
void run_exec(struct op *o);
void run_read_file(struct op *o);
void run_write_file(struct op *o);
void run_health(struct op *o);
void run_freeze(struct op *o);
void run_clock(struct op *o);
