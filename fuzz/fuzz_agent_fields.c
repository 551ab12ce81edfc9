/* fuzz_agent_fields.c - promises of what the agent reads out of a head: ranges, conditions,
 * codings, metadata. The input is the fields of a request for a file; its size and time come first.
 */
#include <stdio.h>

#include "agent/files/file_metadata.h"
#include "agent/files/range.h"
#include "agent/user_path.h"
#include "fuzz/must.h"
#include "http/date.h"

static void check_range(const struct http1_head *h, uint64_t size, int64_t mtime)
{
	struct range r = range_of(h, size, mtime);

	switch (r.kind) {
	case RANGE_PART:
		MUST(r.length > 0 && r.length <= size && r.from <= size - r.length);
		break;
	case RANGE_ALL:
		MUST(r.from == 0 && r.length == size);
		break;
	case RANGE_NOT_MODIFIED:
	case RANGE_FAILED:
	case RANGE_NOT_SATISFIABLE:
		break;
	}
}

/* A date that is read is written the same. */
static void check_dates(const struct http1_head *h)
{
	for (size_t i = 0; i < h->n_fields; i++) {
		char again[HTTP_DATE_MAX];
		int64_t t;

		if (!http_date_parse(h->fields[i].value, &t))
			continue;
		http_date_put(t, again);
		MUST(bytes_eq(h->fields[i].value, bytes_str(again)));
	}
}

static void check_metadata(const struct http1_head *h)
{
	AUTO(json_decrefp) json_t *all = NULL;
	struct err err = { 0 };
	size_t total = 0;
	const char *key;
	json_t *value;

	if (metadata_parse(h, &all, &err) < 0) {
		must_say_why(&err);
		return;
	}
	json_object_foreach(all, key, value)
	{
		size_t n = strlen(key);

		MUST(n > 0 && n <= METADATA_KEY_MAX && json_is_string(value));
		for (size_t i = 0; i < n; i++)
			MUST(key[i] >= ' ' && key[i] <= '~' && (key[i] < 'A' || key[i] > 'Z'));
		total += strlen("user.e2b.") + n + json_string_length(value);
	}
	MUST(total <= METADATA_TOTAL_MAX);
}

/* A path is absolute and within its room; tidy, it has nothing to be left out. */
static void check_paths(const struct http1_head *h)
{
	static const struct account who = { .home = "/home/user" };
	char path[USER_PATH_MAX], again[USER_PATH_MAX];
	struct err err = { 0 };

	for (size_t i = 0; i < h->n_fields; i++) {
		if (user_path(h->fields[i].value, &who, "", path, &err) < 0) {
			must_say_why(&err);
			continue;
		}
		MUST(path[0] == '/' && memchr(path, 0, sizeof(path)));
		path_tidy(path);
		MUST(path[0] == '/' && !strstr(path, "//") && !strstr(path, "/./"));
		MUST(path[1] == '\0' || path[strlen(path) - 1] != '/');
		memcpy(again, path, sizeof(again));
		path_tidy(again);
		MUST(strcmp(path, again) == 0);
		MUST(path_name(path)[0] != '\0');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct bytes line = BYTES_LIT("GET / HTTP/1.1\r\nHost: x\r\n");
	AUTO(buf_done) struct buf text = BUF_MAX(HTTP1_HEAD_MAX);
	struct bytes in = { data, size };
	static struct http1_head h;
	struct err err = { 0 };
	uint64_t length;
	int64_t mtime;

	if (size < sizeof(length) + sizeof(mtime))
		return 0;
	memcpy(&length, data, sizeof(length));
	memcpy(&mtime, data + sizeof(length), sizeof(mtime));
	length >>= 1; /* files are that long at most */
	in = bytes_tail(in, sizeof(length) + sizeof(mtime));
	if (buf_add(&text, line, &err) < 0 || buf_add(&text, in, &err) < 0 ||
	    buf_add(&text, BYTES_LIT("\r\n\r\n"), &err) < 0 ||
	    http1_parse_request(buf_view(&text), &h, &err) < 0)
		return 0;
	check_range(&h, length, mtime);
	check_dates(&h);
	check_metadata(&h);
	check_paths(&h);
	(void)range_takes_identity(&h);
	return 0;
}
