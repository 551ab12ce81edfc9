/* provision.c - see provision.h. */
#include "vm/provision.h"

static const char script[] =
#include "vm/provision.inc" /* guest/provision as a string, made by meson */
	;

struct bytes provision_script(void)
{
	return bytes_str(script);
}
