/* lost_routes.h - for operators: what is on a host's disk and in no row. */
#pragma once

struct api_call;

void admin_lost_list(struct api_call *c);
void admin_lost_restore(struct api_call *c);
void admin_lost_drop(struct api_call *c);
