/* file_system.h - what kind of file system a path is on, as far as watching is concerned. */
#pragma once

#include <stdbool.h>

/* Others may change it without this kernel noticing. */
bool file_system_is_network(const char *path);

/* Not one of the kernel's own, where nothing is ever reported; nor, unless allowed, a network's. */
bool file_system_watchable(const char *path, bool network_too);
