/* ban.h - included before everything else by the build: the libc calls this project does not use.
 *
 * Unbounded writes, silent conversions, calls that hide a shell or a wait. fork and getenv
 * have legitimate homes (warden, main files); tools/check-size watches those.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef alloca
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat strncpy strncat strtok sprintf vsprintf gets
#pragma GCC poison atoi atol atoll alloca sscanf
#pragma GCC poison system popen mktemp tmpnam realpath sleep usleep
