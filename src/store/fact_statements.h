/* fact_statements.h - the SQL about what gateways of one database share; inside store/ only. */
#pragma once

#include "store/statements.h"

statement_fn sql_upload_key;
