/* secret_statements.h - the SQL about secrets; inside store/ only. */
#pragma once

#include "store/statements.h"

void store_secrets_done(struct store_rows *r);

statement_fn sql_secret_add;
statement_fn sql_secret_get;
statement_fn sql_secret_update;
statement_fn sql_secret_remove;
statement_fn sql_secret_list;
statement_fn sql_secret_find;
