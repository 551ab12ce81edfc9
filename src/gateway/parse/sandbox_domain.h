/* sandbox_domain.h - what the host names of sandboxes end in, as one client can use them.
 *
 * A client that is told no domain makes names of the one that is built into it, which is somebody
 * else's, and sends the tokens of its sandboxes there. So it is always told one.
 */
#pragma once

#include "base/bytes.h"
#include "wire/domain.h"

enum { SANDBOX_DOMAIN_SIZE = DOMAIN_SIZE + 6 }; /* with a port */

/* By RFC 2606 no such name exists, nor will: what was told when there is nothing better. */
#define SANDBOX_DOMAIN_NONE "domain-is-not-set.invalid"

/* A setting as it is compared and told: NAME or NAME:PORT, lower case; empty stays empty. */
int sandbox_domain_setting(const char *text, char ret[static SANDBOX_DOMAIN_SIZE],
			   struct err *err) NODISCARD;

/* `domain` is the setting. Where there is none, what the client calls this server by (`host`, a
 * Host field) says it: DOMAIN[:PORT] of api.DOMAIN[:PORT], else the name itself; for loopback
 * localhost, below which all names are loopback, too. */
void sandbox_domain(const char *domain, struct bytes host, char ret[static SANDBOX_DOMAIN_SIZE]);
