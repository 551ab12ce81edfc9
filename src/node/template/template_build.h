/* template_build.h - a template out of a kernel and a disk.
 *
 *	TEMPLATE_DROP -> TEMPLATE_BEGIN -> SLOT_MAKE -> BUILD -> build (vm/) -> STOP -> PUBLISH
 *
 * When a step fails, what was begun is taken back before the failure is told.
 */
#pragma once

#include "node/links/warden_client.h"
#include "vm/build.h"

enum { TEMPLATE_PATH_MAX = 512 };

struct template_build_spec {
	struct warden_client *warden;
	struct loop *loop;
	const char *state_dir;
	const char *id; /* of the template; borrowed until the end, as is all of this */
	struct warden_sizes sizes;
	struct addr agent;
	struct manifest_facts facts;
	bool provision;    /* its disk is of an image (vm/provision.h) */
	struct bytes ca;   /* PEM that its guests trust (vm/trust_ca.h); or none */
	bool ask_packages; /* the manifest's `packages` (vm/package_hosts.h) */
	struct bytes start_command, ready_command; /* in the guest, before it is saved; or none */
	struct bytes user;                         /* who runs these; empty: "user" */
	int kernel, disk;                          /* taken */
};

/* What a template is made with here, in words of its manifest. `s`: for which warden told them. */
void template_facts(const struct warden_facts *f, const struct warden_sizes *s,
		    struct manifest_facts *ret);
/* The same of a VM with other sizes. */
void template_facts_resize(struct manifest_facts *f, uint32_t vcpus, uint32_t memory_mib);

struct template_build; /* one build */
struct template_build_user;
struct template_build_user_ops {
	/* Once; the build no longer exists. */
	void (*on_done)(struct template_build_user *u, const struct manifest *m,
			const struct err *err);
};
struct template_build_user { /* embedded by the owner */
	const struct template_build_user_ops *ops;
};

int template_build_start(const struct template_build_spec *spec, struct template_build_user *u,
			 struct template_build **ret, struct err *err) NODISCARD;
void template_build_cancel(struct template_build *b); /* takes nothing back; NULL is fine */
const char *template_build_vm(const struct template_build *b); /* its name at warden */
/* The last step that was reached (vm/build.h); "": none. */
const char *template_build_reached(const struct template_build *b);
