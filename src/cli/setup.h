/* setup.h - `hotcell setup`: what its steps share.
 *
 * Nothing is noted of a run. Each step looks at what is there, and does what is missing: whoever
 * was interrupted runs it again, and whoever runs it again changes nothing.
 */
#pragma once

#include "cli/cli.h"
#include "cli/conf.h"
#include "cli/tls_lines.h"
#include "cli/units.h"
#include "wire/domain.h"
#include "wire/json.h"

enum {
	SETUP_NAME_SIZE = 64, /* of a team */
	SETUP_KEY_SIZE = 128,
	SETUP_WHAT_SIZE = 512,
	SETUP_PATH_SIZE = 1024,
	SETUP_LOOK_MS = 500,       /* between two looks at what is waited for */
	SETUP_ASK_MS = 3 * 1000,   /* systemd lets clients wait for a gateway that is to come */
	SETUP_LIST_MS = 20 * 1000, /* of a server that answers, on a host that is busy */
};

#define SETUP_TEAM    "main"
#define SETUP_TARGET  "hotcell.target"
#define SETUP_TRUSTED "trusted.pem" /* in tls_dir/authority: the system's authorities, and ours */

enum setup_state { SETUP_KEPT, SETUP_DONE, SETUP_WOULD, SETUP_SKIPPED, SETUP_WARN, SETUP_FAILED };

struct setup_said { /* how one step went */
	enum setup_state state;
	char what[SETUP_WHAT_SIZE];
	const char *fix; /* of a warning; NULL: there is nothing to do */
};

struct setup {
	struct cli cli; /* what was typed; folders and owner as the files say */
	bool asks;      /* there is a terminal, and nobody said --yes */
	/* what is wanted */
	char domain[TLS_E2B_DOMAIN_SIZE]; /* as clients have it */
	char name[DOMAIN_SIZE];           /* without its port */
	uint16_t port;                    /* 0: 443 */
	bool domain_kept;                 /* it is in the file already, in whatever spelling */
	char team[SETUP_NAME_SIZE];       /* "": the one that is there, or SETUP_TEAM */
	bool emulation;                   /* is to be allowed */
	/* what was found */
	bool no_kvm;
	bool proxied;       /* a proxy speaks TLS for it: gateway.conf names some */
	bool own_authority; /* clients have to be told whom to trust */
	char found_team[SETUP_NAME_SIZE];
	char key[SETUP_KEY_SIZE]; /* "": none was made; it is wiped */
	char tls_dir[CONF_VALUE_MAX], owner[CONF_VALUE_MAX];
	/* how it is said */
	char fix[SETUP_WHAT_SIZE];   /* of a failure */
	json_t *steps, *journal;     /* of a unit that failed */
	const char *step;            /* the present one */
	uint64_t began_ns;           /* that one */
	char shown[SETUP_WHAT_SIZE]; /* of its progress, last */
	bool changed;
};

int setup_run(struct cli *c);

/* The steps, in their order. 0, or -1 with *err and `fix`. */
int setup_host(struct setup *s, struct setup_said *ret, struct err *err) NODISCARD;
int setup_certificate(struct setup *s, struct setup_said *ret, struct err *err) NODISCARD;
int setup_settings(struct setup *s, struct setup_said *ret, struct err *err) NODISCARD;
int setup_daemons(struct setup *s, struct setup_said *ret, struct err *err) NODISCARD;
int setup_base(struct setup *s, struct setup_said *ret, struct err *err) NODISCARD;
int setup_templates(struct setup *s, struct setup_said *ret, struct err *err) NODISCARD;
int setup_team(struct setup *s, struct setup_said *ret, struct err *err) NODISCARD;
int setup_names(struct setup *s, struct setup_said *ret, struct err *err) NODISCARD;

/* Who owns what all teams may use, as node.conf says: no client's team. "": there is none. */
void setup_shared_team(const struct setup *s, char ret[static CONF_VALUE_MAX]);

/* What is wanted: flags, then what the files say, then answers, then defaults. */
int setup_plan(struct setup *s, struct err *err) NODISCARD;

/* --- units ---------------------------------------------------------------------------------- */

/* systemctl WORDS...; an exit status that is not 0 is a failure, with what it said. */
int setup_systemctl(struct setup *s, const char *const *words, struct err *err) NODISCARD;
int setup_unit(struct setup *s, const char *name, struct unit *ret, struct err *err) NODISCARD;
/* Its last lines go to standard error, or to the JSON. */
void setup_journal(struct setup *s, const char *unit);

/* --- how it is said ------------------------------------------------------------------------- */

/* The way out: -1, with a fix. */
int setup_fix(struct setup *s, const char *fmt, ...) PRINTF(2, 3);
void setup_said(struct setup_said *ret, enum setup_state state, const char *fmt, ...) PRINTF(3, 4);
void setup_begin(struct setup *s, const char *step);
void setup_line(struct setup *s, const struct setup_said *said, const char *fix);
/* A warning of the present step, before its end. */
void setup_warn(struct setup *s, const char *of, const char *what, const char *fix);
/* What happens now; `of` 0: nobody knows how much there is to do. */
void setup_progress(struct setup *s, size_t n, size_t of, const char *what);
void setup_clear(const struct setup *s); /* what of it is on the line */
/* What to paste into a client. The exit status. */
int setup_end(struct setup *s);

/* In fault tests the program dies here, if this is the step. */
void setup_at(const struct setup *s, const char *step);
