/* doctor.h - one look at the host, and what was seen. */
#pragma once

#include "cli/cli.h"
#include "cli/places.h"
#include "wire/json.h"

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

struct finding {
	enum verdict verdict;
	char what[1024];
	char fix[512]; /* shown unless all is well */
};

struct told { /* what all checks know: where things are, and the daemons' answers, asked for once */
	const struct cli *cli;
	struct places places;
	bool before;              /* nothing is installed: no daemon was asked */
	bool fresh;               /* it is, and no daemon has ever run */
	const json_t *gateway;    /* its status; NULL: it cannot be asked */
	const json_t *node;       /* the same of node */
	const json_t *versions;   /* the build of each daemon */
	const json_t *mismatches; /* of daemons of different versions, in words */
	const json_t *tls;        /* what the gateway says of it; NULL: it is not spoken */
	const char *why;          /* not even the gateway can; NULL: it can */
};

enum check_when {
	CHECK_ALWAYS,
	CHECK_INSTALLED, /* not before an installation: there is nothing to look at */
	CHECK_NODE,      /* the same, and only if node can be asked */
};

struct check {
	const char *name;
	void (*look)(const struct told *t, struct finding *ret);
	enum check_when when;
};

struct checks {
	const struct check *all;
	size_t n;
};

/* In the order in which they are said. */
extern const struct checks host_checks;    /* host.c: kernel and programs */
extern const struct checks machine_checks; /* machine.c: memory, processors, limits, time */
extern const struct checks folder_checks;  /* folders.c: disks and folders */
extern const struct checks way_checks;     /* ways.c: ports, names, proxies, certificates */
extern const struct checks image_checks;   /* images.c */
extern const struct checks daemon_checks;  /* daemons.c */

void finding_set(struct finding *f, enum verdict v, const char *fix, const char *fmt, ...)
	PRINTF(4, 5);
/* Another fix, for what a literal cannot say. */
void finding_fix(struct finding *f, const char *fmt, ...) PRINTF(2, 3);
/* Behind what is said already, after "; ": the worst verdict stays, with the fix of the first. */
void finding_add(struct finding *f, enum verdict v, const char *fix, const char *fmt, ...)
	PRINTF(4, 5);

int doctor_run(struct cli *c);

/* Who wants to know what is found before an installation, one check after the other. */
struct doctor_user { /* embedded by the owner */
	void (*seen)(struct doctor_user *u, const char *check, const struct finding *f);
};
void doctor_before(const struct cli *c, struct doctor_user *u);
