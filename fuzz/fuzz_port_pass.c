/* fuzz_port_pass.c - promises of port_pass.h, guarded_ports.h and pass_fields.h: nobody guesses a
 * pass, and what was taken out of a request is no more in it. */
#include "fuzz/must.h"
#include "gateway/parse/pass_fields.h"
#include "wire/guarded_ports.h"
#include "wire/port_pass.h"

#define TOKEN BYTES_LIT("0123456789abcdefghijklmnopqrstuv")

static void one_pass(struct bytes in)
{
	struct port_pass p = { PASS_COOKIE, in.len ? in.ptr[0] + 1 : 1, 1000 }, got;
	char text[PORT_PASS_SIZE];

	MUST(!port_pass_right(in, "i", TOKEN, 1, &got)); /* it would be an HMAC */
	port_pass_make(&p, "i", TOKEN, text);
	MUST(port_pass_right(bytes_str(text), "i", TOKEN, 999, &got));
	MUST(got.kind == p.kind && got.port == p.port && got.expires_s == p.expires_s);
	MUST(!port_pass_right(bytes_str(text), "i", TOKEN, 1000, &got));
	MUST(!port_pass_right(bytes_str(text), "j", TOKEN, 1, &got));
	/* with the input in its place */
	for (size_t i = 0; i < in.len && i < strlen(text); i++)
		if (text[i] != (char)in.ptr[i]) {
			text[i] = (char)in.ptr[i];
			MUST(!port_pass_right(bytes_str(text), "i", TOKEN, 1, &got) ||
			     memchr(in.ptr, 0, in.len));
			return;
		}
}

static void ports(struct bytes in)
{
	struct guarded_ports g;
	struct err err = { 0 };

	if (guarded_ports_parse(in, &g, &err) < 0) {
		must_say_why(&err);
		return;
	}
	MUST(g.n <= GUARDED_PORTS_MAX);
	for (size_t i = 0; i < g.n; i++)
		MUST(g.at[i].port > 0 && guarded_ports_find(&g, g.at[i].port) == &g.at[i]);
}

static void fields(struct bytes in)
{
	AUTO(buf_done) struct buf cookies = BUF_MAX(in.len * 2 + 2), target = BUF_MAX(in.len + 2);
	struct bytes path = in, query, found;
	struct err err = { 0 };

	MUST(pass_drop_cookies(in, &cookies, &err) == 0);
	MUST(!pass_has_cookie(buf_view(&cookies)));
	if (!bytes_cut(&path, '?', &query))
		query = (struct bytes){ 0 };
	if (pass_in_query(path, &found))
		MUST(inside(found, path));
	MUST(pass_drop_param(query, path, &target, &err) == 0);
	MUST(target.ptr[0] == '/' &&
	     (target.len == 1 || (target.ptr[1] != '/' && target.ptr[1] != '\\')));
	found = buf_view(&target);
	if (bytes_cut(&found, '?', &query))
		MUST(!pass_in_query(found, &query));
	(void)pass_own_name(in, "sbx.test");
	MUST(!pass_same_origin(in, true, BYTES_LIT("a.test")) ||
	     bytes_eq_nocase(in, BYTES_LIT("https://a.test")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };

	one_pass(in);
	ports(in);
	fields(in);
	return 0;
}
