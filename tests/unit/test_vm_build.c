/* test_vm_build.c - a template build against a mock QEMU and a mock agent, down to the manifest. */
#include "tests/unit/vm_mock_agent.h"
#include "tests/unit/vm_mock_qemu.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "vm/build.h"
#include "vm/trust_ca.h"

enum { GUARD_MS = 30000 };

static struct scene {
	struct loop *loop;
	struct mock_qemu qemu;
	struct mock_agent agent;
	struct timer guard, later;
	struct machine machine;
	struct build *build;
	struct build_user user;
	struct manifest manifest;
	struct bytes start_command, ready_command;
	struct bytes ca;
	bool ask_packages;
	int into; /* a second descriptor of the manifest's file */
	int wanted, stops, done;
	struct err err;
} s;

/* A command that runs, and how it ends. */
#define STARTED "HTTP/1.1 200 OK\r\n\r\n\0\0\0\0\x1e{\"event\":{\"start\":{\"pid\":42}}}"
#define ENDED_0 "\0\0\0\0\x23{\"event\":{\"end\":{\"exited\":true}}}  \2\0\0\0\2{}"
#define ENDED_3 "\0\0\0\0\x2e{\"event\":{\"end\":{\"exited\":true,\"exitCode\":3}}}\2\0\0\0\2{}"
#define COMMAND(end)                                \
	{ .request = "POST /process.Process/Start", \
	  .answer = STARTED end,                    \
	  .answer_len = sizeof(STARTED end) - 1 }

static const struct mock_route agent_routes[] = {
	MOCK_AGENT_ROUTES,
	COMMAND(ENDED_0),
};

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static int file_with(struct bytes content)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content.ptr, content.len), (ssize_t)content.len);
	return fd;
}

static void want_socket(struct build_user *u)
{
	(void)u;
	s.wanted++;
	build_socket(s.build, mock_socket());
}

static void want_stop(struct build_user *u)
{
	struct template_files files;

	(void)u;
	s.stops++;
	template_files_init(&files);
	for (size_t i = 1; i < MANIFEST_FILES; i++)
		files.fd[i] = file_with(BYTES_LIT("123456789"));
	files.fd[MANIFEST_KERNEL_FILE] =
		file_with(BYTES_LIT("\177ELF Linux version %s (Linux version 6.12.1-x (gcc) #1"));
	s.into = file_with(BYTES_LIT(""));
	build_stopped(s.build, &files, fcntl(s.into, F_DUPFD_CLOEXEC, 0));
}

static void on_done(struct build_user *u, const struct manifest *m, const struct err *err)
{
	(void)u;
	assert_true((m == NULL) == (err != NULL));
	s.done++;
	s.build = NULL;
	if (err)
		s.err = *err;
	else
		s.manifest = *m;
	loop_stop(s.loop);
}

static void scene_start(const struct mock_qemu *qemu, const struct mock_route *routes, size_t n)
{
	static const struct build_user_ops ops = { want_socket, want_stop, on_done };
	struct build_spec spec = {
		.user = &s.user,
		.state_file = "/dev/fdset/3",
		.overlay_node = "overlay-file",
		.disk_bytes = 1 << 30,
		.ca = s.ca,
		.ask_packages = s.ask_packages,
		.start_command = s.start_command,
		.ready_command = s.ready_command,
		.start_user = BYTES_LIT("user"),
		.manifest = { .template_id = "base",
			      .created = "2026-11-15T01:02:03Z",
			      .made_with = { .vmm_version = "10.0.2",
					     .cpu_model = "x",
					     .accel = "tcg",
					     .arguments = "-m 512",
					     .vcpus = 1,
					     .memory_mib = 512 } },
	};
	struct err err;

	s.qemu = *qemu;
	s.into = -1;
	assert_int_equal(loop_open(&s.loop, &err), 0);
	mock_qemu_start(&s.qemu, s.loop);
	mock_agent_start(&s.agent, s.loop, routes, n);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	spec.qmp_path = s.qemu.path;
	spec.agent = s.agent.at;
	s.user.ops = &ops;
	steps_begin(&s.machine.steps);
	if (build_start(&s.machine, s.loop, &spec, &s.build, &err) < 0)
		fail_msg("%s", err.msg);
}

