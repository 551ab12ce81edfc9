/* say.c - how a failure, a usage and JSON are printed. */
#include "cli/say.h"

#include <errno.h>

#include "cli/cli.h"
#include "cli/commands.h"

/* What a person can do about it. */
static const char *fix_of(const struct err *err)
{
	switch (err->code) {
	case ERR_UNAVAILABLE:
	case ERR_TIMEOUT:
		return "see that hotcell-gateway and hotcell-node run, and name the gateway's "
		       "socket "
		       "with --socket or HOTCELL_ADMIN_SOCKET";
	case ERR_DENIED:
		return "run it as root (sudo), or as the gateway's admin_uid";
	case ERR_NOT_FOUND:
		return "list what there is: hotcell teams, keys, ps, templates";
	case ERR_INVALID:
		return "hotcell --help";
	case ERR_EXHAUSTED:
		return "a limit was reached: hotcell status";
	case ERR_MISMATCH:
		return "boot it from its disk, which is as after a power cut: hotcell resume "
		       "--boot "
		       "SANDBOX; or give warden the QEMU and processor it was saved with";
	case ERR_NO_SPACE:
		return "make room on that disk, or end sandboxes and snapshots that are of no use: "
		       "hotcell ps --all, hotcell snapshots";
	case ERR_NO_FILES:
		return "mount the disk that has them, and restart hotcell-node; nothing was "
		       "deleted";
	case ERR_BASE_LOST:
		return "put the template back from a backup, then try again: hotcell templates "
		       "says which; until then it stays as it is";
	case ERR_VERSION:
		return "restart the daemon whose build is older: hotcell status";
	case ERR_EXISTS:
		return "see what is in the way: hotcell ps --all, teams, templates, snapshots";
	case ERR_NONE:
	case ERR_INTERNAL:
	case ERR_CODES:
		break;
	}
	return "see the gateway's log";
}

int cli_fail_fix(const struct cli *c, const struct err *err, const char *fix)
{
	if (c->json)
		fprintf(stderr, "{\"error\":\"%s\",", err_name(err->code));
	if (c->json) {
		AUTO(json_decrefp)
		json_t *rest = json_pack("{s:o*,s:s}", "message", json_text(bytes_str(err->msg)),
					 "fix", fix);
		AUTO(auto_free) char *text = rest ? json_dumps(rest, JSON_COMPACT) : NULL;

		fprintf(stderr, "%s\n", text ? text + 1 : "}");
	} else {
		fprintf(stderr, "hotcell: %s\n  fix: %s\n", err->msg, fix);
	}
	if (err->code == ERR_UNAVAILABLE || err->code == ERR_TIMEOUT)
		return CLI_UNREACHABLE;
	return CLI_FAILED;
}

int cli_fail(const struct cli *c, const struct err *err)
{
	return cli_fail_fix(c, err, fix_of(err));
}

int cli_usage(const struct cli *c)
{
	help_usage(stderr, c->command, c->n_words > 0 ? c->words[0] : "");
	fprintf(stderr, "  more: hotcell %s --help\n", c->command);
	return CLI_USAGE;
}

bool cli_says(const struct cli *c, const char *word, int min, int max)
{
	return c->n_words > min && c->n_words - 1 <= max && strcmp(c->words[0], word) == 0;
}

int cli_written(int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EPIPE || errno == 0) /* 0: it was told when that came */
		return CLI_CLOSED;
	fprintf(stderr, "hotcell: could not write: %s\n", strerror(errno));
	return CLI_FAILED;
}

int cli_print_json(const json_t *v)
{
	if (json_dumpf(v, stdout, JSON_INDENT(2)) < 0 || putchar('\n') == EOF)
		return cli_written(CLI_FAILED);
	return cli_written(CLI_FINE);
}

static json_t *ids_json(int n, char **ids)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		if (json_array_append_new(list, json_text(bytes_str(ids[i]))) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

int cli_try(const struct cli *c, const struct cli_request *rq, json_t **ret)
{
	struct err err = { 0 };

	return cli_ask(c, rq, ret, &err) < 0 ? cli_fail(c, &err) : CLI_FINE;
}

int cli_answer(const struct cli *c, const struct cli_request *rq, say_fn *say)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	int status = cli_try(c, rq, &answer);

	if (status != CLI_FINE)
		return status;
	return c->json ? cli_print_json(answer) : say(c, answer);
}

static int try_one(const struct cli *c, const struct cli_request *rq)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	struct err err = { 0 };

	if (cli_ask(c, rq, &answer, &err) == 0)
		return CLI_FINE;
	err_wrap(&err, "%.64s", rq->id);
	return cli_fail(c, &err);
}

int cli_each(const struct cli *c, int skip, const char *verb, struct cli_request rq)
{
	AUTO(json_decrefp) json_t *all = NULL;
	int worst = CLI_FINE;

	for (int i = skip; i < c->n_words; i++) {
		int status;

		rq.id = c->words[i];
		status = try_one(c, &rq);
		worst = status > worst ? status : worst;
		if (status == CLI_FINE && !c->json)
			printf("%s %s\n", verb, rq.id);
	}
	if (!c->json || worst != CLI_FINE)
		return worst;
	all = json_pack("{s:o}", verb, ids_json(c->n_words - skip, c->words + skip));
	return all ? cli_print_json(all) : CLI_FAILED;
}
