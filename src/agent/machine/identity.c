/* identity.c - the message, which is checked as a whole; then the steps, in order.
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
#include "wire/base64.h"

/* --- the message: all of it is checked before any of it is done ----------------------------- */

static int take_offset(const json_t *v, struct identity *ret, struct err *err)
{
	return json_want_int(v, "clockOffsetNs", INT64_MIN, INT64_MAX, &ret->clock_offset_ns, err);
}

static int take_entropy(const json_t *v, struct identity *ret, struct err *err)
{
	AUTO(buf_done) struct buf raw = BUF_MAX(IDENTITY_ENTROPY_BYTES);
	struct bytes text;

	if (json_want_string(v, "entropy", &text, err) < 0)
		return -1;
	if (base64_decode(text, &raw, err) < 0)
		return err_wrap(err, "entropy");
	if (raw.len != sizeof(ret->entropy))
		return err_set(err, ERR_INVALID, 0, "entropy has %zu bytes, not %d", raw.len,
			       IDENTITY_ENTROPY_BYTES);
	memcpy(ret->entropy, raw.ptr, raw.len);
	explicit_bzero(raw.ptr, raw.len);
	return 0;
}

static bool is_hex(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_machine_id(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++)
		if (!is_hex(b.ptr[i]))
			return false;
	return b.len == 32;
}

static bool is_uuid(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? b.ptr[i] != '-' : !is_hex(b.ptr[i]))
			return false;
	}
	return b.len == 36;
}

static bool is_hostname(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++) {
		uint8_t c = b.ptr[i];
		bool inner = i > 0 && i + 1 < b.len && (c == '-' || c == '.');

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      inner))
			return false;
	}
	return b.len > 0;
}

static int take_text(const json_t *v, const char *name, bool (*ok)(struct bytes), char *ret,
		     size_t size, struct err *err)
{
	struct bytes b;

	if (json_want_string(v, name, &b, err) < 0)
		return -1;
	if (!ok(b) || !bytes_to_str(b, ret, size))
		return err_set(err, ERR_INVALID, 0, "%s is malformed", name);
	return 0;
}

static int take_names(const json_t *v, struct identity *ret, struct err *err)
{
	if (take_text(v, "hostname", is_hostname, ret->hostname, sizeof(ret->hostname), err) < 0 ||
	    take_text(v, "machineId", is_machine_id, ret->machine_id, sizeof(ret->machine_id),
		      err) < 0)
		return -1;
	return take_text(v, "bootId", is_uuid, ret->boot_id, sizeof(ret->boot_id), err);
}

/* Whoever was never given a token is nobody yet, and cannot be that again. */
static int check_host(const json_t *v, const struct session *base, struct err *err)
{
	struct bytes token;

	if (json_want_string(v, "controlToken", &token, err) < 0)
		return -1;
	if (!base->control_token[0] || !bytes_eq_secret(token, bytes_str(base->control_token)))
		return err_set(err, ERR_DENIED, 0, "not the host of this sandbox");
	return 0;
}

static int take_rest(const json_t *v, const struct session *base, struct identity *ret,
		     struct err *err)
{
	if (json_may_bool(v, "resume", &ret->resume, err) < 0)
		return -1;
	if (ret->resume)
		return json_may_bool(v, "inPlace", &ret->in_place, err) < 0
			       ? -1
			       : check_host(v, base, err);
	if (take_names(v, ret, err) < 0 ||
	    json_may_bool(v, "stayFrozen", &ret->stay_frozen, err) < 0 ||
	    json_may_bool(v, "leftBehind", &ret->left_behind, err) < 0)
		return -1;
	return session_parse(v, base, &ret->session, err);
}

int identity_parse(struct bytes json, const struct session *base, struct identity *ret,
		   struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	*ret = (struct identity){ 0 };
	if (json_decode(json, SESSION_JSON_MAX, SESSION_JSON_DEPTH, &v, err) < 0 ||
	    take_offset(v, ret, err) < 0 || take_entropy(v, ret, err) < 0 ||
	    take_rest(v, base, ret, err) < 0) {
		identity_done(ret);
		return err_wrap(err, "identity");
	}
	return 0;
}

void identity_done(struct identity *id)
{
	session_done(&id->session);
	explicit_bzero(id->entropy, sizeof(id->entropy));
}

/* --- the steps ------------------------------------------------------------------------------ */

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

/* A number in a file, one more than it was. Whoever keeps random state may map the file and
 * compare; therefore it is written in place, and it never gets shorter. */
static int count_up(const struct assume *a, const char *file, struct err *err)
{
	AUTO(buf_done) struct buf old = BUF_MAX(64);
	char path[IDENTITY_PATH_MAX], line[32];
	struct bytes rest, number;
	uint64_t n = 0;

	if (path_in(a, file, path, err) < 0)
		return -1;
	if (file_read_if_any(path, &old, err) < 0)
		return -1;
	rest = buf_view(&old);
	if (bytes_cut(&rest, '\n', &number))
		(void)bytes_to_u64(number, &n); /* nonsense counts as none */
	snprintf(line, sizeof(line), "%" PRIu64 "\n", n + 1);
	return file_overwrite(path, bytes_str(line), 0644, err);
}

static int step_generation(const struct assume *a, struct err *err)
{
	return count_up(a, "/run/hotcell/generation", err);
}

/* Servers of the guest's learn by it that clients did not leave them, but were left behind. */
static int step_partings(const struct assume *a, struct err *err)
{
	return identity_parts(a->id) ? count_up(a, "/run/hotcell/partings", err) : 0;
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
	{ "partings", step_partings, true },
	{ "session", step_session, false },
};

bool identity_parts(const struct identity *id)
{
	return (id->resume && !id->in_place) || id->left_behind;
}

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
		{ "/run/hotcell/partings", "0\n", 0644 },
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
