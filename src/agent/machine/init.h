/* init.h - the first process of the guest: sets it up, keeps the server running, buries orphans. */
#pragma once

enum {
	INIT_RESTART_MS = 1000,  /* a server that dies young is started again after this */
	INIT_YOUNG_MS = 10000,   /* that is, younger than this */
	INIT_SHUTDOWN_MS = 2000, /* how long processes have to end before they are killed */
};

_Noreturn void init_run(void);
