/* seal_value.c - seals what it reads, as the gateway does: seal_value PUBLIC_KEY TEAM/NAME <value
 */
#include <stdio.h>

#include "tls/seal.h"

int main(int argc, char **argv)
{
	AUTO(buf_done) struct buf sealed = BUF_MAX(SEAL_TEXT_MAX + 1);
	char value[1024];
	size_t n = fread(value, 1, sizeof(value), stdin);
	struct err err;

	if (argc != 3 || n == sizeof(value))
		return 2;
	if (seal(bytes_str(argv[1]), bytes_str(argv[2]), (struct bytes){ (uint8_t *)value, n },
		 &sealed, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	return fwrite(sealed.ptr, 1, sealed.len, stdout) == sealed.len ? 0 : 1;
}
