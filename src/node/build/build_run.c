/* build_run.c - see build_run.h. From its end to its beginning. */
#include "node/build/build_run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "node/build/build_disk.h"
#include "node/build/builds.h"
#include "node/build/refreeze.h"
#include "node/build/step_script.h"
#include "node/life/snapshot_steps.h"
#include "node/life/step.h"
#include "node/node.h"
#include "vm/close_later.h"

/* --- what is said ------------------------------------------------------------------------- */

PRINTF(3, 4)
static void say(struct build_run *r, enum build_level level, const char *fmt, ...)
{
	char text[BUILD_MESSAGE_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n > 0)
		build_log(r->build, level, r->name, bytes_head(bytes_str(text), sizeof(text) - 1));
}

static void say_line(struct build_run *r, const char *which, struct bytes line)
{
	say(r, BUILD_INFO, "[%s] [%s]: %.*s", r->name, which, (int)line.len,
	    (const char *)line.ptr);
}

static void on_out_line(void *context, struct bytes line)
{
	say_line(context, "stdout", line);
}

static void on_said_line(void *context, struct bytes line)
{
	say_line(context, "stderr", line);
}

static void say_output(struct build_run *r, enum agent_output which, struct bytes piece)
{
	if (which == AGENT_STDOUT)
		output_lines_add(&r->out, piece, on_out_line, r);
	else
		output_lines_add(&r->said, piece, on_said_line, r);
}

/* A process that never stops talking has no more of node's time than others. */
static void on_calm(struct timer *t)
{
	struct build_run *r = CONTAINER_OF(t, struct build_run, calm);

	r->heard = 0;
	agent_exec_pause(&r->exec, false);
	agent_exec_pause(&r->start, false);
}

static void hear(struct build_run *r, struct agent_exec *e, size_t n)
{
	r->heard += n;
	if (r->heard < BUILD_HEAR_MAX)
		return;
	agent_exec_pause(e, true);
	timer_start(&r->calm, BUILD_HEAR_MS);
}

static void say_rest(struct build_run *r)
{
	output_lines_end(&r->out, on_out_line, r);
	output_lines_end(&r->said, on_said_line, r);
}

/* --- its end ------------------------------------------------------------------------------ */

struct build_taking { /* of its own: a copy that was begun tells its end, whoever is left */
	struct taking_user user;
	struct build_run *run; /* NULL: it is over */
};

/* Whatever is under way ends; what was kept stays. */
static void stop(struct build_run *r)
{
	timer_stop(&r->deadline);
	timer_stop(&r->again);
	timer_stop(&r->calm);
	timer_stop(&r->base_again);
	images_make_cancel(&r->image);
	ground_want_cancel(&r->ground_want);
	close_later(r->node->loop, take_fd(&r->disk));
	builder_dial_cancel(&r->dial);
	agent_exec_cancel(&r->exec);
	agent_exec_cancel(&r->start);
	agent_upload_cancel(&r->upload);
	if (r->taking)
		TAKE(r->taking)->run = NULL;
	builder_end(&r->builder);
	snapshot_release(TAKE(r->at));
	recipe_done(&r->recipe);
	build_context_done(&r->context);
	buf_done(&r->script);
}

static void over(struct timer *t)
{
	struct build_run *r = CONTAINER_OF(t, struct build_run, again);

	r->on_over(r);
}

/* From the loop: whoever called us may still look at it. */
static void end(struct build_run *r)
{
	stop(r);
	r->build = NULL;
	timer_init(&r->again, r->node->loop, over);
	timer_start(&r->again, 0);
}

static void fail(struct build_run *r, const char *message)
{
	struct build *b = r->build;
	char name[BUILD_NAME_MAX];
	struct err err;

	memcpy(name, r->name, sizeof(name));
	log_info("build %s failed at %s: %.200s", b->row.id, name, message);
	if (r->refreezes) {
		say(r, BUILD_ERRORS, "%s", message);
		err_set(&err, r->why ? r->why : ERR_INVALID, 0, "%.200s", message);
	}
	end(r);
	if (r->refreezes)
		refreeze_failed(b, &err);
	else
		build_failed(b, name, message);
}

