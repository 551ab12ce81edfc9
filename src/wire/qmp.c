/* qmp.c - QMP lines and what kind each one is. */
#include "wire/qmp.h"

#include <assert.h>

enum { QMP_VERSION_MAX = 9999 }; /* of each of the three numbers */

enum decode qmp_line(struct bytes in, size_t *scanned, struct bytes *ret_line, size_t *ret_used,
		     struct err *err)
{
	struct bytes seen = bytes_head(in, QMP_LINE_MAX);
	struct bytes rest = bytes_tail(seen, *scanned), line;

	if (bytes_cut(&rest, '\n', &line)) {
		size_t used = seen.len - rest.len;

		line = bytes_head(seen, used - 1);
		if (line.len > 0 && line.ptr[line.len - 1] == '\r')
			line.len--;
		*ret_line = line;
		*ret_used = used;
		return DECODE_OK;
	}
	*scanned = seen.len;
	if (in.len < QMP_LINE_MAX)
		return DECODE_MORE;
	err_set(err, ERR_EXHAUSTED, 0, "QMP line over %d bytes", QMP_LINE_MAX);
	return DECODE_BAD;
}

static int want_text(const json_t *obj, const char *name, size_t max, struct bytes *ret,
		     struct err *err)
{
	struct bytes text;

	if (json_want_string(obj, name, &text, err) < 0)
		return -1;
	if (text.len == 0 || text.len > max)
		return err_set(err, ERR_INVALID, 0, "%s must have 1 to %zu bytes", name, max);
	*ret = text;
	return 0;
}

static int want_part(const json_t *obj, const char *name, unsigned int *ret, struct err *err)
{
	int64_t n;

	if (json_want_int(obj, name, 0, QMP_VERSION_MAX, &n, err) < 0)
		return -1;
	*ret = (unsigned int)n;
	return 0;
}

static int parse_greeting(struct qmp_message *m, struct err *err)
{
	json_t *qmp, *version, *qemu, *capabilities;

	m->kind = QMP_GREETING;
	if (json_want_object(m->json, "QMP", &qmp, err) < 0 ||
	    json_want_array(qmp, "capabilities", &capabilities, err) < 0 ||
	    json_want_object(qmp, "version", &version, err) < 0 ||
	    json_want_object(version, "qemu", &qemu, err) < 0 ||
	    want_part(qemu, "major", &m->major, err) < 0 ||
	    want_part(qemu, "minor", &m->minor, err) < 0 ||
	    want_part(qemu, "micro", &m->micro, err) < 0)
		return err_wrap(err, "QMP greeting");
	return 0;
}

/* Our ids are numbers, so theirs must be. */
static int parse_id(struct qmp_message *m, bool required, struct err *err)
{
	json_t *id = json_object_get(m->json, "id");

	if (!id && !required)
		return 0;
	if (!json_is_integer(id) || json_integer_value(id) < 0)
		return err_set(err, ERR_INVALID, 0, "id must be a number of ours");
	m->has_id = true;
	m->id = (uint64_t)json_integer_value(id);
	return 0;
}

static int parse_return(struct qmp_message *m, struct err *err)
{
	m->kind = QMP_RETURN;
	m->data = json_object_get(m->json, "return");
	if (parse_id(m, true, err) < 0)
		return err_wrap(err, "QMP return");
	return 0;
}

static int parse_error(struct qmp_message *m, struct err *err)
{
	json_t *error;

	m->kind = QMP_ERROR;
	if (json_want_object(m->json, "error", &error, err) < 0 ||
	    want_text(error, "class", QMP_NAME_MAX, &m->name, err) < 0 ||
	    json_want_string(error, "desc", &m->desc, err) < 0 || parse_id(m, false, err) < 0)
		return err_wrap(err, "QMP error");
	m->desc = bytes_head(m->desc, QMP_DESC_MAX);
	return 0;
}

static int parse_event(struct qmp_message *m, struct err *err)
{
	json_t *timestamp;

	m->kind = QMP_EVENT;
	if (want_text(m->json, "event", QMP_NAME_MAX, &m->name, err) < 0 ||
	    json_want_object(m->json, "timestamp", &timestamp, err) < 0 ||
	    json_may_object(m->json, "data", &m->data, err) < 0)
		return err_wrap(err, "QMP event");
	return 0;
}

int qmp_parse(struct bytes line, struct qmp_message *ret, struct err *err)
{
	static const struct {
		const char *key;
		int (*parse)(struct qmp_message *m, struct err *err);
	} kinds[] = {
		{ "QMP", parse_greeting },
		{ "return", parse_return },
		{ "error", parse_error },
		{ "event", parse_event },
	};
	AUTO(qmp_message_done) struct qmp_message m = { 0 };
	size_t found = 0, kind = 0;

	if (json_decode(line, QMP_LINE_MAX, QMP_DEPTH_MAX, &m.json, err) < 0)
		return err_wrap(err, "QMP message");
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (json_object_get(m.json, kinds[i].key)) {
			kind = i;
			found++;
		}
	if (found != 1)
		return err_set(err, ERR_INVALID, 0, "QMP message of %s kind",
			       found ? "more than one" : "no");
	if (kinds[kind].parse(&m, err) < 0)
		return -1;
	*ret = m;
	m.json = NULL; /* moved */
	return 0;
}

void qmp_message_done(struct qmp_message *m)
{
	json_decref(m->json);
	*m = (struct qmp_message){ 0 };
}

static json_t *command(const char *execute, json_t *arguments, uint64_t id)
{
	if (!arguments)
		return json_pack("{s:s, s:I}", "execute", execute, "id", (json_int_t)id);
	return json_pack("{s:s, s:O, s:I}", "execute", execute, "arguments", arguments, "id",
			 (json_int_t)id);
}

int qmp_put_command(struct buf *out, const char *execute, json_t *arguments, uint64_t id,
		    struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	size_t before = out->len;

	assert(id <= INT64_MAX && strlen(execute) <= QMP_NAME_MAX);
	v = command(execute, arguments, id);
	if (!v)
		return err_set(err, ERR_EXHAUSTED, 0, "build QMP command %s", execute);
	if (json_encode(v, out, err) < 0 || buf_add(out, BYTES_LIT("\r\n"), err) < 0) {
		out->len = before;
		return err_wrap(err, "QMP command %s", execute);
	}
	return 0;
}
