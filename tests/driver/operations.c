/* operations.c - the table of operations, and how one begins and ends. */
#include "tests/driver/driver.h"

#include <errno.h>

static const struct {
	const char *name;
	void (*run)(struct op *o);
} table[] = {
	{ "ping", run_ping },
	{ "facts", run_facts },
	{ "slot", run_slot },
	{ "verb", run_verb },
	{ "list", run_list },
	{ "reconnect", run_reconnect },
	{ "template", run_template },
	{ "template_drop", run_template_drop },
	{ "create", run_create },
	{ "cont", run_cont },
	{ "pause", run_pause },
	{ "resume", run_resume },
	{ "status", run_status },
	{ "stop", run_stop },
	{ "exec", run_exec },
	{ "read_file", run_read_file },
	{ "write_file", run_write_file },
	{ "health", run_health },
	{ "freeze", run_freeze },
	{ "clock", run_clock },
};

static void end(struct op *o, json_t *answer)
{
	struct driver *d = o->d;

	if (o->id)
		json_object_set(answer, "id", o->id);
	lines_say(d, answer);
	json_decref(o->id);
	json_decref(o->args);
	free(o);
	lines_op_ended(d);
}

void op_ok(struct op *o, json_t *fields)
{
	json_t *answer = fields ? fields : json_object();

	json_object_set_new(answer, "ok", json_true());
	end(o, answer);
}

void op_refuse(struct op *o, enum manifest_reason reason, const struct err *err)
{
	json_t *answer = json_pack("{s:b, s:s, s:o}", "ok", 0, "code", err_name(err->code), "error",
				   json_text(bytes_str(err->msg)));

	if (err->code == ERR_MISMATCH)
		json_object_set_new(answer, "reason", json_string(manifest_reason_name(reason)));
	if (err->sys)
		json_object_set_new(answer, "errno", json_integer(err->sys));
	end(o, answer);
}

void op_fail(struct op *o, const struct err *err)
{
	op_refuse(o, MANIFEST_FORMAT, err);
}

static int parse(struct op *o, struct bytes line, void (**ret_run)(struct op *o), struct err *err)
{
	struct bytes name;

	if (json_decode(line, DRIVER_LINE_MAX, 16, &o->args, err) < 0)
		return -1;
	o->id = json_incref(json_object_get(o->args, "id"));
	if (json_want_string(o->args, "op", &name, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(table); i++)
		if (bytes_eq(name, bytes_str(table[i].name))) {
			*ret_run = table[i].run;
			return 0;
		}
	return err_set(err, ERR_INVALID, 0, "no such operation");
}

void operations_run(struct driver *d, struct bytes line)
{
	struct op *o = calloc(1, sizeof(*o));
	void (*run)(struct op *o) = NULL;
	struct err err = { 0 };

	if (!o)
		abort();
	o->d = d;
	d->n_ops++;
	if (d->n_ops > DRIVER_OPS_MAX)
		err_set(&err, ERR_EXHAUSTED, 0, "%d operations run already", DRIVER_OPS_MAX);
	else if (parse(o, line, &run, &err) == 0) {
		run(o);
		return;
	}
	op_fail(o, &err);
}
