/* language.c - see language.h. */
#include "interp/language.h"

#include "interp/json_write.h"

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

/* A literal between double quotes: \uXXXX and \n are the same in JSON, Java, JavaScript and, but
 * for what is beyond U+FFFF, in Python and R. */
static int add_literal(const json_t *text, struct buf *out, size_t flags, struct err *err)
{
	return json_write(text, JSON_ENCODE_ANY | flags, out, err);
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

/* All of them at once: the JSON of them, as a literal. */
static int add_parsed(const char *before, const json_t *v, const char *after, struct buf *out,
		      struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(out->max);
	AUTO(json_decrefp) json_t *literal = NULL;

	if (json_write(v, JSON_ENSURE_ASCII, &text, err) < 0)
		return -1;
	literal = json_text(buf_view(&text));
	if (buf_add(out, bytes_str(before), err) < 0 ||
	    add_literal(literal, out, JSON_ENSURE_ASCII, err) < 0)
		return -1;
	return buf_add(out, bytes_str(after), err);
}

/* What no variable of a process can be called would be refused with all the others. */
static json_t *only_possible(const json_t *env)
{
	json_t *all = json_object(), *value;
	const char *name;

	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		if (*name && !strchr(name, '='))
			json_object_set(all, name, value);
	}
	return all;
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
	AUTO(json_decrefp) json_t *possible = only_possible(env);

	if (json_object_size(possible) == 0)
		return 0;
	if (strcmp(language, "python") == 0)
		return add_parsed("__import__('os').environ.update(__import__('json').loads(",
				  possible, "))\n", out, err);
	if (is_js(language))
		return add_parsed("Object.assign(process.env, JSON.parse(", possible, "))\n", out,
				  err);
	return set_each(language, possible, out, err);
}

static int unset_each(const char *language, const json_t *names, struct buf *out, struct err *err)
{
	const bool r = strcmp(language, "r") == 0, java = strcmp(language, "java") == 0;
	json_t *each;
	size_t i;
	int rc = 0;

	json_array_foreach(names, i, each)
	{
		const char *name = json_string_value(each);

		if (rc < 0 || !name_ok(name))
			continue;
		if (r)
			rc = buf_printf(out, err, "Sys.unsetenv('%s')\n", name);
		else if (java)
			rc = buf_printf(out, err, "System.clearProperty(\"%s\");\n", name);
		else if (strcmp(language, "bash") == 0)
			rc = buf_printf(out, err, "unset %s\n", name);
	}
	return rc;
}

static int unset(const char *language, const json_t *names, struct buf *out, struct err *err)
{
	if (json_array_size(names) == 0)
		return 0;
	if (strcmp(language, "python") == 0)
		return add_parsed("list(map(lambda n: __import__('os').environ.pop(n, None), "
				  "__import__('json').loads(",
				  names, ")))\n", out, err);
	if (is_js(language))
		return add_parsed("JSON.parse(", names, ").forEach((n) => delete process.env[n])\n",
				  out, err);
	return unset_each(language, names, out, err);
}

int language_reset_env(const char *language, const json_t *env, const json_t *before,
		       struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *again = json_object();
	AUTO(json_decrefp) json_t *gone = json_array();
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		json_t *was = json_object_get(before, name);

		if (was)
			json_object_set(again, name, was);
		else
			json_array_append_new(gone, json_string(name));
	}
	if (unset(language, gone, out, err) < 0)
		return -1;
	return language_set_env(language, again, out, err);
}

const char *language_warm(const char *language)
{
	return strcmp(language, "python") == 0 ? "get_ipython().kernel.hotcell_warm()\n"
					       : "1 + 1\n";
}

const char *language_own(const char *language)
{
	if (strcmp(language, "python") == 0)
		return "get_ipython().kernel.hotcell_own()\n";
	if (is_js(language))
		return "globalThis[Symbol.for('hotcell')].own()\n";
	if (strcmp(language, "bash") == 0)
		return "RANDOM=$SRANDOM\n";
	if (strcmp(language, "r") == 0)
		return "local({ f <- file('/dev/urandom', 'rb'); on.exit(close(f));"
		       " set.seed(sum(readBin(f, 'integer', 2, 2, signed = FALSE) * c(1, 32768))) "
		       "})\n";
	return "";
}

bool language_newline_apart(const char *language)
{
	return strcmp(language, "java") == 0;
}
