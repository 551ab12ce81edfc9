/* clients.h - the door: one unix socket, known peers, fixed messages. */
#pragma once

#include "warden/warden.h"

void clients_sweep_slots(struct warden *w); /* those ready for a client that is gone */
int clients_listen(struct warden *w, struct err *err) NODISCARD;
void clients_accept(struct warden *w);
void clients_readable(struct warden *w, uint32_t index);
void clients_reply(struct warden *w, const struct waiting *who, struct warden_reply *r,
		   const int *fds, size_t n_fds);
void clients_reply_err(struct warden *w, const struct waiting *who, const struct err *e);
