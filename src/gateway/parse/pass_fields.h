/* pass_fields.h - where a visitor of a guarded port has his pass (wire/port_pass.h): found in what
 * a request says, and taken out of it. Pure.
 *
 *	GET /vnc.html?e2b-traffic-access-token=<pass, or the traffic token>
 *	Cookie: __Host-hotcell-pass=<pass>
 */
#pragma once

#include "base/bytes.h"

#define PASS_PARAM         "e2b-traffic-access-token"
#define PASS_COOKIE_PLAIN  "hotcell-pass"
#define PASS_COOKIE_SECURE "__Host-hotcell-pass" /* over TLS: no sibling of the host can set it */

/* As it was sent: what is right has nothing to decode. False: none. */
bool pass_in_query(struct bytes query, struct bytes *ret);

/* Appends a target without the parameter. In front of it is exactly one '/': as a Location it
 * leads nowhere else. */
int pass_drop_param(struct bytes path, struct bytes query, struct buf *out,
		    struct err *err) NODISCARD;

/* Cuts cookies off *cookies, up to the next of that name. False: none is left. */
bool pass_next_cookie(struct bytes *cookies, const char *name, struct bytes *ret);

/* Has it a cookie of ours, by either name? */
bool pass_has_cookie(struct bytes cookies);
/* Appends the others, behind "; " where something is there already. */
int pass_drop_cookies(struct bytes cookies, struct buf *out, struct err *err) NODISCARD;

/* Is Origin the scheme and the Host of this request? */
bool pass_same_origin(struct bytes origin, bool secure, struct bytes host);

/* Is Host a name below `domain` (which may have a port)? Without a domain every name is. */
bool pass_own_name(struct bytes host, const char *domain);
