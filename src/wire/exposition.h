/* exposition.h - figures for an operator's monitoring, as Prometheus reads them: text, version
 * 0.0.4. Pure.
 *
 *	exposition_family(&e, &figures[FIGURE_SANDBOXES]);
 *	exposition_value(&e, LABELS({ "state", "running" }), 12);
 *
 * All lines of one family come together, after its head. What does not fit sets e.failed, and
 * nothing follows.
 */
#pragma once

#include <stdio.h>

#include "base/bytes.h"
#include "base/latency.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum exposition_kind { EXPOSITION_COUNTER, EXPOSITION_GAUGE, EXPOSITION_HISTOGRAM };
enum { EXPOSITION_LABELS_MAX = 3 };

struct figure { /* a row of a table: name, kind, names of its labels with commas, help */
	const char *name;
	enum exposition_kind kind;
	const char *labels, *help;
};

struct exposition {
	struct buf *out;
	const struct figure *family;
	bool failed;
};

struct exposition_label {
	const char *name, *value; /* name NULL: there is none */
};
#define LABELS(...) ((const struct exposition_label[EXPOSITION_LABELS_MAX]){ __VA_ARGS__ })
#define NO_LABELS   LABELS({ 0 })

void exposition_family(struct exposition *e, const struct figure *f);
void exposition_value(struct exposition *e,
		      const struct exposition_label labels[static EXPOSITION_LABELS_MAX],
		      uint64_t value);
/* In millionths: seconds of a time in microseconds. */
void exposition_millionths(struct exposition *e,
			   const struct exposition_label labels[static EXPOSITION_LABELS_MAX],
			   uint64_t value);
void exposition_latency(struct exposition *e,
			const struct exposition_label labels[static EXPOSITION_LABELS_MAX],
			const struct latency *l);
/* A whole family of one value, without labels. */
void exposition_single(struct exposition *e, const struct figure *f, uint64_t value);

/* NAME, KIND, LABELS and HELP of each with tabs between them, one per line: for documents. */
void exposition_print(const struct figure *all, size_t n, FILE *out);
