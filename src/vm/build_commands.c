/* build_commands.c - what is run in the guest before it is frozen, one after the other. */
#include "vm/build_inside.h"
#include "vm/package_hosts.h"

static_assert((int)MANIFEST_PACKAGES_MAX == (int)PACKAGE_HOSTS_TEXT_MAX,
	      "one is put into the other");

struct command {
	const char *what, *reached; /* literals */
	struct bytes text;          /* none: not run */
	uint64_t ms;
	bool detach;    /* it goes on */
	bool must_work; /* and if not, so does the build not */
};

static struct command command_of(const struct build *b)
{
	const struct build_spec *s = &b->spec;

	switch (b->command) {
	case BUILD_ASK_PACKAGES:
		return (struct command){ "package hosts", "packages",
					 s->ask_packages ? package_hosts_script()
							 : (struct bytes){ 0 },
					 BUILD_PACKAGES_MS };
	case BUILD_START:
		return (struct command){ "start command", "started", s->start_command,
					 BUILD_START_MS, .detach = true };
	case BUILD_READY:
		return (struct command){ "ready command", "ready", s->ready_command, BUILD_READY_MS,
					 .must_work = true };
	case BUILD_COMMANDS:
		break;
	}
	return (struct command){ 0 };
}

static void on_ended(struct agent_exec *e, const struct agent_exec_result *ret,
		     const struct err *failed)
{
	struct build *b = CONTAINER_OF(e, struct build, exec);
	const struct command c = command_of(b);
	struct err err;

	if (failed) {
		build_fail(b, failed);
		return;
	}
	if (c.must_work && (!ret->exited || ret->exit_code != 0)) {
		err_set(&err, ERR_INVALID, 0, "the %s ended with %s", c.what, ret->status);
		build_fail(b, &err);
		return;
	}
	if (b->command == BUILD_ASK_PACKAGES)
		package_hosts_read(ret->out, b->spec.manifest.packages);
	build_reached(b, c.reached);
	b->command++;
	build_commands(b);
}

static void on_dialled(struct agent_dial *d, struct stream *s, const struct err *failed)
{
	struct build *b = CONTAINER_OF(d, struct build, dial);
	const struct command c = command_of(b);
	const struct agent_exec_spec spec = { .command = c.text,
					      .user = b->spec.start_user,
					      .detach = c.detach };
	struct err err;

	if (!s)
		build_fail(b, failed);
	else if (agent_exec_start(&b->exec, s, &spec, c.ms, on_ended, &err) < 0)
		build_fail(b, &err);
}

void build_commands(struct build *b)
{
	struct command c = command_of(b);
	struct err err;

	while (b->command < BUILD_COMMANDS && c.text.len == 0) {
		b->command++;
		c = command_of(b);
	}
	if (b->command == BUILD_COMMANDS) {
		build_freeze(b);
		return;
	}
	build_begin(b, c.what, c.ms);
	if (agent_dial_start(&b->dial, b->machine->loop, take_fd(&b->sockets[1 + b->command]),
			     &b->spec.agent, AGENT_DIAL_UP_MS, c.ms, on_dialled, &err) < 0)
		build_fail(b, &err);
}
