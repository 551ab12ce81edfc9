/* client.c - see client.h. */
#include "cli/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <unistd.h>

#include "tls/tls_stream.h"

enum { PIECE = 64 * 1024, PORT_HTTP = 80, PORT_HTTPS = 443 };

/* --- where ---------------------------------------------------------------------------------- */

static int take_port(struct bytes text, uint16_t *ret)
{
	uint64_t n;

	if (!bytes_to_u64(text, &n) || n == 0 || n > UINT16_MAX)
		return -1;
	*ret = (uint16_t)n;
	return 0;
}

static bool host_ok(const char *host)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"-._:";

	return *host && strspn(host, allowed) == strlen(host);
}

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. */
static int take_host(struct bytes text, struct client_place *p)
{
	struct bytes host = text, port = { 0 };
	bool has_port = false, bracket = text.len > 0 && text.ptr[0] == '[';

	if (bracket) {
		port = bytes_tail(text, 1);
		if (!bytes_cut(&port, ']', &host))
			return -1;
		has_port = port.len > 0;
		if (has_port && port.ptr[0] != ':')
			return -1;
		port = bytes_tail(port, 1);
	} else {
		port = text;
		has_port = bytes_cut(&port, ':', &host);
	}
	if (has_port && take_port(port, &p->port) < 0)
		return -1;
	if (!bytes_to_str(host, p->host, sizeof(p->host)) || !host_ok(p->host))
		return -1;
	return !bracket && strchr(p->host, ':') ? -1 : 0;
}

static void make_field(struct client_place *p)
{
	const char *left = strchr(p->host, ':') ? "[" : "", *right = *left ? "]" : "";

	if (p->port == (p->tls ? PORT_HTTPS : PORT_HTTP))
		snprintf(p->field, sizeof(p->field), "%s%s%s", left, p->host, right);
	else
		snprintf(p->field, sizeof(p->field), "%s%s%s:%u", left, p->host, right, p->port);
}

int client_place_url(const char *url, struct client_place *ret, struct err *err)
{
	static const struct bytes http = BYTES_LIT("http://"), https = BYTES_LIT("https://");
	struct bytes rest = bytes_str(url);

	*ret = (struct client_place){ .tls = bytes_starts(rest, https) };
	ret->port = ret->tls ? PORT_HTTPS : PORT_HTTP;
	if (!ret->tls && !bytes_starts(rest, http))
		return err_set(err, ERR_INVALID, 0, "`%s` is no address of http or https", url);
	rest = bytes_tail(rest, ret->tls ? https.len : http.len);
	if (rest.len > 0 && rest.ptr[rest.len - 1] == '/')
		rest.len--;
	if (take_host(rest, ret) < 0)
		return err_set(err, ERR_INVALID, 0, "`%s` is no address of a server", url);
	make_field(ret);
	return 0;
}

int client_place_name(const char *label, const char *domain, struct client_place *ret,
		      struct err *err)
{
	AUTO(buf_done) struct buf name = BUF_MAX(CLIENT_HOST_MAX + 8);

	*ret = (struct client_place){ .tls = true, .port = PORT_HTTPS };
	if (domain[0] == '[' || buf_printf(&name, err, "%s.%s", label, domain) < 0 ||
	    take_host(buf_view(&name), ret) < 0)
		return err_set(err, ERR_INVALID, 0, "`%.64s` is no domain", domain);
	make_field(ret);
	return 0;
}

/* Names below localhost are this machine, whatever servers of names say (RFC 6761). */
static const char *looked_up(const char *host)
{
	size_t len = strlen(host), tail = strlen(".localhost");

	return len > tail && strcasecmp(host + len - tail, ".localhost") == 0 ? "localhost" : host;
}

static void add_address(struct client_exchange *x, const struct addrinfo *a)
{
	struct addr *at = &x->at[x->n];

	if (x->n == CLIENT_ADDRESSES_MAX || a->ai_addrlen > sizeof(at->at))
		return;
	*at = (struct addr){ .len = a->ai_addrlen };
	memcpy(&at->at, a->ai_addr, a->ai_addrlen);
	x->n++;
}

static int look_up(struct client_exchange *x, struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", x->ask.to->port);
	rc = getaddrinfo(looked_up(x->ask.to->host), port, &hints, &found);
	if (rc != 0)
		return err_set(err, ERR_UNAVAILABLE, 0, "gateway: %s: %s", x->ask.to->host,
			       gai_strerror(rc));
	for (const struct addrinfo *a = found; a; a = a->ai_next)
		add_address(x, a);
	freeaddrinfo(found);
	return 0;
}

/* --- one request ---------------------------------------------------------------------------- */

static void finish(struct client_exchange *x, const struct err *err)
{
	struct err why = { 0 };

	if (err) {
		why = *err;
		err_wrap(&why, "gateway: %s", x->ask.to->field);
	}
	client_cancel(x);
	x->ops->on_done(x, err ? &why : NULL);
}

static uint64_t length_of(const struct client_ask *ask)
{
	return ask->file_bytes ? ask->file_bytes : ask->body.len;
}

/* 0: it broke, what came before comes yet, then on_fail; -1: the file cannot be read. */
static int send_file_piece(struct client_exchange *x, struct err *err)
{
	AUTO(auto_free) uint8_t *piece = malloc(PIECE);
	uint64_t left = x->ask.file_bytes - x->sent;
	ssize_t n =
		piece ? pread(x->ask.file, piece, left < PIECE ? left : PIECE, (off_t)x->sent) : -1;

	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "read the file");
	if (n == 0)
		return err_set(err, ERR_INVALID, 0, "the file became shorter while it was read");
	if (http_ask_send(x->exchange, (struct bytes){ piece, (size_t)n }, err) < 0)
		return 0;
	x->sent += (size_t)n;
	return 1;
}

