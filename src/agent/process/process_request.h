/* process_request.h - what the messages of process.Process are made of, read and checked. */
#pragma once

#include "agent/process/pty.h"
#include "wire/json.h"

enum { PROCESS_JSON_DEPTH = 8, PROCESS_TAG_MAX = 1024 };

struct process_selector {
	bool by_tag;
	uint32_t pid;
	struct bytes tag; /* borrowed from the message */
};

/* The member "process": {"pid":1} or {"tag":"x"}, not both. */
int selector_parse(const json_t *message, struct process_selector *ret, struct err *err) NODISCARD;

/* The member "input": {"stdin":base64} or {"pty":base64}, not both; appended to `data`. */
int input_parse(const json_t *message, bool *ret_pty, struct buf *data, struct err *err) NODISCARD;

/* The member "signal", a name or a number. 0: one that is not implemented. */
int signal_parse(const json_t *message, int *ret, struct err *err) NODISCARD;

/* The member "pty", {"size":{"cols":80,"rows":24}}. */
int pty_parse(const json_t *message, bool *ret_has, struct pty_size *ret,
	      struct err *err) NODISCARD;

enum stream_input_kind { STREAM_INPUT_START, STREAM_INPUT_DATA, STREAM_INPUT_KEEPALIVE };

/* One message of StreamInput. *ret is the object inside, for the two parsers above. */
int stream_input_parse(const json_t *message, enum stream_input_kind *ret_kind, json_t **ret,
		       struct err *err) NODISCARD;
