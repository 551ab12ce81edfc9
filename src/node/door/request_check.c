/* request_check.c - a request has what its verb needs. */
#include "node/door/request_check.h"

#define FLAGS_KNOWN                                                                      \
	((uint32_t)NODE_SECURE | (uint32_t)NODE_WRITE | (uint32_t)NODE_AUTO_PAUSE |      \
	 (uint32_t)NODE_AUTO_RESUME | (uint32_t)NODE_NO_MEMORY | (uint32_t)NODE_NEWEST | \
	 (uint32_t)NODE_TO_AGENT | (uint32_t)NODE_ALSO_PAUSED | (uint32_t)NODE_BOOT |    \
	 (uint32_t)NODE_PRIVATE | (uint32_t)NODE_INGRESS | (uint32_t)NODE_AGAIN |        \
	 (uint32_t)NODE_FOR_IMAGES | (uint32_t)NODE_USAGE)

static int check_string(const char *s, size_t size, bool needed, const char *name, struct err *err)
{
	size_t len = strnlen(s, size);

	if (len == size)
		return err_set(err, ERR_INVALID, 0, "%s does not end", name);
	if (len == 0 && needed)
		return err_set(err, ERR_INVALID, 0, "%s is missing", name);
	for (size_t i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return err_set(err, ERR_INVALID, 0, "%s has a strange character", name);
	return 0;
}

static int check_strings(const struct node_request *rq, struct err *err)
{
	unsigned int need = node_verb_needs(rq->verb);

	if (check_string(rq->team, sizeof(rq->team), need & NODE_NEEDS_TEAM, "team", err) < 0 ||
	    check_string(rq->id, sizeof(rq->id), need & NODE_NEEDS_ID, "id", err) < 0 ||
	    check_string(rq->template_tag, sizeof(rq->template_tag), false, "tag", err) < 0 ||
	    check_string(rq->key_id, sizeof(rq->key_id), false, "key_id", err) < 0 ||
	    check_string(rq->idempotency, sizeof(rq->idempotency), false, "idempotency", err) < 0 ||
	    check_string(rq->request, sizeof(rq->request), false, "request", err) < 0 ||
	    check_string(rq->token, sizeof(rq->token), need & NODE_NEEDS_TOKEN, "token", err) < 0)
		return -1;
	return check_string(rq->template_id, sizeof(rq->template_id), need & NODE_NEEDS_TEMPLATE,
			    "template", err);
}

static int check_numbers(const struct node_request *rq, struct err *err)
{
	uint32_t count_max = rq->verb == NODE_FORK ? NODE_FORK_MAX : NODE_FDS_MAX;

	if (rq->flags & ~FLAGS_KNOWN)
		return err_set(err, ERR_INVALID, 0, "flags 0x%x", rq->flags);
	if ((node_verb_needs(rq->verb) & NODE_NEEDS_COUNT) &&
	    (rq->count == 0 || rq->count > count_max))
		return err_set(err, ERR_INVALID, 0, "a count of %u, expected 1 to %u", rq->count,
			       count_max);
	return 0;
}

static int check_text(const struct node_request *rq, struct bytes text, struct err *err)
{
	if (rq->text_len != text.len || text.len > NODE_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "a text of %zu bytes, said to be %u, at most %d", text.len,
			       rq->text_len, NODE_TEXT_MAX);
	if (text.len > 0 && memchr(text.ptr, '\0', text.len))
		return err_set(err, ERR_INVALID, 0, "a text with a NUL");
	return 0;
}

int request_check(struct bytes in, struct node_request *ret, struct bytes *ret_text,
		  struct err *err)
{
	struct bytes text = bytes_tail(in, sizeof(*ret));

	*ret = (struct node_request){ 0 };
	if (in.len < sizeof(*ret))
		return err_set(err, ERR_INVALID, 0, "%zu bytes are no request", in.len);
	memcpy(ret, in.ptr, sizeof(*ret));
	if (ret->tag == 0)
		return err_set(err, ERR_INVALID, 0, "a request without a tag");
	if (ret->verb >= NODE_VERBS)
		return err_set(err, ERR_INVALID, 0, "verb %u is unknown", ret->verb);
	if (check_strings(ret, err) < 0 || check_numbers(ret, err) < 0 ||
	    check_text(ret, text, err) < 0)
		return -1;
	*ret_text = text;
	return 0;
}
