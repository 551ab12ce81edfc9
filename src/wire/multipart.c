/* multipart.c - delimiters and heads; the parameters of a field are multipart_param.c's. */
#include "wire/multipart.h"

#include "wire/http1_chars.h"
#include "wire/multipart_param.h"

static bool is_boundary_char(uint8_t c)
{
	static const char marks[] = "'()+_,-./:=? ";

	return is_alnum(c) || memchr(marks, c, sizeof(marks) - 1);
}

static bool is_boundary(struct bytes b)
{
	return b.len > 0 && b.len <= MULTIPART_BOUNDARY_MAX && b.ptr[b.len - 1] != ' ' &&
	       bytes_all(b, is_boundary_char);
}

int multipart_init(struct multipart *m, struct bytes content_type, struct err *err)
{
	AUTO(buf_done) struct buf copy = BUF_MAX(MULTIPART_HEAD_MAX);
	struct bytes rest, boundary = { 0 };
	struct multipart_param p;
	enum decode more;

	if (buf_add(&copy, content_type, err) < 0)
		return -1;
	rest = multipart_params(buf_view(&copy));
	while ((more = multipart_next_param(&copy, &rest, &p, err)) == DECODE_OK) {
		if (!bytes_eq_nocase(p.name, BYTES_LIT("boundary")))
			continue;
		if (boundary.len > 0)
			return err_set(err, ERR_INVALID, 0, "two boundaries");
		boundary = p.value;
	}
	if (more == DECODE_BAD)
		return err_wrap(err, "content-type");
	if (!is_boundary(boundary))
		return err_set(err, ERR_INVALID, 0, "no valid boundary in content-type");
	*m = (struct multipart){ .delimiter_len = boundary.len + 4,
				 .matched = 2, /* the body begins as if a line had just ended */
				 .head = BUF_MAX(MULTIPART_HEAD_MAX) };
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary.ptr, boundary.len);
	return 0;
}

void multipart_done(struct multipart *m)
{
	buf_done(&m->head);
}

/* --- delimiters --------------------------------------------------------------------------- */

static enum decode bad(struct err *err, const char *why)
{
	err_set(err, ERR_INVALID, 0, "multipart: %s", why);
	return DECODE_BAD;
}

static enum decode step_start(struct multipart *m, uint8_t c, struct err *err)
{
	if (c != m->delimiter[m->matched])
		return bad(err, "the body does not begin with its boundary");
	if (++m->matched == m->delimiter_len) {
		m->matched = 0;
		m->state = MULTIPART_AT_MARK;
	}
	return DECODE_MORE;
}

static enum decode step_mark(struct multipart *m, uint8_t c, struct err *err)
{
	bool lf = m->state == MULTIPART_AT_LF && c == '\n';
	bool dash = m->state == MULTIPART_AT_DASH && c == '-';

	if (m->state == MULTIPART_AT_MARK && (c == '\r' || c == '-'))
		m->state = c == '\r' ? MULTIPART_AT_LF : MULTIPART_AT_DASH;
	else if (lf || dash)
		m->state = lf ? MULTIPART_IN_HEAD : MULTIPART_DONE;
	else
		return bad(err, "malformed end of a boundary");
	buf_clear(&m->head);
	return DECODE_MORE;
}

/* How many bytes at the front are surely no delimiter, nor the beginning of one. */
static size_t surely_data(const struct multipart *m, struct bytes in)
{
	size_t at = 0;

	while (at < in.len) {
		const uint8_t *cr = memchr(in.ptr + at, '\r', in.len - at);
		size_t n;

		if (!cr)
			return in.len;
		at = (size_t)(cr - in.ptr);
		n = in.len - at < m->delimiter_len ? in.len - at : m->delimiter_len;
		if (memcmp(cr, m->delimiter, n) == 0)
			return at;
		at++;
	}
	return at;
}

static enum decode data_piece(struct multipart_piece *ret, struct bytes data)
{
	*ret = (struct multipart_piece){ .kind = MULTIPART_DATA, .data = data };
	return DECODE_OK;
}

/* CR is nowhere in a delimiter but in front, so a failed match never hides another. */
static enum decode next_data(struct multipart *m, struct bytes *in, struct multipart_piece *ret)
{
	while (in->len > 0) {
		if (m->matched == 0) {
			size_t n = surely_data(m, *in);
			struct bytes data = bytes_head(*in, n);

			*in = bytes_tail(*in, n);
			if (n > 0)
				return data_piece(ret, data);
		}
		if (in->ptr[0] != m->delimiter[m->matched]) {
			size_t held = m->matched;

			m->matched = 0;
			return data_piece(ret, (struct bytes){ m->delimiter, held });
		}
		*in = bytes_tail(*in, 1);
		if (++m->matched == m->delimiter_len) {
			m->matched = 0;
			m->state = MULTIPART_AT_MARK;
			*ret = (struct multipart_piece){ .kind = MULTIPART_PART_END };
			return DECODE_OK;
		}
	}
	return DECODE_MORE;
}

/* --- heads -------------------------------------------------------------------------------- */

