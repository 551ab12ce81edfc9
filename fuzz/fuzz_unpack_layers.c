/* fuzz_unpack_layers.c - promises about tar files that become a disk.
 *
 * Input: two tar files, plain; the first byte says, in blocks of 512 bytes, where the second one
 * begins. Sums of headers are mended, as somebody who can add would. They are applied to a small
 * disk in memory, as hotcell-unpack does. Whether the disk is a sound file system is what
 * tests/security/test_unpack.py asks e2fsck; here names and links are looked at, which are our own.
 */
#include "fuzz/unpack_promises.h"
#include "unpack/layer.h"

enum { BLOCK = 512, MAGIC_AT = 257, SUM_AT = 148, SUM = 8, SIZE_MAX_BYTES = 64 * 1024 };

static void mend(uint8_t *head)
{
	unsigned int sum = 0;
	char text[SUM + 1];

	if (memcmp(head + MAGIC_AT, "ustar", 5) != 0)
		return;
	memset(head + SUM_AT, ' ', SUM);
	for (size_t i = 0; i < BLOCK; i++)
		sum += head[i];
	snprintf(text, sizeof(text), "%06o", sum & 0777777);
	memcpy(head + SUM_AT, text, SUM - 1); /* with its NUL, a space behind it */
}

static int apply(struct image *im, struct bytes tar, struct err *err)
{
	AUTO(auto_close) int fd = memfd_create("layer", MFD_CLOEXEC);
	AUTO(auto_free) uint8_t *copy = malloc(tar.len + 1);

	MUST(fd >= 0 && copy);
	if (tar.len > 0)
		memcpy(copy, tar.ptr, tar.len);
	for (size_t at = 0; at + BLOCK <= tar.len; at += BLOCK)
		mend(copy + at);
	MUST(pwrite(fd, copy, tar.len, 0) == (ssize_t)tar.len);
	return layer_apply(im, fd, err);
}

static void try_image(int disk, struct bytes first, struct bytes second)
{
	struct image im;
	struct err err = { 0 };
	int rc;

	MUST(image_begin(&im, disk, PROMISES_DISK_MIB, &err) == 0);
	im.n_layers = 2;
	im.tree.layer = 1;
	rc = apply(&im, first, &err);
	if (rc == 0) {
		im.tree.layer = 2;
		rc = apply(&im, second, &err);
	}
	if (rc == 0)
		must_keep_promises(&im, bytes_head(first, UNPACK_NAME_MAX));
	else
		must_say_why(&err);
	image_done(&im);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_close) int disk = memfd_create("disk", MFD_CLOEXEC);
	struct bytes in = bytes_tail((struct bytes){ data, size }, 1);
	size_t cut = size > 0 ? (size_t)data[0] * BLOCK : 0;

	MUST(disk >= 0);
	if (size <= SIZE_MAX_BYTES)
		try_image(disk, bytes_head(in, cut), bytes_tail(in, cut));
	return 0;
}
