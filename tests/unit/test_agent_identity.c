/* test_agent_identity.c - one message makes a sandbox itself, or changes nothing that matters. */
#include "tests/unit/check.h"

#include <ftw.h>
#include <sys/stat.h>

#include "agent/machine/files_small.h"
#include "agent/machine/identity.h"

#define ENTROPY                                                            \
	"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v" \
	"MDEyMzQ1Njc4OTo7PD0+Pw=="
#define OFFSET  "\"clockOffsetNs\":\"1700000000000000000\","
#define RANDOM  "\"entropy\":\"" ENTROPY "\","
#define HOST    "\"hostname\":\"i0abc\","
#define MACHINE "\"machineId\":\"0123456789abcdef0123456789abcdef\","
#define BOOT    "\"bootId\":\"01234567-89ab-cdef-0123-456789abcdef\","
#define IDS     "\"sandboxId\":\"i0abc\",\"templateId\":\"base\","
#define ENV     "\"env\":{\"A\":\"1\",\"E2B_SANDBOX_ID\":\"fake\"},"
#define TOKENS  "\"accessToken\":\"secret\",\"controlToken\":\"control\""
#define MESSAGE "{" OFFSET RANDOM HOST MACHINE BOOT IDS ENV TOKENS "}"

/* --- the message -------------------------------------------------------------------------- */

static void a_message_is_whole_or_refused(void **state)
{
	static const struct {
		const char *name, *json;
		bool ok;
	} rows[] = {
		{ "whole", MESSAGE, true },
		{ "negative offset",
		  "{\"clockOffsetNs\":\"-5\"," RANDOM HOST MACHINE BOOT IDS ENV TOKENS "}", true },
		{ "unknown member",
		  "{\"new\":{}," OFFSET RANDOM HOST MACHINE BOOT IDS ENV TOKENS "}", true },
		{ "no access token",
		  "{" OFFSET RANDOM HOST MACHINE BOOT IDS ENV
		  "\"accessToken\":\"\",\"controlToken\":\"c\"}",
		  true },
		{ "defaults",
		  "{\"defaultUser\":\"root\",\"defaultWorkdir\":\"/code\"," OFFSET RANDOM HOST
			  MACHINE BOOT IDS ENV TOKENS "}",
		  true },
		{ "no offset", "{" RANDOM HOST MACHINE BOOT IDS ENV TOKENS "}", false },
		{ "offset is a word",
		  "{\"clockOffsetNs\":\"now\"," RANDOM HOST MACHINE BOOT IDS ENV TOKENS "}",
		  false },
		{ "no entropy", "{" OFFSET HOST MACHINE BOOT IDS ENV TOKENS "}", false },
		{ "little entropy",
		  "{\"entropy\":\"AAAA\"," OFFSET HOST MACHINE BOOT IDS ENV TOKENS "}", false },
		{ "much entropy",
		  "{\"entropy\":\"AAAA" ENTROPY "\"," OFFSET HOST MACHINE BOOT IDS ENV TOKENS "}",
		  false },
		{ "no hostname", "{" OFFSET RANDOM MACHINE BOOT IDS ENV TOKENS "}", false },
		{ "hostname with a line end",
		  "{\"hostname\":\"a\\nb\"," OFFSET RANDOM MACHINE BOOT IDS ENV TOKENS "}", false },
		{ "hostname begins with a dash",
		  "{\"hostname\":\"-a\"," OFFSET RANDOM MACHINE BOOT IDS ENV TOKENS "}", false },
		{ "hostname of 64",
		  "{\"hostname\":"
		  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"," OFFSET
			  RANDOM MACHINE BOOT IDS ENV TOKENS "}",
		  false },
		{ "machine id in upper case",
		  "{\"machineId\":\"0123456789ABCDEF0123456789ABCDEF\"," OFFSET RANDOM HOST BOOT IDS
			  ENV TOKENS "}",
		  false },
		{ "short machine id",
		  "{\"machineId\":\"0123\"," OFFSET RANDOM HOST BOOT IDS ENV TOKENS "}", false },
		{ "boot id without dashes",
		  "{\"bootId\":\"0123456789abcdef0123456789abcdef0123\"," OFFSET RANDOM HOST MACHINE
			  IDS ENV TOKENS "}",
		  false },
		{ "no boot id", "{" OFFSET RANDOM HOST MACHINE IDS ENV TOKENS "}", false },
		{ "no ids", "{" OFFSET RANDOM HOST MACHINE BOOT ENV TOKENS "}", false },
		{ "id with a slash",
		  "{\"sandboxId\":\"a/b\",\"templateId\":\"t\"," OFFSET RANDOM HOST MACHINE BOOT
			  ENV TOKENS "}",
		  false },
		{ "empty id",
		  "{\"sandboxId\":\"\",\"templateId\":\"t\"," OFFSET RANDOM HOST MACHINE BOOT
			  ENV TOKENS "}",
		  false },
		{ "no env", "{" OFFSET RANDOM HOST MACHINE BOOT IDS TOKENS "}", false },
		{ "variable is a number",
		  "{\"env\":{\"A\":1}," OFFSET RANDOM HOST MACHINE BOOT IDS TOKENS "}", false },
		{ "variable with =",
		  "{\"env\":{\"A=B\":\"1\"}," OFFSET RANDOM HOST MACHINE BOOT IDS TOKENS "}",
		  false },
		{ "variable without a name",
		  "{\"env\":{\"\":\"1\"}," OFFSET RANDOM HOST MACHINE BOOT IDS TOKENS "}", false },
		{ "no control token",
		  "{\"accessToken\":\"a\"," OFFSET RANDOM HOST MACHINE BOOT IDS "\"env\":{}}",
		  false },
		{ "empty control token",
		  "{\"accessToken\":\"a\",\"controlToken\":\"\"," OFFSET RANDOM HOST MACHINE
			  BOOT IDS "\"env\":{}}",
		  false },
		{ "token with a line end",
		  "{\"accessToken\":\"a\\r\\nb\",\"controlToken\":\"c\"," OFFSET RANDOM HOST MACHINE
			  BOOT IDS "\"env\":{}}",
		  false },
		{ "token is null",
		  "{\"accessToken\":null,\"controlToken\":\"c\"," OFFSET RANDOM HOST MACHINE
			  BOOT IDS "\"env\":{}}",
		  false },
		{ "an array", "[]", false },
		{ "nothing", "", false },
	};
	AUTO(session_done) struct session base = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(session_init(&base, "user", &err), 0);
	FOR_ROWS(row, rows) {
		AUTO(identity_done) struct identity id = { 0 };

		assert_int_equal(identity_parse(bytes_str(row->json), &base, &id, &err),
				 row->ok ? 0 : -1);
		if (row->ok)
			assert_string_equal(json_string_value(json_object_get(id.session.env,
									      "E2B_SANDBOX_ID")),
					    "i0abc");
	}
}

