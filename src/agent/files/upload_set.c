/* upload_set.c - see upload_set.h. */
#include "agent/files/upload_set.h"

void upload_set_done(struct upload_set *s)
{
	if (s->open)
		upload_close(&s->now);
	s->open = false;
	strings_done(&s->done);
	json_decref(s->metadata);
	s->metadata = NULL;
}

static int refuse(struct upload_set *s, struct err *err, const char *why)
{
	s->fault = UPLOAD_REFUSED;
	return err_set(err, ERR_INVALID, 0, "%s", why);
}

static int fail(struct upload_set *s)
{
	s->fault = s->now.fault;
	return -1;
}

int upload_set_begin(struct upload_set *s, const char *path, struct err *err)
{
	snprintf(s->path, sizeof(s->path), "%s", path);
	for (size_t i = 0; i < s->done.n; i++)
		if (strcmp(s->done.v[i], path) == 0)
			return refuse(s, err, "the path is in the request twice");
	if (s->done.n == STRINGS_MAX)
		return refuse(s, err, "too many files in one request");
	if (upload_open(&s->now, path, s->staging, &s->who, err) < 0)
		return fail(s);
	s->open = true;
	return 0;
}

int upload_set_write(struct upload_set *s, struct bytes piece, struct err *err)
{
	return upload_write(&s->now, piece, err) < 0 ? fail(s) : 0;
}

int upload_set_end(struct upload_set *s, struct err *err)
{
	if (upload_note(&s->now, s->metadata, err) < 0 || upload_publish(&s->now, err) < 0)
		return fail(s);
	upload_close(&s->now);
	s->open = false;
	s->fault = UPLOAD_BROKEN; /* if there is no memory to remember it */
	return strings_add(&s->done, bytes_str(s->path), err);
}

static json_t *entry(const struct upload_set *s, const char *path)
{
	json_t *v = json_pack("{s:o, s:o, s:s}", "path", json_text(bytes_str(path)), "name",
			      json_text(bytes_str(path_name(path))), "type", "file");

	if (v && json_object_size(s->metadata) > 0)
		(void)json_object_set(v, "metadata", s->metadata);
	return v;
}

int upload_set_put(const struct upload_set *s, struct buf *out, struct err *err)
{
	if (buf_add(out, BYTES_LIT("["), err) < 0)
		return -1;
	for (size_t i = 0; i < s->done.n; i++) {
		AUTO(json_decrefp) json_t *v = entry(s, s->done.v[i]);

		if ((i > 0 && buf_add(out, BYTES_LIT(","), err) < 0) ||
		    json_encode(v, out, err) < 0)
			return -1;
	}
	return buf_add(out, BYTES_LIT("]"), err);
}
