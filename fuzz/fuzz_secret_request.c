/* fuzz_secret_request.c - promises of secret_request.h: limits hold, ids and names do not mix. */
#include "fuzz/must.h"
#include "gateway/parse/secret_request.h"

static void must_keep_limits(struct bytes in, bool named)
{
	struct secret_request r;
	struct err err = { 0 };

	if (secret_request_parse(in, named, &r, &err) < 0) {
		must_say_why(&err);
		MUST(!r.value.ptr && !r.metadata.ptr);
		return;
	}
	MUST(r.value.len >= 1 && r.value.len <= SECRET_VALUE_MAX);
	MUST(!memchr(r.value.ptr, '\n', r.value.len) && !memchr(r.value.ptr, '\r', r.value.len));
	MUST(named == (r.name[0] == '\0'));
	MUST(r.metadata.len <= SECRET_METADATA_TEXT_MAX);
	secret_request_done(&r);
}

static void must_be_one_of_both(struct bytes in)
{
	char id[STORE_SECRET_ID_SIZE], name[SECRET_NAME_SIZE], again[SECRET_NAME_SIZE];

	if (!secret_selector(in, id, name))
		return;
	MUST((id[0] == '\0') != (name[0] == '\0'));
	MUST(id[0] == '\0' || strncmp(id, "sec_", 4) == 0);
	MUST(strncmp(name, "sec_", 4) != 0);
	MUST(name[0] == '\0' ||
	     (secret_name_normal(bytes_str(name), again) && strcmp(name, again) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };

	must_keep_limits(in, false);
	must_keep_limits(in, true);
	must_be_one_of_both(in);
	return 0;
}