static void scene_run(const struct mock_qemu *qemu, const struct mock_route *routes, size_t n)
{
	scene_start(qemu, routes, n);
	loop_run(s.loop);
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	timer_stop(&s.later);
	build_cancel(s.build);
	machine_close(&s.machine);
	mock_qemu_end(&s.qemu);
	mock_agent_end(&s.agent);
	if (s.into >= 0)
		close(s.into);
	loop_free(s.loop);
	s = (struct scene){ 0 };
}

static void check_written(void)
{
	struct manifest back;
	char text[4096];
	struct err err;
	ssize_t n = pread(s.into, text, sizeof(text), 0);

	assert_true(n > 0);
	if (manifest_parse((struct bytes){ (uint8_t *)text, (size_t)n }, &back, &err) < 0)
		fail_msg("%s", err.msg);
	assert_memory_equal(&back, &s.manifest, sizeof(back));
	assert_string_equal(back.made_with.kernel_version, "6.12.1-x");
	assert_int_equal(back.files[MANIFEST_DISK_FILE].length, 9);
	assert_int_equal(back.files[MANIFEST_DISK_FILE].crc, 0xe3069283);
}

static void it_boots_freezes_saves_and_seals(void **state)
{
	static const char *const order[] = { "qmp_capabilities",
					     "query-status",
					     "blockdev-create",
					     "query-jobs",
					     "job-dismiss",
					     "cont",
					     "stop",
					     "xen-save-devices-state",
					     "quit" };

	(void)state;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.qemu.n_commands, COUNT(order));
	for (size_t i = 0; i < COUNT(order); i++)
		assert_string_equal(s.qemu.commands[i], order[i]);
	assert_int_equal(s.agent.n_log, 2);
	assert_string_equal(s.agent.log[0], "GET /health");
	assert_string_equal(s.agent.log[1], "POST /control/freeze?flush=1");
	assert_int_equal(s.stops, 1);
	assert_true(steps_find(&s.machine.steps, "sealed") > 0);
	check_written();
	scene_end();
}

static void a_start_command_runs_before_the_freeze(void **state)
{
	(void)state;
	s.start_command = BYTES_LIT("serve &");
	scene_run(&(struct mock_qemu){ .events_first = true }, agent_routes, COUNT(agent_routes));
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.agent.n_log, 3);
	assert_string_equal(s.agent.log[1], "POST /process.Process/Start");
	assert_string_equal(s.agent.log[2], "POST /control/freeze?flush=1");
	assert_true(steps_find(&s.machine.steps, "started") > 0);
	scene_end();
}

static void a_ready_command_must_succeed(void **state)
{
	static const struct mock_route fails[] = { COMMAND(ENDED_3), MOCK_AGENT_ROUTES };

	(void)state;
	s.start_command = BYTES_LIT("serve &");
	s.ready_command = BYTES_LIT("curl localhost");
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.agent.n_log, 4);
	assert_true(steps_find(&s.machine.steps, "ready") > 0);
	scene_end();
	s.start_command = BYTES_LIT("serve &");
	s.ready_command = BYTES_LIT("curl localhost");
	scene_run(&(struct mock_qemu){ 0 }, fails, COUNT(fails));
	assert_int_equal(s.err.code, ERR_INVALID);
	assert_non_null(strstr(s.err.msg, "build: ready command: it ended with"));
	assert_false(mock_qemu_heard(&s.qemu, "xen-save-devices-state"));
	scene_end();
}

static void a_ready_command_runs_without_a_start_command(void **state)
{
	(void)state;
	s.ready_command = BYTES_LIT("true");
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.agent.n_log, 3);
	assert_string_equal(s.agent.log[1], "POST /process.Process/Start");
	assert_string_equal(s.agent.log[2], "POST /control/freeze?flush=1");
	assert_true(steps_find(&s.machine.steps, "ready") > 0);
	scene_end();
}

