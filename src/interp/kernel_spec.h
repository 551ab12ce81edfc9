/* kernel_spec.h - which program is the kernel of a language: kernel.json files, as Jupyter has
 *them.
 *
 *	DIR/NAME/kernel.json   {"argv": ["python3", "{resource_dir}/kernel.py",
 *"{connection_file}"], "env": {...}, "interrupt_mode": "signal" or "message", "metadata":
 *{"transport": "ipc"}}
 *
 * The name of the folder is the name of the language, so whatever kernel is installed can be asked
 * for. Ours are found first. What a file says is the word of who could write it: root.
 */
#pragma once

#include "wire/json.h"

enum { KERNEL_NAME_MAX = 63, KERNEL_ARGS_MAX = 64, KERNEL_DIRS_MAX = 8 };

struct kernel_spec {
	json_t *file;           /* owned; argv and env are in it, and were checked */
	const json_t *argv;     /* strings, at least one */
	const json_t *env;      /* an object of strings; NULL: none */
	char *dir;              /* owned: the folder of the file */
	bool interrupt_message; /* it wants a message instead of SIGINT */
	bool ipc;               /* it can do with unix sockets instead of TCP ports */
};

struct kernel_dirs {
	const char *at[KERNEL_DIRS_MAX];
	size_t n;
};

/* ERR_NOT_FOUND when no folder has it. */
int kernel_spec_find(const struct kernel_dirs *dirs, const char *name, struct kernel_spec *ret,
		     struct err *err) NODISCARD;
void kernel_spec_done(struct kernel_spec *s);
