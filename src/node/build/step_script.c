/* step_script.c - scripts for bash, and what they print. */
#include "node/build/step_script.h"

/* --- text into a script ------------------------------------------------------------------- */

int shell_quote(struct bytes text, struct buf *out, struct err *err)
{
	struct bytes piece;

	if (buf_add(out, BYTES_LIT("'"), err) < 0)
		return -1;
	while (bytes_cut(&text, '\'', &piece))
		if (buf_add(out, piece, err) < 0 || buf_add(out, BYTES_LIT("'\\''"), err) < 0)
			return -1;
	if (buf_add(out, text, err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT("'"), err);
}

/* NAME='text' and a new line. */
static int set(struct buf *out, const char *name, struct bytes text, struct err *err)
{
	if (buf_printf(out, err, "%s=", name) < 0 || shell_quote(text, out, err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT("\n"), err);
}

/* In double quotes, where variables are read and nothing is run. */
static int quote_value(struct bytes text, struct buf *out, struct err *err)
{
	if (buf_add(out, BYTES_LIT("\""), err) < 0)
		return -1;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.ptr[i];
		bool runs = c == '$' && i + 1 < text.len && text.ptr[i + 1] == '(';

		if ((c == '\\' || c == '"' || c == '`' || runs) &&
		    buf_add(out, BYTES_LIT("\\"), err) < 0)
			return -1;
		if (buf_add(out, (struct bytes){ text.ptr + i, 1 }, err) < 0)
			return -1;
	}
	return buf_add(out, BYTES_LIT("\""), err);
}

/* --- ENV ---------------------------------------------------------------------------------- */

/* One after the other: a value may use a name that stands before it. */
static int env_script(const struct recipe_step *s, struct buf *out, struct err *err)
{
	for (size_t i = 0; i + 1 < s->n; i += 2) {
		struct bytes name = recipe_arg(s, i);

		if (buf_printf(out, err, "export %.*s=", (int)name.len, name.ptr) < 0 ||
		    quote_value(recipe_arg(s, i + 1), out, err) < 0 ||
		    buf_printf(out, err, "\nprintf '%%s\\0' \"$%.*s\"\n", (int)name.len, name.ptr) <
			    0)
			return -1;
	}
	return 0;
}

static int env_leaves(const struct recipe_step *s, struct bytes printed, struct build_context *c,
		      struct err *err)
{
	struct bytes value;

	for (size_t i = 0; i + 1 < s->n; i += 2) {
		if (!bytes_cut(&printed, '\0', &value))
			return err_set(err, ERR_INVALID, 0, "a value is missing");
		if (build_context_set_env(c, recipe_arg(s, i), value, err) < 0)
			return -1;
	}
	return 0;
}

/* --- WORKDIR and USER --------------------------------------------------------------------- */

/* Of folders that are made on the way the whole new part is the user's, nothing above it. */
static const char workdir_script[] = "case $path in /*) ;; *) path=$from/$path ;; esac\n"
				     "new=\n"
				     "above=$path\n"
				     "while [ ! -d \"$above\" ]; do\n"
				     "\tnew=$above\n"
				     "\tabove=$(dirname -- \"$above\")\n"
				     "done\n"
				     "mkdir -p -- \"$path\"\n"
				     "[ -z \"$new\" ] || chown -R -- \"$owner:\" \"$new\"\n"
				     "cd -- \"$path\"\n"
				     "pwd\n";

static const char user_script[] =
	"id -u -- \"$name\" >/dev/null 2>&1 ||\n"
	"\tuseradd --create-home --shell /bin/bash -- \"$name\" >&2 ||\n"
	"\tadduser -D -s /bin/bash -- \"$name\" >&2\n"
	"if [ \"$sudo\" = true ] && [ -d /etc/sudoers.d ]; then\n"
	"\tprintf '%s ALL=(ALL:ALL) NOPASSWD: ALL\\n' \"$name\" >\"/etc/sudoers.d/$name\"\n"
	"\tchmod 0440 \"/etc/sudoers.d/$name\"\n"
	"fi\n"
	"printf '%s' \"$name\"\n";

static int workdir_text(const struct recipe_step *s, const struct build_context *c, struct buf *out,
			struct err *err)
{
	if (set(out, "path", recipe_arg(s, 0), err) < 0 ||
	    set(out, "from", bytes_str(c->workdir), err) < 0 ||
	    set(out, "owner", bytes_str(c->user), err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT(workdir_script), err);
}

static int user_text(const struct recipe_step *s, struct buf *out, struct err *err)
{
	struct build_context checked = { 0 }; /* a name that is none is refused before it is run */

	if (build_context_set_user(&checked, recipe_arg(s, 0), err) < 0 ||
	    set(out, "name", recipe_arg(s, 0), err) < 0 ||
	    set(out, "sudo", recipe_arg(s, 1), err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT(user_script), err);
}

/* --- COPY --------------------------------------------------------------------------------- */

/* Folders are merged as Docker does: what is there stays, files are replaced and not written
 * through, a link to a folder stands for the folder. What lies on the disk only until the end is
 * discarded, or it would stay in the layer of the step. */
static const char copy_script[] =
	"make() {\n" /* a folder; what of it is new is the owner's */
	"\tlocal new= above=$1\n"
	"\twhile [ ! -d \"$above\" ]; do\n"
	"\t\tnew=$above\n"
	"\t\tabove=$(dirname -- \"$above\")\n"
	"\tdone\n"
	"\tmkdir -p -- \"$1\"\n"
	"\t[ -z \"$new\" ] || chown -R -- \"$owner\" \"$new\"\n"
	"}\n"
	"dir=" STEP_COPY_DIR "\n"
	"discards() {\n" /* an image may have no mount(8); a device is named, or fstab is read */
	"\tmount -n -o \"remount,$1\" /dev/vda / >/dev/null 2>&1 || true\n"
	"}\n"
	"clear_up() {\n"
	"\trm -rf -- \"$dir\"\n"
	"\tsync || true\n" /* now its blocks are free, and the host is told */
	"\tdiscards nodiscard\n"
	"}\n"
	"trap clear_up EXIT\n"
	"discards discard\n"
	"mkdir -p -- \"$dir/tree\"\n"
	"tar -xf \"$dir/archive\" -C \"$dir/tree\" 2>\"$dir/said\" ||\n"
	"\ttar -xzf \"$dir/archive\" -C \"$dir/tree\" || { cat \"$dir/said\" >&2; exit 1; }\n"
	"rm -f -- \"$dir/archive\"\n"
	"if [ -z \"$work\" ]; then\n"
	"\twhile IFS=: read -r name _ _ _ _ home _; do\n"
	"\t\t[ \"$name\" != \"$user\" ] || work=$home\n"
	"\tdone </etc/passwd\n"
	"fi\n"
	"case $to in /*) ;; *) to=$work/$to ;; esac\n"
	"from=$dir/tree/$from\n"
	"from=${from%/}\n"
	"if [ ! -e \"$from\" ] && [ ! -L \"$from\" ]; then\n"
	"\techo \"source path does not exist: ${from#\"$dir/tree/\"}\" >&2\n"
	"\texit 1\n"
	"fi\n"
	"chown -hR -- \"$owner\" \"$from\"\n"
	"if [ -n \"$mode\" ] && [ ! -L \"$from\" ]; then chmod -R -- \"$mode\" \"$from\"; fi\n"
	"if [ -d \"$from\" ] && [ ! -L \"$from\" ]; then\n"
	"\tmake \"$to\"\n"
	"\tif tar --help 2>&1 | grep -q keep-directory-symlink; then\n"
	"\t\ttar -cf - -C \"$from\" . | tar -xpf - -C \"$to\" --keep-directory-symlink "
	"--no-overwrite-dir\n"
	"\telse\n"
	"\t\tcp -a -- \"$from/.\" \"$to/\"\n"
	"\tfi\n"
	"else\n"
	"\tcase $to in\n"
	"\t*/) make \"$to\" ;;\n"
	"\t*) make \"$(dirname -- \"$to\")\" ;;\n"
	"\tesac\n"
	"\tmv -f -- \"$from\" \"$to\"\n"
	"fi\n";

static bool is_pattern(struct bytes name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] == '*' || name.ptr[i] == '?' || name.ptr[i] == '[' ||
		    name.ptr[i] == '{' || name.ptr[i] == '\\')
			return true;
	return false;
}

/* What stands before the first part with a pattern: the client has packed what fits it. Parts that
 * lead out of what was packed are refused. */
static int source_of(struct bytes from, struct buf *out, struct err *err)
{
	struct bytes part;

	while (bytes_next(&from, '/', &part) && !is_pattern(part)) {
		if (bytes_eq(part, BYTES_LIT("..")))
			return err_set(err, ERR_INVALID, 0, "COPY from outside of its context");
		if (part.len == 0 || bytes_eq(part, BYTES_LIT(".")))
			continue;
		if ((out->len > 0 && buf_add(out, BYTES_LIT("/"), err) < 0) ||
		    buf_add(out, part, err) < 0)
			return -1;
	}
	return 0;
}

/* USER or USER:GROUP; of a user alone the group is the one of the same name. */
static int owner_of(const struct recipe_step *s, const struct build_context *c, struct buf *out,
		    struct err *err)
{
	struct bytes owner = recipe_arg(s, 2), user = owner, rest = owner;

	if (owner.len == 0)
		owner = user = rest = bytes_str(c->user);
	if (bytes_cut(&rest, ':', &user))
		return buf_add(out, owner, err);
	if (buf_add(out, owner, err) < 0 || buf_add(out, BYTES_LIT(":"), err) < 0)
		return -1;
	return buf_add(out, owner, err);
}

static int check_mode(struct bytes mode, struct err *err)
{
	for (size_t i = 0; i < mode.len; i++)
		if (mode.ptr[i] < '0' || mode.ptr[i] > '7')
			return err_set(err, ERR_INVALID, 0, "a mode that is not octal");
	return mode.len > 7 ? err_set(err, ERR_INVALID, 0, "a mode that is too long") : 0;
}

static int copy_text(const struct recipe_step *s, const struct build_context *c, struct buf *out,
		     struct err *err)
{
	AUTO(buf_done) struct buf from = BUF_MAX(RECIPE_BYTES_MAX);
	AUTO(buf_done) struct buf owner = BUF_MAX(RECIPE_BYTES_MAX);

	if (check_mode(recipe_arg(s, 3), err) < 0 || source_of(recipe_arg(s, 0), &from, err) < 0 ||
	    owner_of(s, c, &owner, err) < 0)
		return -1;
	if (set(out, "from", buf_view(&from), err) < 0 ||
	    set(out, "to", recipe_arg(s, 1), err) < 0 ||
	    set(out, "owner", buf_view(&owner), err) < 0 ||
	    set(out, "mode", recipe_arg(s, 3), err) < 0 ||
	    set(out, "user", bytes_str(c->user), err) < 0 ||
	    set(out, "work", bytes_str(c->workdir), err) < 0)
		return -1;
	return buf_add(out, BYTES_LIT(copy_script), err);
}

/* --- one of them -------------------------------------------------------------------------- */

struct bytes step_user(const struct recipe_step *s, const struct build_context *c)
{
	if (s->kind != RECIPE_RUN)
		return BYTES_LIT("root");
	return recipe_arg(s, 1).len > 0 ? recipe_arg(s, 1) : bytes_str(c->user);
}

/* Its programs are found, whatever an ENV has made of PATH. */
static const char script_head[] = "set -e -o pipefail\n"
				  "PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
				  "/sbin:/bin\n";

int step_script(const struct recipe_step *s, const struct build_context *c, struct buf *out,
		struct err *err)
{
	if (s->kind == RECIPE_RUN)
		return buf_add(out, recipe_arg(s, 0), err);
	if (s->kind == RECIPE_ENV)
		return env_script(s, out, err);
	if (buf_add(out, BYTES_LIT(script_head), err) < 0)
		return -1;
	if (s->kind == RECIPE_WORKDIR)
		return workdir_text(s, c, out, err);
	return s->kind == RECIPE_USER ? user_text(s, out, err) : copy_text(s, c, out, err);
}

int step_leaves(const struct recipe_step *s, struct bytes printed, struct build_context *c,
		struct err *err)
{
	if (s->kind == RECIPE_ENV)
		return env_leaves(s, printed, c, err);
	while (printed.len > 0 && printed.ptr[printed.len - 1] == '\n')
		printed.len--;
	if (s->kind == RECIPE_WORKDIR)
		return build_context_set_workdir(c, printed, err);
	return s->kind == RECIPE_USER ? build_context_set_user(c, printed, err) : 0;
}
