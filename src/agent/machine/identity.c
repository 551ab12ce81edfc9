/* identity.c - the steps, in order.
 *
 * The clock comes first, so that whatever is written after it bears the right time; entropy
 * second, so that nothing random is made before it; the session last, in memory, when nothing can
 * fail any more. Steps are safe to repeat: a sandbox that is told again finds its files right
 * and writes none of them.
 */
#include "agent/machine/identity.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "agent/machine/files_small.h"

struct assume { /* one run */
	const struct identity *id;
	const struct identity_place *place;
};

static int path_in(const struct assume *a, const char *path, char ret[static IDENTITY_PATH_MAX],
		   struct err *err)
{
	if (snprintf(ret, IDENTITY_PATH_MAX, "%s%s", a->place->root, path) >= IDENTITY_PATH_MAX)
		return err_set(err, ERR_INVALID, ENAMETOOLONG, "%s", path);
	return 0;
}

static int settle(const struct assume *a, const char *path, const char *text, struct err *err)
{
	char full[IDENTITY_PATH_MAX];

	if (path_in(a, path, full, err) < 0)
		return -1;
	return file_settle(full, bytes_str(text), 0644, err);
}

static int step_clock(const struct assume *a, struct err *err)
{
	return a->place->effects->set_clock(a->id->clock_offset_ns, err);
}

static int step_entropy(const struct assume *a, struct err *err)
{
	return a->place->effects->add_entropy(
		(struct bytes){ a->id->entropy, sizeof(a->id->entropy) }, err);
}

static int step_hostname(const struct assume *a, struct err *err)
{
	char line[IDENTITY_HOSTNAME_MAX + 2];

	snprintf(line, sizeof(line), "%s\n", a->id->hostname);
	if (a->place->effects->set_hostname(a->id->hostname, err) < 0)
		return -1;
	return settle(a, "/etc/hostname", line, err);
}

static int step_hosts(const struct assume *a, struct err *err)
{
	AUTO(buf_done) struct buf old = BUF_MAX(IDENTITY_HOSTS_MAX);
	AUTO(buf_done) struct buf fresh = BUF_MAX(IDENTITY_HOSTS_MAX + 4096);
	char path[IDENTITY_PATH_MAX];

	if (path_in(a, "/etc/hosts", path, err) < 0)
		return -1;
	if (file_read_if_any(path, &old, err) < 0)
		return -1;
	if (identity_hosts(buf_view(&old), a->id->hostname, &fresh, err) < 0)
		return -1;
	return file_settle(path, buf_view(&fresh), 0644, err);
}

