/* test_node_signed.c - the sandbox that signed a URL is found among many, and no other. */
#include "tests/unit/check.h"

#include "node/life/signed.h"

enum { BOXES = 3 * SIGNED_SLICE + 7 };

struct host {
	struct sandbox_table table;
	struct sandbox box[BOXES];
};

static struct host *host_new(void)
{
	struct host *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	for (size_t i = 0; i < BOXES; i++) {
		struct node_sandbox *info = &h->box[i].info;
		struct err err = { 0 };

		snprintf(info->id, sizeof(info->id), "box%zu", i);
		snprintf(info->team, sizeof(info->team), "team%zu", i % 3);
		snprintf(info->access_token, sizeof(info->access_token), "token%zu", i);
		info->started_ns = 1000 + i / 2; /* some at the same instant */
		table_add(&h->table, &h->box[i]);
		sandbox_enter(&h->table, &h->box[i], SANDBOX_RUNNING);
		assert_int_equal(table_own(&h->table, &h->box[i], &err), 0);
	}
	return h;
}

static void host_free(struct host *h)
{
	while (h->table.all)
		table_remove(&h->table, h->table.all);
	free(h);
}

/* The query of a URL signed with this token; base64 has characters that must be escaped. */
static struct bytes query_of(const char *token, const char *operation, char ret[static 512])
{
	const struct signed_url u = { BYTES_LIT("a/b.txt"), bytes_str(operation), BYTES_LIT("user"),
				      true, 99 };
	char text[SIGNATURE_TEXT_MAX];
	int n;

	signature_make(&u, bytes_str(token), text);
	n = snprintf(ret, 512, "path=a%%2Fb.txt&username=user&signature_expiration=99&signature=");
	for (const char *c = text; *c; c++)
		n += snprintf(ret + n, 512 - (size_t)n, "%%%02x", (unsigned int)(uint8_t)*c);
	return bytes_str(ret);
}

/* NULL: none. *ret_slices: how many turns it took. */
static const struct sandbox *search(struct host *h, struct bytes query, bool writes,
				    size_t *ret_slices)
{
	const struct sandbox *found = NULL;
	struct signed_search s;
	struct err err = { 0 };

	*ret_slices = 1;
	assert_int_equal(signed_search_begin(&s, query, writes, &err), 0);
	while (!signed_search_slice(&s, &h->table, &found))
		(*ret_slices)++;
	signed_search_end(&s);
	return found;
}

static void each_finds_its_own(void **state)
{
	struct host *h = host_new();

	(void)state;
	for (size_t i = 0; i < BOXES; i += 13) {
		char token[32], query[512];
		size_t slices;

		snprintf(token, sizeof(token), "token%zu", i);
		assert_ptr_equal(search(h, query_of(token, "write", query), true, &slices),
				 &h->box[i]);
	}
	host_free(h);
}

static void nobody_signed_it(void **state)
{
	struct host *h = host_new();
	char query[512];
	size_t slices;

	(void)state;
	assert_null(search(h, query_of("another", "read", query), false, &slices));
	assert_int_equal(slices, 4); /* all were tried, in bounded pieces */
	/* signed for reading, used for writing */
	assert_null(search(h, query_of("token5", "read", query), true, &slices));
	assert_ptr_equal(search(h, query_of("token5", "read", query), false, &slices), &h->box[5]);
	/* no signature at all */
	assert_null(search(h, BYTES_LIT("path=a"), false, &slices));
	host_free(h);
}

static void only_running_ones_with_a_token(void **state)
{
	struct host *h = host_new();
	char query[512];
	size_t slices;

	(void)state;
	h->box[3].info.access_token[0] = '\0';
	assert_null(search(h, query_of("", "read", query), false, &slices));
	sandbox_enter(&h->table, &h->box[4], SANDBOX_ENDING);
	assert_null(search(h, query_of("token4", "read", query), false, &slices));
	host_free(h);
}

static void sandboxes_may_go_meanwhile(void **state)
{
	struct host *h = host_new();
	const struct sandbox *found;
	struct signed_search s;
	struct err err = { 0 };
	char query[512];

	(void)state;
	assert_int_equal(signed_search_begin(&s, query_of("token700", "read", query), false, &err),
			 0);
	assert_false(signed_search_slice(&s, &h->table, &found));
	for (size_t i = 0; i < 600; i++) /* the one it stopped at, too */
		table_remove(&h->table, &h->box[i]);
	while (!signed_search_slice(&s, &h->table, &found))
		;
	assert_ptr_equal(found, &h->box[700]);
	signed_search_end(&s);
	host_free(h);
}

static void an_empty_host(void **state)
{
	static struct host none;
	char query[512];
	size_t slices;

	(void)state;
	assert_null(search(&none, query_of("a", "read", query), false, &slices));
	assert_int_equal(slices, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_finds_its_own),
		cmocka_unit_test(nobody_signed_it),
		cmocka_unit_test(only_running_ones_with_a_token),
		cmocka_unit_test(sandboxes_may_go_meanwhile),
		cmocka_unit_test(an_empty_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
