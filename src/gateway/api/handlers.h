/* handlers.h - one function per route; each ends its call, now or later. */
#pragma once

#include "gateway/api/api.h"
#include "gateway/parse/list_query.h"

void health_get(struct api_call *c);
void not_built(struct api_call *c); /* 501 */

/* sandbox_ask.c: about the sandbox that a path names, of the caller's team. */
bool sandbox_id_ok(const char *id);
/* `<id>` or `<id>-<clientID>`, the latter dropped. Answered already when this fails. */
bool sandbox_take_id(struct api_call *c);
void sandbox_ask(struct api_call *c, const struct node_request *rq, uint64_t deadline_ms,
		 void (*on_done)(struct node_call *call, const struct node_reply *reply,
				 struct bytes after, int *fds, size_t n_fds,
				 const struct err *err));
/* Whose limits count, and what they are. */
void sandbox_limit(const struct api_call *c, struct node_request *rq);
/* 404 says why and when it ended, if it did; `reply` may be NULL. */
void sandbox_fail(struct api_call *c, const struct node_reply *reply, const struct err *err);
void sandbox_on_no_content(struct node_call *call, const struct node_reply *reply,
			   struct bytes after, int *fds, size_t n_fds, const struct err *err);

/* sandbox_routes.c */
void sandbox_create_v1(struct api_call *c);
void sandbox_create_v2(struct api_call *c);
void sandbox_get(struct api_call *c);
void sandbox_kill(struct api_call *c);
void admin_sandbox_kill(struct api_call *c);
void admin_sandbox_why(struct api_call *c);

/* sandbox_life.c */
void sandbox_timeout(struct api_call *c);
void sandbox_refresh(struct api_call *c);
void sandbox_connect_v1(struct api_call *c);
void sandbox_connect_v2(struct api_call *c);
void sandbox_pause(struct api_call *c);
void sandbox_resume(struct api_call *c);
void admin_sandbox_resume(struct api_call *c);

/* network_routes.c */
void sandbox_network(struct api_call *c);
void admin_sandbox_explain(struct api_call *c);
void admin_sandbox_egress(struct api_call *c);

/* snapshot_routes.c */
void snapshot_take(struct api_call *c);
void snapshot_list(struct api_call *c);
void snapshot_delete(struct api_call *c);
void sandbox_fork(struct api_call *c);
void admin_snapshot_list(struct api_call *c);
void admin_sandbox_fork(struct api_call *c);

/* sandbox_record.c */
void sandbox_metrics(struct api_call *c);
void sandboxes_metrics(struct api_call *c);
void sandbox_logs_v1(struct api_call *c);
void sandbox_logs_v2(struct api_call *c);

/* ended_list.c */
void admin_ended_list(struct api_call *c);

/* sandbox_list.c */
enum {
	LIST_ALL_MAX = 1000,             /* where pages are not asked for */
	LIST_TEXT_MAX = 4 * 1024 * 1024, /* metadata of one page; then the page is shorter */
};
void sandbox_list_v1(struct api_call *c);
void sandbox_list_v2(struct api_call *c);
void admin_sandbox_list(struct api_call *c);

/* secret_routes.c */
void secret_add(struct api_call *c);
void secret_get(struct api_call *c);
void secret_list(struct api_call *c);
void secret_replace(struct api_call *c);
void secret_remove(struct api_call *c);

/* template_routes.c */
void template_list(struct api_call *c);
void template_alias(struct api_call *c);
void admin_template_list(struct api_call *c);

/* key_routes.c: keys of the team c->team */
void team_list(struct api_call *c);
void key_list(struct api_call *c);
void key_add(struct api_call *c);
void key_rename(struct api_call *c);
void key_remove(struct api_call *c);
void admin_key_rotate(struct api_call *c);
void admin_key_limits(struct api_call *c);
void admin_key_services(struct api_call *c);

/* admin_routes.c */
void admin_team_list(struct api_call *c);
void admin_team_add(struct api_call *c);
void admin_team_remove(struct api_call *c);
void admin_team_limits(struct api_call *c);
void admin_key_list(struct api_call *c);
void admin_key_add(struct api_call *c);
void admin_status(struct api_call *c);
void admin_confirm_lost(struct api_call *c);
void admin_health(struct api_call *c);

/* A name that a user chose: text without control characters, 1 to STORE_NAME_SIZE - 1 bytes. */
int api_name(struct api_call *c, const json_t *body, char ret[static STORE_NAME_SIZE]) NODISCARD;

/* Ask; answers the call by itself when that fails. */
void api_ask_store(struct api_call *c, const struct store_request *rq,
		   void (*on_done)(struct store_call *call, const struct store_result *ret,
				   const struct err *err));
void api_ask_node(struct api_call *c, const struct node_request *rq, struct bytes text,
		  uint64_t deadline_ms,
		  void (*on_done)(struct node_call *call, const struct node_reply *reply,
				  struct bytes after, int *fds, size_t n_fds,
				  const struct err *err));
