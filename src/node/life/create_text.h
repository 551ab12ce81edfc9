/* create_text.h - what a gateway says about a sandbox to be, taken apart. */
#pragma once

#include "wire/json.h"

enum {
	CREATE_TEXT_DEPTH = 32,
	CREATE_ENV_MAX = 1024,
	CREATE_VCPUS_MAX = 64, /* as warden has them */
	CREATE_MEMORY_MIN_MIB = 64,
	CREATE_MEMORY_MAX_MIB = 1024 * 1024,
};

/* `in` is empty or a JSON object. *ret_env: its envVars, an object of strings, owned by the caller.
 * *ret_text: the rest of it as text, NUL-terminated, owned by the caller. ERR_INVALID: a variable
 * whose name is empty or has a '=', whose value is no string, or too many of them. */
int create_text_split(struct bytes in, size_t max, json_t **ret_env, char **ret_text,
		      struct err *err) NODISCARD;
/* "sizes":{"vcpus","memoryMib"} of it, which only one that boots may have; both 0: there are none.
 */
int create_text_sizes(struct bytes in, size_t max, uint32_t *ret_vcpus, uint32_t *ret_memory_mib,
		      struct err *err) NODISCARD;
/* Into what is to be remembered, in place of what stands there: ports that want the traffic token.
 */
int create_text_guard(char **text, const char *ports, size_t max, struct err *err) NODISCARD;
/* The same: what its network refuses is shown as a page. */
int create_text_show_pages(char **text, size_t max, struct err *err) NODISCARD;
/* As text, NUL-terminated, owned by the caller; at most `max` bytes. */
int create_text_put(const json_t *all, size_t max, char **ret, struct err *err) NODISCARD;
