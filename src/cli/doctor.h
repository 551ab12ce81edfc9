/* doctor.h - one look at the host, and what was seen. */
#pragma once

#include "cli/cli.h"
#include "wire/json.h"

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

struct finding {
	const struct cli *cli; /* of a check of the host: what was asked for */
	enum verdict verdict;
	char what[1024];
	const char *fix; /* a literal; shown unless all is well */
};

struct check {
	const char *name;
	void (*look)(struct finding *ret);
};

extern const struct check host_checks[];
extern const size_t n_host_checks;
extern const struct check image_checks[]; /* images.c */
extern const size_t n_image_checks;

struct told { /* the daemons' answers, asked for once */
	const struct cli *cli;
	const json_t *gateway;    /* its status; NULL: it cannot be asked */
	const json_t *node;       /* the same of node */
	const json_t *versions;   /* the build of each daemon */
	const json_t *mismatches; /* of daemons of different versions, in words */
	const json_t *tls;        /* what the gateway says of it; NULL: it is not spoken */
	const char *why;          /* not even the gateway can; NULL: it can */
};

struct told_check {
	const char *name;
	void (*look)(const struct told *t, struct finding *ret);
	bool needs_node; /* it is looked at only if node can be asked */
};

extern const struct told_check daemon_checks[];
extern const size_t n_daemon_checks;

void finding_set(struct finding *f, enum verdict v, const char *fix, const char *fmt, ...)
	PRINTF(4, 5);

/* What a program prints, at most size - 1 bytes of it. It has ten seconds. False: nothing. */
bool program_output(const char *const *argv, char *ret, size_t size);

int doctor_run(struct cli *c);
