/* import.c - a template out of an image in a file, for hosts without a network.
 *
 *	the file is looked at -> a template with a build that waits -> the file is sent -> the
 *	build's log, until it ends -> for all teams, if wanted
 */
#include "cli/import.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/own.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/templates.h"

enum {
	LOOK_MS = 300,                         /* between two looks at a build */
	LOOKS_MAX = 4 * 3600 * 1000 / LOOK_MS, /* others may be before it */
	DEAF_MAX = 60 * 1000 / LOOK_MS,        /* looks without an answer: daemons are restarted */
	ID_SIZE = 64,
};

#define HOW_TO_SAVE "`docker save -o FILE IMAGE` or `skopeo copy SOURCE oci-archive:FILE`"

struct import {
	const struct cli *c;
	struct cli_file file;
	char team[ID_SIZE], template[ID_SIZE], build[ID_SIZE];
	json_t *made; /* as the gateway told it */
};

/* --- the file ------------------------------------------------------------------------------- */

static int check_file(const char *path, const struct stat *st, struct err *err)
{
	if (S_ISDIR(st->st_mode))
		return err_set(err, ERR_INVALID, 0,
			       "%s is a folder: pack it, `tar -C FOLDER -cf FILE .`", path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, ERR_INVALID, 0, "%s is no regular file", path);
	return st->st_size > 0 ? 0 : err_set(err, ERR_INVALID, 0, "%s is empty", path);
}

/* A pipe without a writer is not waited for. */
static int open_file(const char *path, struct cli_file *ret, struct err *err)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INVALID, errno, "%s",
			       path);
	if (check_file(path, &st, err) < 0)
		return -1;
	*ret = (struct cli_file){ .fd = take_fd(&fd), .bytes = (uint64_t)st.st_size };
	return 0;
}

/* --- the template --------------------------------------------------------------------------- */

static int copy_text(const json_t *from, const char *name, char ret[static ID_SIZE],
		     struct err *err)
{
	struct bytes text;

	if (json_want_string(from, name, &text, err) < 0)
		return -1;
	if (!bytes_to_str(text, ret, ID_SIZE))
		return err_set(err, ERR_INTERNAL, 0, "gateway: %s is too long", name);
	return 0;
}

/* Without --team: the only one there is. */
static int choose_team(struct import *i, struct err *err)
{
	AUTO(json_decrefp) json_t *teams = NULL;

	if (i->c->team) {
		if (bytes_to_str(bytes_str(i->c->team), i->team, sizeof(i->team)))
			return 0;
		return err_set(err, ERR_NOT_FOUND, 0, "no such team");
	}
	if (cli_ask(i->c, &(struct cli_request){ .path = "/admin/teams" }, &teams, err) < 0)
		return -1;
	if (json_array_size(teams) != 1)
		return err_set(err, ERR_INVALID, 0,
			       "there are %zu teams: say whose it is, --team TEAM",
			       json_array_size(teams));
	return copy_text(json_array_get(teams, 0), "teamID", i->team, err);
}

static int add_number(json_t *body, const char *member, const char *text, struct err *err)
{
	uint64_t n;

	if (!text)
		return 0;
	if (!bytes_to_u64(bytes_str(text), &n) || n > UINT32_MAX)
		return err_set(err, ERR_INVALID, 0, "`%s` is not a number", text);
	return json_object_set_new(body, member, json_integer((json_int_t)n)) < 0
		       ? err_set(err, ERR_INTERNAL, 0, "out of memory")
		       : 0;
}

static int add_tag(json_t *body, const char *tag, struct err *err)
{
	if (!tag)
		return 0;
	return json_object_set_new(body, "tags",
				   json_pack("[s, o]", "default", json_text(bytes_str(tag)))) < 0
		       ? err_set(err, ERR_INVALID, 0, "`%s` is no tag", tag)
		       : 0;
}

static int make_template(struct import *i, struct err *err)
{
	AUTO(json_decrefp)
	json_t *body = json_pack("{s:o}", "name", json_text(bytes_str(i->c->words[2])));
	const struct cli_request rq = { "POST", "/admin/teams/", i->team, "/templates",
					.body = body };

	if (!body)
		return err_set(err, ERR_INVALID, 0, "`%s` is no name", i->c->words[2]);
	if (add_number(body, "cpuCount", i->c->cpus, err) < 0 ||
	    add_number(body, "memoryMB", i->c->limits[LIMIT_MEMORY], err) < 0 ||
	    add_tag(body, i->c->tag, err) < 0 || cli_ask(i->c, &rq, &i->made, err) < 0)
		return -1;
	if (copy_text(i->made, "templateID", i->template, err) < 0)
		return -1;
	return copy_text(i->made, "buildID", i->build, err);
}

/* --- the build ------------------------------------------------------------------------------ */

