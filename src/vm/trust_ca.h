/* trust_ca.h - certificates that a template's guest is made to trust while it is built. */
#pragma once

#include "base/bytes.h"

enum { TRUST_CA_MAX = 64 * 1024 }; /* they reach the guest as one variable: 128 KiB at most */

#define TRUST_CA_VARIABLE "HOTCELL_CA"

struct bytes trust_ca_script(void); /* for bash as root, in the guest; guest/trust-ca */

/* Is this PEM with a certificate in it, and nothing that is not text? Whether each is a good one
 * is for those to say who verify with it. */
bool trust_ca_ok(struct bytes pem);
