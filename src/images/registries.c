/* registries.c - see registries.h. */
#include "images/registries.h"

#include <errno.h>

#include "wire/base64.h"
#include "wire/json.h"

enum { CREDENTIALS_DEPTH = 2, CREDENTIAL_MAX = 16 * 1024 };

/* A word of a setting: FROM=TO. */
struct pair {
	struct bytes from, to;
};

/* HOST[:PORT][/PATH]: of characters that no quoting could get wrong. */
static bool place_ok(struct bytes place)
{
	char host[IMAGE_HOST_MAX + 1];
	struct bytes rest = place, first = place;

	if (bytes_cut(&rest, '/', &first) && rest.len == 0)
		return false;
	for (size_t i = 0; i < place.len; i++) {
		uint8_t c = byte_lower(place.ptr[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !strchr("./:_-[]", c))
			return false;
	}
	return image_host_normal(first, host);
}

static bool next_pair(struct bytes *rest, struct pair *ret)
{
	struct bytes word;

	while (bytes_next(rest, ' ', &word)) {
		word = bytes_trim(word);
		if (word.len == 0)
			continue;
		ret->to = word;
		if (!bytes_cut(&ret->to, '=', &ret->from))
			ret->from = (struct bytes){ 0 };
		return true;
	}
	return false;
}

static bool is_insecure(const struct config_value *set, struct bytes place)
{
	struct bytes rest = bytes_str(set[SET_INSECURE].text), host = place, word;

	(void)bytes_cut(&place, '/', &host);
	while (bytes_next(&rest, ' ', &word))
		if (bytes_eq_nocase(bytes_trim(word), host))
			return true;
	return false;
}

static int add_line(struct buf *out, const char *key, struct bytes value, struct err *err)
{
	return buf_printf(out, err, "%s = \"%.*s\"\n", key, (int)value.len,
			  (const char *)value.ptr);
}

static int add_place(struct buf *out, const struct config_value *set, struct bytes place,
		     struct err *err)
{
	if (add_line(out, "location", place, err) < 0)
		return -1;
	return is_insecure(set, place) ? buf_printf(out, err, "insecure = true\n") : 0;
}

static int add_mirrors(struct buf *out, const struct config_value *set, struct bytes of,
		       struct err *err)
{
	struct bytes rest = bytes_str(set[SET_MIRRORS].text);
	struct pair p;

	while (next_pair(&rest, &p))
		if (bytes_eq_nocase(p.from, of) &&
		    (buf_printf(out, err, "[[registry.mirror]]\n") < 0 ||
		     add_place(out, set, p.to, err) < 0))
			return -1;
	return 0;
}

static int add_registry(struct buf *out, const struct config_value *set, struct bytes from,
			struct bytes to, struct err *err)
{
	if (buf_printf(out, err, "[[registry]]\n") < 0 || add_line(out, "prefix", from, err) < 0 ||
	    add_place(out, set, to, err) < 0)
		return -1;
	return add_mirrors(out, set, from, err);
}

/* Is it the left side of a word that stands before `end`? */
static bool seen_before(const char *setting, struct bytes from, const uint8_t *end)
{
	struct bytes rest = bytes_str(setting);
	struct pair p;

	while (next_pair(&rest, &p) && p.to.ptr < end)
		if (bytes_eq_nocase(p.from, from))
			return true;
	return false;
}

static bool seen(const char *setting, struct bytes from)
{
	return seen_before(setting, from, (const uint8_t *)setting + strlen(setting));
}

static int check_pairs(const struct config_value *set, enum images_setting which, struct err *err)
{
	struct bytes rest = bytes_str(set[which].text);
	const char *name = settings_table[which].name;
	struct pair p;
	size_t n = 0;

	while (next_pair(&rest, &p)) {
		if (++n > REGISTRIES_MAX)
			return err_set(err, ERR_INVALID, 0, "%s: more than %d", name,
				       REGISTRIES_MAX);
		if (!place_ok(p.from) || !place_ok(p.to))
			return err_set(err, ERR_INVALID, 0, "%s: not HOST[/PATH]=HOST[/PATH]: %.*s",
				       name, (int)p.to.len, (const char *)p.to.ptr);
		if (which == SET_MAP && seen_before(set[which].text, p.from, p.to.ptr))
			return err_set(err, ERR_INVALID, 0, "%s: %.*s is there twice", name,
				       (int)p.from.len, (const char *)p.from.ptr);
	}
	return 0;
}

static bool default_ok(const struct config_value *set)
{
	const struct image_defaults d = { set[SET_DEFAULT_REGISTRY].text, "" };
	struct image_ref r;
	struct err err;

	return !d.host[0] || image_ref_parse(BYTES_LIT("x"), &d, &r, &err) == 0;
}

static int check(const struct config_value *set, struct err *err)
{
	struct bytes rest = bytes_str(set[SET_INSECURE].text), word;
	char host[IMAGE_HOST_MAX + 1];

	if (!default_ok(set))
		return err_set(err, ERR_INVALID, 0,
			       "default_registry: not HOST[:PORT] with a dot or a port");
	while (bytes_next(&rest, ' ', &word))
		if (bytes_trim(word).len > 0 && !image_host_normal(bytes_trim(word), host))
			return err_set(err, ERR_INVALID, 0, "insecure: not HOST[:PORT]: %.*s",
				       (int)word.len, (const char *)word.ptr);
	return check_pairs(set, SET_MAP, err) < 0 ? -1 : check_pairs(set, SET_MIRRORS, err);
}

/* Mapped places, then those with mirrors alone, then the insecure ones that neither names. */
static int add_all(const struct config_value *set, struct buf *out, struct err *err)
{
	const char *map = set[SET_MAP].text, *mirrors = set[SET_MIRRORS].text;
	struct bytes rest = bytes_str(map), word;
	struct pair p;

	while (next_pair(&rest, &p))
		if (add_registry(out, set, p.from, p.to, err) < 0)
			return -1;
	rest = bytes_str(mirrors);
	while (next_pair(&rest, &p))
		if (!seen(map, p.from) && !seen_before(mirrors, p.from, p.to.ptr) &&
		    add_registry(out, set, p.from, p.from, err) < 0)
			return -1;
	rest = bytes_str(set[SET_INSECURE].text);
	while (bytes_next(&rest, ' ', &word)) {
		word = bytes_trim(word);
		if (word.len > 0 && !seen(map, word) && !seen(mirrors, word) &&
		    add_registry(out, set, word, word, err) < 0)
			return -1;
	}
	return 0;
}

int registries_conf(const struct config_value *set, struct buf *ret, struct err *err)
{
	if (check(set, err) < 0)
		return -1;
	/* names are whole when they come here: nothing is looked for elsewhere */
	if (buf_printf(ret, err,
		       "unqualified-search-registries = []\n"
		       "short-name-mode = \"disabled\"\n") < 0)
		return -1;
	return add_all(set, ret, err);
}

/* Does the place hold the image? The host, or the host and a beginning of the path. */
static bool holds(struct bytes place, struct bytes name)
{
	return name.len > place.len && name.ptr[place.len] == '/' &&
	       bytes_eq_nocase(bytes_head(name, place.len), place);
}

void registries_host(const struct config_value *set, const struct image_ref *r,
		     char ret[static IMAGE_HOST_MAX + 1])
{
	struct bytes rest = bytes_str(set[SET_MAP].text), host, best = bytes_str(r->host);
	char name[IMAGE_HOST_MAX + IMAGE_PATH_MAX + 2];
	size_t closest = 0;
	struct pair p;

	snprintf(name, sizeof(name), "%s/%s", r->host, r->path);
	while (next_pair(&rest, &p)) {
		if (p.from.len <= closest || !holds(p.from, bytes_str(name)))
			continue;
		closest = p.from.len;
		host = best = p.to;
		if (bytes_cut(&host, '/', &best) == false)
			best = p.to;
	}
	if (!image_host_normal(best, ret))
		snprintf(ret, IMAGE_HOST_MAX + 1, "%s", r->host);
}

/* --- credentials ------------------------------------------------------------------------------ */

static bool credential_ok(struct bytes user, struct bytes password)
{
	return user.len > 0 && user.len <= CREDENTIAL_MAX && password.len <= CREDENTIAL_MAX &&
	       memchr(user.ptr, ':', user.len) == NULL;
}

static int add_auth(const char *host, struct bytes user, struct bytes password, struct buf *ret,
		    struct err *err)
{
	AUTO(buf_done) struct buf both = BUF_SECRET(2 * CREDENTIAL_MAX + 2);

	if (buf_add(&both, user, err) < 0 || buf_add(&both, BYTES_LIT(":"), err) < 0 ||
	    buf_add(&both, password, err) < 0 ||
	    buf_printf(ret, err, "{\"auths\":{\"%s\":{\"auth\":\"", host) < 0 ||
	    base64_encode(buf_view(&both), ret, err) < 0)
		return -1;
	return buf_add(ret, BYTES_LIT("\"}}}\n"), err);
}

int registries_auth(const char *host, struct bytes credentials, struct buf *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	struct bytes user, password;

	if (json_decode(credentials, 3 * CREDENTIAL_MAX, CREDENTIALS_DEPTH, &v, err) < 0 ||
	    json_want_string(v, "username", &user, err) < 0 ||
	    json_want_string(v, "password", &password, err) < 0 || !credential_ok(user, password))
		return err_set(err, ERR_INVALID, 0, "not a user name and a password");
	return add_auth(host, user, password, ret, err);
}