#define PEM "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

static void a_guest_is_made_to_trust_before_all_else(void **state)
{
	static const struct mock_route fails[] = { COMMAND(ENDED_3), MOCK_AGENT_ROUTES };

	(void)state;
	s.ca = BYTES_LIT(PEM);
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_string_equal(s.agent.log[1], "POST /process.Process/Start");
	assert_true(steps_find(&s.machine.steps, "trusted") > 0);
	scene_end();
	s.ca = BYTES_LIT(PEM);
	scene_run(&(struct mock_qemu){ 0 }, fails, COUNT(fails));
	assert_non_null(strstr(s.err.msg, "build: trust certificates: it ended with"));
	assert_false(mock_qemu_heard(&s.qemu, "xen-save-devices-state"));
	scene_end();
}

static void only_certificates_are_trusted(void **state)
{
	static const struct {
		const char *name, *pem;
		bool ok;
	} rows[] = {
		{ "one", PEM, true },
		{ "two and words", "my authority\n" PEM "and\r\n" PEM, true },
		{ "nothing", "", false },
		{ "words", "hello", false },
		{ "no end", "-----BEGIN CERTIFICATE-----\nMIIB\n", false },
		{ "end first", "-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n", false },
		{ "a key by mistake", PEM "-----BEGIN PRIVATE KEY-----\nMIIB\n", false },
		{ "not text", PEM "\x01", false },
		{ "not ASCII", PEM "\xc3\xa9", false },
	};
	static uint8_t large[TRUST_CA_MAX + 1];

	(void)state;
	FOR_ROWS(row, rows)
		assert_int_equal(trust_ca_ok(bytes_str(row->pem)), row->ok);
	memset(large, '\n', sizeof(large));
	memcpy(large, PEM, strlen(PEM));
	assert_true(trust_ca_ok((struct bytes){ large, TRUST_CA_MAX }));
	assert_false(trust_ca_ok((struct bytes){ large, TRUST_CA_MAX + 1 }));
}

/* "http://a.example/\nb.example\n" and a word of the guest's that is no host */
#define SAID                                              \
	"\0\0\0\0\x4c{\"event\":{\"data\":{\"stdout\":\"" \
	"aHR0cDovL2EuZXhhbXBsZS8KYi5leGFtcGxlCi4uCg==\"}}}"

static void a_guest_is_asked_for_its_package_hosts_first(void **state)
{
	static const struct mock_route routes[] = { MOCK_AGENT_ROUTES, COMMAND(SAID ENDED_3) };
	static const struct mock_route hangs[] = {
		MOCK_AGENT_ROUTES,
		{ .request = "POST /process.Process/Start", .answer = "", .close = true },
	};

	(void)state;
	s.ask_packages = true;
	s.start_command = BYTES_LIT("serve &");
	scene_run(&(struct mock_qemu){ 0 }, routes, COUNT(routes));
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_string_equal(s.manifest.packages, "a.example b.example");
	check_written();
	assert_true(steps_find(&s.machine.steps, "packages") <=
		    steps_find(&s.machine.steps, "started"));
	scene_end();
	s.ask_packages = true;
	scene_run(&(struct mock_qemu){ 0 }, hangs, COUNT(hangs));
	assert_non_null(strstr(s.err.msg, "build: package hosts: "));
	scene_end();
}

