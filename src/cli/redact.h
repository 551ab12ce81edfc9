/* redact.h - text that may be shown to strangers: what could be a secret is taken out of it.
 *
 * Rather too much than too little: keys of this server, values of names that sound like secrets,
 * passwords in addresses, private keys, and any long run of letters and digits that is no UUID.
 */
#pragma once

#include "base/bytes.h"

struct redact {
	bool in_key; /* within a block of PEM that is private */
};

/* One line, without its newline; appended with one. */
int redact_line(struct redact *r, struct bytes line, struct buf *out, struct err *err) NODISCARD;
/* All lines of a text. */
int redact_text(struct bytes text, struct buf *out, struct err *err) NODISCARD;
