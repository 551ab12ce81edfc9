/* cli.h - what every command of `hotcell` is given: the options, and how it says how it went. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum cli_exit { /* the program's exit status */
		CLI_FINE,
		CLI_FAILED,       /* asked, and refused; a check failed; something is left */
		CLI_USAGE,        /* what was typed makes no sense */
		CLI_UNREACHABLE,  /* no answer: nothing is known */
		CLI_CLOSED = 141, /* who read it is gone: as by SIGPIPE */
};

enum cli_limit { LIMIT_SANDBOXES, LIMIT_VCPUS, LIMIT_MEMORY, LIMIT_DISK, LIMIT_PAUSED, CLI_LIMITS };

enum { CLI_ENVS_MAX = 64, CLI_OPTIONS_MAX = 128 };

/* where things are unless said otherwise */
#define CLI_SOCKET        "/run/hotcell-gateway/admin.sock"
#define CLI_TLS_DIR       "/etc/hotcell/tls"
#define CLI_CONF_DIR      "/etc/hotcell"
#define CLI_API_URL       "http://127.0.0.1:3000"
#define CLI_CODE_TEMPLATE "code-interpreter-v1"

struct cli_e2b { /* variables that clients of the API set; NULL: not set, or empty */
	const char *key, *domain, *api_url, *sandbox_url;
	const char *trust; /* SSL_CERT_FILE */
};

struct cli {
	const char *command; /* its name; NULL: none was typed */
	char **words;        /* behind that */
	int n_words;
	int n_behind;                /* of these: behind `--` */
	bool given[CLI_OPTIONS_MAX]; /* by rows of the table: the first of that name */
	const char *socket;          /* of the gateway's admin door */
	bool json, help, version;
	bool all;                        /* of ps: paused ones too */
	bool usage;                      /* of ps: what each uses */
	const char *sort;                /* of that and of top; NULL: by memory */
	bool follow;                     /* of logs: what comes, too */
	bool none;                       /* of keys services: no service */
	bool boot;                       /* of resume: from the disk alone */
	const char *team, *cpus;         /* of templates import; NULL: not given */
	const char *tag, *start, *ready; /* the same */
	bool public;                     /* the same: for all teams */
	uint64_t count;                  /* of fork; 0: not given */
	/* of keys and teams limits, NULL: as it is; LIMIT_MEMORY of templates import, too */
	const char *limits[CLI_LIMITS];
	const char *tls_dir, *owner; /* of tls: the gateway's tls_dir, and whose its keys are */
	/* of run and exec; NULL, 0: not given */
	const char *lang, *context, *sandbox, *template, *out;
	const char *envs[CLI_ENVS_MAX]; /* NAME=VALUE */
	size_t n_envs;
	uint64_t timeout; /* seconds */
	bool keep;
	const char *user; /* of exec, shell and cp: inside */
	bool input;       /* of exec: standard input, too */
	struct cli_e2b e2b;
	const char *term; /* TERM; NULL: not set */
	bool no_color;    /* NO_COLOR is set */
	/* of setup; NULL, false: not given */
	const char *domain, *key_file;
	bool yes, dry_run, allow_emulation;
	const char *die_at; /* the step at which it dies; fault tests only */
	bool keep_soon;     /* a sandbox is kept alive all the time; the same */
	/* what doctor looks at */
	bool leaks, before;
	const char *conf_dir; /* of support, too */
	/* NULL, 0: what the daemons say, or their files (places.h) */
	const char *state_dir, *data_dir, *cgroup, *qemu, *images_conf;
	uint64_t uid_base, uids;
};
