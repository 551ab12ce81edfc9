/* secret_fill.h - the secrets that rules name go along with them, sealed.
 *
 * What names one is the text of a create or of a new network: in the values of the headers of
 * network.rules. One that does not exist is no mistake yet: requests that need it are refused, by
 * name, until it does.
 */
#pragma once

#include "gateway/api/api.h"

/* As api_ask_node_or(), with "sealed":{"name":"<base64>"} in the text where its rules name secrets.
 */
void secret_fill(struct api_call *c, const struct node_request *rq, struct bytes text,
		 uint64_t deadline_ms, api_node_fn *on_done);