static void fail_err(struct build_run *r, const char *what, const struct err *err)
{
	char text[BUILD_MESSAGE_MAX];

	snprintf(text, sizeof(text), "%s%s%s", what, what[0] ? ": " : "", err->msg);
	r->why = err->code;
	fail(r, text);
}

void build_run_cancel(struct build_run *r)
{
	struct build *b = r->build;

	if (!b) /* it has ended, and is about to be told */
		return;
	end(r);
	build_cancelled(b);
}

void build_run_drop(struct build_run *r)
{
	if (r->build)
		stop(r);
	timer_stop(&r->again);
}

static void on_deadline(struct timer *t)
{
	struct build_run *r = CONTAINER_OF(t, struct build_run, deadline);
	char text[80];

	snprintf(text, sizeof(text), "the build took longer than %d minutes",
		 BUILD_RUN_MS / 60 / 1000);
	fail(r, text);
}

/* --- a snapshot of it --------------------------------------------------------------------- */

typedef void taken_fn(struct build_run *r, struct snapshot *p);
static void on_kept(struct build_run *r, struct snapshot *p);
static void on_final(struct build_run *r, struct snapshot *p);

static void on_taken(struct taking_user *u, struct snapshot *p, const struct err *err)
{
	struct build_taking *t = CONTAINER_OF(u, struct build_taking, user);
	struct build_run *r = t->run;
	struct err mine;

	free(t);
	if (!r) {
		if (p && p->row.kind == JOURNAL_BUILD && snapshot_remove(p, &mine) < 0)
			log_warn("snapshot %s of a build that ended: %s", p->row.id, mine.msg);
		return;
	}
	r->taking = NULL;
	if (!p)
		fail_err(r, "the result could not be kept", err);
	else if (p->row.kind == JOURNAL_STEP)
		on_kept(r, p);
	else
		on_final(r, p);
}

static void take(struct build_run *r, enum journal_kind kind)
{
	AUTO(buf_done) struct buf context = BUF_MAX(BUILD_CONTEXT_MAX);
	struct taking_spec spec = { .kind = kind,
				    .key = kind == JOURNAL_BUILD ? r->build->row.id : r->key };
	struct build_taking *t = calloc(1, sizeof(*t));
	struct err err;

	if (!t) {
		fail(r, "no memory to keep the result");
		return;
	}
	*t = (struct build_taking){ { on_taken }, r };
	r->taking = t;
	if (build_context_put(&r->context, &context, &err) < 0 ||
	    buf_add(&context, BYTES_LIT("\0"), &err) < 0) {
		free(TAKE(r->taking));
		fail_err(r, "the result could not be kept", &err);
		return;
	}
	spec.context = (const char *)context.ptr;
	if (builder_take(&r->builder, &spec, &t->user, &err) < 0) {
		free(TAKE(r->taking));
		fail_err(r, "the result could not be kept", &err);
	}
}

static void hold_at(struct build_run *r, struct snapshot *p)
{
	struct snapshot *before = r->at;

	r->at = p ? snapshot_hold(p) : NULL;
	snapshot_release(before);
}

/* --- a command in the guest --------------------------------------------------------------- */

static void on_exec_output(struct agent_exec *e, enum agent_output which, struct bytes piece)
{
	struct build_run *r = CONTAINER_OF(e, struct build_run, exec);

	if (r->logged)
		say_output(r, which, piece);
	hear(r, e, piece.len);
}

static void on_exec(struct agent_exec *e, const struct agent_exec_result *ret,
		    const struct err *err)
{
	struct build_run *r = CONTAINER_OF(e, struct build_run, exec);

	say_rest(r);
	r->on_run(r, ret, err);
}

static void begin_exec(struct build_run *r, struct stream *s)
{
	const struct agent_exec_spec spec = { .command = buf_view(&r->script),
					      .user = r->user,
					      .cwd = bytes_str(r->context.workdir),
					      .env = r->context.env,
					      .deadline_ms = r->most_ms,
					      .on_output = on_exec_output,
					      .keep_max = BUILD_STEP_KEEP };
	struct err err;

	if (agent_exec_start(&r->exec, s, &spec, on_exec, &err) < 0)
		r->on_run(r, NULL, &err);
}

