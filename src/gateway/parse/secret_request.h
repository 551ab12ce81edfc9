/* secret_request.h - what clients say about secrets. Pure. */
#pragma once

#include "store/secrets.h"
#include "wire/json.h"
#include "wire/placeholder.h"

enum {
	SECRET_BODY_MAX = 64 * 1024,
	SECRET_VALUE_MAX = 8 * 1024, /* it has to fit into a header */
	SECRET_METADATA_MAX = 32,    /* entries */
	SECRET_METADATA_KEY_MAX = 128,
	SECRET_METADATA_VALUE_MAX = 1024,
	SECRET_METADATA_BYTES_MAX = 8 * 1024, /* keys and values together */
	SECRET_METADATA_TEXT_MAX = 64 * 1024, /* as JSON, with whatever is escaped */
};

struct secret_request {
	char name[SECRET_NAME_SIZE]; /* as all are compared */
	struct buf value;
	struct buf metadata; /* JSON; empty: none was given */
};

/* {"name":,"value":,"metadata":{}}; with `named` the name is in the path. ERR_INVALID; what it says
 * holds nothing of the value. On success the caller owns what is in *ret. */
int secret_request_parse(struct bytes body, bool named, struct secret_request *ret,
			 struct err *err) NODISCARD;
void secret_request_done(struct secret_request *r); /* the value is wiped */

/* An id or a name, as a path has it; the other one is empty then. What begins like an id is never a
 * name. False: it is neither. */
bool secret_selector(struct bytes text, char ret_id[static STORE_SECRET_ID_SIZE],
		     char ret_name[static SECRET_NAME_SIZE]);
