/* snapshot_routes.h - a snapshot is a template to clients, and deleted as one. */
#pragma once

struct api_call;

void snapshot_delete(struct api_call *c); /* the one that the path names; ends the call */