/* --- the steps ---------------------------------------------------------------------------- */

static char effects_done[64]; /* their initials, in order */
static char effect_fails;     /* the initial of the one that does, or 0 */

static int effect(char initial, struct err *err)
{
	char one[2] = { initial, '\0' };
	size_t n = strlen(effects_done);

	snprintf(effects_done + n, sizeof(effects_done) - n, "%s", one);
	return initial == effect_fails ? err_set(err, ERR_INTERNAL, 0, "no") : 0;
}

static int fake_clock(int64_t offset_ns, struct err *err)
{
	assert_true(offset_ns == 1700000000000000000);
	return effect('c', err);
}

static int fake_entropy(struct bytes entropy, struct err *err)
{
	assert_int_equal(entropy.len, 64);
	assert_int_equal(entropy.ptr[63], 63);
	return effect('e', err);
}

static int fake_hostname(const char *name, struct err *err)
{
	assert_string_equal(name, "i0abc");
	return effect('h', err);
}

static int fake_boot_id(const char *file, struct err *err)
{
	(void)file;
	return effect('b', err);
}

static const struct identity_effects fakes = { fake_clock, fake_entropy, fake_hostname,
					       fake_boot_id };

struct guest {
	char root[64];
	struct identity_place place;
	struct session session;
	struct identity id;
};

