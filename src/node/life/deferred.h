/* deferred.h - requests for a sandbox that is on its way from one state of rest to another. */
#pragma once

#include "base/bytes.h"
#include "node/life/sandbox.h"

struct secret_change;

enum { DEFERRED_MAX = 1024 }; /* of one sandbox */

/* Asked again when it has come to rest. */
void deferred_add(struct sandbox *s, struct door_asked *asked, const struct node_request *rq);
/* The same of one that needs its text then; it is copied. */
void deferred_add_text(struct sandbox *s, struct door_asked *asked, const struct node_request *rq,
		       struct bytes text);
/* Ask them all again, in the order they came. Those for whom it is too early wait again. */
void deferred_serve(struct sandbox *s);
void deferred_refuse(struct sandbox *s, enum node_verb verb, const struct err *why);
void deferred_refuse_all(struct sandbox *s, const struct err *why);
/* It has been resumed: those who wanted that are answered. */
void deferred_resumed(struct sandbox *s);
/* For network_secrets.c: of changes of rules that wait. */
void deferred_change_secret(struct sandbox *s, const struct secret_change *change);
void deferred_forget(struct sandbox *s); /* at node's own end */
