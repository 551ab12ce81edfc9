/* template_job.h - the files of a template: sealed with a manifest, or verified against it.
 *
 * Reading all of them takes long, so it happens on a thread.
 */
#pragma once

#include "vm/manifest_check.h"
#include "vm/work.h"

struct template_files { /* owned, read-only; -1: none */
	int fd[MANIFEST_FILES];
};

void template_files_init(struct template_files *f);

/* Opens them by their names in the folder `dir`. */
int template_files_open(struct template_files *ret, int dir, struct err *err) NODISCARD;

/* The manifest in the folder `dir`. ERR_MISMATCH when it cannot be understood. */
int template_manifest_read(int dir, struct manifest *ret, struct err *err) NODISCARD;
/* Into an empty file, and synced. */
int template_manifest_write(int fd, const struct manifest *m, struct err *err) NODISCARD;

struct template_watcher;
struct template_watcher_ops {
	/* Once, on the loop. Sealed: `m` is what was written. Verified: ERR_MISMATCH has a
	 * reason. */
	void (*on_done)(struct template_watcher *w, const struct manifest *m,
			enum manifest_reason reason, const struct err *err);
};
struct template_watcher { /* embedded by the one who waits */
	const struct template_watcher_ops *ops;
};

struct template_job;

struct template_spec {
	struct template_files *files; /* taken in any case */
	const struct manifest *manifest;
	struct loop *loop;
	struct template_watcher *watcher;
};

/* Sum up the files, complete the manifest with that and the kernel's version, write it into the
 * empty file `into` and make that durable. Takes `into` in any case. */
int template_seal(const struct template_spec *spec, int into, struct template_job **ret,
		  struct err *err) NODISCARD;

/* Sum up the files and compare. */
int template_verify(const struct template_spec *spec, struct template_job **ret,
		    struct err *err) NODISCARD;

void template_job_cancel(struct template_job *j); /* on_done will not come; NULL is fine */
