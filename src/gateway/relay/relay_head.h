/* relay_head.h - heads as they are passed on. */
#pragma once

#include "gateway/parse/ingress.h"
#include "http/server.h"

enum { RELAY_PEER_MAX = 64 };

struct relay;

/* Fields that came, without those of one connection, and a few of ours. They borrow from the head
 * and from this struct. */
struct relay_fields {
	struct http1_field at[HTTP_FIELDS_OUT_MAX];
	size_t n;
	char peer[RELAY_PEER_MAX];
	char host[INGRESS_HOST_MAX + 1];
};
struct bytes relay_host(const struct relay *r, struct relay_fields *f); /* what the guest is told */
/* Cookies that had to be written anew are in *room. */
int relay_request_fields(const struct relay *r, struct buf *room, struct relay_fields *ret,
			 struct err *err) NODISCARD;
void relay_answer_fields(const struct relay *r, const struct http1_head *head,
			 struct relay_fields *ret);
/* The target as a guest expects it, in *room when it had to be written anew. */
int relay_target(const struct relay *r, struct buf *room, struct bytes *ret,
		 struct err *err) NODISCARD;
