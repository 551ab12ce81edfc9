/* detail.h - what is wrong with a body, in the words of E2B's server: clients show them. */
#pragma once

#include "http/request.h"
#include "wire/json.h"

struct detail { /* all of it borrowed, from the body or for good */
	const char *type, *message;
	const char *field, *below; /* NULL: the body itself; the field itself */
	const json_t *input;       /* what was there instead */
};

/* False, with *ret_wrong: something else is there. Without `must` the field may be missing or null,
 * and *ret stays. */
bool detail_string(const json_t *body, const char *field, bool must, struct bytes *ret,
		   struct detail *ret_wrong) NODISCARD;
/* An object of strings, borrowed; NULL: missing or null. */
bool detail_strings(const json_t *body, const char *field, json_t **ret,
		    struct detail *ret_wrong) NODISCARD;

void detail_answer(struct http_request *rq, const struct detail *wrong); /* 422 */
void detail_no_object(struct http_request *rq, const json_t *body);
void detail_no_json(struct http_request *rq, const char *why);
/* 404 and 405. `allow` NULL: there is no such path. */
void detail_no_route(struct http_request *rq, const char *allow);
