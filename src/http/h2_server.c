/* h2_server.c - a server that speaks HTTP/2, too. */
#include "http/h2_conn.h"

void http_server_speak_h2(struct http_server *sv)
{
	sv->open_h2 = h2_conn_open;
}
