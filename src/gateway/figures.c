/* figures.c - see figures.h. */
/* #syscalls: pread64 */
#include "gateway/figures.h"

#include <assert.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/link_hello.h"
#include "base/log.h"
#include "base/random.h"

static_assert((int)REQUEST_ID_LENGTH < (int)HTTP_NOTE_ID, "an id does not fit its note");

enum {
#define FIGURE(id, name, kind, labels, help) FIGURE_##id,
#include "gateway/figures.def"
	FIGURES,
};

static const struct figure table[FIGURES] = {
#define FIGURE(id, name, kind, labels, help) { name, EXPOSITION_##kind, labels, help },
#include "gateway/figures.def"
};

static const char *const classes[CLASSES] = {
	[CLASS_UNNOTED] = "",
	[CLASS_SANDBOXES] = "sandboxes",
	[CLASS_TEMPLATES] = "templates",
	[CLASS_SNAPSHOTS] = "snapshots",
	[CLASS_SECRETS] = "secrets",
	[CLASS_TEAMS] = "teams",
	[CLASS_HEALTH] = "health",
	[CLASS_ADMIN] = "admin",
	[CLASS_METRICS] = "metrics",
	[CLASS_OTHER] = "other",
	[CLASS_TRAFFIC] = "traffic",
};

/* The first that a path begins with, behind /v2 or /v3. */
static const struct {
	const char *begin;
	enum figures_class class;
} routes[] = {
	{ "/admin/", CLASS_ADMIN },        { "/metrics", CLASS_METRICS },
	{ "/health", CLASS_HEALTH },       { "/sandboxes", CLASS_SANDBOXES },
	{ "/snapshots", CLASS_SNAPSHOTS }, { "/templates", CLASS_TEMPLATES },
	{ "/secrets", CLASS_SECRETS },     { "/teams", CLASS_TEAMS },
	{ "/api-keys", CLASS_TEAMS },
};

static enum figures_class class_of(const char *path)
{
	if (path[0] == '/' && path[1] == 'v' && path[2] >= '2' && path[2] <= '9' && path[3] == '/')
		path += 3;
	for (size_t i = 0; i < COUNT(routes); i++)
		if (strncmp(path, routes[i].begin, strlen(routes[i].begin)) == 0)
			return routes[i].class;
	return CLASS_OTHER;
}

void figures_begin(struct http_request *rq, enum figures_class c)
{
	struct http_note *note = http_request_note(rq);

	note->kind = c;
	note->since_ns = clock_mono_ns();
	if (c != CLASS_TRAFFIC && !note->id[0])
		random_name(note->id, REQUEST_ID_LENGTH);
}

void figures_route(struct http_request *rq, const char *method, const char *path)
{
	struct http_note *note = http_request_note(rq);

	note->how = method;
	note->what = path;
	note->kind = class_of(path);
}

/* What somebody's monitoring asks every few seconds is told only when it went wrong. */
static bool is_told(const struct http_note *note, unsigned int status)
{
	return note->kind != CLASS_TRAFFIC &&
	       ((note->kind != CLASS_HEALTH && note->kind != CLASS_METRICS) || status >= 400);
}

void figures_over(struct figures *f, struct http_request *rq, unsigned int status)
{
	const struct http_note *note = http_request_note(rq);
	uint64_t us;

	if (note->kind == CLASS_UNNOTED || note->kind >= CLASSES)
		return;
	if (status < FIGURES_STATUS_MIN || status >= FIGURES_STATUS_MIN + FIGURES_STATUSES)
		status = FIGURES_LEFT;
	us = (clock_mono_ns() - note->since_ns) / 1000;
	f->answered[note->kind][status - FIGURES_STATUS_MIN]++;
	if (note->kind != CLASS_TRAFFIC)
		latency_add(&f->took[note->kind], us);
	if (f->logs && is_told(note, status))
		log_info("access method=%s route=%s status=%u ms=%" PRIu64 " team=%s request=%s",
			 note->how ? note->how : "-", note->what ? note->what : "-", status,
			 us / 1000, note->whose[0] ? note->whose : "-", note->id);
}

/* --- as text ------------------------------------------------------------------------------ */

static void put_traffic(struct exposition *e, const uint64_t answered[static FIGURES_STATUSES])
{
	char code[] = "1xx";

	for (unsigned int hundred = 0; hundred < FIGURES_STATUSES / 100; hundred++) {
		uint64_t n = 0;

		for (unsigned int i = 0; i < 100; i++)
			n += answered[hundred * 100 + i];
		code[0] = (char)('1' + hundred);
		exposition_value(e, LABELS({ "class", classes[CLASS_TRAFFIC] }, { "code", code }),
				 n);
	}
}

static void put_requests(struct exposition *e, const struct figures *f)
{
	char code[16];

	exposition_family(e, &table[FIGURE_REQUESTS]);
	for (size_t c = CLASS_UNNOTED + 1; c < CLASS_TRAFFIC; c++)
		for (unsigned int i = 0; i < FIGURES_STATUSES; i++) {
			if (f->answered[c][i] == 0)
				continue;
			(void)snprintf(code, sizeof(code), "%u", FIGURES_STATUS_MIN + i);
			exposition_value(e, LABELS({ "class", classes[c] }, { "code", code }),
					 f->answered[c][i]);
		}
	put_traffic(e, f->answered[CLASS_TRAFFIC]);
	exposition_family(e, &table[FIGURE_DURATION]);
	for (size_t c = CLASS_UNNOTED + 1; c < CLASS_TRAFFIC; c++)
		exposition_latency(e, LABELS({ "class", classes[c] }), &f->took[c]);
}

void figures_put(const struct figures *f, const struct figures_now *now, struct exposition *e)
{
	put_requests(e, f);
	exposition_single(e, &table[FIGURE_CALLS], now->calls);
	exposition_single(e, &table[FIGURE_CONNECTIONS], now->connections);
	exposition_single(e, &table[FIGURE_CONNECTIONS_MAX], now->connections_max);
	exposition_single(e, &table[FIGURE_STREAMS], now->streams);
	exposition_single(e, &table[FIGURE_NODE_UP], now->node_up);
	exposition_family(e, &table[FIGURE_BUILD_INFO]);
	exposition_value(e, LABELS({ "version", link_build }), 1);
	exposition_family(e, &table[FIGURE_CPU]);
	exposition_millionths(e, NO_LABELS, process_use_cpu_us());
	exposition_single(e, &table[FIGURE_RESIDENT], process_use_memory(&f->process));
	exposition_family(e, &table[FIGURE_STARTED]);
	exposition_millionths(e, NO_LABELS, f->process.started_ns / 1000);
}

void figures_print(void)
{
	exposition_print(table, FIGURES, stdout);
}
