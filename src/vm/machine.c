/* machine.c - reaching QEMU, and telling the user of the moment what it says. */
#include "vm/machine.h"

#include <assert.h>

static struct machine *of(struct qmp_link_user *u)
{
	return CONTAINER_OF(u, struct machine, qmp_user);
}

static void gone(struct machine *m, const struct err *err)
{
	struct machine_user *u = m->user;
	struct err why = *err;

	machine_close(m);
	if (u)
		u->ops->on_gone(u, &why);
}

static void on_ready(struct qmp_link_user *u, const struct qmp_message *hello)
{
	struct machine *m = of(u);

	steps_add(&m->steps, "greeting");
	m->qemu_major = hello->major;
	m->qemu_minor = hello->minor;
	m->qemu_micro = hello->micro;
	if (m->user && m->user->ops->on_ready)
		m->user->ops->on_ready(m->user);
}

static void on_event(struct qmp_link_user *u, const struct qmp_message *event)
{
	struct machine *m = of(u);

	if (m->user)
		m->user->ops->on_event(m->user, event);
}

static void on_link_gone(struct qmp_link_user *u, const struct err *err)
{
	gone(of(u), err);
}

static const struct qmp_link_ops link_ops = { on_ready, on_event, on_link_gone };

static void on_dialled(struct dial *d, struct stream *s, const struct err *err)
{
	struct machine *m = CONTAINER_OF(d, struct machine, dial);
	struct err mine;

	if (!s) {
		gone(m, err);
		return;
	}
	steps_add(&m->steps, "monitor");
	m->qmp_user.ops = &link_ops;
	if (qmp_link_open(s, &m->qmp_user, &m->qmp, &mine) < 0)
		gone(m, &mine);
	else if (m->user && m->user->ops->on_open)
		m->user->ops->on_open(m->user);
}

int machine_connect(struct machine *m, struct loop *l, const char *qmp_path, struct machine_user *u,
		    struct err *err)
{
	struct addr at;

	assert(m->life.state == VM_NEW);
	if (addr_unix(qmp_path, &at, err) < 0 ||
	    dial_start(&m->dial, l, &at, MACHINE_DIAL_MS, on_dialled, err) < 0)
		return err_wrap(err, "reach QEMU");
	m->loop = l;
	m->user = u;
	vm_life_enter(&m->life, VM_STARTING);
	return 0;
}

void machine_set_user(struct machine *m, struct machine_user *u)
{
	m->user = u;
}

static int ask(struct machine *m, struct qmp_call *c, const struct qmp_command *command,
	       qmp_done_fn *on_done, struct err *err)
{
	if (m->qmp)
		return qmp_link_call(m->qmp, c, command, on_done, err);
	json_decref(command->arguments);
	return err_set(err, ERR_UNAVAILABLE, 0, "QEMU is gone");
}

int machine_ask(struct machine *m, struct qmp_call *c, const char *command, json_t *arguments,
		qmp_done_fn *on_done, struct err *err)
{
	const struct qmp_command whole = { command, arguments, MACHINE_COMMAND_MS };

	return ask(m, c, &whole, on_done, err);
}

int machine_add_fd(struct machine *m, struct qmp_call *c, int fd, int set, qmp_done_fn *on_done,
		   struct err *err)
{
	if (!m->qmp)
		return err_set(err, ERR_UNAVAILABLE, 0, "QEMU is gone");
	if (qmp_link_pass_fd(m->qmp, fd, err) < 0)
		return -1;
	return machine_ask(m, c, "add-fd", json_pack("{s:i}", "fdset-id", set), on_done, err);
}

int machine_stop(struct machine *m, struct qmp_call *c, qmp_done_fn *on_done, struct err *err)
{
	static const struct qmp_command stop = { "stop", NULL, MACHINE_STOP_MS };

	return ask(m, c, &stop, on_done, err);
}

int machine_save(struct machine *m, struct qmp_call *c, const char *file, qmp_done_fn *on_done,
		 struct err *err)
{
	/* not live: nobody else takes its disks over, and it may go on */
	return machine_ask(m, c, "xen-save-devices-state",
			   json_pack("{s:s, s:b}", "filename", file, "live", 0), on_done, err);
}

void machine_close(struct machine *m)
{
	dial_cancel(&m->dial);
	qmp_link_close(TAKE(m->qmp));
	m->user = NULL;
	if (m->life.state != VM_GONE)
		vm_life_enter(&m->life, VM_GONE);
}

bool machine_status(const json_t *ret, char *into, size_t size)
{
	struct bytes status;
	struct err unused;

	return json_want_string(ret, "status", &status, &unused) == 0 &&
	       bytes_to_str(status, into, size);
}

bool machine_no_space(const struct qmp_message *event)
{
	return bytes_eq(event->name, BYTES_LIT("BLOCK_IO_ERROR")) && event->data &&
	       json_is_true(json_object_get(event->data, "nospace"));
}

bool machine_shut_down(const struct qmp_message *event, struct bytes *ret_reason)
{
	struct err unused;

	*ret_reason = (struct bytes){ 0 };
	if (!bytes_eq(event->name, BYTES_LIT("SHUTDOWN")))
		return false;
	if (event->data && json_may_string(event->data, "reason", ret_reason, &unused) < 0)
		*ret_reason = (struct bytes){ 0 };
	return true;
}

struct bytes machine_migration(const struct qmp_message *event)
{
	struct bytes status = { 0 };
	struct err unused;

	if (bytes_eq(event->name, BYTES_LIT("MIGRATION")) && event->data)
		(void)!json_may_string(event->data, "status", &status, &unused);
	return status;
}
