/* detail.c - see detail.h. */
#include "interp/detail.h"

#include "interp/answer.h"

enum { INPUT_MAX = 1024 }; /* bytes of what was there: more helps nobody */

static bool is_wrong(struct detail *ret, const char *type, const char *message, const char *field,
		     const char *below, const json_t *input)
{
	*ret = (struct detail){ type, message, field, below, input };
	return false;
}

static bool no_string(struct detail *ret, const char *field, const char *below, const json_t *input)
{
	return is_wrong(ret, "string_type", "Input should be a valid string", field, below, input);
}

bool detail_string(const json_t *body, const char *field, bool must, struct bytes *ret,
		   struct detail *ret_wrong)
{
	const json_t *v = json_object_get(body, field);

	if (json_is_string(v))
		*ret = json_bytes(v);
	else if (must && !v)
		return is_wrong(ret_wrong, "missing", "Field required", field, NULL, body);
	else if (must || (v && !json_is_null(v)))
		return no_string(ret_wrong, field, NULL, v);
	return true;
}

bool detail_strings(const json_t *body, const char *field, json_t **ret, struct detail *ret_wrong)
{
	json_t *all = json_object_get(body, field), *v;
	const char *name;

	*ret = json_is_object(all) ? all : NULL;
	if (all && !*ret && !json_is_null(all))
		return is_wrong(ret_wrong, "dict_type", "Input should be a valid dictionary", field,
				NULL, all);
	json_object_foreach(*ret, name, v)
	{
		if (!json_is_string(v))
			return no_string(ret_wrong, field, name, v);
	}
	return true;
}

static void answer(struct http_request *rq, json_t *detail)
{
	answer_json(rq, 422, json_pack("{s:[o]}", "detail", detail));
}

static json_t *place_of(const struct detail *wrong)
{
	json_t *place = json_pack("[s]", "body");

	if (wrong->field)
		json_array_append_new(place, json_string(wrong->field));
	if (wrong->below)
		json_array_append_new(place, json_string(wrong->below));
	return place;
}

void detail_answer(struct http_request *rq, const struct detail *wrong)
{
	json_t *detail = json_pack("{s:s, s:o, s:s}", "type", wrong->type, "loc", place_of(wrong),
				   "msg", wrong->message);
	json_t *input = (json_t *)(uintptr_t)wrong->input; /* whose count alone is changed */

	if (json_dumpb(input, NULL, 0, JSON_ENCODE_ANY) <= INPUT_MAX)
		json_object_set(detail, "input", input);
	answer(rq, detail);
}

void detail_no_object(struct http_request *rq, const json_t *body)
{
	struct detail wrong;

	(void)is_wrong(&wrong, "model_attributes_type",
		       "Input should be a valid dictionary or object to extract fields from", NULL,
		       NULL, body);
	detail_answer(rq, &wrong);
}

void detail_no_json(struct http_request *rq, const char *why)
{
	answer(rq, json_pack("{s:s, s:[s, i], s:s, s:{}, s:{s:o}}", "type", "json_invalid", "loc",
			     "body", 0, "msg", "JSON decode error", "input", "ctx", "error",
			     json_text(bytes_str(why))));
}

void detail_no_route(struct http_request *rq, const char *allow)
{
	const char *text =
		allow ? "{\"detail\":\"Method Not Allowed\"}" : "{\"detail\":\"Not Found\"}";
	const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/json") },
		ANSWER_ANY_ORIGIN,
		{ BYTES_LIT("allow"), bytes_str(allow ? allow : "") },
	};

	http_answer(rq,
		    &(struct http_response){ allow ? 405 : 404, fields,
					     COUNT(fields) - (allow ? 0 : 1), 0 },
		    bytes_str(text));
}
