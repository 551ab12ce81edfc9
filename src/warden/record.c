/* record.c - a fixed struct in a file; the writer and the readers are the same program. */
/* #parses: a struct of a fixed size in a file; from an earlier warden */
#include "warden/record.h"

#include <errno.h>
#include <fcntl.h>

#include "base/folder.h"

static const char name[] = "record";

int record_write(int folder, const struct record *r, struct err *err)
{
	AUTO(auto_close) int fd = folder_open(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0600, err);

	if (fd < 0)
		return -1;
	if (write(fd, r, sizeof(*r)) != (ssize_t)sizeof(*r))
		return err_set(err, ERR_INTERNAL, errno, "write the record");
	return 0;
}

int record_read(int folder, struct record *ret, struct err *err)
{
	AUTO(auto_close) int fd = folder_open(folder, name, O_RDONLY, 0, err);

	ssize_t n;

	*ret = (struct record){ 0 };
	if (fd < 0)
		return -1;
	n = read(fd, ret, sizeof(*ret));
	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "read the record");
	if (n < (ssize_t)RECORD_FIRST_SIZE || ret->version != RECORD_VERSION ||
	    !folder_name_ok(ret->id, sizeof(ret->id)) ||
	    !memchr(ret->installation, '\0', sizeof(ret->installation)))
		return err_set(err, ERR_INVALID, 0, "the record is not whole");
	return 0;
}