static void begin_start(struct build_run *r, struct stream *s);

static void on_dialled(struct builder_dial *d, struct stream *s, const struct err *err)
{
	struct build_run *r = CONTAINER_OF(d, struct build_run, dial);

	if (!s)
		fail_err(r, "the sandbox of the build does not answer", err);
	else if (r->is_start)
		begin_start(r, s);
	else
		begin_exec(r, s);
}

/* What is in r->script, as `user`. */
static void run(struct build_run *r, struct bytes user, bool logged, build_run_next_fn *next)
{
	r->user = user;
	r->logged = logged;
	r->on_run = next;
	r->most_ms = BUILD_STEP_MS;
	r->is_start = false;
	builder_dial(&r->dial, &r->builder, on_dialled);
}

/* --- the last part: boot, start, ready, snapshot ------------------------------------------ */

static void on_final(struct build_run *r, struct snapshot *p)
{
	struct build *b = r->build;
	char id[NODE_ID_MAX + 1];

	memcpy(id, p->row.id, sizeof(id));
	step("build.snapshot");
	say(r, BUILD_INFO, "[finalize] Template is saved");
	(void)snapshot_hold(p); /* until the build itself does */
	end(r);
	if (r->refreezes)
		refreeze_done(b, p);
	else
		build_ready(b, id, p->row.disk_mib);
	snapshot_release(p);
}

static void freeze(struct build_run *r)
{
	agent_exec_cancel(&r->start); /* it goes on in the guest */
	take(r, JOURNAL_BUILD);
}

static void on_ready_run(struct build_run *r, const struct agent_exec_result *ret,
			 const struct err *err)
{
	bool late = loop_now_ms(r->node->loop) >= r->ready_until_ms;

	if (err && !(late && err->code == ERR_TIMEOUT)) {
		fail_err(r, "error running ready command", err);
		return;
	}
	if (!err && ret->exited && ret->exit_code == 0) {
		step("build.ready");
		say(r, BUILD_INFO, "[finalize] Template is ready");
		freeze(r);
		return;
	}
	if (late) {
		fail(r, "ready command did not succeed in 10 minutes");
		return;
	}
	say(r, BUILD_DEBUG, "[finalize] Template is not ready: %s", ret->status);
	timer_start(&r->again, BUILD_READY_AGAIN_MS);
}

static void ask_ready(struct build_run *r)
{
	const char *ready = r->context.ready ? r->context.ready : "sleep 20";
	uint64_t now = loop_now_ms(r->node->loop);
	struct err err;

	buf_clear(&r->script);
	if (buf_add(&r->script, bytes_str(ready), &err) < 0) {
		fail_err(r, "ready command", &err);
		return;
	}
	run(r, bytes_str(r->context.user), false, on_ready_run);
	/* one that never ends is not waited for any longer */
	r->most_ms = r->ready_until_ms > now ? r->ready_until_ms - now : 1;
}

static void on_again(struct timer *t)
{
	ask_ready(CONTAINER_OF(t, struct build_run, again));
}

static void on_start_output(struct agent_exec *e, enum agent_output which, struct bytes piece)
{
	struct build_run *r = CONTAINER_OF(e, struct build_run, start);

	say_output(r, which, piece);
	hear(r, e, piece.len);
}

/* It may end by itself, and well: a start command that leaves a daemon behind. */
static void on_start_ended(struct agent_exec *e, const struct agent_exec_result *ret,
			   const struct err *err)
{
	struct build_run *r = CONTAINER_OF(e, struct build_run, start);
	char text[256];

	say_rest(r);
	if (err) {
		fail_err(r, "error running start command", err);
		return;
	}
	if (ret->exited && ret->exit_code == 0)
		return;
	snprintf(text, sizeof(text), "error running start command: %s", ret->status);
	fail(r, text);
}

static void begin_start(struct build_run *r, struct stream *s)
{
	const struct agent_exec_spec spec = { .command = bytes_str(r->context.start),
					      .user = bytes_str(r->context.user),
					      .cwd = bytes_str(r->context.workdir),
					      .env = r->context.env,
					      .deadline_ms = BUILD_STEP_MS,
					      .on_output = on_start_output,
					      .keep_max = 1 };
	struct err err;

	if (agent_exec_start(&r->start, s, &spec, on_start_ended, &err) < 0) {
		fail_err(r, "error running start command", &err);
		return;
	}
	step("build.started");
	ask_ready(r);
}

