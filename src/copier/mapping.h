/* mapping.h - where in a process its copy of a file is. */
#pragma once

#include "base/bytes.h"

enum { MAPPINGS_MAX = 64, MAPPING_TEXT_MAX = 1024 * 1024 };

/* A file as the kernel names it in /proc/PID/maps; stat has another device on some filesystems. */
struct mapping_file {
	uint32_t major, minor;
	uint64_t inode;
};

struct mapping {
	uint64_t offset, bytes; /* of the file */
	uint64_t at;            /* its address */
};

struct mappings {
	size_t n;
	struct mapping all[MAPPINGS_MAX]; /* ascending by offset */
};

/* Before the process is confined: it maps the file for a moment, to see what it is called. */
int mapping_identify(int fd, struct mapping_file *ret, struct err *err) NODISCARD;

/* The text of maps. All of the file, `bytes` long, must be mapped, privately and writable, each
 * part of it once; anything else is ERR_INVALID. */
int mapping_parse(struct bytes text, const struct mapping_file *f, uint64_t bytes,
		  struct mappings *ret, struct err *err) NODISCARD;

/* The same from an open maps file. */
int mapping_find(int maps, const struct mapping_file *f, uint64_t bytes, struct mappings *ret,
		 struct err *err) NODISCARD;
