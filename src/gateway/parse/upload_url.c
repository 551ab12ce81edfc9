/* upload_url.c - sign and check. */
#include "gateway/parse/upload_url.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/hmac.h"
#include "wire/http1_host.h"
#include "wire/target.h"

enum { CLAIM_MAX = 512, PARAM_MAX = 128 };

void upload_sign(const struct upload_claim *c, struct bytes key,
		 char ret[static UPLOAD_SIGNATURE_HEX + 1])
{
	uint8_t digest[SHA256_SIZE];
	char text[CLAIM_MAX];

	/* none of them has the character between them */
	snprintf(text, sizeof(text), "upload/1\n%s\n%s\n%" PRIu64 "\n", c->team, c->hash,
		 c->expires_s);
	hmac_sha256(key, bytes_str(text), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

int upload_url_make(const struct upload_claim *c, struct bytes key, bool secure, struct bytes host,
		    struct buf *out, struct err *err)
{
	char signature[UPLOAD_SIGNATURE_HEX + 1];
	struct bytes name;
	uint16_t port;

	if (!http1_split_host(host, &name, &port) || name.len == 0)
		return err_set(err, ERR_INVALID, 0, "the request names no host");
	upload_sign(c, key, signature);
	return buf_printf(out, err, "%s://%.*s/uploads/%s/%s?expires=%" PRIu64 "&signature=%s",
			  secure ? "https" : "http", (int)host.len, (const char *)host.ptr, c->team,
			  c->hash, c->expires_s, signature);
}

static int denied(struct err *err)
{
	return err_set(err, ERR_DENIED, 0, "this URL was not made by this server");
}

int upload_url_check(const char *team, const char *hash, struct bytes query, struct bytes key,
		     uint64_t now_s, struct err *err)
{
	AUTO(buf_done) struct buf expires = BUF_MAX(PARAM_MAX);
	AUTO(buf_done) struct buf given = BUF_MAX(PARAM_MAX);
	struct upload_claim c = { team, hash, 0 };
	char signature[UPLOAD_SIGNATURE_HEX + 1];

	if (strlen(team) + strlen(hash) > CLAIM_MAX / 2 ||
	    target_param(query, "expires", &expires, err) < 0 ||
	    target_param(query, "signature", &given, err) < 0 ||
	    !bytes_to_u64(buf_view(&expires), &c.expires_s))
		return denied(err);
	upload_sign(&c, key, signature);
	if (!bytes_eq_secret(buf_view(&given), bytes_str(signature)))
		return denied(err);
	if (c.expires_s < now_s)
		return err_set(err, ERR_DENIED, 0, "the time of this URL is over");
	return 0;
}