static void on_final_running(struct builder *builder)
{
	struct build_run *r = CONTAINER_OF(builder, struct build_run, builder);

	step("build.booted");
	r->ready_until_ms = loop_now_ms(r->node->loop) + BUILD_READY_ALL_MS;
	if (r->context.start) {
		say(r, BUILD_INFO, "[finalize] Running start command: %s", r->context.start);
		r->is_start = true;
		builder_dial(&r->dial, &r->builder, on_dialled);
	} else if (r->context.ready) {
		ask_ready(r);
	} else {
		freeze(r);
	}
}

static void on_builder_ended(struct builder *builder, const struct err *why)
{
	struct build_run *r = CONTAINER_OF(builder, struct build_run, builder);

	fail_err(r, "the sandbox of the build ended", why);
}

/* What is at hand has just booted, with the sizes that are wanted, and nothing ran in it: a ground
 * that no step was added to. */
static bool is_fresh(const struct build_run *r)
{
	const struct warden_sizes *sizes = &r->node->sizes;
	const struct journal_build *row = &r->build->row;

	return !r->at && row->vcpus == sizes->vcpus && row->memory_mib == sizes->memory_mib;
}

/* A sandbox of the build, of what there is now. */
static int begin_sandbox(struct build_run *r, bool final, const struct builder_ops *ops,
			 struct err *err)
{
	const struct journal_build *row = &r->build->row;
	struct builder_spec spec = { .team = r->build->template->row.team,
				     .snapshot = r->at,
				     .ground = r->at || !r->ground[0] ? NULL : r->ground,
				     .boot = r->at || (final && !is_fresh(r)) };

	if (final && spec.boot) {
		spec.vcpus = row->vcpus;
		spec.memory_mib = row->memory_mib;
	}
	return builder_begin(&r->builder, r->node, &spec, ops, err);
}

static void finalize(struct build_run *r)
{
	static const struct builder_ops ops = { on_final_running, on_builder_ended };
	struct err err;

	snprintf(r->name, sizeof(r->name), "finalize");
	say(r, BUILD_INFO, "[finalize] Finalizing template build [%s]", r->key);
	if (build_context_set_commands(&r->context, r->recipe.start, r->recipe.ready, &err) < 0 ||
	    begin_sandbox(r, true, &ops, &err) < 0)
		fail_err(r, "the template could not be booted", &err);
}

/* --- steps -------------------------------------------------------------------------------- */

static void run_step(struct build_run *r);

static const struct recipe_step *current(const struct build_run *r)
{
	return &r->recipe.steps[r->next];
}

static void say_step(struct build_run *r, bool found, const char *key)
{
	AUTO(buf_done) struct buf text = BUF_MAX(BUILD_MESSAGE_MAX);
	struct err err;

	snprintf(r->name, sizeof(r->name), "%zu", r->next + 1);
	if (recipe_say(current(r), BUILD_MESSAGE_MAX / 2, &text, &err) == 0)
		say(r, BUILD_INFO, "%s[builder %zu/%zu] %.*s [%s]", found ? "CACHED " : "",
		    r->next + 1, r->recipe.n, (int)text.len, (const char *)text.ptr, key);
}

static void on_kept(struct build_run *r, struct snapshot *p)
{
	step("build.step");
	hold_at(r, p);
	r->next++;
	if (r->next < r->recipe.n) {
		run_step(r);
		return;
	}
	builder_end(&r->builder);
	finalize(r);
}

