/* image.h - what is being made: a disk, the names on it, and what was counted on the way. */
#pragma once

#include "unpack/tree.h"

struct counts {
	uint64_t files, folders, symlinks, hard_links, fifos, bytes;
	uint64_t devices;   /* left out: a guest has devtmpfs */
	uint64_t xattrs;    /* left out: not user. or a file capability */
	uint64_t whiteouts; /* of either kind */
};

struct image {
	struct disk disk;
	struct tree tree;
	uint16_t n_layers;
	struct counts counts;
	uint64_t n_entries; /* that were read, whatever became of them */
	uint64_t spent;     /* bytes of UNPACK_BYTES_MAX */
	uint64_t told;      /* counts.bytes when progress was told last */
	int tell;           /* where progress goes; -1: nowhere */
	char path[256];     /* of the entry that is being applied, for messages */
};

int image_begin(struct image *im, int fd, uint64_t mib, struct err *err) NODISCARD;
/* Folders are written, and all that is in memory. */
int image_finish(struct image *im, struct err *err) NODISCARD;
void image_done(struct image *im);

/* Bytes, or what is as much work. */
int image_spend(struct image *im, uint64_t bytes, struct err *err) NODISCARD;