static void a_guest_that_does_not_freeze_is_no_template(void **state)
{
	static const struct mock_route routes[] = {
		{ "POST /control/freeze", "HTTP/1.1 504 Late\r\n" MOCK_LENGTH("0") },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	scene_run(&(struct mock_qemu){ 0 }, routes, COUNT(routes));
	assert_int_equal(s.done, 1);
	assert_string_equal(s.err.msg, "build: freeze: agent: freeze: status 504: ");
	assert_false(mock_qemu_heard(&s.qemu, "xen-save-devices-state"));
	assert_int_equal(s.stops, 0);
	scene_end();
}

static void an_overlay_that_cannot_be_made_is_a_failure(void **state)
{
	(void)state;
	scene_run(&(struct mock_qemu){ .job_error = "disk full" }, agent_routes,
		  COUNT(agent_routes));
	assert_int_equal(s.done, 1);
	assert_non_null(strstr(s.err.msg, "overlay: QEMU could not make it: disk full"));
	assert_false(mock_qemu_heard(&s.qemu, "cont"));
	scene_end();
}

static void a_machine_that_already_runs_is_refused(void **state)
{
	(void)state;
	scene_run(&(struct mock_qemu){ .status = "running" }, agent_routes, COUNT(agent_routes));
	assert_int_equal(s.done, 1);
	assert_non_null(strstr(s.err.msg, "does not wait to be started"));
	scene_end();
}

static void every_command_may_fail(void **state)
{
	static const struct {
		const char *name;
	} rows[] = { { "qmp_capabilities" },
		     { "query-status" },
		     { "blockdev-create" },
		     { "query-jobs" },
		     { "job-dismiss" },
		     { "cont" },
		     { "stop" },
		     { "xen-save-devices-state" } };

	(void)state;
	FOR_ROWS(row, rows) {
		scene_run(&(struct mock_qemu){ .error_at = row->name }, agent_routes,
			  COUNT(agent_routes));
		assert_int_equal(s.done, 1);
		assert_non_null(strstr(s.err.msg, row->name));
		assert_int_equal(s.machine.life.state, VM_GONE);
		scene_end();
		scene_run(&(struct mock_qemu){ .die_at = row->name }, agent_routes,
			  COUNT(agent_routes));
		assert_int_equal(s.done, 1);
		assert_int_equal(s.err.code, ERR_UNAVAILABLE);
		assert_int_equal(s.stops, 0);
		scene_end();
	}
}

static void state_that_cannot_be_saved_is_a_failure(void **state)
{
	(void)state;
	scene_run(&(struct mock_qemu){ .error_at = "xen-save-devices-state" }, agent_routes,
		  COUNT(agent_routes));
	assert_int_equal(s.done, 1);
	assert_non_null(strstr(s.err.msg, "save: QMP xen-save-devices-state: "));
	assert_int_equal(s.stops, 0);
	scene_end();
}

static void cancel(struct timer *t)
{
	(void)t;
	build_cancel(TAKE(s.build));
	loop_stop(s.loop);
}

static void it_may_be_cancelled_at_any_time(void **state)
{
	static const struct mock_route slow[] = {
		{ .request = "POST /control/freeze", .answer = MOCK_NO_CONTENT, .delay_ms = 10 },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	for (uint64_t ms = 0; ms < 240; ms += ms < 30 ? 2 : 30) {
		scene_start(&(struct mock_qemu){ 0 }, slow, COUNT(slow));
		timer_init(&s.later, s.loop, cancel);
		timer_start(&s.later, ms);
		loop_run(s.loop);
		assert_int_equal(s.machine.life.state, VM_GONE);
		scene_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_boots_freezes_saves_and_seals),
		cmocka_unit_test(a_start_command_runs_before_the_freeze),
		cmocka_unit_test(a_ready_command_must_succeed),
		cmocka_unit_test(a_ready_command_runs_without_a_start_command),
		cmocka_unit_test(a_guest_is_made_to_trust_before_all_else),
		cmocka_unit_test(only_certificates_are_trusted),
		cmocka_unit_test(a_guest_is_asked_for_its_package_hosts_first),
		cmocka_unit_test(a_guest_that_does_not_freeze_is_no_template),
		cmocka_unit_test(an_overlay_that_cannot_be_made_is_a_failure),
		cmocka_unit_test(a_machine_that_already_runs_is_refused),
		cmocka_unit_test(every_command_may_fail),
		cmocka_unit_test(state_that_cannot_be_saved_is_a_failure),
		cmocka_unit_test(it_may_be_cancelled_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