/* A build that nothing came for does not wait for it. */
static int send_file(const struct import *i, struct err *err)
{
	AUTO(json_decrefp) json_t *ignored = NULL;
	const struct cli_request put = { .method = "PUT",
					 .path = "/admin/builds/",
					 .id = i->build,
					 .suffix = "/archive?startCmd=",
					 .value = i->c->start,
					 .suffix2 = "&readyCmd=",
					 .value2 = i->c->ready,
					 .file = &i->file };
	const struct cli_request cancel = { "DELETE", "/admin/builds/", i->build };
	struct err also;

	if (cli_ask(i->c, &put, &ignored, err) == 0)
		return 0;
	if (cli_ask(i->c, &cancel, &ignored, &also) < 0 && !i->c->json)
		fprintf(stderr, "hotcell: build %s still waits: %s\n", i->build, also.msg);
	return -1;
}

static void say_lines(const struct import *i, const json_t *lines)
{
	const json_t *line;
	size_t n;

	if (i->c->json)
		return;
	json_array_foreach(lines, n, line) table_line(stdout, line, "message");
	(void)fflush(stdout);
}

/* 1: it is ready; 0: it goes on; -1: it failed, or cannot be looked at. */
static int look(const struct import *i, size_t *seen, struct err *err)
{
	AUTO(json_decrefp) json_t *lines = json_array(), *build = NULL;
	struct bytes status, why = BYTES_LIT("no reason given");

	if (build_page(i->c, i->build, *seen, lines, &build, err) < 0)
		return -1;
	*seen += json_array_size(lines);
	say_lines(i, lines);
	if (json_want_string(build, "status", &status, err) < 0)
		return -1;
	if (bytes_eq(status, BYTES_LIT("ready")))
		return json_array_size(lines) == 0;
	if (!bytes_eq(status, BYTES_LIT("error")) || json_array_size(lines) > 0)
		return 0;
	(void)!json_may_string(json_object_get(build, "reason"), "message", &why, err);
	err_set(err, ERR_EXISTS, 0, "build %s: %.*s", i->build, (int)why.len,
		(const char *)why.ptr);
	table_clean(err->msg);
	return -1;
}

static int follow(const struct import *i, struct err *err)
{
	size_t seen = 0, deaf = 0;

	for (size_t n = 0; n < LOOKS_MAX; n++) {
		int rc = look(i, &seen, err);

		if (rc > 0)
			return 0;
		deaf = rc < 0 ? deaf + 1 : 0;
		if (rc < 0 && (err->code != ERR_UNAVAILABLE || deaf > DEAF_MAX))
			return -1;
		(void)poll(NULL, 0, LOOK_MS);
	}
	return err_set(err, ERR_TIMEOUT, 0, "build %s goes on: hotcell templates logs %s", i->build,
		       i->build);
}

/* --- all of it ------------------------------------------------------------------------------ */

static int publish(const struct import *i, struct err *err)
{
	AUTO(json_decrefp) json_t *body = json_pack("{s:b}", "public", 1), *ignored = NULL;
	const struct cli_request rq = { "PATCH", "/admin/templates/", i->template, .body = body };

	if (!i->c->public)
		return 0;
	if (cli_ask(i->c, &rq, &ignored, err) < 0)
		return -1;
	return json_object_set(i->made, "public", json_object_get(body, "public"));
}

static int say_ready(const struct import *i)
{
	const char *whole = json_string_value(json_array_get(json_object_get(i->made, "names"), 0));

	if (i->c->json)
		return cli_print_json(i->made);
	printf("%s is ready: template %s, build %s\n", whole ? whole : i->c->words[2], i->template,
	       i->build);
	printf("use it: Sandbox.create(\"%s\")\n", i->c->public && whole ? whole : i->c->words[2]);
	return CLI_FINE;
}

static int import_file(struct import *i)
{
	struct err err = { 0 };

	if (choose_team(i, &err) < 0 || make_template(i, &err) < 0)
		return cli_fail(i->c, &err);
	if (send_file(i, &err) < 0)
		return err.code == ERR_EXHAUSTED
			       ? cli_fail_fix(i->c, &err,
					      "raise what it names, or wait for other imports")
			       : cli_fail(i->c, &err);
	if (follow(i, &err) < 0)
		return cli_fail_fix(i->c, &err,
				    "what was said before: hotcell templates logs BUILD. The file "
				    "must hold an image for this host's architecture, with bash in "
				    "it, as " HOW_TO_SAVE " writes it");
	return publish(i, &err) < 0 ? cli_fail(i->c, &err) : say_ready(i);
}

int import_run(struct cli *c)
{
	struct import i = { .c = c };
	struct err err = { 0 };
	int status;

	if (open_file(c->words[1], &i.file, &err) < 0)
		return cli_fail_fix(c, &err, "name a file as " HOW_TO_SAVE " writes it");
	status = import_file(&i);
	auto_close(&i.file.fd);
	json_decref(i.made);
	return status;
}
