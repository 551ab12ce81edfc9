/* signed_files.c - /files with a signature and no sandbox named: which sandbox signed it? */
#include "gateway/gateway.h"

void signed_request(struct gateway *g, struct http_request *rq)
{
	(void)g;
	http_fail(rq, 404, "no sandbox is named by this URL");
}
