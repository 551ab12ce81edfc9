/* selftest.h - `hotcell selftest`: all that clients do, tried in order, each step timed. */
#pragma once

#include "cli/run_session.h"

enum { SELFTEST_MADE_MAX = 8 };

struct selftest {
	struct cli *c;
	bool as_operator; /* the admin socket answers: more can be seen */
	struct run_session s;
	char first[RUN_ID_MAX + 1]; /* the sandbox that all is done with; empty: none */
	char snapshot[RUN_ID_MAX + 1];
	char made[SELFTEST_MADE_MAX][RUN_ID_MAX + 1]; /* sandboxes: all have to go */
	size_t n_made;
	char detail[256]; /* of the step: what was seen, or why it was not tried */
};

enum selftest_result { STEP_PASS, STEP_WARN, STEP_SKIP, STEP_FAIL, STEP_RESULTS };

struct selftest_step {
	const char *name;
	/* STEP_FAIL: *err says why */
	enum selftest_result (*run)(struct selftest *t, struct err *err);
};
extern const struct selftest_step selftest_steps[];
extern const size_t n_selftest_steps;

/* Whatever became of the steps: nothing stays. False: something may. */
bool selftest_clean(struct selftest *t);

int selftest_run(struct cli *c);