/* In the words that SDKs and their tests expect. */
static void fail_step(struct build_run *r, const struct agent_exec_result *ret,
		      const struct err *err)
{
	static const char prefix[] = "agent: exec: ";
	const struct recipe_step *s = current(r);
	char text[BUILD_MESSAGE_MAX], why[sizeof(err->msg) + 32];
	struct bytes first = bytes_head(recipe_arg(s, 0), BUILD_MESSAGE_MAX / 2);

	if (err)
		snprintf(why, sizeof(why), "command failed: %s",
			 strncmp(err->msg, prefix, sizeof(prefix) - 1) == 0
				 ? err->msg + sizeof(prefix) - 1
				 : err->msg);
	else
		snprintf(why, sizeof(why), "%s", ret->status);
	if (s->kind == RECIPE_RUN)
		snprintf(text, sizeof(text), "failed to run command '%.*s': %s", (int)first.len,
			 (const char *)first.ptr, why);
	else
		snprintf(text, sizeof(text), "%s %.*s failed: %s%s%.*s", recipe_kind_name(s->kind),
			 (int)first.len, (const char *)first.ptr, why,
			 ret && ret->err.len > 0 ? ": " : "",
			 ret ? (int)bytes_head(ret->err, 512).len : 0,
			 ret ? (const char *)ret->err.ptr : "");
	fail(r, text);
}

static void on_step_run(struct build_run *r, const struct agent_exec_result *ret,
			const struct err *err)
{
	struct err mine;

	if (err || !ret->exited || ret->exit_code != 0) {
		fail_step(r, ret, err);
		return;
	}
	if (step_leaves(current(r), ret->out, &r->context, &mine) < 0) {
		fail_step(r, ret, &mine);
		return;
	}
	step_key_next(current(r), r->key);
	take(r, JOURNAL_STEP);
}

static void exec_step(struct build_run *r)
{
	const struct recipe_step *s = current(r);
	struct err err;

	buf_clear(&r->script);
	if (step_script(s, &r->context, &r->script, &err) < 0)
		fail_step(r, NULL, &err);
	else
		run(r, step_user(s, &r->context), s->kind != RECIPE_ENV, on_step_run);
}

static void on_uploaded(struct agent_upload *u, const struct err *err)
{
	struct build_run *r = CONTAINER_OF(u, struct build_run, upload);

	if (err)
		fail_step(r, NULL, err);
	else
		exec_step(r);
}

static int open_upload(struct build_run *r, struct agent_upload_spec *spec, struct err *err)
{
	struct stat st;

	spec->file = uploads_open(r->node, r->build->template->row.team, current(r)->files, err);
	if (spec->file < 0)
		return -1;
	if (fstat(spec->file, &st) < 0) {
		close(spec->file);
		return err_set(err, ERR_INTERNAL, errno, "look at what was uploaded");
	}
	spec->bytes = (uint64_t)st.st_size;
	return 0;
}

static void on_upload_dialled(struct builder_dial *d, struct stream *s, const struct err *failed)
{
	struct build_run *r = CONTAINER_OF(d, struct build_run, dial);
	struct agent_upload_spec spec = { .path = BYTES_LIT(STEP_COPY_ARCHIVE),
					  .user = BYTES_LIT("root"),
					  .deadline_ms = BUILD_STEP_MS };
	struct err err;

	if (!s) {
		fail_err(r, "the sandbox of the build does not answer", failed);
		return;
	}
	if (open_upload(r, &spec, &err) < 0) {
		stream_abort(s);
		fail_step(r, NULL, &err);
		return;
	}
	if (agent_upload_start(&r->upload, s, &spec, on_uploaded, &err) < 0)
		fail_step(r, NULL, &err);
}

static void run_step(struct build_run *r)
{
	char key[STEP_KEY_LENGTH + 1];

	memcpy(key, r->key, sizeof(key));
	step_key_next(current(r), key);
	say_step(r, false, key);
	if (current(r)->kind == RECIPE_COPY)
		builder_dial(&r->dial, &r->builder, on_upload_dialled);
	else
		exec_step(r);
}

static void on_steps_running(struct builder *builder)
{
	struct build_run *r = CONTAINER_OF(builder, struct build_run, builder);

	step("build.sandbox");
	run_step(r);
}

/* --- what is there already ---------------------------------------------------------------- */

