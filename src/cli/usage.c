/* usage.c - what sandboxes use of the host, once or again and again, the greediest first.
 *
 * One request: node has measured the control groups of all VMs by itself, every five seconds.
 */
#include "cli/usage.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/people.h"
#include "cli/sandboxes.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/teams.h"

enum {
	TOP_MS = 2000,
	HEAD_LINES = 5,
	LINES_USUAL = 24, /* of a terminal that does not say */
};

static const struct column columns[] = {
	{ "SANDBOX", "sandboxID", 24 },
	{ "TEAM", "team", 14 },
	{ "TEMPLATE", "template", 14 },
	{ "STATE", "state", 9 },
	{ "CPU", "cpu", .kind = COLUMN_PERCENT },
	{ "MEMORY", "usage.memUsed", .kind = COLUMN_BYTES },
	{ "OF", "usage.memTotal", .kind = COLUMN_BYTES },
	{ "DISK", "usage.diskUsed", .kind = COLUMN_BYTES },
};

/* --- order ---------------------------------------------------------------------------------- */

static const struct sort {
	const char *name, *member;
	char key; /* of top */
} sorts[] = {
	{ "memory", "memUsed", 'm' },
	{ "cpu", "cpu", 'c' },
	{ "disk", "diskUsed", 'd' },
};

/* NULL: there is none of this name. */
static const struct sort *sort_of(const char *name)
{
	for (size_t i = 0; i < COUNT(sorts); i++)
		if (!name || strcmp(sorts[i].name, name) == 0)
			return &sorts[i];
	return NULL;
}

static double value_of(const json_t *row, const struct sort *by)
{
	const json_t *v = json_object_get(row, by->member);

	return json_number_value(v ? v
				   : json_object_get(json_object_get(row, "usage"), by->member));
}

struct ranked {
	json_t *row;
	double value;
};

static int compare(const void *a, const void *b)
{
	double left = ((const struct ranked *)a)->value, right = ((const struct ranked *)b)->value;

	return (left < right) - (left > right);
}

/* The largest first. Without memory for it, as it was. */
static void sort_rows(json_t **rows, const struct sort *by)
{
	size_t n = json_array_size(*rows), i;
	AUTO(auto_free) struct ranked *all = calloc(n + 1, sizeof(*all));
	json_t *sorted = json_array(), *row;

	if (!all || !sorted) {
		json_decref(sorted);
		return;
	}
	json_array_foreach(*rows, i, row) all[i] = (struct ranked){ row, value_of(row, by) };
	qsort(all, n, sizeof(*all), compare);
	for (i = 0; i < n; i++)
		json_array_append(sorted, all[i].row);
	json_decref(*rows);
	*rows = sorted;
}

/* --- one look ------------------------------------------------------------------------------- */

/* Of one processor, as people know it from elsewhere: 200% are two. */
static void add_cpu(json_t *rows)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		const json_t *usage = json_object_get(row, "usage");
		double share = json_number_value(json_object_get(usage, "cpuUsedPct"));
		double count = json_number_value(json_object_get(usage, "cpuCount"));

		if (usage)
			json_object_set_new(row, "cpu", json_real(share * (count > 0 ? count : 1)));
	}
}

static int ask(const struct cli *c, const struct sort *by, json_t **ret, struct err *err)
{
	const struct cli_request rq = { .path = c->all ? "/admin/sandboxes?usage=true"
						       : "/admin/sandboxes?usage=true&"
							 "state=running" };

	if (cli_list(c, &rq, ret, err) < 0)
		return -1;
	add_cpu(*ret);
	sort_rows(ret, by);
	return 0;
}

static int wrong_sort(const struct cli *c)
{
	fprintf(stderr, "hotcell: --sort is memory, cpu or disk, not `%s`\n", c->sort);
	return cli_usage(c);
}

static int show_once(const struct cli *c, const struct sort *by)
{
	AUTO(json_decrefp) json_t *rows = NULL;
	struct err err = { 0 };

	if (ask(c, by, &rows, &err) < 0)
		return cli_fail(c, &err);
	if (!c->json)
		sandboxes_for_people(c, rows);
	return cli_show_rows(c, rows, columns, COUNT(columns));
}

