/* key_routes.h - what the admin door does, too, once it knows of which team. */
#pragma once

struct api_call;

/* Of the team c->team; each ends the call. */
void key_list(struct api_call *c);
void key_add(struct api_call *c);
