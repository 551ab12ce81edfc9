/* interp_lines.h - for targets of the code interpreter: what clients are sent. */
#pragma once

#include "fuzz/must.h"
#include "interp/events.h"

/* Whole lines of ASCII, none of them empty, each an object that says what it is. How many. */
static inline size_t must_be_lines(struct bytes out)
{
	struct bytes line;
	size_t n = 0;

	while (bytes_cut(&out, '\n', &line)) {
		AUTO(json_decrefp)
		json_t *v = json_loadb((const char *)line.ptr, line.len, JSON_ALLOW_NUL, NULL);

		MUST(json_is_object(v));
		MUST(json_is_string(json_object_get(v, "type")));
		for (size_t i = 0; i < line.len; i++)
			MUST(line.ptr[i] >= ' ' && line.ptr[i] < 128);
		n++;
	}
	MUST(out.len == 0);
	return n;
}
