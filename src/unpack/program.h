/* program.h - what a program of an image needs to be started: pure, and its input is hostile. */
#pragma once

#include "base/bytes.h"

enum {
	PROGRAM_HEAD = 64 * 1024, /* what is read of a program */
	PROGRAM_LOADER_MAX = 255,
};

/* `head` is the beginning of the file. *ret: the path of its loader, empty when it needs none.
 * ERR_INVALID: not a program for x86-64, and the message says what else. */
int program_loader(struct bytes head, char ret[PROGRAM_LOADER_MAX + 1], struct err *err) NODISCARD;
