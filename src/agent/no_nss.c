/* no_nss.c - only in the static program: what libuv mentions and nobody calls.
 *
 * libuv can look up users and host names. The agent does neither, but the linker cannot know, and
 * would bring in all of NSS, which does not work in a static program. These take its place.
 */
#include <errno.h>
#include <netdb.h>
#include <pwd.h>

int getpwuid_r(uid_t uid, struct passwd *pwd, char *buf, size_t size, struct passwd **ret)
{
	(void)uid;
	(void)pwd;
	(void)buf;
	(void)size;
	*ret = NULL;
	return ENOSYS;
}
