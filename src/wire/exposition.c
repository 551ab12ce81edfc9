/* exposition.c - see exposition.h. */
#include "wire/exposition.h"

#include <inttypes.h>
#include <stdio.h>

enum { MILLION = 1000 * 1000 };

static const char *const kinds[] = { "counter", "gauge", "histogram" };

static void add(struct exposition *e, const char *text)
{
	struct err err;

	if (!e->failed && buf_add(e->out, bytes_str(text), &err) < 0)
		e->failed = true;
}

/* Of a value: a backslash, a quote and a new line are written as two characters each. */
static void add_escaped(struct exposition *e, const char *value)
{
	char two[3] = "\\x", one[2] = "";

	for (; *value; value++) {
		two[1] = *value == '\n' ? 'n' : *value;
		one[0] = *value;
		add(e, *value == '\\' || *value == '"' || *value == '\n' ? two : one);
	}
}

static void add_label(struct exposition *e, const char *name, const char *value, bool *any)
{
	add(e, *any ? "," : "{");
	add(e, name);
	add(e, "=\"");
	add_escaped(e, value);
	add(e, "\"");
	*any = true;
}

/* NAME and `more`, its labels, and `le` where there is one. */
static void begin(struct exposition *e, const char *more, const struct exposition_label *labels,
		  const char *le)
{
	bool any = false;

	add(e, e->family->name);
	add(e, more);
	for (size_t i = 0; i < EXPOSITION_LABELS_MAX && labels[i].name; i++)
		add_label(e, labels[i].name, labels[i].value, &any);
	if (le)
		add_label(e, "le", le, &any);
	if (any)
		add(e, "}");
}

static void end_number(struct exposition *e, uint64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), " %" PRIu64 "\n", n);
	add(e, text);
}

static void end_millionths(struct exposition *e, uint64_t n)
{
	char text[48];

	(void)snprintf(text, sizeof(text), " %" PRIu64 ".%06" PRIu64 "\n", n / MILLION,
		       n % MILLION);
	add(e, text);
}

void exposition_family(struct exposition *e, const struct figure *f)
{
	e->family = f;
	add(e, "# HELP ");
	add(e, f->name);
	add(e, " ");
	add(e, f->help);
	add(e, "\n# TYPE ");
	add(e, f->name);
	add(e, " ");
	add(e, kinds[f->kind]);
	add(e, "\n");
}

void exposition_value(struct exposition *e,
		      const struct exposition_label labels[static EXPOSITION_LABELS_MAX],
		      uint64_t value)
{
	begin(e, "", labels, NULL);
	end_number(e, value);
}

void exposition_millionths(struct exposition *e,
			   const struct exposition_label labels[static EXPOSITION_LABELS_MAX],
			   uint64_t value)
{
	begin(e, "", labels, NULL);
	end_millionths(e, value);
}

void exposition_latency(struct exposition *e,
			const struct exposition_label labels[static EXPOSITION_LABELS_MAX],
			const struct latency *l)
{
	uint64_t so_far = 0;
	char bound[32];

	for (size_t i = 0; i < LATENCY_BOUNDS; i++) {
		so_far += l->in[i];
		(void)snprintf(bound, sizeof(bound), "%g", latency_bound_ms(i) / 1000.0);
		begin(e, "_bucket", labels, bound);
		end_number(e, so_far);
	}
	begin(e, "_bucket", labels, "+Inf");
	end_number(e, l->count);
	begin(e, "_sum", labels, NULL);
	end_millionths(e, l->sum_us);
	begin(e, "_count", labels, NULL);
	end_number(e, l->count);
}

void exposition_single(struct exposition *e, const struct figure *f, uint64_t value)
{
	exposition_family(e, f);
	exposition_value(e, NO_LABELS, value);
}

void exposition_print(const struct figure *all, size_t n, FILE *out)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s\t%s\t%s\t%s\n", all[i].name, kinds[all[i].kind], all[i].labels,
			all[i].help);
}