/* The next step, if it was run before; its context with it. */
static bool find_step(struct build_run *r)
{
	const struct recipe_step *s = current(r);
	char key[STEP_KEY_LENGTH + 1];
	struct build_context context;
	struct snapshot *p;
	struct err err;

	r->forced = r->forced || r->recipe.force || s->force;
	if (r->forced)
		return false;
	memcpy(key, r->key, sizeof(key));
	step_key_next(s, key);
	p = snapshots_by_key(r->node, r->build->template->row.team, key);
	if (!p || !p->row.context ||
	    build_context_parse(bytes_str(p->row.context), &context, &err) < 0)
		return false;
	say_step(r, true, key);
	build_context_done(&r->context);
	r->context = context;
	memcpy(r->key, key, sizeof(r->key));
	hold_at(r, p);
	r->next++;
	return true;
}

static void begin_steps(struct build_run *r)
{
	static const struct builder_ops ops = { on_steps_running, on_builder_ended };
	struct err err;

	step("build.ground");
	while (r->next < r->recipe.n && find_step(r))
		;
	if (r->next == r->recipe.n)
		finalize(r);
	else if (begin_sandbox(r, false, &ops, &err) < 0)
		fail_err(r, "the sandbox of the build could not be started", &err);
}

/* --- its ground --------------------------------------------------------------------------- */

/* What a build begins with, and the size of its disk, are known when the host's own template is. */
static void go_on(struct timer *t)
{
	struct build_run *r = CONTAINER_OF(t, struct build_run, base_again);
	const struct base_template *base = &r->node->base;

	if (base->state == BASE_FAILED)
		fail_err(r, "template " BASE_ALIAS, &base->why);
	else if (base->state != BASE_READY)
		timer_start(&r->base_again, BUILD_BASE_AGAIN_MS);
	else
		r->with_base(r);
}

static void await_base(struct build_run *r, void (*next)(struct build_run *r))
{
	r->with_base = next;
	timer_start(&r->base_again, 0);
}

static void begin_from_template(struct build_run *r)
{
	struct snapshot *from = r->build->from;
	struct err err;

	say(r, BUILD_INFO, "[base] FROM TEMPLATE %s", r->recipe.parent);
	step_key_first(r->build->template->row.team, from ? from->row.id : r->node->base.id,
		       r->key);
	hold_at(r, from);
	if (from && from->row.context) {
		build_context_done(&r->context);
		if (build_context_parse(bytes_str(from->row.context), &r->context, &err) < 0) {
			fail_err(r, "what the template was built with", &err);
			return;
		}
	}
	begin_steps(r);
}

/* It is used before this returns: else nothing keeps it. */
static void have_ground(struct build_run *r, const char *id)
{
	snprintf(r->ground, sizeof(r->ground), "%s", id);
	step_key_first(r->build->template->row.team, id, r->key);
	begin_steps(r);
}

static void on_ground(struct ground_want *w, const char *id, const struct err *err)
{
	struct build_run *r = CONTAINER_OF(w, struct build_run, ground_want);

	if (err)
		fail_err(r, "the image could not be booted", err);
	else
		have_ground(r, id);
}

static const char *image_name(const struct build_run *r)
{
	return r->recipe.archive ? "the archive" : r->recipe.image;
}

/* Which image it is, and what it brings. Said again where it is another one than before. */
static int take_image(struct build_run *r, const char *digest, struct bytes config, struct err *err)
{
	if (strcmp(r->from_image.digest, digest) != 0)
		say(r, BUILD_INFO, "[base] %s is %s", image_name(r), digest);
	return build_image_take(&r->from_image, digest, config, &r->context, err);
}

static void name_source(struct build_run *r)
{
	build_image_source(&r->from_image, r->node->base.disk_mib, r->node->images.agent,
			   r->source);
}

static void on_image_text(struct images_make *m, const char *text)
{
	say(CONTAINER_OF(m, struct build_run, image), BUILD_INFO, "[base] %s", text);
}

/* Its disk is there. */
static void on_disk(struct images_make *m, const char *digest, struct bytes config,
		    const struct err *failed)
{
	struct build_run *r = CONTAINER_OF(m, struct build_run, image);
	struct ground_spec spec = { .source = r->source };
	struct err err;

	if (failed) {
		fail_err(r, "", failed);
		return;
	}
	if (take_image(r, digest, config, &err) < 0) { /* a tag may have moved since */
		fail_err(r, "the image's configuration", &err);
		return;
	}
	step("build.disk");
	name_source(r);
	say(r, BUILD_INFO, "[base] Booting the image");
	spec.disk = take_fd(&r->disk);
	if (grounds_want(&r->ground_want, r->node, &spec, on_ground, &err) < 0)
		fail_err(r, "the image could not be booted", &err);
}

