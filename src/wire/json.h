/* json.h - jansson behind a thin wall: bounded in, compact out, typed members with clear errors.
 *
 * A value is owned by `AUTO(json_decrefp) json_t *v = NULL;`. What the getters return borrows from
 * the object asked. jansson seeds its hash once per process, from /dev/urandom if it can: a daemon
 * calls json_object_seed() before it locks itself in.
 */
#pragma once

#include <jansson.h>

#include "base/bytes.h"

enum { JSON_DEPTH_MAX = 64, JSON_NAME_MAX = 64 };

/* In a process through whose JSON secrets pass, before the first value: what jansson frees is
 * wiped.
 */
void json_wipe_freed(void);

/* All of `in`, an object or an array. Refused: over max_bytes, nested deeper than max_depth
 * (at most JSON_DEPTH_MAX), a member given twice, NUL in a string, bytes that are not UTF-8. */
int json_decode(struct bytes in, size_t max_bytes, unsigned int max_depth, json_t **ret,
		struct err *err) NODISCARD;
int json_encode(const json_t *v, struct buf *out, struct err *err) NODISCARD; /* appends */

/* A string for any bytes: NUL and whatever is not UTF-8 come out as '?'. NULL: out of memory. */
json_t *json_text(struct bytes text) NODISCARD;

/* Members of an object. `name` is lowerCamelCase; its snake_case spelling is accepted too, both at
 * once are not. `want`: an error when absent or null. `may`: *ret keeps what it held, so put the
 * default there first. Either: an error when the type is wrong. */
int json_want_string(const json_t *obj, const char *name, struct bytes *ret,
		     struct err *err) NODISCARD;
int json_may_string(const json_t *obj, const char *name, struct bytes *ret,
		    struct err *err) NODISCARD;
/* A whole number, or a string of one: the way proto3 writes 64 bits. */
int json_want_int(const json_t *obj, const char *name, int64_t min, int64_t max, int64_t *ret,
		  struct err *err) NODISCARD;
int json_may_int(const json_t *obj, const char *name, int64_t min, int64_t max, int64_t *ret,
		 struct err *err) NODISCARD;
int json_want_bool(const json_t *obj, const char *name, bool *ret, struct err *err) NODISCARD;
int json_may_bool(const json_t *obj, const char *name, bool *ret, struct err *err) NODISCARD;
int json_want_object(const json_t *obj, const char *name, json_t **ret, struct err *err) NODISCARD;
int json_may_object(const json_t *obj, const char *name, json_t **ret, struct err *err) NODISCARD;
int json_want_array(const json_t *obj, const char *name, json_t **ret, struct err *err) NODISCARD;
int json_may_array(const json_t *obj, const char *name, json_t **ret, struct err *err) NODISCARD;

static inline struct bytes json_bytes(const json_t *string)
{
	return (struct bytes){ (const uint8_t *)json_string_value(string),
			       json_string_length(string) };
}
