/* images_client.h - what the images daemon is asked: disks out of images. */
#pragma once

#include "images/protocol.h"
#include "net/link.h"

enum {
	IMAGES_FACTS_MAX = 4096,
	IMAGES_MAKES_MAX = 64,           /* under way at once */
	IMAGES_MAKE_MS = 30 * 60 * 1000, /* a large image over a slow line */
};

#define IMAGES_NONE "this server has no images daemon: set images_socket"
/* For who waits for a build: who failed, why, and what to do. */
#define IMAGES_DOWN                                                                              \
	"the images daemon (hotcell-images) does not run: an operator has to start it, its log " \
	"says why it ended"
#define IMAGES_LOST                                                                                \
	"the images daemon (hotcell-images) ended while it worked on the image: build again; its " \
	"log says why it ended"
#define IMAGES_SILENT \
	"the images daemon (hotcell-images) does not answer: an operator may restart it"

struct images_client {
	struct link link;
	struct link_call facts;
	char *seal_key;                 /* base64; NULL: not known yet */
	char agent[IMAGES_DIGEST_SIZE]; /* which one it puts into disks; "": not known yet */
};

void images_client_open(struct images_client *k, struct loop *l, const char *path);
void images_client_close(struct images_client *k);

struct images_make_spec { /* borrowed for the call, but for descriptors, which are taken */
	const char *team;
	const char *reference; /* "": of an archive */
	const char *sealed;    /* credentials, base64; NULL: none */
	int archive;           /* -1: none */
	int disk; /* an empty regular file, read and written; -1: it is only looked up */
	uint32_t disk_mib;
};

struct images_make;
struct images_make_ops {
	void (*on_text)(struct images_make *m, const char *text); /* for the build's log */
	/* Once. Its digest and its configuration as JSON; or why not. */
	void (*on_done)(struct images_make *m, const char *digest, struct bytes config,
			const struct err *err);
};
struct images_make { /* embedded by its owner; all zero: nothing under way */
	const struct images_make_ops *ops;
	struct images_client *client;
	struct link_call call;
};

int images_make(struct images_client *k, struct images_make *m, const struct images_make_spec *spec,
		const struct images_make_ops *ops, struct err *err) NODISCARD;
void images_make_cancel(struct images_make *m); /* fine when nothing is under way */