/* Debian keeps a second copy for D-Bus, mostly as a link to the first. */
static bool has_own_dbus_id(const struct assume *a)
{
	char path[IDENTITY_PATH_MAX];
	struct stat st;
	struct err ignored;

	return path_in(a, "/var/lib/dbus/machine-id", path, &ignored) == 0 &&
	       lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int step_machine_id(const struct assume *a, struct err *err)
{
	char line[sizeof(a->id->machine_id) + 1];

	snprintf(line, sizeof(line), "%s\n", a->id->machine_id);
	if (settle(a, "/etc/machine-id", line, err) < 0)
		return -1;
	return has_own_dbus_id(a) ? settle(a, "/var/lib/dbus/machine-id", line, err) : 0;
}

/* Written in place: the file is what is mounted over the kernel's. */
static int step_boot_id(const struct assume *a, struct err *err)
{
	char line[sizeof(a->id->boot_id) + 1], path[IDENTITY_PATH_MAX];

	snprintf(line, sizeof(line), "%s\n", a->id->boot_id);
	if (path_in(a, "/run/hotcell/boot_id", path, err) < 0 ||
	    file_overwrite(path, bytes_str(line), 0644, err) < 0)
		return -1;
	return a->place->effects->show_boot_id(path, err);
}

static int step_markers(const struct assume *a, struct err *err)
{
	if (settle(a, "/run/e2b/.E2B_SANDBOX", "true", err) < 0 ||
	    settle(a, "/run/e2b/.E2B_SANDBOX_ID", a->id->session.sandbox_id, err) < 0)
		return -1;
	return settle(a, "/run/e2b/.E2B_TEMPLATE_ID", a->id->session.template_id, err);
}

/* A number that grows with each identity. Whoever keeps random state may map the file and compare;
 * therefore it is written in place, and it never gets shorter. */
static int step_generation(const struct assume *a, struct err *err)
{
	AUTO(buf_done) struct buf old = BUF_MAX(64);
	char path[IDENTITY_PATH_MAX], line[32];
	struct bytes rest, number;
	uint64_t n = 0;

	if (path_in(a, "/run/hotcell/generation", path, err) < 0)
		return -1;
	if (file_read_if_any(path, &old, err) < 0)
		return -1;
	rest = buf_view(&old);
	if (bytes_cut(&rest, '\n', &number))
		(void)bytes_to_u64(number, &n); /* nonsense counts as none */
	snprintf(line, sizeof(line), "%" PRIu64 "\n", n + 1);
	return file_overwrite(path, bytes_str(line), 0644, err);
}

static int step_session(const struct assume *a, struct err *err)
{
	char path[IDENTITY_PATH_MAX];

	identity_session_path(a->place, path);
	return session_save(&a->id->session, path, err);
}

/* Each with whether it is taken by one that resumes as itself. */
static const struct {
	const char *name;
	int (*run)(const struct assume *a, struct err *err);
	bool resuming;
} steps[] = {
	{ "clock", step_clock, true },
	{ "entropy", step_entropy, true },
	{ "hostname", step_hostname, false },
	{ "hosts", step_hosts, false },
	{ "machine id", step_machine_id, false },
	{ "boot id", step_boot_id, false },
	{ "markers", step_markers, false },
	{ "generation", step_generation, true }, /* what was saved may be resumed more than once */
	{ "session", step_session, false },
};

int identity_assume(struct identity *id, const struct identity_place *place,
		    struct session *session, struct err *err)
{
	const struct assume a = { id, place };

	for (size_t i = 0; i < COUNT(steps); i++)
		if ((steps[i].resuming || !id->resume) && steps[i].run(&a, err) < 0)
			return err_wrap(err, "%s", steps[i].name);
	if (id->resume)
		return 0;
	session_done(session);
	*session = id->session;
	id->session.env = NULL; /* moved */
	return 0;
}

void identity_session_path(const struct identity_place *place, char ret[static IDENTITY_PATH_MAX])
{
	snprintf(ret, IDENTITY_PATH_MAX, "%s/run/hotcell/session", place->root);
}

/* What the steps write, in every copy of this machine anew. Made before it is copied, it is only
 * overwritten: creating and renaming files is the most code that an identity would run. */
static int prepare_files(const struct assume *a, struct err *err)
{
	static const struct {
		const char *path, *text;
		mode_t mode;
	} files[] = {
		{ "/run/e2b/.E2B_SANDBOX", "true", 0644 },
		{ "/run/e2b/.E2B_SANDBOX_ID", "", 0644 },
		{ "/run/e2b/.E2B_TEMPLATE_ID", "", 0644 },
		{ "/run/hotcell/generation", "0\n", 0644 },
		{ "/run/hotcell/session", SESSION_NONE, 0600 },
	};
	char path[IDENTITY_PATH_MAX];

	for (size_t i = 0; i < COUNT(files); i++)
		if (path_in(a, files[i].path, path, err) < 0 ||
		    file_prepare(path, bytes_str(files[i].text), files[i].mode, err) < 0)
			return -1;
	(void)has_own_dbus_id(a); /* the kernel remembers the answer */
	return 0;
}

int identity_prepare(const struct identity_place *place, struct err *err)
{
	const struct assume a = { NULL, place };
	static const char *const dirs[] = { "/run/hotcell", "/run/e2b" };
	char path[IDENTITY_PATH_MAX];

	for (size_t i = 0; i < COUNT(dirs); i++)
		if (path_in(&a, dirs[i], path, err) < 0 || dir_settle(path, 0755, err) < 0)
			return -1;
	return prepare_files(&a, err);
}

static const char own_address[] = "127.0.1.1";

static bool is_own_line(struct bytes line)
{
	struct bytes own = BYTES_LIT(own_address), after = bytes_tail(line, own.len);

	return bytes_starts(line, own) &&
	       (after.len == 0 || after.ptr[0] == ' ' || after.ptr[0] == '\t');
}

int identity_hosts(struct bytes old, const char *hostname, struct buf *out, struct err *err)
{
	struct bytes line;
	bool done = false;

	while (bytes_next(&old, '\n', &line)) {
		if (is_own_line(line)) {
			if (!done && buf_printf(out, err, "%s %s\n", own_address, hostname) < 0)
				return -1;
			done = true;
		} else if (buf_add(out, line, err) < 0 || buf_add(out, BYTES_LIT("\n"), err) < 0) {
			return -1;
		}
	}
	return done ? 0 : buf_printf(out, err, "%s %s\n", own_address, hostname);
}
