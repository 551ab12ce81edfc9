/* wish.h - what a request asks for: the bodies of POST /execute and POST /contexts. */
#pragma once

#include "interp/detail.h"
#include "interp/language.h"

struct wish {                                  /* borrows from the body */
	struct bytes code, context, cwd, name; /* all but code: empty: not said */
	char language[KERNEL_NAME_MAX + 1];    /* the name, normalized; "": it can be none */
	json_t *env;                           /* of strings; NULL: none */
};

/* False, with *ret_wrong: a field has a value that it cannot have. */
bool wish_to_execute(const json_t *body, struct wish *ret, struct detail *ret_wrong) NODISCARD;
bool wish_to_create(const json_t *body, struct wish *ret, struct detail *ret_wrong) NODISCARD;
