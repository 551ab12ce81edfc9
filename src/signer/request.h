/* request.h - what a gateway asks of the signer: may it be acted on as it is? Pure.
 *
 * A gateway that was taken over may ask for anything. What is signed here has the form of what a
 * TLS server signs in a handshake, and of nothing else that the key could be good for:
 *
 *	TLS 1.3   64 spaces, "TLS 1.3, server CertificateVerify", a zero, a hash (RFC 8446, 4.4.3)
 *	TLS 1.2   two random numbers of 32 bytes, then the server's half of ECDHE: a named curve and
 *	          a point on it, of the one length that it has (RFC 8422, 5.4)
 */
#pragma once

#include "base/bytes.h"
#include "signer/protocol.h"

enum signer_shape { SIGNER_NO_SHAPE, SIGNER_TLS12, SIGNER_TLS13 };

enum signer_shape signer_shape_of(struct bytes what);

/* ERR_DENIED: not what a handshake signs. */
int signer_request_check(const struct signer_request *rq, struct err *err) NODISCARD;
