/* answer.h - whole answers: JSON, or a text that says what is wrong. */
#pragma once

#include "http/request.h"
#include "wire/json.h"

/* A page of any origin may ask, as with E2B's server: who may at all is the gateway's business. */
#define ANSWER_ANY_ORIGIN { BYTES_LIT("access-control-allow-origin"), BYTES_LIT("*") }

void answer_text(struct http_request *rq, unsigned int status, const char *text);
void answer_json(struct http_request *rq, unsigned int status, json_t *v); /* takes v */
void answer_preflight(struct http_request *rq);
