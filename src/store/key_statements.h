/* key_statements.h - the SQL about keys; inside store/ only. */
#pragma once

#include "store/statements.h"

statement_fn sql_key_add;
statement_fn sql_key_list;
statement_fn sql_key_find;
statement_fn sql_key_get;
statement_fn sql_key_rename;
statement_fn sql_key_remove;
statement_fn sql_key_rotate;
statement_fn sql_key_used;
statement_fn sql_key_limit;
statement_fn sql_key_services;
