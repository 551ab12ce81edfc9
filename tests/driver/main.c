/* main.c - hotcell-driver: builds templates and drives sandboxes for tests, one JSON line each. */
#include "tests/driver/driver.h"

#include <errno.h>
#include <getopt.h>

#include "base/log.h"
#include "warden/protocol.h"

static const char usage[] =
	"usage: hotcell-driver --warden SOCKET --state FOLDER\n"
	"Reads {\"id\":...,\"op\":...} lines, writes one answer line for each;\n"
	"tests/driver/README.md lists the operations.\n";

static int parse(int argc, char **argv, struct driver *d)
{
	static const struct option options[] = {
		{ "warden", required_argument, NULL, 'w' },
		{ "state", required_argument, NULL, 's' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'w')
			d->warden_path = optarg;
		else if (c == 's')
			d->state_dir = optarg;
		else
			return -1;
	}
	return d->warden_path && d->state_dir && optind == argc ? 0 : -1;
}

static int set_up(struct driver *d, struct err *err)
{
	if (loop_open(&d->loop, err) < 0)
		return -1;
	if (addr_ip(AGENT_ADDRESS, AGENT_PORT, &d->agent, err) < 0 || lines_open(d, err) < 0)
		return -1;
	return 0;
}

static void take_down(struct driver *d)
{
	lines_close(d);
	sandboxes_drop_all(d);
	templates_forget(d, NULL);
	warden_client_close(&d->warden);
	loop_free(d->loop);
}

int main(int argc, char **argv)
{
	static struct driver d;
	struct err err = { 0 };

	if (parse(argc, argv, &d) < 0) {
		fputs(usage, stderr);
		return 2;
	}
	log_init("driver", LOG_INFO);
	if (set_up(&d, &err) < 0) {
		log_error("%s", err.msg);
		return 1;
	}
	driver_connect(&d);
	loop_run(d.loop);
	take_down(&d);
	return 0;
}
