/* key_statements.h - the SQL about keys; inside store/ only. */
#pragma once

#include "store/statements.h"

int sql_key_add(struct database *d, const struct store_request *rq, struct store_rows *ret,
		struct err *err) NODISCARD;
int sql_key_list(struct database *d, const struct store_request *rq, struct store_rows *ret,
		 struct err *err) NODISCARD;
int sql_key_find(struct database *d, const struct store_request *rq, struct store_rows *ret,
		 struct err *err) NODISCARD;
int sql_key_get(struct database *d, const struct store_request *rq, struct store_rows *ret,
		struct err *err) NODISCARD;
int sql_key_rename(struct database *d, const struct store_request *rq, struct err *err) NODISCARD;
int sql_key_remove(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err) NODISCARD;
int sql_key_rotate(struct database *d, const struct store_request *rq, struct store_rows *ret,
		   struct err *err) NODISCARD;
int sql_key_used(struct database *d, const struct store_request *rq, struct err *err) NODISCARD;
int sql_key_limit(struct database *d, const struct store_request *rq, struct store_rows *ret,
		  struct err *err) NODISCARD;
int sql_key_services(struct database *d, const struct store_request *rq, struct store_rows *ret,
		     struct err *err) NODISCARD;
