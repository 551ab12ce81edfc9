/* request.c - see request.h. */
#include "signer/request.h"

#include "tls/sign_key.h"

static_assert((int)SIGNER_ID == SIGN_ID && (int)SIGNER_SIGNATURE_MAX == SIGN_MAX,
	      "both name the same");

enum {
	SPACES = 64,
	RANDOMS = 64,     /* the client's and the server's */
	NAMED_CURVE = 3,  /* the one way to say which that is left */
	CURVE_HEAD = 4,   /* what kind, which, how many bytes the point has */
	UNCOMPRESSED = 4, /* how a point of the older curves begins */
};

static const struct curve {
	uint8_t number;
	uint8_t point; /* bytes */
	bool marked;   /* its points begin with UNCOMPRESSED */
} curves[] = {
	{ 23, 65, true },  /* P-256 */
	{ 24, 97, true },  /* P-384 */
	{ 29, 32, false }, /* X25519 */
};

static bool is_tls13(struct bytes what)
{
	const struct bytes context = { (const uint8_t *)"TLS 1.3, server CertificateVerify", 34 };

	for (size_t i = 0; i < SPACES; i++)
		if (i >= what.len || what.ptr[i] != ' ')
			return false;
	what = bytes_tail(what, SPACES);
	if (!bytes_starts(what, context)) /* with its zero */
		return false;
	what = bytes_tail(what, context.len);
	return what.len == SIGN_HASH_MIN || what.len == SIGN_HASH_MAX;
}

static bool is_tls12(struct bytes what)
{
	const struct bytes half = bytes_tail(what, RANDOMS);
	const struct bytes point = bytes_tail(half, CURVE_HEAD);
	const uint8_t *at = half.ptr;

	if (point.len == 0)
		return false;
	for (size_t i = 0; i < COUNT(curves); i++)
		if (at[0] == NAMED_CURVE && at[1] == 0 && at[2] == curves[i].number &&
		    at[3] == curves[i].point && point.len == curves[i].point)
			return !curves[i].marked || point.ptr[0] == UNCOMPRESSED;
	return false;
}

enum signer_shape signer_shape_of(struct bytes what)
{
	if (is_tls13(what))
		return SIGNER_TLS13;
	return is_tls12(what) ? SIGNER_TLS12 : SIGNER_NO_SHAPE;
}

static bool may_sign(enum signer_shape shape, uint32_t scheme)
{
	switch (scheme) {
	case SIGN_ECDSA_SHA256:
	case SIGN_ECDSA_SHA384:
	case SIGN_ECDSA_SHA512:
	case SIGN_PSS_SHA256:
	case SIGN_PSS_SHA384:
	case SIGN_PSS_SHA512:
		return shape != SIGNER_NO_SHAPE;
	case SIGN_PKCS_SHA256:
	case SIGN_PKCS_SHA384:
	case SIGN_PKCS_SHA512:
		return shape == SIGNER_TLS12;
	default:
		return false;
	}
}

/* Nothing may be carried along that is not looked at. */
static bool rest_is_zero(const struct signer_request *rq)
{
	for (size_t i = rq->n; i < sizeof(rq->what); i++)
		if (rq->what[i] != 0)
			return false;
	return true;
}

int signer_request_check(const struct signer_request *rq, struct err *err)
{
	if (rq->verb >= SIGNER_VERBS || rq->tag == 0)
		return err_set(err, ERR_INVALID, 0, "unknown verb, or no tag");
	if (rq->n > sizeof(rq->what) || !rest_is_zero(rq))
		return err_set(err, ERR_INVALID, 0, "at most %zu bytes, and nothing behind them",
			       sizeof(rq->what));
	if (rq->verb == SIGNER_HAS)
		return rq->n == 0 && rq->scheme == 0
			       ? 0
			       : err_set(err, ERR_INVALID, 0,
					 "an id and nothing else is asked for");
	if (!may_sign(signer_shape_of((struct bytes){ rq->what, rq->n }), rq->scheme))
		return err_set(err, ERR_DENIED, 0, "not what a TLS server signs in a handshake");
	return 0;
}
