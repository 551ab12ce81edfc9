/* image_ref.c - see image_ref.h. */
#include "wire/image_ref.h"

#include <stdio.h>

enum { PORT_MAX = 65535, PORT_DIGITS = 5, LABEL_MAX = 63 };

#define ALGORITHM "sha256:"

static bool is_lower(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_upper(uint8_t c)
{
	return c >= 'A' && c <= 'Z';
}

bool image_digest_ok(struct bytes text)
{
	if (text.len != IMAGE_DIGEST || !bytes_starts(text, BYTES_LIT(ALGORITHM)))
		return false;
	for (size_t i = sizeof(ALGORITHM) - 1; i < text.len; i++)
		if (!is_lower(text.ptr[i]) || text.ptr[i] > 'f')
			return false;
	return true;
}

/* --- the host --------------------------------------------------------------------------------- */

static bool port_ok(struct bytes text)
{
	uint64_t port;

	return text.len <= PORT_DIGITS && bytes_to_u64(text, &port) && port > 0 && port <= PORT_MAX;
}

static bool label_ok(struct bytes label)
{
	if (label.len == 0 || label.len > LABEL_MAX || label.ptr[0] == '-' ||
	    label.ptr[label.len - 1] == '-')
		return false;
	for (size_t i = 0; i < label.len; i++)
		if (!is_lower(byte_lower(label.ptr[i])) && label.ptr[i] != '-')
			return false;
	return true;
}

static bool name_ok(struct bytes name)
{
	struct bytes label;

	if (name.len == 0 || name.ptr[name.len - 1] == '.')
		return false;
	while (bytes_next(&name, '.', &label))
		if (!label_ok(label))
			return false;
	return true;
}

/* Of the characters of an address; whether it is one is found out by who dials. */
static bool brackets_ok(struct bytes inside)
{
	for (size_t i = 0; i < inside.len; i++) {
		uint8_t c = byte_lower(inside.ptr[i]);

		if (c != ':' && c != '.' && !(is_lower(c) && c <= 'f'))
			return false;
	}
	return inside.len >= 2;
}

static bool bracketed_ok(struct bytes text)
{
	struct bytes inside;

	text = bytes_tail(text, 1);
	if (!bytes_cut(&text, ']', &inside) || !brackets_ok(inside))
		return false;
	return text.len == 0 || (text.ptr[0] == ':' && port_ok(bytes_tail(text, 1)));
}

bool image_host_normal(struct bytes text, char ret[static IMAGE_HOST_MAX + 1])
{
	struct bytes name = text, port = text;

	if (text.len == 0 || text.len > IMAGE_HOST_MAX)
		return false;
	if (text.ptr[0] == '[') {
		if (!bracketed_ok(text))
			return false;
	} else if (bytes_cut(&port, ':', &name) ? !name_ok(name) || !port_ok(port)
						: !name_ok(text)) {
		return false;
	}
	for (size_t i = 0; i < text.len; i++)
		ret[i] = (char)byte_lower(text.ptr[i]);
	ret[text.len] = '\0';
	return true;
}

static bool is_host(struct bytes first)
{
	for (size_t i = 0; i < first.len; i++)
		if (first.ptr[i] == '.' || first.ptr[i] == ':' || is_upper(first.ptr[i]))
			return true;
	return bytes_eq(first, BYTES_LIT("localhost"));
}

/* --- the path and what is behind it ------------------------------------------------------------
 */

/* Words of a-z and 0-9, with one dot, one or two underscores, or dashes between them. */
static bool component_ok(struct bytes part)
{
	size_t between = 0;

	for (size_t i = 0; i < part.len; i++) {
		uint8_t c = part.ptr[i];

		if (is_lower(c)) {
			between = 0;
			continue;
		}
		if (c != '.' && c != '_' && c != '-')
			return false;
		if (i == 0 || i + 1 == part.len ||
		    (between > 0 && (c != part.ptr[i - 1] || c == '.')) ||
		    (between > 1 && c == '_'))
			return false;
		between++;
	}
	return part.len > 0;
}

static bool path_ok(struct bytes path)
{
	struct bytes part;

	if (path.len == 0 || path.len > IMAGE_PATH_MAX || path.ptr[path.len - 1] == '/')
		return false;
	while (bytes_next(&path, '/', &part))
		if (!component_ok(part))
			return false;
	return true;
}

static bool tag_ok(struct bytes tag)
{
	for (size_t i = 0; i < tag.len; i++) {
		uint8_t c = tag.ptr[i];

		if (!is_lower(c) && !is_upper(c) && c != '_' && (i == 0 || (c != '.' && c != '-')))
			return false;
	}
	return tag.len > 0 && tag.len <= IMAGE_TAG_MAX;
}

/* Takes the digest and the tag off the end. */
static int take_ends(struct bytes *name, struct image_ref *r, struct err *err)
{
	struct bytes rest = *name, before;

	if (bytes_cut(&rest, '@', &before)) {
		if (!image_digest_ok(rest))
			return err_set(err, ERR_INVALID, 0,
				       "behind @ stands a digest: sha256: and 64 digits");
		(void)bytes_to_str(rest, r->digest, sizeof(r->digest));
		*name = before;
	}
	for (size_t i = name->len; i > 0 && name->ptr[i - 1] != '/'; i--) {
		if (name->ptr[i - 1] != ':')
			continue;
		rest = bytes_tail(*name, i);
		if (!tag_ok(rest))
			return err_set(err, ERR_INVALID, 0, "not a tag of an image");
		(void)bytes_to_str(rest, r->tag, sizeof(r->tag));
		*name = bytes_head(*name, i - 1);
		break;
	}
	if (!r->tag[0] && !r->digest[0])
		snprintf(r->tag, sizeof(r->tag), "latest");
	return 0;
}

static int set_default_host(struct bytes path, const struct image_defaults *d, struct image_ref *r,
			    struct err *err)
{
	bool one_word = memchr(path.ptr, '/', path.len) == NULL;
	int n;

	if (!image_host_normal(bytes_str(d->host), r->host) || !is_host(bytes_str(r->host)))
		return err_set(err, ERR_INVALID, 0,
			       "%.*s names no registry, and no default_registry is set: write "
			       "HOST/NAME",
			       (int)path.len, (const char *)path.ptr);
	n = snprintf(r->path, sizeof(r->path), "%s%.*s", one_word ? d->prefix : "", (int)path.len,
		     (const char *)path.ptr);
	if (n < 0 || (size_t)n >= sizeof(r->path) || !path_ok(bytes_str(r->path)))
		return err_set(err, ERR_INVALID, 0, "the name of the image is too long");
	return 0;
}

int image_ref_parse(struct bytes text, const struct image_defaults *d, struct image_ref *ret,
		    struct err *err)
{
	struct bytes path = text, rest, first;

	*ret = (struct image_ref){ 0 };
	if (text.len == 0 || text.len > IMAGE_REF_MAX)
		return err_set(err, ERR_INVALID, 0, "the name of an image has 1 to %d characters",
			       IMAGE_REF_MAX);
	if (take_ends(&path, ret, err) < 0)
		return -1;
	rest = path;
	if (!bytes_cut(&rest, '/', &first) || !is_host(first)) {
		if (!path_ok(path))
			return err_set(err, ERR_INVALID, 0,
				       "not the name of an image: a-z, 0-9, and . _ - between");
		return set_default_host(path, d, ret, err);
	}
	/* in lower case alone it could be a part of a path, and others would take it for one */
	if (!image_host_normal(first, ret->host) || !is_host(bytes_str(ret->host)))
		return err_set(err, ERR_INVALID, 0, "not the name of a registry");
	if (!path_ok(rest))
		return err_set(err, ERR_INVALID, 0,
			       "not the name of an image: a-z, 0-9, and . _ - between");
	(void)bytes_to_str(rest, ret->path, sizeof(ret->path));
	return 0;
}

void image_ref_text(const struct image_ref *r, char ret[static IMAGE_NAME_MAX + 1])
{
	snprintf(ret, IMAGE_NAME_MAX + 1, "%s/%s%s%s%s%s", r->host, r->path, r->tag[0] ? ":" : "",
		 r->tag, r->digest[0] ? "@" : "", r->digest);
}
