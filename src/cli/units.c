/* units.c - see units.h. */
#include "cli/units.h"

#include "base/bytes.h"
#include "cli/cli.h"
#include "cli/templates.h"

enum { WORDS_MAX = 12 };

const struct packaged packaged[PACKAGED] = {
	{ CLI_CODE_TEMPLATE, "hotcell-template@" CLI_CODE_TEMPLATE ".service",
	  "hotcell-guest-interpreter" },
	{ "browser", "hotcell-template@browser.service", "hotcell-guest-browser" },
	{ "desktop", "hotcell-template@desktop.service", "hotcell-guest-desktop" },
};

int units_systemctl(const char *const *words, uint64_t ms, struct program *ret, struct err *err)
{
	const char *argv[WORDS_MAX + 2] = { "systemctl" };

	for (size_t i = 0; words[i] && i < WORDS_MAX; i++)
		argv[i + 1] = words[i];
	return program_run(argv, ms, ret, err);
}

static void take_property(struct bytes line, struct unit *u)
{
	struct bytes name;

	if (!bytes_cut(&line, '=', &name))
		return;
	if (bytes_eq(name, BYTES_LIT("ActiveState")))
		(void)bytes_to_str(line, u->active, sizeof(u->active));
	else if (bytes_eq(name, BYTES_LIT("SubState")))
		(void)bytes_to_str(line, u->sub, sizeof(u->sub));
	else if (bytes_eq(name, BYTES_LIT("Result")))
		(void)bytes_to_str(line, u->result, sizeof(u->result));
	else if (bytes_eq(name, BYTES_LIT("NRestarts")))
		(void)bytes_to_u64(line, &u->restarts);
	else if (bytes_eq(name, BYTES_LIT("ConditionTimestampMonotonic")))
		u->looked = !bytes_eq(line, BYTES_LIT("0"));
	else if (bytes_eq(name, BYTES_LIT("Job")))
		u->queued = line.len > 0 && !bytes_eq(line, BYTES_LIT("0"));
	else if (bytes_eq(name, BYTES_LIT("ConditionResult")))
		u->unwanted = bytes_eq(line, BYTES_LIT("no"));
}

int unit_look(const char *name, uint64_t ms, struct unit *ret, struct err *err)
{
	const char *const words[] = { "show",
				      "--property=ActiveState,SubState,Result,NRestarts,Job,"
				      "ConditionTimestampMonotonic,ConditionResult",
				      name, NULL };
	struct bytes rest, line;
	struct program p;

	*ret = (struct unit){ 0 };
	if (units_systemctl(words, ms, &p, err) < 0)
		return -1;
	rest = bytes_str(p.said);
	while (bytes_next(&rest, '\n', &line))
		take_property(line, ret);
	return ret->active[0] ? 0
			      : err_set(err, ERR_INTERNAL, 0, "systemctl show %.64s: %.120s", name,
					p.said);
}

bool unit_waits(const struct unit *u)
{
	static const char sub[] = "auto-restart"; /* newer ones: auto-restart-queued, too */

	return strncmp(u->sub, sub, sizeof(sub) - 1) == 0;
}
