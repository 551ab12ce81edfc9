/* http1_body.h - the one place that decides where a body ends; inside wire/ only. */
#pragma once

#include "wire/http1_head.h"

int http1_decide_request(struct http1_head *h, struct err *err) NODISCARD;
int http1_decide_response(struct http1_head *h, struct bytes method, struct err *err) NODISCARD;
