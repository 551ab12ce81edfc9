/* doctor.h - one look at the host, and what was seen. */
#pragma once

#include "cli/cli.h"

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };

struct finding {
	enum verdict verdict;
	char what[1024];
	const char *fix; /* a literal; shown unless all is well */
};

struct check {
	const char *name;
	void (*look)(const struct cli *c, struct finding *ret);
};

extern const struct check host_checks[];
extern const size_t n_host_checks;

void finding_set(struct finding *f, enum verdict v, const char *fix, const char *fmt, ...)
	PRINTF(4, 5);

/* daemons.c: what they say. */
void look_server(const struct cli *c, struct finding *f);
void look_journal(const struct cli *c, struct finding *f);
void look_vms(const struct cli *c, struct finding *f);
void look_saved(const struct cli *c, struct finding *f);
void look_templates(const struct cli *c, struct finding *f);

/* At most `size` - 1 bytes of a small file, NUL-terminated; false when it cannot be read. */
bool doctor_read(const char *path, char *ret, size_t size);
