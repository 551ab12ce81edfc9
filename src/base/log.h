/* log.h - one line per event on stderr: time, level, component, message.
 *
 * The supervisor (systemd, a container, a test) stores it. Library folders log at debug only.
 */
#pragma once

#include "base/own.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* `component` must outlive the process: a literal. */
void log_init(const char *component, enum log_level least);
const char *log_component(void);

/* Control characters in the text come out as '?', so a guest cannot forge a line. */
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
