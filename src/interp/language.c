/* language.c - see language.h. */
#include "interp/language.h"

static const struct {
	const char *alias, *name;
} aliases[] = { { "", "python" }, { "js", "javascript" }, { "ts", "typescript" } };

bool language_normalize(struct bytes name, char ret[static KERNEL_NAME_MAX + 1])
{
	name = bytes_trim(name);
	if (!bytes_to_str(name, ret, KERNEL_NAME_MAX + 1))
		return false;
	for (char *c = ret; *c; c++)
		*c = (char)byte_lower((uint8_t)*c);
	for (size_t i = 0; i < COUNT(aliases); i++)
		if (strcmp(ret, aliases[i].alias) == 0)
			snprintf(ret, KERNEL_NAME_MAX + 1, "%s", aliases[i].name);
	return true;
}

const char *language_kernel(const char *language)
{
	return strcmp(language, "typescript") == 0 ? "javascript" : language;
}

static bool name_ok(const char *name)
{
	if (!*name || (*name >= '0' && *name <= '9'))
		return false;
	for (; *name; name++) {
		uint8_t c = byte_lower((uint8_t)*name);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			return false;
	}
	return true;
}

struct sink {
	struct buf *out;
	struct err *err;
};

static int sink_add(const char *text, size_t n, void *sink)
{
	const struct sink *s = sink;

	return buf_add(s->out, (struct bytes){ (const uint8_t *)text, n }, s->err);
}

/* A literal between double quotes: \uXXXX and \n are the same in JSON, Java, JavaScript and, but
 * for what is beyond U+FFFF, in Python and R. */
static int add_literal(const json_t *text, struct buf *out, size_t flags, struct err *err)
{
	struct sink s = { out, err };

	return json_dump_callback(text, sink_add, &s, JSON_ENCODE_ANY | flags);
}

static int add_shell_literal(const json_t *text, struct buf *out, struct err *err)
{
	struct bytes rest = json_bytes(text), piece;

	if (buf_add(out, BYTES_LIT("'"), err) < 0)
		return -1;
	while (bytes_cut(&rest, '\'', &piece))
		if (buf_add(out, piece, err) < 0 || buf_add(out, BYTES_LIT("'\\''"), err) < 0)
			return -1;
	return buf_add(out, rest, err) < 0 ? -1 : buf_add(out, BYTES_LIT("'\n"), err);
}

/* All of them at once: the JSON of the object, as a literal. */
static int set_parsed(const char *before, const json_t *env, const char *after, struct buf *out,
		      struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(out->max);
	AUTO(json_decrefp) json_t *literal = NULL;
	struct sink s = { &text, err };

	if (json_dump_callback(env, sink_add, &s, JSON_ENSURE_ASCII) < 0)
		return -1;
	literal = json_text(buf_view(&text));
	if (!literal)
		return err_set(err, ERR_EXHAUSTED, 0, "out of memory");
	if (buf_add(out, bytes_str(before), err) < 0 ||
	    add_literal(literal, out, JSON_ENSURE_ASCII, err) < 0)
		return -1;
	return buf_add(out, bytes_str(after), err);
}

static int set_one(const char *before, const char *name, const char *between, const json_t *value,
		   const char *after, size_t flags, struct buf *out, struct err *err)
{
	if (buf_printf(out, err, "%s%s%s", before, name, between) < 0 ||
	    add_literal(value, out, flags, err) < 0)
		return -1;
	return buf_add(out, bytes_str(after), err);
}

static int set_each(const char *language, const json_t *env, struct buf *out, struct err *err)
{
	const char *name;
	json_t *value;
	int rc = 0;

	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		if (rc < 0 || !name_ok(name))
			continue;
		if (strcmp(language, "r") == 0)
			rc = set_one("Sys.setenv(\"", name, "\" = ", value, ")\n", 0, out, err);
		else if (strcmp(language, "java") == 0)
			rc = set_one("System.setProperty(\"", name, "\", ", value, ");\n",
				     JSON_ENSURE_ASCII, out, err);
		else if (strcmp(language, "bash") == 0)
			rc = buf_printf(out, err, "export %s=", name) < 0
				     ? -1
				     : add_shell_literal(value, out, err);
	}
	return rc;
}

static bool is_js(const char *language)
{
	return strcmp(language_kernel(language), "javascript") == 0;
}

int language_set_env(const char *language, const json_t *env, struct buf *out, struct err *err)
{
	if (json_object_size(env) == 0)
		return 0;
	if (strcmp(language, "python") == 0)
		return set_parsed("__import__('os').environ.update(__import__('json').loads(", env,
				  "))\n", out, err);
	if (is_js(language))
		return set_parsed("Object.assign(process.env, JSON.parse(", env, "))\n", out, err);
	return set_each(language, env, out, err);
}

static int unset_one(const char *language, const char *name, struct buf *out, struct err *err)
{
	if (strcmp(language, "python") == 0)
		return buf_printf(out, err, "__import__('os').environ.pop('%s', None)\n", name);
	if (is_js(language))
		return buf_printf(out, err, "delete process.env['%s']\n", name);
	if (strcmp(language, "r") == 0)
		return buf_printf(out, err, "Sys.unsetenv('%s')\n", name);
	if (strcmp(language, "java") == 0)
		return buf_printf(out, err, "System.clearProperty(\"%s\");\n", name);
	if (strcmp(language, "bash") == 0)
		return buf_printf(out, err, "unset %s\n", name);
	return 0;
}

int language_reset_env(const char *language, const json_t *env, const json_t *before,
		       struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *again = json_object();
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		json_t *was = json_object_get(before, name);

		if (was)
			json_object_set(again, name, was);
		else if (name_ok(name) && unset_one(language, name, out, err) < 0)
			return -1;
	}
	return language_set_env(language, again, out, err);
}

const char *language_own(const char *language)
{
	if (strcmp(language, "python") == 0)
		return "get_ipython().kernel.hotcell_own()\n";
	if (is_js(language))
		return "globalThis[Symbol.for('hotcell')].own()\n";
	return "";
}

bool language_newline_apart(const char *language)
{
	return strcmp(language, "java") == 0;
}
