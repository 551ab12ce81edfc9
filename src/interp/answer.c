/* answer.c - see answer.h. */
#include "interp/answer.h"

enum { JSON_ANSWER_MAX = HTTP_WHOLE_MAX }; /* all contexts, each with a long path, fit in */

void answer_text(struct http_request *rq, unsigned int status, const char *text)
{
	static const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("text/plain; charset=utf-8") },
		ANSWER_ANY_ORIGIN,
	};

	http_answer(rq, &(struct http_response){ status, fields, COUNT(fields), 0 },
		    bytes_str(text));
}

void answer_json(struct http_request *rq, unsigned int status, json_t *v)
{
	static const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/json") },
		ANSWER_ANY_ORIGIN,
	};
	AUTO(json_decrefp) json_t *owned = v;
	AUTO(buf_done) struct buf body = BUF_MAX(JSON_ANSWER_MAX);
	struct err err;

	if (!owned || json_encode(owned, &body, &err) < 0)
		answer_text(rq, 500, "out of memory");
	else
		http_answer(rq, &(struct http_response){ status, fields, COUNT(fields), 0 },
			    buf_view(&body));
}

void answer_preflight(struct http_request *rq)
{
	static const struct http1_field fields[] = {
		ANSWER_ANY_ORIGIN,
		{ BYTES_LIT("access-control-allow-methods"),
		  BYTES_LIT("GET, POST, DELETE, OPTIONS") },
		{ BYTES_LIT("access-control-allow-headers"), BYTES_LIT("*") },
		{ BYTES_LIT("access-control-max-age"), BYTES_LIT("600") },
	};

	http_answer(rq, &(struct http_response){ 204, fields, COUNT(fields), 0 },
		    (struct bytes){ 0 });
}
