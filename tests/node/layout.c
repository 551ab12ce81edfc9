/* layout.c - prints node/protocol.h as JSON. */
#include "tests/warden/layout.h"

#include "tests/node/rows.h"

int main(void)
{
	layout_print(rows, COUNT(rows));
	printf("}\n");
	return 0;
}
