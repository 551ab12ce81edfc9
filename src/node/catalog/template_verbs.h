/* template_verbs.h - what gateways ask of templates, tags and builds. */
#pragma once

#include "node/door/gateway_door.h"

verb_fn template_create_ask;
verb_fn template_list_ask;
verb_fn template_get_ask;
verb_fn template_alias_ask;
verb_fn template_public_ask;
verb_fn template_delete_ask; /* or a snapshot */

verb_fn tags_assign_ask; /* tag_verbs.c */
verb_fn tags_remove_ask;
verb_fn tags_list_ask;

verb_fn build_start_ask; /* build_verbs.c */
verb_fn build_status_ask;
verb_fn build_cancel_ask;
verb_fn import_done_ask;
verb_fn import_open_ask; /* build_archive.c */

/* An answer that is JSON, which is taken; NULL: no memory. */
struct json_t;
void catalog_answer(struct door_asked *a, struct json_t *v);
