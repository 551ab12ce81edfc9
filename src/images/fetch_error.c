/* fetch_error.c - see fetch_error.h. */
#include "images/fetch_error.h"

enum { IMAGE_SHOWN = 120, HOST_SHOWN = 80 };

enum cause {
	CAUSE_NONE,
	CAUSE_MISSING,
	CAUSE_CREDENTIALS,
	CAUSE_PLAIN,
	CAUSE_CERTIFICATE,
	CAUSE_NAME,
	CAUSE_CONNECT,
	CAUSE_RATE,
	CAUSE_LARGE,
	CAUSE_ROOM,
	CAUSE_DIGEST,
};

/* Parts of what it says, and what they mean: the first that is found counts. */
static const struct {
	const char *words;
	enum cause cause;
} known[] = {
	{ "server gave HTTP response to HTTPS client", CAUSE_PLAIN },
	{ "x509:", CAUSE_CERTIFICATE },
	{ "tls: ", CAUSE_CERTIFICATE },
	{ "unauthorized", CAUSE_CREDENTIALS },
	{ "authentication required", CAUSE_CREDENTIALS },
	{ "invalid username/password", CAUSE_CREDENTIALS },
	{ "requested access to the resource is denied", CAUSE_CREDENTIALS },
	{ "403 (Forbidden)", CAUSE_CREDENTIALS },
	{ "401 (Unauthorized)", CAUSE_CREDENTIALS },
	{ "manifest unknown", CAUSE_MISSING },
	{ "name unknown", CAUSE_MISSING },
	{ "404 (Not Found)", CAUSE_MISSING },
	{ "not found", CAUSE_MISSING },
	{ "toomanyrequests", CAUSE_RATE },
	{ "429 (Too Many Requests)", CAUSE_RATE },
	{ "no such host", CAUSE_NAME },
	{ "server misbehaving", CAUSE_NAME },
	{ "file too large", CAUSE_LARGE },
	{ "no space left on device", CAUSE_ROOM },
	{ "does not match", CAUSE_DIGEST },
	{ "did not match", CAUSE_DIGEST },
	{ "connection refused", CAUSE_CONNECT },
	{ "no route to host", CAUSE_CONNECT },
	{ "network is unreachable", CAUSE_CONNECT },
	{ "operation not permitted", CAUSE_CONNECT },
	{ "i/o timeout", CAUSE_CONNECT },
	{ "context deadline exceeded", CAUSE_CONNECT },
	{ "connection reset", CAUSE_CONNECT },
	{ "pinging container registry", CAUSE_CONNECT },
	{ "EOF", CAUSE_CONNECT },
};

/* `what` is the image or the host, the one of the two that the sentence is about. */
static const struct {
	enum err_code code;
	bool of_host;
	const char *before, *after;
} sentences[] = {
	[CAUSE_NONE] = { ERR_UNAVAILABLE, false, "",
			 " could not be fetched; the log of "
			 "hotcell-images says why" },
	[CAUSE_MISSING] = { ERR_NOT_FOUND, false, "", " is not there: check its name and tag" },
	[CAUSE_CREDENTIALS] = { ERR_DENIED, true, "the registry ",
				" refused (unauthorized): it wants a user name and a password, or "
				"others" },
	[CAUSE_PLAIN] = { ERR_UNAVAILABLE, true, "the registry ",
			  " speaks plain HTTP: an operator may name it in the setting insecure" },
	[CAUSE_CERTIFICATE] = { ERR_UNAVAILABLE, true, "the certificate of the registry ",
				" is not trusted: an operator may put its authority into "
				"extra_ca" },
	[CAUSE_NAME] = { ERR_UNAVAILABLE, true, "the registry ",
			 " has no address: check its name, or have an operator map it" },
	[CAUSE_CONNECT] = { ERR_UNAVAILABLE, true, "the registry ",
			    " does not answer: if it is in a private network, an operator has to "
			    "name that in the setting networks" },
	[CAUSE_RATE] = { ERR_UNAVAILABLE, true, "the registry ",
			 " gives no more for now: try later, or with a user name" },
	[CAUSE_LARGE] = { ERR_INVALID, false, "a layer of ", " is larger than its manifest says" },
	[CAUSE_ROOM] = { ERR_NO_SPACE, false, "no room for ", " on this host's disk" },
	[CAUSE_DIGEST] = { ERR_INVALID, false, "what came for ", " is not what its digest says" },
};

static bool has(struct bytes said, const char *words)
{
	return said.len > 0 && memmem(said.ptr, said.len, words, strlen(words)) != NULL;
}

int fetch_error(struct bytes said, const char *image, const char *host, struct err *err)
{
	enum cause cause = CAUSE_NONE;

	for (size_t i = 0; i < COUNT(known) && cause == CAUSE_NONE; i++)
		if (has(said, known[i].words))
			cause = known[i].cause;
	return err_set(err, sentences[cause].code, 0, "%s%.*s%s", sentences[cause].before,
		       sentences[cause].of_host ? HOST_SHOWN : IMAGE_SHOWN,
		       sentences[cause].of_host ? host : image, sentences[cause].after);
}
