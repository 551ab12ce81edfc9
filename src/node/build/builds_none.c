/* builds_none.c - no build runs on this server: each fails at once, and says so. */
#include "node/build/builds.h"

void builds_begin(struct node *n, struct build *b)
{
	(void)n;
	build_failed(b, "", "builds are not available on this server");
}

void builds_cancel(struct node *n, struct build *b)
{
	(void)n;
	build_cancelled(b);
}

void builds_close(struct node *n)
{
	(void)n;
}
