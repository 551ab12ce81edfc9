/* job.h - one image: a process of its own, from the order to the disk.
 *
 * It is forked by the forkserver, works through its order from top to bottom, waits for its
 * children, tells the daemon how far it is, and ends. It may be killed at any instant.
 */
#pragma once

#include "images/order.h"
#include "images/places.h"
#include "images/store.h"

struct job {
	const struct config_value *set;
	const struct places *places;
	struct order order;
	int channel, auth, disk, archive, null; /* -1: not there */
	struct store store;
	int dir;              /* jobs/ID */
	char path[PLACE_MAX]; /* of it */
	char auth_path[PLACE_MAX];
	char name[IMAGE_NAME_MAX + 1];                            /* of the image, for people */
	char repository[2 * IMAGE_HOST_MAX + IMAGE_PATH_MAX + 4]; /* "": it is in an archive */
};

/* What a fetch or an import has found. */
struct image {
	char digest[IMAGE_DIGEST + 1];
	size_t n_layers;
	int layers[OCI_LAYERS_MAX]; /* opened and locked, lowest first; -1 */
	struct buf config;          /* the image's own */
};

/* Ends the process. */
_Noreturn void job_live(struct job *j, pid_t parent);

/* A line for who waits. One that nobody reads ends the job. */
int job_say(const struct job *j, struct err *err, const char *fmt, ...) PRINTF(3, 4) NODISCARD;
