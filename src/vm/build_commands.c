/* build_commands.c - what is run in the guest before it is frozen, one after the other. */
#include "vm/build_inside.h"
#include "vm/package_hosts.h"
#include "vm/trust_ca.h"

static_assert((int)MANIFEST_PACKAGES_MAX == (int)PACKAGE_HOSTS_TEXT_MAX,
	      "one is put into the other");

struct command {
	const char *what, *reached; /* literals */
	struct bytes text, user;    /* no text: not run */
	uint64_t ms;
	bool detach;    /* it goes on */
	bool must_work; /* and if not, so does the build not */
};

static struct command command_of(const struct build *b)
{
	const struct build_spec *s = &b->spec;
	const struct bytes none = { 0 };

	switch (b->command) {
	case BUILD_TRUST:
		return (struct command){ .what = "trust certificates",
					 .reached = "trusted",
					 .text = s->ca.len > 0 ? trust_ca_script() : none,
					 .user = BYTES_LIT("root"),
					 .ms = BUILD_TRUST_MS,
					 .must_work = true };
	case BUILD_ASK_PACKAGES:
		return (struct command){ .what = "package hosts",
					 .reached = "packages",
					 .text = s->ask_packages ? package_hosts_script() : none,
					 .user = s->start_user,
					 .ms = BUILD_PACKAGES_MS };
	case BUILD_START:
		return (struct command){ .what = "start command",
					 .reached = "started",
					 .text = s->start_command,
					 .user = s->start_user,
					 .ms = BUILD_START_MS,
					 .detach = true };
	case BUILD_READY:
		return (struct command){ .what = "ready command",
					 .reached = "ready",
					 .text = s->ready_command,
					 .user = s->start_user,
					 .ms = BUILD_READY_MS,
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
		err_set(&err, ERR_INVALID, 0, "it ended with %s", ret->status);
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
	AUTO(json_decrefp)
	json_t *env = json_pack("{s:s%}", TRUST_CA_VARIABLE, b->spec.ca.ptr, b->spec.ca.len);
	const struct agent_exec_spec spec = {
		.command = c.text,
		.user = c.user,
		.env = b->command == BUILD_TRUST ? env : NULL,
		.detach = c.detach,
	};
	struct err err;

	if (!s)
		build_fail(b, failed);
	else if (agent_exec_start(&b->exec, s, &spec, c.ms, on_ended, &err) < 0)
		build_fail(b, &err);
}

void build_commands_socket(struct build *b)
{
	struct err err;

	if (agent_dial_start(&b->dial, b->machine->loop, take_fd(&b->socket), &b->spec.agent,
			     AGENT_DIAL_UP_MS, command_of(b).ms, on_dialled, &err) < 0)
		build_fail(b, &err);
}

void build_commands(struct build *b)
{
	struct command c = command_of(b);

	while (b->command < BUILD_COMMANDS && c.text.len == 0) {
		b->command++;
		c = command_of(b);
	}
	if (b->command == BUILD_COMMANDS) {
		build_freeze(b);
		return;
	}
	build_begin(b, c.what, c.ms);
	b->commanded = true;
	b->user->ops->want_socket(b->user);
}
