/* package_hosts.h - which hosts the package managers of a template are configured to use.
 *
 * The guest is asked while its template is built (guest/package-hosts), so that what sandboxes may
 * reach without being told follows the image, and no name of a host is written in our code.
 */
#pragma once

#include "base/bytes.h"

enum {
	PACKAGE_HOSTS_MAX = 64,        /* the rest is left out */
	PACKAGE_HOSTS_TEXT_MAX = 2047, /* of all of them */
};

struct bytes package_hosts_script(void); /* for bash, in the guest */

/* What it said, hostile: a URL or a host per line or blank. Into names in normal form and
 * addresses, each once, with a blank between; what is neither is left out. */
void package_hosts_read(struct bytes said, char ret[static PACKAGE_HOSTS_TEXT_MAX + 1]);
