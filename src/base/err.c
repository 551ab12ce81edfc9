/* err.c - building error messages inside a fixed buffer. */
#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* Append; when it does not fit, end in "..." so a part is never taken for the whole. */
static void msg_add(struct err *err, const char *text)
{
	size_t used = strlen(err->msg);
	size_t room = sizeof(err->msg) - 1 - used;
	size_t n = strlen(text);

	if (n <= room) {
		memcpy(err->msg + used, text, n + 1);
		return;
	}
	memcpy(err->msg + used, text, room);
	memcpy(err->msg + sizeof(err->msg) - 4, "...", 4);
}

PRINTF(2, 0) static void msg_begin(struct err *err, const char *fmt, va_list ap)
{
	if (vsnprintf(err->msg, sizeof(err->msg), fmt, ap) < 0)
		err->msg[0] = '\0';
}

int err_set(struct err *err, enum err_code code, int sys, const char *fmt, ...)
{
	va_list ap;

	assert(code != ERR_NONE);
	err->code = code;
	err->sys = sys;

	va_start(ap, fmt);
	msg_begin(err, fmt, ap);
	va_end(ap);

	if (sys != 0) {
		const char *desc = strerrordesc_np(sys);

		msg_add(err, ": ");
		msg_add(err, desc ? desc : "unknown errno");
	}
	return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	va_list ap;

	assert(err->code != ERR_NONE);
	memcpy(inner, err->msg, sizeof(inner));

	va_start(ap, fmt);
	msg_begin(err, fmt, ap);
	va_end(ap);

	msg_add(err, ": ");
	msg_add(err, inner);
	return -1;
}

const char *err_name(enum err_code code)
{
	static const char *const names[] = {
		[ERR_NONE] = "ok",
		[ERR_INVALID] = "invalid",
		[ERR_NOT_FOUND] = "not_found",
		[ERR_EXISTS] = "exists",
		[ERR_DENIED] = "denied",
		[ERR_EXHAUSTED] = "exhausted",
		[ERR_MISMATCH] = "mismatch",
		[ERR_TIMEOUT] = "timeout",
		[ERR_UNAVAILABLE] = "unavailable",
		[ERR_INTERNAL] = "internal",
		[ERR_NO_SPACE] = "no_space",
		[ERR_NO_FILES] = "files_missing",
		[ERR_BASE_LOST] = "base_lost",
		[ERR_VERSION] = "version_mismatch",
	};
	static_assert(sizeof(names) / sizeof(names[0]) == ERR_CODES, "a code without a name");

	return code < ERR_CODES ? names[code] : "unknown";
}
