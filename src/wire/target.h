/* target.h - what a request target says: path segments and query parameters.
 *
 * Segments are cut before they are decoded, so that an encoded slash stays inside its segment.
 */
#pragma once

#include "base/bytes.h"

enum {
	TARGET_SEGMENT_MAX = 256, /* decoded, in bytes */
	TARGET_PARAMS_MAX = 64,
};

struct target {             /* borrows from the target */
	struct bytes path;  /* as sent, begins with '/' */
	struct bytes query; /* as sent, without the '?' */
};

/* From the origin form or the absolute form; the others have no path and are refused. */
int target_split(struct bytes target, struct target *ret, struct err *err) NODISCARD;

/* Cut the next segment, still encoded, off *path; false at the end. "/a/b" gives "a", "b";
 * "/a/" gives "a", ""; "/" gives "". */
bool target_next_segment(struct bytes *path, struct bytes *ret);

/* Append the decoded segment to `out`. Refuses %00, broken escapes, more than TARGET_SEGMENT_MAX
 * bytes, and the segments "." and ".." however they are spelt. */
int target_decode_segment(struct bytes raw, struct buf *out, struct err *err) NODISCARD;

/* Cut the next `name=value`, still encoded, off *query; false at the end. */
bool target_next_param(struct bytes *query, struct bytes *ret_name, struct bytes *ret_value);

/* Append a decoded name or value: as above, and '+' is a space. At most out->max bytes. */
int target_decode_param(struct bytes raw, struct buf *out, struct err *err) NODISCARD;

/* Look `name` up and append its decoded value to `out`. Not there: *ret_found is false, which is
 * no error. There twice, or broken: an error. At most out->max bytes. */
int target_find_param(struct bytes query, const char *name, struct buf *out, bool *ret_found,
		      struct err *err) NODISCARD;
/* The same into an emptied `out`, which stays empty when it is not there. */
int target_param(struct bytes query, const char *name, struct buf *out, struct err *err) NODISCARD;
