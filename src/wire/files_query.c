/* files_query.c - see files_query.h. */
#include "wire/files_query.h"

#include "wire/target.h"

int files_query_parse(struct bytes query, struct files_query *ret, struct err *err)
{
	const struct {
		const char *name;
		struct buf *value;
		size_t max;
		bool *has;
	} rows[] = {
		{ "path", &ret->path, FILES_PATH_MAX, &ret->has_path },
		{ "username", &ret->user, FILES_USER_MAX, &ret->has_user },
		{ "signature", &ret->signature, FILES_SIGNATURE_MAX, &ret->has_signature },
		{ "signature_expiration", &ret->expiration, FILES_NUMBER_MAX,
		  &ret->has_expiration },
	};

	*ret = (struct files_query){ 0 };
	for (size_t i = 0; i < COUNT(rows); i++) {
		rows[i].value->max = rows[i].max;
		if (target_find_param(query, rows[i].name, rows[i].value, rows[i].has, err) < 0)
			return err_wrap(err, "%s", rows[i].name);
	}
	return 0;
}

void files_query_done(struct files_query *q)
{
	buf_done(&q->path);
	buf_done(&q->user);
	buf_done(&q->signature);
	buf_done(&q->expiration);
}

int files_query_signed(const struct files_query *q, const char *operation, struct signed_url *ret,
		       struct err *err)
{
	uint64_t seconds = 0;

	if (q->has_expiration &&
	    (!bytes_to_u64(buf_view(&q->expiration), &seconds) || seconds > INT64_MAX))
		return err_set(err, ERR_INVALID, 0, "signature_expiration is not a number");
	*ret = (struct signed_url){
		.path = buf_view(&q->path),
		.operation = bytes_str(operation),
		.user = buf_view(&q->user),
		.has_expiration = q->has_expiration,
		.expiration = (int64_t)seconds,
	};
	return 0;
}