/* An image of a registry has none: -1. */
static int archive_again(const struct build_run *r, int *ret, struct err *err)
{
	*ret = -1;
	return r->recipe.archive ? build_archive_again(&r->build->archive, ret, err) : 0;
}

static void ask_image(struct build_run *r, int disk, const struct images_make_ops *ops)
{
	struct images_make_spec spec = {
		.team = r->build->template->row.team,
		.reference = r->recipe.image,
		.sealed = r->recipe.sealed,
		.disk = disk,
		.disk_mib = r->node->base.disk_mib,
	};
	struct err err;

	if (archive_again(r, &spec.archive, &err) < 0) {
		auto_close(&disk);
		fail_err(r, "", &err);
	} else if (images_make(&r->node->images, &r->image, &spec, ops, &err) < 0)
		fail_err(r, "", &err);
}

static void make_disk(struct build_run *r)
{
	static const struct images_make_ops ops = { on_image_text, on_disk };
	struct err err;
	int out;

	if (build_disk_make(r->node, r->build->row.id, BUILD_DISK, &out, &r->disk, &err) < 0)
		fail_err(r, "", &err);
	else
		ask_image(r, out, &ops);
}

static void find_ground(struct build_run *r)
{
	char id[NODE_ID_MAX + 1];

	name_source(r);
	if (grounds_find(r->node, r->source, id))
		have_ground(r, id);
	else
		make_disk(r);
}

/* Which image it is. */
static void on_image(struct images_make *m, const char *digest, struct bytes config,
		     const struct err *failed)
{
	struct build_run *r = CONTAINER_OF(m, struct build_run, image);
	struct err err;

	if (failed) {
		fail_err(r, "", failed);
		return;
	}
	step("build.image");
	if (take_image(r, digest, config, &err) < 0)
		fail_err(r, "the image's configuration", &err);
	else
		await_base(r, find_ground);
}

static void begin_from_image(struct build_run *r)
{
	static const struct images_make_ops ops = { on_image_text, on_image };

	say(r, BUILD_INFO, "[base] FROM %s", image_name(r));
	ask_image(r, -1, &ops);
}

/* What was built is on its disk: it is booted as it was at the end of the build. */
static void begin_refreeze(struct build_run *r)
{
	struct snapshot *from = r->build->snapshot;
	const char *context = from->row.context ? from->row.context : "";
	struct err err;

	snprintf(r->name, sizeof(r->name), "finalize");
	build_context_done(&r->context);
	if (build_context_parse(bytes_str(context), &r->context, &err) < 0) {
		fail_err(r, "what the template was built with", &err);
		return;
	}
	snprintf(r->key, sizeof(r->key), "%.*s", STEP_KEY_LENGTH, from->row.id);
	say(r, BUILD_INFO, "[finalize] Freezing again: %s", r->build->refreeze.why.msg);
	hold_at(r, from);
	finalize(r);
}

static void begin(struct timer *t)
{
	struct build_run *r = CONTAINER_OF(t, struct build_run, again);
	struct err err;

	timer_init(&r->again, r->node->loop, on_again);
	snprintf(r->name, sizeof(r->name), "base");
	r->script = BUF_MAX(STEP_SCRIPT_MAX);
	if (r->refreezes)
		begin_refreeze(r);
	else if (build_context_init(&r->context, &err) < 0 ||
		 recipe_take(r->build->spec, &r->recipe, &err) < 0)
		fail_err(r, "", &err);
	else if (r->recipe.image[0] || r->recipe.archive)
		begin_from_image(r);
	else
		await_base(r, begin_from_template);
}

void build_run_begin(struct build_run *r)
{
	r->disk = -1;
	timer_init(&r->calm, r->node->loop, on_calm);
	timer_init(&r->base_again, r->node->loop, go_on);
	timer_init(&r->deadline, r->node->loop, on_deadline);
	timer_init(&r->again, r->node->loop, begin);
	timer_start(&r->deadline, BUILD_RUN_MS);
	timer_start(&r->again, 0);
}
