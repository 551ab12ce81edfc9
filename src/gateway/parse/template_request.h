/* template_request.h - bodies about a template: what it is called, how large it is, its tags. Pure.
 */
#pragma once

#include "gateway/parse/template_ref.h"
#include "wire/json.h"

enum {
	TEMPLATE_NAME_MAX = 128, /* of a reference, as it is sent */
	TEMPLATE_REQUEST_TAGS_MAX = 32,
	TEMPLATE_REQUEST_MAX = 64 * 1024,
};

struct template_request {
	char name[NODE_ID_MAX + 1], tag[NODE_ID_MAX + 1]; /* tag: of a target, or empty */
	json_t *text; /* for node: NODE_TEMPLATE_CREATE, NODE_TAGS_ASSIGN, NODE_TAGS_REMOVE */
};

/* {"name" or "alias", "tags", "cpuCount", "memoryMB", "minFreeDiskMb"}, of the team `slug`.
 * ERR_DENIED: it is in another's name space. On success the caller owns what is in *ret. */
int template_create_parse(struct bytes body, const char *slug, struct template_request *ret,
			  struct err *err) NODISCARD;
/* {"target":"name:tag", "tags":[]}; with `removes` {"name":, "tags":[]}. */
int template_tags_parse(struct bytes body, bool removes, const char *slug,
			struct template_request *ret, struct err *err) NODISCARD;
void template_request_done(struct template_request *r);
