/* qmp.h - the QEMU Machine Protocol: lines of JSON, and what kind each one is.
 *
 * The other side is a virtual machine monitor that its guest may have taken over: nothing it says
 * is believed before its type, size and depth are checked.
 */
#pragma once

#include "wire/decode.h"
#include "wire/json.h"

enum {
	QMP_LINE_MAX = 256 * 1024, /* in bytes, the line end included */
	QMP_DEPTH_MAX = 16,
	QMP_NAME_MAX = 128, /* of a command, an event or an error class */
	QMP_DESC_MAX = 1024,
};

enum qmp_kind { QMP_GREETING, QMP_RETURN, QMP_ERROR, QMP_EVENT };

struct qmp_message {
	enum qmp_kind kind;
	json_t *json;                     /* owns everything below */
	unsigned int major, minor, micro; /* of a greeting: QEMU's version */
	bool has_id;       /* always of a return; an error that answers nothing readable has none */
	uint64_t id;       /* of a return or an error: that of the command */
	json_t *data;      /* of a return: any value; of an event: an object, or NULL */
	struct bytes name; /* of an event: its name; of an error: its class */
	struct bytes desc; /* of an error */
};

/* Cut one line off the front of `in`: *ret_line without its end, *ret_used with it. *scanned is
 * as in http1_head_end(): 0 for a new line, then kept between calls. */
enum decode qmp_line(struct bytes in, size_t *scanned, struct bytes *ret_line, size_t *ret_used,
		     struct err *err) NODISCARD;

int qmp_parse(struct bytes line, struct qmp_message *ret, struct err *err) NODISCARD;
void qmp_message_done(struct qmp_message *m);

/* {"execute":...,"arguments":...,"id":...}\r\n; `arguments` may be NULL and stays the caller's. */
int qmp_put_command(struct buf *out, const char *execute, json_t *arguments, uint64_t id,
		    struct err *err) NODISCARD;
