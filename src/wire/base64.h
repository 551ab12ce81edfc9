/* base64.h - bytes as text and back, RFC 4648. */
#pragma once

#include "base/bytes.h"

/* Append: the standard alphabet, padded. */
int base64_encode(struct bytes in, struct buf *out, struct err *err) NODISCARD;

/* Append at most out->max bytes. Accepts the standard and the url-safe alphabet, but not both in
 * one text, padded or not. Strict otherwise: no blanks, no stray bits, no half padding. */
int base64_decode(struct bytes in, struct buf *out, struct err *err) NODISCARD;