static int take_disposition(struct multipart *m, struct bytes value, struct multipart_piece *ret,
			    struct err *err)
{
	struct bytes rest = multipart_params(value), kind;
	struct multipart_param p;
	enum decode more;

	kind = bytes_trim(bytes_head(value, value.len - rest.len));
	if (!bytes_eq_nocase(kind, BYTES_LIT("form-data")))
		return err_set(err, ERR_INVALID, 0, "a part that is not form-data");
	while ((more = multipart_next_param(&m->head, &rest, &p, err)) == DECODE_OK) {
		if (bytes_eq_nocase(p.name, BYTES_LIT("name"))) {
			if (ret->name.ptr)
				return err_set(err, ERR_INVALID, 0, "a part with two names");
			ret->name = p.value;
		} else if (bytes_eq_nocase(p.name, BYTES_LIT("filename"))) {
			if (ret->has_filename)
				return err_set(err, ERR_INVALID, 0, "a part with two filenames");
			ret->filename = p.value;
			ret->has_filename = true;
		}
	}
	return more == DECODE_BAD ? -1 : 0;
}

/* Contents are taken as they are. What would have to be decoded first is not taken for content. */
static bool is_plain_encoding(struct bytes value)
{
	return bytes_eq_nocase(value, BYTES_LIT("binary")) ||
	       bytes_eq_nocase(value, BYTES_LIT("8bit")) ||
	       bytes_eq_nocase(value, BYTES_LIT("7bit"));
}

static bool is_field(struct bytes name, struct bytes value)
{
	return name.len > 0 && bytes_all(name, is_tchar) && bytes_all(value, is_text);
}

static int take_line(struct multipart *m, struct bytes line, struct multipart_piece *ret,
		     struct err *err)
{
	struct bytes name;

	if (!bytes_cut(&line, ':', &name) || !is_field(name, line))
		return err_set(err, ERR_INVALID, 0, "malformed header line of a part");
	line = bytes_trim(line);
	if (bytes_eq_nocase(name, BYTES_LIT("content-disposition"))) {
		if (ret->name.ptr)
			return err_set(err, ERR_INVALID, 0, "two content-dispositions");
		return take_disposition(m, line, ret, err);
	}
	if (bytes_eq_nocase(name, BYTES_LIT("content-transfer-encoding")) &&
	    !is_plain_encoding(line))
		return err_set(err, ERR_INVALID, 0, "unsupported content-transfer-encoding");
	return 0;
}

static enum decode read_head(struct multipart *m, struct multipart_piece *ret, struct err *err)
{
	struct bytes rest = buf_view(&m->head), line;

	*ret = (struct multipart_piece){ .kind = MULTIPART_PART };
	while (bytes_cut(&rest, '\n', &line)) {
		if (line.len == 0 || line.ptr[line.len - 1] != '\r')
			return bad(err, "a header line that does not end in CRLF");
		line.len--;
		if (line.len > 0 && take_line(m, line, ret, err) < 0) {
			err_wrap(err, "multipart");
			return DECODE_BAD;
		}
	}
	if (!ret->name.ptr)
		return bad(err, "a part without a name");
	return DECODE_OK;
}

/* The head ends with an empty line, which may be its first. */
static bool head_is_whole(const struct buf *head)
{
	if (head->len < 2 || head->ptr[head->len - 1] != '\n')
		return false;
	return head->len == 2
		       ? head->ptr[0] == '\r'
		       : head->len >= 4 && memcmp(head->ptr + head->len - 4, "\r\n\r\n", 4) == 0;
}

static enum decode next_head(struct multipart *m, struct bytes *in, struct multipart_piece *ret,
			     struct err *err)
{
	while (in->len > 0) {
		if (m->head.len == MULTIPART_HEAD_MAX)
			return bad(err, "the head of a part is too long");
		if (buf_add(&m->head, bytes_head(*in, 1), err) < 0)
			return DECODE_BAD;
		*in = bytes_tail(*in, 1);
		if (!head_is_whole(&m->head))
			continue;
		m->state = MULTIPART_IN_DATA;
		return read_head(m, ret, err);
	}
	return DECODE_MORE;
}

enum decode multipart_next(struct multipart *m, struct bytes *in, struct multipart_piece *ret,
			   struct err *err)
{
	while (in->len > 0 && m->state < MULTIPART_IN_HEAD) {
		uint8_t c = in->ptr[0];
		enum decode d = m->state == MULTIPART_AT_START ? step_start(m, c, err)
							       : step_mark(m, c, err);

		if (d == DECODE_BAD)
			return d;
		*in = bytes_tail(*in, 1);
	}
	if (m->state == MULTIPART_IN_HEAD)
		return next_head(m, in, ret, err);
	if (m->state == MULTIPART_IN_DATA)
		return next_data(m, in, ret);
	if (m->state != MULTIPART_DONE)
		return DECODE_MORE;
	*in = (struct bytes){ 0 };
	*ret = (struct multipart_piece){ .kind = MULTIPART_END };
	return DECODE_OK;
}