static const char *in_root(const struct guest *g, const char *path)
{
	static char full[256];

	snprintf(full, sizeof(full), "%s%s", g->root, path);
	return full;
}

static void make_dir(const struct guest *g, const char *path)
{
	assert_int_equal(mkdir(in_root(g, path), 0755), 0);
}

static void open_guest(struct guest *g)
{
	static const char *const dirs[] = { "/etc", "/run", "/var", "/var/lib", "/var/lib/dbus" };
	struct err err = { 0 };

	*g = (struct guest){ .root = "/tmp/hotcell-identity-XXXXXX" };
	assert_non_null(mkdtemp(g->root));
	g->place = (struct identity_place){ g->root, &fakes };
	for (size_t i = 0; i < COUNT(dirs); i++)
		make_dir(g, dirs[i]);
	assert_int_equal(identity_prepare(&g->place, &err), 0);
	assert_int_equal(session_init(&g->session, "user", &err), 0);
	assert_int_equal(identity_parse(BYTES_LIT(MESSAGE), &g->session, &g->id, &err), 0);
	effects_done[0] = '\0';
	effect_fails = 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void close_guest(struct guest *g)
{
	session_done(&g->session);
	identity_done(&g->id);
	assert_int_equal(nftw(g->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void expect_file(const struct guest *g, const char *path, const char *want)
{
	AUTO(buf_done) struct buf got = BUF_MAX(4096);
	struct err err = { 0 };

	assert_int_equal(file_read(in_root(g, path), &got, &err), 0);
	if (!bytes_eq(buf_view(&got), bytes_str(want)))
		fail_msg("%s holds %.*s", path, (int)got.len, (const char *)got.ptr);
}

static void write_file(const struct guest *g, const char *path, const char *text)
{
	struct err err = { 0 };

	assert_int_equal(file_settle(in_root(g, path), bytes_str(text), 0644, &err), 0);
}

static void everything_is_set_and_the_session_is_new(void **state)
{
	struct guest g;
	struct err err = { 0 };

	(void)state;
	open_guest(&g);
	write_file(&g, "/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 old\n10.0.0.1 mine\n");
	write_file(&g, "/var/lib/dbus/machine-id", "old\n");
	assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
	assert_string_equal(effects_done, "cehb");
	expect_file(&g, "/etc/hostname", "i0abc\n");
	expect_file(&g, "/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 i0abc\n10.0.0.1 mine\n");
	expect_file(&g, "/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
	expect_file(&g, "/var/lib/dbus/machine-id", "0123456789abcdef0123456789abcdef\n");
	expect_file(&g, "/run/hotcell/boot_id", "01234567-89ab-cdef-0123-456789abcdef\n");
	expect_file(&g, "/run/hotcell/generation", "1\n");
	expect_file(&g, "/run/e2b/.E2B_SANDBOX", "true");
	expect_file(&g, "/run/e2b/.E2B_SANDBOX_ID", "i0abc");
	expect_file(&g, "/run/e2b/.E2B_TEMPLATE_ID", "base");
	assert_string_equal(g.session.access_token, "secret");
	assert_string_equal(g.session.control_token, "control");
	assert_string_equal(json_string_value(json_object_get(g.session.env, "A")), "1");
	assert_string_equal(json_string_value(json_object_get(g.session.env, "E2B_TEMPLATE_ID")),
			    "base");
	close_guest(&g);
}

/* A step is made to fail by a directory in the place of the file it writes, or by its effect. */
static void the_first_step_that_fails_is_the_last(void **state)
{
	static const struct {
		const char *name;
		char effect;
		const char *block; /* a path that becomes a directory */
		const char *done;  /* effects that were tried */
		const char *why;   /* how the message begins */
	} rows[] = {
		{ "clock", 'c', NULL, "c", "clock: " },
		{ "entropy", 'e', NULL, "ce", "entropy: " },
		{ "hostname", 'h', NULL, "ceh", "hostname: " },
		{ "hostname file", 0, "/etc/hostname", "ceh", "hostname: " },
		{ "hosts", 0, "/etc/hosts", "ceh", "hosts: " },
		{ "machine id", 0, "/etc/machine-id", "ceh", "machine id: " },
		{ "boot id file", 0, "/run/hotcell/boot_id", "ceh", "boot id: " },
		{ "boot id", 'b', NULL, "cehb", "boot id: " },
		{ "marker", 0, "/run/e2b/.E2B_TEMPLATE_ID", "cehb", "markers: " },
		{ "generation", 0, "/run/hotcell/generation", "cehb", "generation: " },
		{ "session", 0, "/run/hotcell/session", "cehb", "session: " },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct guest g;
		struct err err = { 0 };

		open_guest(&g);
		effect_fails = row->effect;
		if (row->block) {
			(void)unlink(in_root(&g, row->block));
			make_dir(&g, row->block);
		}
		assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), -1);
		assert_string_equal(effects_done, row->done);
		assert_true(bytes_starts(bytes_str(err.msg), bytes_str(row->why)));
		assert_string_equal(g.session.access_token, "");
		assert_string_equal(g.session.control_token, "");
		assert_null(json_object_get(g.session.env, "A"));
		close_guest(&g);
	}
}

#define RESUME(token) "{\"resume\":true," OFFSET RANDOM "\"controlToken\":\"" token "\"}"

/* It was paused and goes on: the time is new, and nothing of who it is. */
static void one_that_resumes_stays_who_it_is(void **state)
{
	struct guest g;
	struct err err = { 0 };

	(void)state;
	open_guest(&g);
	assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
	write_file(&g, "/etc/hostname", "renamed-by-its-user\n");
	identity_done(&g.id);
	effects_done[0] = '\0';
	assert_int_equal(identity_parse(BYTES_LIT(RESUME("control")), &g.session, &g.id, &err), 0);
	assert_true(g.id.resume && !g.id.in_place);
	assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
	assert_string_equal(effects_done, "ce");
	expect_file(&g, "/etc/hostname", "renamed-by-its-user\n");
	expect_file(&g, "/run/hotcell/generation", "2\n");
	assert_string_equal(g.session.access_token, "secret");
	assert_string_equal(g.session.control_token, "control");
	assert_string_equal(json_string_value(json_object_get(g.session.env, "A")), "1");
	close_guest(&g);
}

/* What servers in the guest go by: were their clients left behind? */
static void partings_are_counted_where_connections_end(void **state)
{
	static const struct {
		const char *name, *json, *count;
	} rows[] = {
		{ "a create", MESSAGE, "0\n" },
		{ "a resume", RESUME("control"), "1\n" },
		{ "a snapshot was taken of it",
		  "{\"resume\":true,\"inPlace\":true," OFFSET RANDOM
		  "\"controlToken\":\"control\"}",
		  "0\n" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct guest g;
		struct err err = { 0 };

		open_guest(&g);
		assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
		expect_file(&g, "/run/hotcell/partings", "0\n");
		identity_done(&g.id);
		assert_int_equal(identity_parse(bytes_str(row->json), &g.session, &g.id, &err), 0);
		assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
		expect_file(&g, "/run/hotcell/partings", row->count);
		identity_done(&g.id);
		assert_int_equal(identity_parse(BYTES_LIT(MESSAGE), &g.session, &g.id, &err), 0);
		g.id.left_behind = true; /* a copy */
		assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
		expect_file(&g, "/run/hotcell/partings", row->count[0] == '0' ? "1\n" : "2\n");
		close_guest(&g);
	}
}

static void only_its_host_lets_it_resume(void **state)
{
	static const struct {
		const char *name, *json;
		bool nameless;
		enum err_code code;
	} rows[] = {
		{ "its host", RESUME("control"), false, ERR_NONE },
		{ "another", RESUME("contro1"), false, ERR_DENIED },
		{ "nobody", RESUME(""), false, ERR_DENIED },
		{ "no token", "{\"resume\":true," OFFSET RANDOM "\"a\":1}", false, ERR_INVALID },
		{ "no entropy", "{\"resume\":true," OFFSET "\"controlToken\":\"control\"}", false,
		  ERR_INVALID },
		{ "not a bool", "{\"resume\":1," OFFSET RANDOM "\"controlToken\":\"control\"}",
		  false, ERR_INVALID },
		{ "one that is nobody yet", RESUME(""), true, ERR_DENIED },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(identity_done) struct identity id = { 0 };
		AUTO(session_done) struct session base = { 0 };
		struct err err = { 0 };

		assert_int_equal(session_init(&base, "user", &err), 0);
		if (!row->nameless)
			snprintf(base.control_token, sizeof(base.control_token), "control");
		(void)!identity_parse(bytes_str(row->json), &base, &id, &err);
		assert_int_equal(err.code, row->code);
	}
}

static ino_t inode_of(const struct guest *g, const char *path)
{
	struct stat st;

	assert_int_equal(stat(in_root(g, path), &st), 0);
	return st.st_ino;
}

static void the_same_identity_again_writes_only_the_generation(void **state)
{
	struct guest g;
	struct err err = { 0 };
	ino_t hosts, boot, generation;

	(void)state;
	open_guest(&g);
	assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
	hosts = inode_of(&g, "/etc/hosts");
	boot = inode_of(&g, "/run/hotcell/boot_id");
	generation = inode_of(&g, "/run/hotcell/generation");
	identity_done(&g.id);
	assert_int_equal(identity_parse(BYTES_LIT(MESSAGE), &g.session, &g.id, &err), 0);
	assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
	expect_file(&g, "/run/hotcell/generation", "2\n");
	assert_true(inode_of(&g, "/etc/hosts") == hosts); /* not even replaced by its like */
	assert_true(inode_of(&g, "/run/hotcell/boot_id") == boot);          /* it may be mounted */
	assert_true(inode_of(&g, "/run/hotcell/generation") == generation); /* or mapped */
	close_guest(&g);
}

/* Creating and renaming files is what an identity has no time for. */
static void files_that_were_prepared_are_overwritten_in_place(void **state)
{
	static const char *const files[] = {
		"/run/e2b/.E2B_SANDBOX",   "/run/e2b/.E2B_SANDBOX_ID", "/run/e2b/.E2B_TEMPLATE_ID",
		"/run/hotcell/generation", "/run/hotcell/session",     "/run/hotcell/partings",
	};
	ino_t before[COUNT(files)];
	struct guest g;
	struct err err = { 0 };

	(void)state;
	open_guest(&g);
	for (size_t i = 0; i < COUNT(files); i++)
		before[i] = inode_of(&g, files[i]);
	assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
	assert_int_equal(identity_prepare(&g.place, &err), 0); /* the agent starts again */
	for (size_t i = 0; i < COUNT(files); i++)
		assert_true(inode_of(&g, files[i]) == before[i]);
	expect_file(&g, "/run/e2b/.E2B_SANDBOX_ID", "i0abc");
	expect_file(&g, "/run/hotcell/generation", "1\n");
	close_guest(&g);
}

static void a_generation_nobody_can_read_starts_over(void **state)
{
	struct guest g;
	struct err err = { 0 };

	(void)state;
	open_guest(&g);
	write_file(&g, "/run/hotcell/generation", "9x\n");
	assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
	expect_file(&g, "/run/hotcell/generation", "1\n");
	close_guest(&g);
}

static void hosts_keep_what_is_not_ours(void **state)
{
	static const struct {
		const char *name, *old, *want;
	} rows[] = {
		{ "empty", "", "127.0.1.1 me\n" },
		{ "added at the end", "127.0.0.1 localhost\n",
		  "127.0.0.1 localhost\n127.0.1.1 me\n" },
		{ "no newline", "127.0.0.1 localhost", "127.0.0.1 localhost\n127.0.1.1 me\n" },
		{ "replaced", "127.0.1.1\told old2\n::1 x\n", "127.0.1.1 me\n::1 x\n" },
		{ "twice becomes once", "127.0.1.1 a\n127.0.1.1 b\n", "127.0.1.1 me\n" },
		{ "not a longer address", "127.0.1.10 a\n", "127.0.1.10 a\n127.0.1.1 me\n" },
		{ "comments", "# 127.0.1.1 a\n", "# 127.0.1.1 a\n127.0.1.1 me\n" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(256);
		struct err err = { 0 };

		assert_int_equal(identity_hosts(bytes_str(row->old), "me", &out, &err), 0);
		assert_true(bytes_eq(buf_view(&out), bytes_str(row->want)));
	}
}

/* --- the session after a restart ---------------------------------------------------------- */

static void a_server_that_starts_again_still_asks_for_its_token(void **state)
{
	AUTO(session_done) struct session again = { 0 };
	char path[IDENTITY_PATH_MAX];
	struct guest g;
	struct err err = { 0 };
	struct stat st;

	(void)state;
	open_guest(&g);
	identity_session_path(&g.place, path);
	assert_int_equal(session_init(&again, "user", &err), 0);
	assert_int_equal(session_load(&again, path, &err), 0);
	assert_string_equal(again.control_token, ""); /* no identity yet: still open */
	assert_int_equal(identity_assume(&g.id, &g.place, &g.session, &err), 0);
	assert_int_equal(session_load(&again, path, &err), 0);
	assert_string_equal(again.access_token, "secret");
	assert_string_equal(again.control_token, "control");
	assert_string_equal(again.default_user, "user");
	assert_true(json_equal(again.env, g.session.env));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close_guest(&g);
}

static void a_lost_session_opens_nothing(void **state)
{
	static const struct {
		const char *name, *text;
	} rows[] = {
		{ "empty", "" },
		{ "cut off", "{\"accessToken\":\"a\",\"contr" },
		{ "no tokens", "{\"sandboxId\":\"a\",\"templateId\":\"b\",\"env\":{}}" },
		{ "empty control token",
		  "{\"sandboxId\":\"a\",\"templateId\":\"b\",\"env\":{},\"accessToken\":\"\","
		  "\"controlToken\":\"\"}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(session_done) struct session s = { 0 };
		char path[IDENTITY_PATH_MAX];
		struct guest g;
		struct err err = { 0 };

		open_guest(&g);
		identity_session_path(&g.place, path);
		write_file(&g, "/run/hotcell/session", row->text);
		assert_int_equal(session_init(&s, "user", &err), 0);
		assert_int_equal(session_load(&s, path, &err), 0);
		assert_int_equal(strlen(s.access_token), 64);
		assert_int_equal(strlen(s.control_token), 64);
		assert_string_not_equal(s.access_token, s.control_token);
		close_guest(&g);
	}
}

static void a_rehearsal_says_so(void **state)
{
	static const struct {
		const char *name, *json;
		int rc;
		bool frozen;
	} rows[] = {
		{ "nothing said", MESSAGE, 0, false },
		{ "yes", "{\"stayFrozen\":true," OFFSET RANDOM HOST MACHINE BOOT IDS ENV TOKENS "}",
		  0, true },
		{ "a word",
		  "{\"stayFrozen\":\"yes\"," OFFSET RANDOM HOST MACHINE BOOT IDS ENV TOKENS "}", -1,
		  false },
	};
	AUTO(session_done) struct session base = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(session_init(&base, "user", &err), 0);
	FOR_ROWS(row, rows) {
		AUTO(identity_done) struct identity id = { 0 };

		assert_int_equal(identity_parse(bytes_str(row->json), &base, &id, &err), row->rc);
		if (row->rc == 0)
			assert_int_equal(id.stay_frozen, row->frozen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_whole_or_refused),
		cmocka_unit_test(a_rehearsal_says_so),
		cmocka_unit_test(everything_is_set_and_the_session_is_new),
		cmocka_unit_test(the_first_step_that_fails_is_the_last),
		cmocka_unit_test(one_that_resumes_stays_who_it_is),
		cmocka_unit_test(partings_are_counted_where_connections_end),
		cmocka_unit_test(only_its_host_lets_it_resume),
		cmocka_unit_test(the_same_identity_again_writes_only_the_generation),
		cmocka_unit_test(files_that_were_prepared_are_overwritten_in_place),
		cmocka_unit_test(a_generation_nobody_can_read_starts_over),
		cmocka_unit_test(hosts_keep_what_is_not_ours),
		cmocka_unit_test(a_server_that_starts_again_still_asks_for_its_token),
		cmocka_unit_test(a_lost_session_opens_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
