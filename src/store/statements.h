/* statements.h - what each request does to the database; inside store/ only. */
#pragma once

#include "store/database.h"
#include "store/store.h"

struct store_rows {
	struct store_team *teams;
	struct store_key *keys;
	struct store_secret *secrets;
	size_t n_teams, n_keys, n_secrets, room;
};

void store_rows_done(struct store_rows *r);

/* On the thread; waits. Nothing has happened when it fails. */
int statements_run(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err) NODISCARD;
