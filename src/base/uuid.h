/* uuid.h - names that nobody has had, in the form that other programs know. */
#pragma once

enum { UUID_SIZE = 37 }; /* with its NUL */

/* A random one, version 4. */
void uuid_make(char ret[static UUID_SIZE]);
