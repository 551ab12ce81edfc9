/* devtools_page.c - see devtools_page.h. Nothing in it comes from the guest but by the page's own
 * script, as text. */
#include "gateway/relay/devtools_page.h"

#include "gateway/relay/relay.h"
#include "gateway/relay/relay_guard.h"
#include "wire/target.h"

/* What pages say of themselves is text, and never markup. */
static const char page[] =
	"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>DevTools</title>"
	"<style>body{font:16px sans-serif;margin:2em}li{margin:.5em}small{color:#666}</style>"
	"<h1>Tabs of this browser</h1><ul id=\"tabs\"></ul><p><a href=\"/\">Look again</a></p>"
	"<script>"
	"const list=document.getElementById('tabs'),ws=location.protocol==='https:'?'wss':'ws';"
	"fetch('/json/list').then(a=>a.json()).then(all=>{"
	"for(const tab of all.filter(t=>t.type==='page')){"
	"const item=document.createElement('li'),link=document.createElement('a'),"
	"where=document.createElement('small');"
	"link.textContent=tab.title||'(no title)';where.textContent=' '+tab.url;"
	"link.href='/devtools/inspector.html?'+ws+'='+location.host+'/devtools/page/'+"
	"encodeURIComponent(tab.id);"
	"item.append(link,where);list.append(item)}"
	"if(!list.firstChild)list.append('There are none.')})"
	".catch(e=>list.append('The browser does not answer: '+e))"
	"</script></html>";

static bool is_asked_for(const struct relay *r)
{
	const struct http1_head *h = http_request_head(r->rq);
	const struct guarded_port *p = relay_guarded(r);
	struct target t;
	struct err err;

	return p && p->kind == GUARDED_DEVTOOLS && bytes_eq(h->method, BYTES_LIT("GET")) &&
	       http1_upgrade(h).len == 0 && target_split(h->target, &t, &err) == 0 &&
	       bytes_eq(t.path, BYTES_LIT("/"));
}

bool devtools_page_answers(const struct relay *r)
{
	static const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("text/html; charset=utf-8") },
		{ BYTES_LIT("cache-control"), BYTES_LIT("no-store") },
		{ BYTES_LIT("x-frame-options"), BYTES_LIT("DENY") },
		{ BYTES_LIT("content-security-policy"),
		  BYTES_LIT("default-src 'none'; style-src 'unsafe-inline'; script-src "
			    "'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'") },
	};

	if (!is_asked_for(r))
		return false;
	http_answer(r->rq,
		    &(struct http_response){
			    .status = 200, .fields = fields, .n_fields = COUNT(fields) },
		    BYTES_LIT(page));
	return true;
}
