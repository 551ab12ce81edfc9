/* wish.c - see wish.h. */
#include "interp/wish.h"

static bool take_language(const json_t *body, struct wish *ret, struct detail *ret_wrong)
{
	if (!detail_string(body, "language", false, &ret->name, ret_wrong))
		return false;
	if (!language_normalize(ret->name, ret->language))
		ret->language[0] = '\0';
	return true;
}

bool wish_to_execute(const json_t *body, struct wish *ret, struct detail *ret_wrong)
{
	*ret = (struct wish){ 0 };
	return detail_string(body, "code", true, &ret->code, ret_wrong) &&
	       detail_string(body, "context_id", false, &ret->context, ret_wrong) &&
	       take_language(body, ret, ret_wrong) &&
	       detail_strings(body, "env_vars", &ret->env, ret_wrong);
}

bool wish_to_create(const json_t *body, struct wish *ret, struct detail *ret_wrong)
{
	*ret = (struct wish){ 0 };
	return detail_string(body, "cwd", false, &ret->cwd, ret_wrong) &&
	       take_language(body, ret, ret_wrong);
}
