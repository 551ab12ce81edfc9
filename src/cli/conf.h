/* conf.h - what is said in a daemon's configuration file, as far as `hotcell` wants to know it.
 *
 * The daemon itself is strict (base/config.h). Here what is not there, or cannot be read, is as if
 * it was not set.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"

enum { CONF_TEXT_MAX = 64 * 1024, CONF_VALUE_MAX = 4096, CONF_NAME_MAX = 64 };

struct conf {
	char text[CONF_TEXT_MAX];
	bool there; /* the file can be read */
};

/* FOLDER/DAEMON.conf, or the file at `path`. */
void conf_read_daemon(struct conf *ret, const char *folder, const char *daemon);
void conf_read(struct conf *ret, const char *path);

/* The last line of it wins, as in the daemon; "": there is none (false), or it says nothing. */
bool conf_value(const struct conf *c, const char *name, char ret[static CONF_VALUE_MAX]);
void conf_text(const struct conf *c, const char *name, const char *otherwise,
	       char ret[static CONF_VALUE_MAX]);
uint64_t conf_number(const struct conf *c, const char *name, uint64_t otherwise);
/* A name or a number, as daemons take it. False: there is no such user. */
bool conf_user(const char *user, uid_t *ret_uid, gid_t *ret_gid);
bool conf_says(const struct conf *c, const char *name, const char *value);

/* --- a setting is changed -------------------------------------------------------------------- */

/* The text of a file in which `name` is `value`, all other lines as they were: the line that is in
 * force is replaced; else the new one comes behind the line that shows the default, or at the end.
 */
int conf_with(struct bytes text, const char *name, const char *value, struct buf *ret,
	      struct err *err) NODISCARD;
/* The same with FOLDER/DAEMON.conf: replaced whole, with its owner and mode, or left as it was. */
int conf_put(const char *folder, const char *daemon, const char *name, const char *value,
	     struct err *err) NODISCARD;
