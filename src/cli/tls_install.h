/* tls_install.h - pairs of tls_dir: one of the operator's own put there, all of them listed. */
#pragma once

#include "cli/tls_files.h"
#include "wire/json.h"

/* NAME/fullchain.pem and NAME/privkey.pem. ret_key: BUF_SECRET(); it may be NULL. */
int tls_read_pair(const struct tls_files *f, const char *name, struct buf *ret_chain,
		  struct buf *ret_key, struct err *err) NODISCARD;
int tls_put_pair(const struct tls_files *f, const char *name, struct bytes chain, struct bytes key,
		 struct err *err) NODISCARD;

/* A row of `tls status`: names, issuer, when it ends. */
json_t *tls_pair_json(const struct tls_files *f, const char *name, const struct pair_facts *facts,
		      bool ours);

int tls_install_run(const struct cli *c, struct tls_files *f); /* exit statuses */
int tls_status_run(const struct cli *c, struct tls_files *f);

void tls_day(int64_t seconds, char ret[static 16]); /* "2027-02-15" */
