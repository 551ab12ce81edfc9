/* fuzz_network_request.c - promises of the body of PUT .../network and of a key's services: within
 * limits, and what was accepted is accepted again as the same. */
#include "gateway/parse/network_rules.h"
#include "fuzz/must.h"
#include "gateway/parse/key_services.h"
#include "gateway/parse/network_request.h"

enum { DEPTH_MAX = 16, TEXT_MAX = 1024 * 1024 };

static void must_stay(const json_t *clean)
{
	AUTO(json_decrefp) json_t *again = NULL;
	const json_t *network = json_object_get(clean, "network");
	struct err err = { 0 };
	const char *name;
	json_t *value;

	/* clang-format off */
	json_object_foreach((json_t *)(uintptr_t)clean, name, value)
		MUST(strcmp(name, "network") == 0 || strcmp(name, "allowInternetAccess") == 0);
	/* clang-format on */
	MUST(json_array_size(json_object_get(network, "allowOut")) <= NETWORK_LIST_MAX);
	MUST(json_array_size(json_object_get(network, "denyOut")) <= NETWORK_LIST_MAX);
	MUST(json_object_size(json_object_get(network, "rules")) <= NETWORK_RULES_MAX);
	MUST(!json_object_get(network, "egressProxy") && !json_object_get(network, "dnsServers"));
	MUST(network_request_take(network, "", &again, &err) == 0);
	MUST(json_equal(again, network));
}

static void check_services(const json_t *body)
{
	char text[STORE_SERVICES_SIZE], again[STORE_SERVICES_SIZE];
	AUTO(json_decrefp) json_t *names = NULL;
	struct err err = { 0 };

	if (key_services_read(body, text, &err) < 0) {
		must_say_why(&err);
		return;
	}
	names = key_services_json(text);
	MUST(json_array_size(names) == json_array_size(body));
	MUST(key_services_read(names, again, &err) == 0 && strcmp(text, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json_decrefp) json_t *body = NULL, *clean = NULL;
	struct err err = { 0 };

	if (json_decode((struct bytes){ data, size }, TEXT_MAX, DEPTH_MAX, &body, &err) < 0)
		return 0;
	if (json_is_array(body))
		check_services(body);
	if (!json_is_object(body))
		return 0;
	if (network_request_update(body, &clean, &err) < 0) {
		must_say_why(&err);
		MUST(!clean && (err.code == ERR_INVALID || err.code == ERR_DENIED));
	} else {
		must_stay(clean);
	}
	return 0;
}