static int send_body_piece(struct client_exchange *x, struct err *err)
{
	struct bytes piece = bytes_head(bytes_tail(x->ask.body, x->sent), PIECE);

	if (http_ask_send(x->exchange, piece, err) < 0)
		return 0;
	x->sent += piece.len;
	return 1;
}

/* As much as fits. An answer that is there says that nobody wants the rest. */
static void send_more(struct client_exchange *x)
{
	struct err err = { 0 };

	while (x->status == 0 && x->sent < length_of(&x->ask) &&
	       http_ask_queued(x->exchange) <= STREAM_LOW_WATER) {
		int rc = x->ask.file_bytes ? send_file_piece(x, &err) : send_body_piece(x, &err);

		if (rc < 0)
			finish(x, &err);
		if (rc <= 0)
			return;
	}
	if (x->status == 0 && x->sent == length_of(&x->ask))
		http_ask_finish(x->exchange);
}

static void on_head(struct http_reply *r, const struct http1_head *head)
{
	CONTAINER_OF(r, struct client_exchange, reply)->status = head->status;
}

static void on_body(struct http_reply *r, struct bytes piece)
{
	struct client_exchange *x = CONTAINER_OF(r, struct client_exchange, reply);

	if (x->ops->on_body)
		x->ops->on_body(x, piece);
}

static void on_end(struct http_reply *r)
{
	struct client_exchange *x = CONTAINER_OF(r, struct client_exchange, reply);

	x->exchange = NULL;
	finish(x, NULL);
}

static void on_drain(struct http_reply *r)
{
	struct client_exchange *x = CONTAINER_OF(r, struct client_exchange, reply);

	if (x->sent < length_of(&x->ask))
		send_more(x);
}

/* What it said before it hung up counts, if it was a refusal. */
static void on_fail(struct http_reply *r, const struct err *err)
{
	struct client_exchange *x = CONTAINER_OF(r, struct client_exchange, reply);

	x->exchange = NULL;
	finish(x, x->status >= 300 ? NULL : err);
}

/* The times of a body are those of its owner: code may be silent, and who reads may be slow. */
static int ask_over(struct client_exchange *x, struct stream *s, struct err *err)
{
	static const struct http_reply_ops ops = { on_head, on_body, on_end, on_drain, on_fail };
	struct http_limits limits = HTTP_LIMITS;
	const struct http_ask ask = { .method = bytes_str(x->ask.method),
				      .target = bytes_str(x->ask.target),
				      .host = bytes_str(x->ask.to->field),
				      .fields = x->ask.fields,
				      .n_fields = x->ask.n_fields,
				      .length = (int64_t)length_of(&x->ask) };

	limits.body_stall_ms = 0;
	limits.reply_ms = x->ask.reply_ms;
	x->reply.ops = &ops;
	if (x->ask.to->tls &&
	    tls_connect(x->client->tls, s, x->ask.to->host, "http/1.1", &s, err) < 0)
		return -1;
	if (http_client_open(s, &limits, &x->http, err) < 0 ||
	    http_ask(x->http, &ask, &x->reply, &x->exchange, err) < 0)
		return -1;
	if (length_of(&x->ask) > 0)
		send_more(x);
	return 0;
}

static int dial_next(struct client_exchange *x, struct err *err);

static void on_connected(struct dial *d, struct stream *s, const struct err *err)
{
	struct client_exchange *x = CONTAINER_OF(d, struct client_exchange, dial);
	struct err why;

	if (s ? ask_over(x, s, &why) == 0 : x->tried < x->n && dial_next(x, &why) == 0)
		return;
	finish(x, s || x->tried < x->n ? &why : err);
}

static int dial_next(struct client_exchange *x, struct err *err)
{
	return dial_start(&x->dial, x->client->loop, &x->at[x->tried++], CLIENT_CONNECT_MS,
			  on_connected, err);
}

static int need_tls(struct client *c, struct err *err)
{
	const struct tls_trust trust = { .roots = c->trust };

	if (c->tls || tls_client_open(&trust, &c->tls, err) == 0)
		return 0;
	return err_wrap(err, "trusted certificates");
}

int client_start(struct client_exchange *x, struct client *c, const struct client_ask *ask,
		 struct err *err)
{
	*x = (struct client_exchange){ .ops = x->ops, .client = c, .ask = *ask };
	if ((ask->to->tls && need_tls(c, err) < 0) || look_up(x, err) < 0)
		return -1;
	if (x->n == 0)
		return err_set(err, ERR_UNAVAILABLE, 0, "gateway: %s: no address", ask->to->host);
	return dial_next(x, err);
}

void client_cancel(struct client_exchange *x)
{
	dial_cancel(&x->dial);
	http_client_close(TAKE(x->http));
	x->exchange = NULL;
}

int client_open(struct client *c, const char *trust, struct err *err)
{
	*c = (struct client){ .trust = trust && *trust ? trust : NULL };
	return loop_open(&c->loop, err);
}

void client_close(struct client *c)
{
	tls_context_free(c->tls);
	if (c->loop)
		loop_free(c->loop);
	*c = (struct client){ 0 };
}
