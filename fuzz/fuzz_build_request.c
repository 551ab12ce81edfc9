/* fuzz_build_request.c - promises of build_request.h: limits hold, one beginning, known steps,
 * credentials apart. */
#include "fuzz/must.h"
#include "gateway/parse/build_request.h"

static const char *text_of(const json_t *v, const char *name)
{
	return json_string_value(json_object_get(v, name));
}

static void must_be_a_step(const json_t *step)
{
	const char *type = text_of(step, "type"), *hash = text_of(step, "filesHash");
	const json_t *args = json_object_get(step, "args");

	MUST(type && strchr("RCEWU", type[0]));
	MUST(json_array_size(args) >= 1 && json_array_size(args) <= BUILD_STEP_ARGS_MAX);
	MUST((strcmp(type, "COPY") == 0) == (hash != NULL));
	MUST(!hash || build_hash_ok(bytes_str(hash)));
	MUST(json_is_boolean(json_object_get(step, "force")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const json_t *steps, *step;
	struct err err = { 0 };
	struct build_request r;
	json_t *v;
	size_t i;

	if (build_request_parse((struct bytes){ data, size }, "red", &r, &err) < 0) {
		must_say_why(&err);
		MUST(!r.text && !r.credentials.ptr);
		return 0;
	}
	v = r.text;
	steps = json_object_get(v, "steps");
	MUST(size <= BUILD_REQUEST_MAX);
	MUST(!text_of(v, "fromImage") != !text_of(v, "fromTemplate"));
	MUST(!json_object_get(v, "registry") && !json_object_get(v, "sealed"));
	MUST(r.credentials.len == 0 || text_of(v, "fromImage"));
	MUST(r.credentials.len == 0 || r.credentials.secret);
	MUST(json_array_size(steps) <= BUILD_STEPS_MAX);
	json_array_foreach(steps, i, step)
	{
		must_be_a_step(step);
	}
	build_request_done(&r);
	return 0;
}
