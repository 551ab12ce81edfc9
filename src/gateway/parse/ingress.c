/* ingress.c - see ingress.h. */
#include "gateway/parse/ingress.h"

#include "node/protocol.h"
#include "wire/http1_host.h"

#define PORT_WORD "${PORT}"

enum { PORT_DIGITS = 5, TEXT_DEPTH = 32 };

/* No port has more digits than its word has letters. */
static_assert((int)sizeof(PORT_WORD) - 1 >= (int)PORT_DIGITS, "a mask must not grow");

static bool put(char *ret, size_t *len, struct bytes b)
{
	if (b.len > INGRESS_HOST_MAX - *len)
		return false;
	memcpy(ret + *len, b.ptr, b.len);
	*len += b.len;
	return true;
}

static bool replace(struct bytes mask, struct bytes port, char ret[static INGRESS_HOST_MAX + 1],
		    size_t *ret_len)
{
	const struct bytes word = BYTES_LIT(PORT_WORD);
	size_t len = 0;

	while (mask.len > 0) {
		bool is_word = bytes_starts(mask, word);

		if (!put(ret, &len, is_word ? port : bytes_head(mask, 1)))
			return false;
		mask = bytes_tail(mask, is_word ? word.len : 1);
	}
	ret[len] = '\0';
	*ret_len = len;
	return true;
}

struct bytes ingress_host(const struct ingress *in, uint16_t port,
			  char ret[static INGRESS_HOST_MAX + 1])
{
	char digits[PORT_DIGITS + 1];
	size_t len = 0;

	(void)snprintf(digits, sizeof(digits), "%u", (unsigned int)port);
	(void)replace(bytes_str(in->mask_host), bytes_str(digits), ret, &len);
	return (struct bytes){ (const uint8_t *)ret, len };
}

/* Up to the port: what a message is about. */
static struct bytes name_of(struct bytes mask)
{
	struct bytes name;

	return bytes_cut(&mask, ':', &name) ? name : mask;
}

static bool is_ascii(struct bytes b)
{
	for (size_t i = 0; i < b.len; i++)
		if (b.ptr[i] >= 0x80)
			return false;
	return true;
}

static int take_mask(const json_t *network, struct ingress *ret, struct err *err)
{
	char tried[INGRESS_HOST_MAX + 1];
	struct bytes mask = { 0 }, name, host;
	uint16_t port;
	size_t len = 0;

	if (json_may_string(network, "maskRequestHost", &mask, err) < 0)
		return err_wrap(err, "network");
	if (mask.len == 0)
		return 0;
	name = name_of(mask);
	if (!is_ascii(name))
		return err_set(err, ERR_INVALID, 0,
			       "mask request host '%.*s' is not ASCII. Please use ASCII characters "
			       "only.",
			       (int)bytes_head(name, INGRESS_HOST_MAX).len, name.ptr);
	/* as it will be sent, for the longest port there is */
	if (!bytes_to_str(mask, ret->mask_host, sizeof(ret->mask_host)) ||
	    !replace(mask, BYTES_LIT("65535"), tried, &len) ||
	    !http1_split_host((struct bytes){ (uint8_t *)tried, len }, &host, &port))
		return err_set(err, ERR_INVALID, 0, "mask request host is not valid: %.*s",
			       (int)bytes_head(mask, INGRESS_HOST_MAX).len, mask.ptr);
	return 0;
}

bool ingress_is_https(const struct ingress *in, uint16_t port)
{
	for (size_t i = 0; i < in->n_https; i++)
		if (in->https[i] == port)
			return true;
	return false;
}

static int take_port(const json_t *v, struct ingress *ret, struct err *err)
{
	json_int_t port = json_integer_value(v);

	if (!json_is_integer(v) || port < 1 || port > UINT16_MAX)
		return err_set(err, ERR_INVALID, 0,
			       "network: httpsPorts must have numbers from 1 to 65535");
	if (port == GUEST_AGENT_PORT)
		return err_set(err, ERR_INVALID, 0, "network: httpsPorts must not have port %d",
			       GUEST_AGENT_PORT);
	if (ingress_is_https(ret, (uint16_t)port))
		return 0;
	if (ret->n_https == INGRESS_PORTS_MAX)
		return err_set(err, ERR_INVALID, 0, "network: httpsPorts has more than %d ports",
			       INGRESS_PORTS_MAX);
	ret->https[ret->n_https++] = (uint16_t)port;
	return 0;
}

static int take_https(const json_t *network, struct ingress *ret, struct err *err)
{
	json_t *ports = NULL;

	if (json_may_array(network, "httpsPorts", &ports, err) < 0)
		return err_wrap(err, "network");
	for (size_t i = 0; i < json_array_size(ports); i++)
		if (take_port(json_array_get(ports, i), ret, err) < 0)
			return -1;
	return 0;
}

int ingress_read(const json_t *network, struct ingress *ret, struct err *err)
{
	bool public = true;

	*ret = (struct ingress){ 0 };
	if (!network)
		return 0;
	if (json_may_bool(network, "allowPublicTraffic", &public, err) < 0)
		return err_wrap(err, "network");
	ret->private = !public;
	if (take_mask(network, ret, err) < 0)
		return -1;
	return take_https(network, ret, err);
}

int ingress_recall(struct bytes text, struct ingress *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	struct bytes guarded = { 0 };
	json_t *network = NULL;

	if (json_decode(text, NODE_TEXT_MAX, TEXT_DEPTH, &all, err) < 0 ||
	    json_may_object(all, "network", &network, err) < 0 ||
	    json_may_string(all, "guardedPorts", &guarded, err) < 0 ||
	    ingress_read(network, ret, err) < 0)
		return -1;
	return guarded_ports_parse(guarded, &ret->guarded, err);
}
