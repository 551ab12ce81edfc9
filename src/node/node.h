/* node.h - the daemon's state. Each part has a header of its own. */
#pragma once

#include "node/recovery/absence.h"
#include "node/recovery/aside.h"
#include "node/template/base_template.h"
#include "node/catalog/catalog.h"
#include "node/build/builds.h"
#include "node/catalog/uploads.h"
#include "node/life/creates.h"
#include "node/template/grounds.h"
#include "node/template/template_use.h"
#include "node/record/ended.h"
#include "node/door/gateway_door.h"
#include "node/recovery/installation.h"
#include "node/recovery/reconcile.h"
#include "node/links/images_client.h"
#include "node/record/figures.h"
#include "node/record/memory_watch.h"
#include "node/life/pools.h"
#include "node/life/once.h"
#include "node/recovery/quarantine.h"
#include "node/life/idempotency.h"
#include "node/life/sandbox_table.h"
#include "node/settings.h"
#include "node/life/signed.h"
#include "node/network/slots.h"
#include "node/life/snapshots.h"
#include "node/recovery/sweep.h"
#include "node/recovery/tidy.h"
#include "node/life/turns.h"
#include "node/recovery/unloaded.h"
#include "node/record/vm_group.h"

enum {
	NODE_SOCKETS_WAIT_MS = 10 * 1000, /* for warden, when sockets are asked for */
	NODE_STOP_MS = 5 * 1000,          /* at the end: for what belongs to nobody to be ended */
	/* threads of a QEMU: 64 workers for its disk, one per processor, a few of its own. It ends
	 * when it cannot have one more, and its guest's disk decides how many it wants. */
	NODE_PIDS_MAX = 64 + 64 + 32,
};

struct node {
	struct loop *loop;
	struct config_value set[SETTINGS];
	struct warden_sizes sizes;
	struct addr agent; /* as seen from inside a sandbox's network */
	struct journal *journal;
	struct installation installation;
	struct gateway_door *door;
	struct door_user door_user;
	struct warden_client warden;
	struct link egress;
	struct injector_client injector;
	struct images_client images;
	struct slots slots;
	struct memory_watch memory;
	struct base_template base;
	struct grounds grounds;
	struct template_use template_use;
	struct sandbox_table table;
	struct creates creates;
	struct pools pools;
	struct reconcile reconcile;
	struct absence absence;
	struct files *files;
	struct turns saves, joins, resumes; /* joins: of a snapshot's files */
	size_t n_resuming;                  /* from SLOT to RESTORING, on the way from PAUSED */
	uint64_t resuming_mib;              /* what these take, and is not measured yet */
	struct signed_searches searches;
	struct ended ended;
	struct idempotency idempotency;
	struct onces onces;
	struct snapshots snapshots;
	struct catalog catalog;
	struct builds builds;
	struct refreezes refreezes;
	struct uploads uploads;
	struct quarantine quarantine;
	struct tidy tidy;
	struct sweep sweep;
	struct aside aside;
	struct lost_job *lost_jobs; /* lost_verbs.c: what is under way */
	struct taking *takings;     /* snapshot_take.c */
	struct fork *forks;         /* fork.c */
	struct vm_groups groups;
	struct timer metrics_turn;
	struct figures figures;
	struct node_job *jobs;            /* requests.c: what is under way for a gateway */
	struct secret_job *secret_jobs;   /* network_secrets.c: the same */
	struct network_job *network_jobs; /* network_verbs.c: the same */
	bool stopping;
	struct unloaded unloaded;
};

static inline struct node *node_of_warden(struct warden_client *k)
{
	return CONTAINER_OF(k, struct node, warden);
}

static inline bool node_links_up(const struct node *n)
{
	return n->warden.link.up && n->egress.up;
}

/* Which of the two is missing, and why. */
static inline void node_links_why(const struct node *n, struct err *err)
{
	const struct link *l = n->warden.link.up ? &n->egress : &n->warden.link;

	if (l->mismatch)
		link_why(l, err);
	else
		err_set(err, ERR_UNAVAILABLE, 0, "%s is not running on this host", l->words->name);
}
