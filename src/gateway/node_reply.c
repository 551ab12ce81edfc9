/* node_reply.c - checks of what node says. */
#include "gateway/node_reply.h"

static bool ends(const char *s, size_t size)
{
	return memchr(s, '\0', size) != NULL;
}

static bool sandbox_ok(const struct node_sandbox *b)
{
	return ends(b->id, sizeof(b->id)) && ends(b->team, sizeof(b->team)) &&
	       ends(b->template_id, sizeof(b->template_id)) && ends(b->alias, sizeof(b->alias)) &&
	       ends(b->access_token, sizeof(b->access_token)) &&
	       ends(b->traffic_token, sizeof(b->traffic_token));
}

bool node_reply_ok(const struct node_reply *r, size_t len)
{
	return len >= sizeof(*r) && r->text_len == len - sizeof(*r) && r->code < ERR_CODES &&
	       ends(r->msg, sizeof(r->msg)) && sandbox_ok(&r->sandbox);
}

bool node_entry_next(struct bytes *after, struct node_sandbox *ret, struct bytes *ret_text)
{
	struct node_entry e;
	struct bytes rest = bytes_tail(*after, sizeof(e));

	if (after->len < sizeof(e))
		return false;
	memcpy(&e, after->ptr, sizeof(e));
	if (!sandbox_ok(&e.sandbox) || e.text_len > rest.len)
		return false;
	*ret = e.sandbox;
	*ret_text = bytes_head(rest, e.text_len);
	*after = bytes_tail(rest, e.text_len);
	return true;
}

bool node_forked_next(struct bytes *after, struct node_forked *ret)
{
	struct node_forked f;

	if (after->len < sizeof(f))
		return false;
	memcpy(&f, after->ptr, sizeof(f));
	if (f.code >= ERR_CODES || !ends(f.msg, sizeof(f.msg)) || !sandbox_ok(&f.sandbox))
		return false;
	*ret = f;
	*after = bytes_tail(*after, sizeof(f));
	return true;
}

bool node_tombstone_next(struct bytes *after, struct node_tombstone *ret)
{
	struct node_tombstone t;

	if (after->len < sizeof(t))
		return false;
	memcpy(&t, after->ptr, sizeof(t));
	if (!ends(t.id, sizeof(t.id)) || !ends(t.team, sizeof(t.team)) ||
	    !ends(t.template_id, sizeof(t.template_id)))
		return false;
	*ret = t;
	*after = bytes_tail(*after, sizeof(t));
	return true;
}