int usage_run(struct cli *c)
{
	const struct sort *by = sort_of(c->sort);

	return by ? show_once(c, by) : wrong_sort(c);
}

/* --- again and again ------------------------------------------------------------------------ */

struct screen {
	struct termios before;
	bool keys; /* they come one by one */
	bool colours;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signo)
{
	interrupted = signo;
}

static void screen_open(const struct cli *c, struct screen *s)
{
	const struct sigaction act = { .sa_handler = on_signal };
	struct termios raw;

	*s = (struct screen){ .colours = people_colours(c, STDOUT_FILENO) };
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGHUP, &act, NULL);
	if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &s->before) == 0) {
		raw = s->before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		s->keys = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
	}
	printf("\033[?1049h\033[?25l"); /* another screen, without a cursor */
}

static void screen_close(struct screen *s)
{
	printf("\033[?25h\033[?1049l");
	fflush(stdout);
	if (s->keys)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
}

/* All of them together. */
static void say_sums(const json_t *rows, const struct screen *s, const struct sort *by)
{
	uint64_t memory = 0, disk = 0;
	double cpu = 0;
	char text[2][PEOPLE_SIZE], clock[16];
	const json_t *row;
	time_t now = time(NULL);
	struct tm tm;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		cpu += json_number_value(json_object_get(row, "cpu"));
		memory += (uint64_t)value_of(row, &sorts[0]);
		disk += (uint64_t)value_of(row, &sorts[2]);
	}
	people_size(memory, text[0]);
	people_size(disk, text[1]);
	if (!localtime_r(&now, &tm) || strftime(clock, sizeof(clock), "%H:%M:%S", &tm) == 0)
		clock[0] = '\0';
	printf("%shotcell top%s  %s  %zu sandboxes   cpu %.0f%%   memory %s   disk %s\n",
	       s->colours ? "\033[1m" : "", s->colours ? "\033[0m" : "", clock,
	       json_array_size(rows), cpu, text[0], text[1]);
	printf("by %s; c, m, d: by cpu, memory, disk; q: quit\n\n", by->name);
}

static size_t lines_of_terminal(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row
									       : LINES_USUAL;
}

static void draw(const struct cli *c, const struct screen *s, const struct sort *by, json_t *rows)
{
	size_t lines = lines_of_terminal(), most = lines > HEAD_LINES ? lines - HEAD_LINES : 1;

	printf("\033[H\033[2J");
	say_sums(rows, s, by);
	while (json_array_size(rows) > most)
		json_array_remove(rows, json_array_size(rows) - 1);
	sandboxes_for_people(c, rows);
	table_print(stdout, rows, columns, COUNT(columns));
	fflush(stdout);
}

/* Until the next look, or a key. False: enough. */
static bool wait_for_key(const struct screen *s, const struct sort **by)
{
	struct pollfd p = { .fd = s->keys ? STDIN_FILENO : -1, .events = POLLIN };
	char key;

	if (poll(&p, 1, TOP_MS) <= 0)
		return !interrupted;
	if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q')
		return false;
	for (size_t i = 0; i < COUNT(sorts); i++)
		if (key == sorts[i].key)
			*by = &sorts[i];
	return !interrupted;
}

static int run_screen(const struct cli *c, const struct sort *by)
{
	struct err err = { 0 };
	struct screen s;
	int rc = 0;

	screen_open(c, &s);
	do {
		AUTO(json_decrefp) json_t *rows = NULL;

		rc = ask(c, by, &rows, &err);
		if (rc == 0)
			draw(c, &s, by, rows);
	} while (rc == 0 && !ferror(stdout) && wait_for_key(&s, &by));
	screen_close(&s);
	return rc < 0 && !interrupted ? cli_fail(c, &err) : CLI_FINE;
}

int top_run(struct cli *c)
{
	const struct sort *by = sort_of(c->sort);

	if (!by)
		return wrong_sort(c);
	return c->json || !isatty(STDOUT_FILENO) ? show_once(c, by) : run_screen(c, by);
}
