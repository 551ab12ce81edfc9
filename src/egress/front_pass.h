/* front_pass.h - dialling whom a connection may reach, and bytes. */
#pragma once

#include "egress/front.h"

bool front_has_rule(const struct front *f);
void front_let_out(struct front *f, const struct policy_verdict *v); /* towards f->found */
void front_told(struct front *f, const struct policy_verdict *v);    /* counted, and the audit */
/* Over TLS a refusal is a page that its injector shows, where the sandbox has such, so many in a
 * second. Frees it. */
bool front_shows_page(const struct front *f);
void front_show_page(struct front *f, const char *why, const char *fix);
/* Bytes, first what each has said already: of the server, `early`. */
void front_begin(struct front *f, struct stream *server, struct bytes early);
