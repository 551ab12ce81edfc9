/* config.c - strict `key = value` lines checked against a table. */
/* #parses: a configuration file, /etc/passwd and /etc/group; from root */
#include "base/config.h"

#include <errno.h>
#include <fcntl.h>

#include "base/read_all.h"

static int set_number(const struct config_param *p, struct bytes text, struct config_value *v,
		      struct err *err)
{
	if (!bytes_to_u64(text, &v->number) || v->number < p->min || v->number > p->max)
		return err_set(err, ERR_INVALID, 0, "%s must be a number from %lu to %lu", p->name,
			       p->min, p->max);
	return 0;
}

static int set_flag(const struct config_param *p, struct bytes text, struct config_value *v,
		    struct err *err)
{
	v->number = bytes_eq(text, BYTES_LIT("yes"));
	if (!v->number && !bytes_eq(text, BYTES_LIT("no")))
		return err_set(err, ERR_INVALID, 0, "%s must be yes or no", p->name);
	return 0;
}

static int set_choice(const struct config_param *p, struct bytes text, struct config_value *v,
		      struct err *err)
{
	char all[128] = "";
	int n = 0;

	for (size_t i = 0; p->choices[i]; i++) {
		if (bytes_eq(text, bytes_str(p->choices[i]))) {
			v->number = i;
			return 0;
		}
		if (n >= 0 && (size_t)n < sizeof(all))
			n += snprintf(all + n, sizeof(all) - (size_t)n, "%s%s", i ? ", " : "",
				      p->choices[i]);
	}
	return err_set(err, ERR_INVALID, 0, "%s must be one of %s", p->name, all);
}

/* The third field of the line that begins with `name`, in passwd's format or group's. Read here
 * and not through NSS: a daemon's account is a local one, and a static program has no NSS. */
static bool find_account(const char *path, struct bytes name, uint64_t *ret)
{
	char line[1024];
	bool found = false;
	FILE *f = fopen(path, "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		struct bytes rest = bytes_str(line), user, password, id;

		found = bytes_cut(&rest, ':', &user) && bytes_eq(user, name) &&
			bytes_cut(&rest, ':', &password) && bytes_cut(&rest, ':', &id) &&
			bytes_to_u64(id, ret);
	}
	if (f)
		fclose(f);
	return found;
}

static int set_account(const struct config_param *p, struct bytes text, struct config_value *v,
		       struct err *err)
{
	const char *path = p->type == CONFIG_USER ? "/etc/passwd" : "/etc/group";

	if (!bytes_to_u64(text, &v->number) && !find_account(path, text, &v->number))
		return err_set(err, ERR_INVALID, 0, "%s: no `%s` in %s", p->name, v->text, path);
	if (v->number >= UINT32_MAX)
		return err_set(err, ERR_INVALID, 0, "%s is too large", p->name);
	return 0;
}

static int set_value(const struct config_param *p, struct bytes text, struct config_value *v,
		     struct err *err)
{
	if (!bytes_to_str(text, v->text, sizeof(v->text)))
		return err_set(err, ERR_INVALID, 0, "%s is longer than %d bytes", p->name,
			       CONFIG_VALUE_MAX - 1);
	switch (p->type) {
	case CONFIG_TEXT:
		return 0;
	case CONFIG_PATH:
		if (text.len > 0 && text.ptr[0] != '/')
			return err_set(err, ERR_INVALID, 0, "%s must be an absolute path", p->name);
		return 0;
	case CONFIG_NUMBER:
		return set_number(p, text, v, err);
	case CONFIG_FLAG:
		return set_flag(p, text, v, err);
	case CONFIG_CHOICE:
		return set_choice(p, text, v, err);
	case CONFIG_USER:
	case CONFIG_GROUP:
		return set_account(p, text, v, err);
	}
	abort();
}

static int parse_line(const struct config_param *table, size_t n, struct bytes line,
		      struct config_value *ret, struct err *err)
{
	struct bytes key;
	size_t i;

	line = bytes_trim(line);
	if (line.len == 0 || line.ptr[0] == '#')
		return 0;
	if (!bytes_cut(&line, '=', &key))
		return err_set(err, ERR_INVALID, 0, "expected `key = value`");
	key = bytes_trim(key);
	for (i = 0; i < n; i++)
		if (bytes_eq(key, bytes_str(table[i].name)))
			break;
	if (i == n)
		return err_set(err, ERR_INVALID, 0, "unknown key `%.*s`; --help has them all",
			       (int)bytes_head(key, 64).len, (const char *)key.ptr);
	if (ret[i].set)
		return err_set(err, ERR_INVALID, 0, "%s is given twice", table[i].name);
	ret[i].set = true;
	return set_value(&table[i], bytes_trim(line), &ret[i], err);
}

int config_parse(const struct config_param *table, size_t n, struct bytes text, const char *file,
		 struct config_value *ret, struct err *err)
{
	unsigned int number = 0;

	for (size_t i = 0; i < n; i++) {
		ret[i] = (struct config_value){ 0 };
		if (set_value(&table[i], bytes_str(table[i].fallback), &ret[i], err) < 0)
			return err_wrap(err, "default");
	}
	while (text.len > 0) {
		struct bytes line;

		number++;
		if (!bytes_cut(&text, '\n', &line)) {
			line = text;
			text = (struct bytes){ 0 };
		}
		if (parse_line(table, n, line, ret, err) < 0)
			return err_wrap(err, "%s:%u", file, number);
	}
	return 0;
}

int config_load(const struct config_param *table, size_t n, const char *path,
		struct config_value *ret, struct err *err)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO(buf_done) struct buf text = BUF_MAX(CONFIG_FILE_MAX);

	if (fd < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "open configuration %s", path);
	if (read_all(fd, &text, err) < 0)
		return err_wrap(err, "read configuration %s", path);
	return config_parse(table, n, buf_view(&text), path, ret, err);
}

static void print_range(const struct config_param *p, FILE *out)
{
	if (p->type == CONFIG_NUMBER)
		fprintf(out, " (%lu to %lu)", p->min, p->max);
	if (p->type == CONFIG_FLAG)
		fprintf(out, " (yes, no)");
	for (size_t i = 0; p->type == CONFIG_CHOICE && p->choices[i]; i++)
		fprintf(out, "%s%s%s", i ? ", " : " (", p->choices[i],
			p->choices[i + 1] ? "" : ")");
}

void config_print(const struct config_param *table, size_t n, FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "# %s", table[i].help);
		print_range(&table[i], out);
		fprintf(out, "\n%s = %s\n\n", table[i].name, table[i].fallback);
	}
}
