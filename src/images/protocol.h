/* protocol.h - what node asks of the images daemon: fixed messages over a SOCK_SEQPACKET unix
 * socket. This header is the only part of images/ that others may include.
 */
#pragma once

#include <stdint.h>

enum {
	IMAGES_VERSION_MIN = 1, /* for the hello (base/link_hello.h) */
	IMAGES_VERSION_MAX = 1,
	IMAGES_DIGEST_SIZE = 72, /* "sha256:", 64 digits, a NUL */
	IMAGES_TEXT_SIZE = 512,
	IMAGES_FDS_MAX = 3,
	IMAGES_ASK_MAX = 128 * 1024, /* bytes of the text that comes with IMAGES_MAKE */
	IMAGES_CONFIG_MAX = 4 * 1024 * 1024,
	IMAGES_DISK_MIB_MAX = 64 * 1024,
	IMAGES_TEAM_MAX = 63,
};

/* IMAGES_MAKE: flags, disk_mib, descriptors: a file in memory, JSON {"team":"",
 * "reference":"[HOST/]NAME[:TAG][@DIGEST]", "sealed":"<base64>"}, of which `sealed` may be absent,
 * and `reference` is with IMAGES_ARCHIVE; then what the flags say -> answers with `more`, whose
 * text is for the build's log; then one without: digest, and a descriptor: the image's
 * configuration, JSON {"env":[], "workingDir":"", "user":"", "entrypoint":[], "cmd":[],
 * "repository":"<64 digits>"}: the last is a hash of which repository of which registry gave it.
 * Without IMAGES_DISK the name is resolved and nothing else is done.
 * ERR_NOT_FOUND: no such image. ERR_DENIED: the registry wants other credentials. ERR_MISMATCH: not
 * for this platform. ERR_EXHAUSTED: too large, or too many at once. ERR_NO_SPACE: no room in the
 * store. ERR_UNAVAILABLE: the registry does not answer. ERR_INVALID: what was asked for, or the
 * image, makes no sense. ERR_TIMEOUT: it took too long.
 *
 * IMAGES_CANCEL: of: the tag of an IMAGES_MAKE of this client. That one is answered with
 * ERR_UNAVAILABLE when nothing is left of it; one that is over is success.
 *
 * IMAGES_FACTS -> a descriptor: {"sealKey":"<base64>", "agent":"sha256:..."}: for whom credentials
 * are sealed; the agent that disks get. */
enum images_verb {
	IMAGES_MAKE,
	IMAGES_CANCEL,
	IMAGES_FACTS,
	IMAGES_VERBS,
};

enum {
	IMAGES_DISK = 1 << 0,    /* a descriptor: an empty regular file, O_RDWR, for the disk */
	IMAGES_ARCHIVE = 1 << 1, /* one more, the last: a regular file, O_RDONLY, what `docker save`
				  * writes, or a tar file of an OCI layout */
	IMAGES_FLAGS = IMAGES_DISK | IMAGES_ARCHIVE,
};

struct images_request {
	uint64_t tag;  /* not 0 */
	uint32_t verb; /* enum images_verb */
	uint32_t flags;
	uint64_t of;
	uint32_t disk_mib;
	uint32_t zero;
};

struct images_reply {
	uint64_t tag;
	uint32_t code; /* enum err_code */
	uint32_t more; /* not 0: of the same tag others follow */
	char digest[IMAGES_DIGEST_SIZE];
	char text[IMAGES_TEXT_SIZE];
};

/* What credentials are sealed as (tls/seal.h), for whom FACTS says: JSON {"username":"",
 * "password":""}, under the label TEAM IMAGES_SEAL_LABEL. */
#define IMAGES_SEAL_LABEL "/registry"

/* For who reads a client's request: what is said of kinds of credentials that are not taken. */
#define IMAGES_KIND_REFUSED                                                                        \
	"credentials of the kind %s are not supported: ask your cloud for a user name and a "      \
	"password of the registry (AWS: user AWS and the output of `aws ecr get-login-password`; " \
	"Google: user _json_key and the key file), and send them as kind registry"
