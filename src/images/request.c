/* request.c - see request.h. */
#include "images/request.h"

#include "wire/json.h"

enum { ASK_DEPTH = 2 };

size_t images_request_fds(const struct images_request *rq)
{
	if (rq->verb != IMAGES_MAKE)
		return 0;
	return 1u + (rq->flags & IMAGES_DISK ? 1u : 0u) + (rq->flags & IMAGES_ARCHIVE ? 1u : 0u);
}

int images_request_check(const struct images_request *rq, size_t n_fds, struct err *err)
{
	bool make = rq->verb == IMAGES_MAKE;

	if (rq->verb >= IMAGES_VERBS || rq->tag == 0 || rq->zero != 0)
		return err_set(err, ERR_INVALID, 0, "unknown verb, or no tag");
	if ((rq->flags & ~(uint32_t)IMAGES_FLAGS) || (!make && rq->flags))
		return err_set(err, ERR_INVALID, 0, "unknown flags");
	if (n_fds != images_request_fds(rq))
		return err_set(err, ERR_INVALID, 0, "%zu descriptors, expected %zu", n_fds,
			       images_request_fds(rq));
	if ((rq->flags & IMAGES_DISK) ? rq->disk_mib == 0 || rq->disk_mib > IMAGES_DISK_MIB_MAX
				      : rq->disk_mib != 0)
		return err_set(err, ERR_INVALID, 0, "a disk has 1 to %d MiB", IMAGES_DISK_MIB_MAX);
	if ((rq->verb == IMAGES_CANCEL) != (rq->of != 0))
		return err_set(err, ERR_INVALID, 0, "what is to be cancelled?");
	return 0;
}

/* It is a part of a label. */
static bool is_team(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '/')
			return false;
	return text[0];
}

static int read_members(const json_t *v, bool archive, struct images_ask *ret, struct err *err)
{
	struct bytes team, reference = { 0 }, sealed = { 0 };

	if (json_want_string(v, "team", &team, err) < 0 ||
	    json_may_string(v, "reference", &reference, err) < 0 ||
	    json_may_string(v, "sealed", &sealed, err) < 0)
		return -1;
	if (!bytes_to_str(team, ret->team, sizeof(ret->team)) || !is_team(ret->team))
		return err_set(err, ERR_INVALID, 0, "not an id of a team");
	if (archive != (reference.len == 0))
		return err_set(err, ERR_INVALID, 0, "an image has a name, or is in an archive");
	if (!bytes_to_str(reference, ret->reference, sizeof(ret->reference)))
		return err_set(err, ERR_INVALID, 0, "the name of an image has 1 to %d characters",
			       IMAGE_REF_MAX);
	return buf_add(&ret->sealed, sealed, err);
}

int images_ask_parse(struct bytes text, bool archive, struct images_ask *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	*ret = (struct images_ask){ .sealed = BUF_MAX(IMAGES_ASK_MAX) };
	if (json_decode(text, IMAGES_ASK_MAX, ASK_DEPTH, &v, err) == 0 &&
	    read_members(v, archive, ret, err) == 0)
		return 0;
	images_ask_done(ret);
	return err_wrap(err, "what image is wanted");
}

void images_ask_done(struct images_ask *a)
{
	buf_done(&a->sealed);
}
