/* config.h - a daemon's parameters: one table that is parser, default, range and documentation.
 *
 *	# a comment
 *	key = value
 *
 * Strict: an unknown key, a key given twice, a value out of range is an error with file and line.
 * Values land in an array indexed like the table, so a daemon reads cfg[WARDEN_ACCEL].text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum config_type {
	CONFIG_TEXT,
	CONFIG_PATH,
	CONFIG_NUMBER,
	CONFIG_FLAG,
	CONFIG_CHOICE,
	CONFIG_USER, /* a number, or a name in /etc/passwd */
	CONFIG_GROUP,
};

enum { CONFIG_VALUE_MAX = 2048, CONFIG_FILE_MAX = 64 * 1024 };

struct config_param {
	const char *name;
	enum config_type type;
	const char *fallback;       /* as it would stand in the file */
	uint64_t min, max;          /* CONFIG_NUMBER */
	const char *const *choices; /* CONFIG_CHOICE: ends with NULL; .number is the index */
	const char *help;           /* one line, with the unit */
};

struct config_value {
	bool set;        /* by the file, not by the default */
	uint64_t number; /* CONFIG_FLAG: 0 or 1; CONFIG_CHOICE: its index; CONFIG_USER: the uid */
	char text[CONFIG_VALUE_MAX];
};

/* Fill all n values from their defaults, then from `text`. `file` names it in errors. */
int config_parse(const struct config_param *table, size_t n, struct bytes text, const char *file,
		 struct config_value *ret, struct err *err) NODISCARD;

/* The same from a file. A missing file is an error: a daemon never runs on a typo. */
int config_load(const struct config_param *table, size_t n, const char *path,
		struct config_value *ret, struct err *err) NODISCARD;

/* The table as a commented configuration file: `--help` of every daemon. */
void config_print(const struct config_param *table, size_t n, FILE *out);
