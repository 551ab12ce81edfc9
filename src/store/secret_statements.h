/* secret_statements.h - the SQL about secrets; inside store/ only. */
#pragma once

#include "store/statements.h"

void store_secrets_done(struct store_rows *r);

int sql_secret_add(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err) NODISCARD;
int sql_secret_get(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err) NODISCARD;
int sql_secret_update(struct database *d, const struct store_request *rq, struct store_rows *ret,
		      struct err *err) NODISCARD;
int sql_secret_remove(struct database *d, const struct store_request *rq,
		      struct err *err) NODISCARD;
int sql_secret_list(struct database *d, const struct store_request *rq, struct store_rows *ret,
		    struct err *err) NODISCARD;
int sql_secret_find(struct database *d, const struct store_request *rq, struct store_rows *ret,
		    struct err *err) NODISCARD;
