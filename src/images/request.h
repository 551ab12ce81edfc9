/* request.h - what node asks of the images daemon: may it be acted on as it is? Pure. */
#pragma once

#include "base/bytes.h"
#include "images/protocol.h"
#include "wire/image_ref.h"

int images_request_check(const struct images_request *rq, size_t n_fds, struct err *err) NODISCARD;
size_t images_request_fds(const struct images_request *rq); /* how many come with it */

/* The text that comes with IMAGES_MAKE. */
struct images_ask {
	char team[IMAGES_TEAM_MAX + 1];
	char reference[IMAGE_REF_MAX + 1]; /* "" of an archive */
	struct buf sealed;                 /* empty: none */
};
int images_ask_parse(struct bytes text, bool archive, struct images_ask *ret,
		     struct err *err) NODISCARD;
void images_ask_done(struct images_ask *a);
