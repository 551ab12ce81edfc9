"""site.py - the test's internet (world.py), in which every web server is the same site for people. A program, as that is.

    /            a page with a form; what is sent is in what was heard
    /file        a file to be saved
    /login, /me, /logout
                 sessions by a cookie. Each visit to /me gets a new session, of its own; those before it stay good until
                 somebody logs out with them
    /ticks       a text that goes on and on, a line at a time, for as long as its reader is there
    /hostile/X   a page that does what HOSTILE says of X

Of each request that was heard: `conn`, the connection that it came by, `form`, `session` and `made`, the session that it got.
"""

import asyncio
import itertools
import json
import re
import secrets
import sys
import urllib.parse

import world

FILE = bytes(range(256)) * 256
TICK_SECONDS = 0.2
COLOUR = "#1e7a46"
HOME = f"""<!doctype html><meta charset=utf-8><title>The test's site</title><link rel=icon href=data:,>
<body style="margin:0;background:{COLOUR}"><h1 style="margin:100px;color:white">Here is the site</h1>
<form method=post action=/sent style="margin:100px"><input id=who name=who><input id=sure type=checkbox name=sure>
<select id=size name=size><option>small<option>large</select><textarea id=text name=text></textarea><button id=send>send</button></form>
<a id=file href=/file>a file</a>"""

HOSTILE = {
    # all the memory there is, a page of it at a time, for good
    "memory": """<title>memory</title><script>
const kept = [], eat = () => { for (let n = 0; n < 8; n++) kept.push(new Uint8Array(1 << 23).fill(kept.length + 1)); setTimeout(eat, 0) }
setTimeout(eat, 100)</script>""",
    # windows, a thousand unasked and a hundred at each click
    "windows": """<title>windows</title><body style="height:100vh"><script>
window.got = 0, window.done = 0
const many = count => { for (let n = 0; n < count; n++) if (open('about:blank', '_blank')) window.got++ ; window.done++ }
onclick = () => many(100); many(1000)</script>""",
}
sessions, numbers = set(), itertools.count(1)


def page(title, text):
    return f"<!doctype html><meta charset=utf-8><title>{title}</title><link rel=icon href=data:,><body>{text}".encode()


def session_of(fields):
    found = re.search(r"(?:^|; )session=([0-9a-f]+)", fields.get("cookie", ""))
    return found[1] if found and found[1] in sessions else None


def new_session():
    made = secrets.token_hex(16)
    sessions.add(made)
    return made


def visit(writer, path, session):
    """What of /login, /me and /logout comes of a session that somebody has, or None."""
    if path == "/logout":
        sessions.discard(session)
        html(writer, page("out", "bye"), "200 OK", "Set-Cookie: session=; Max-Age=0")
    elif path == "/me" and not session:
        html(writer, page("out", "who are you?"), "401 Unauthorized")
    else:
        made = new_session()
        html(writer, page("in", "welcome"), "200 OK", f"Set-Cookie: session={made}; Max-Age=86400; HttpOnly; SameSite=Lax")
        return made
    return None


def html(writer, text, status="200 OK", *fields):
    world.respond(writer, text, status, "Content-Type: text/html", "Cache-Control: no-store", *fields)


async def tick(writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n")
    for n in itertools.count():
        writer.write(f"{len(str(n)) + 1:x}\r\n{n}\n\r\n".encode())
        await writer.drain()
        await asyncio.sleep(TICK_SECONDS)


async def read_form(reader, fields):
    data = await reader.readexactly(int(fields.get("content-length", "0")))
    return dict(urllib.parse.parse_qsl(data.decode("latin-1")))


def answer(writer, path, form, session):
    """The session that it made, if any."""
    if path in ("/login", "/me", "/logout"):
        return visit(writer, path, session)
    if path == "/file":
        world.respond(writer, FILE, "200 OK", "Content-Type: application/octet-stream", "Content-Disposition: attachment; filename=saved.bin")
    elif path == "/sent":
        html(writer, page("sent", f"<p id=said>thank you, {json.dumps(form)}"))
    elif path.startswith("/hostile/") and path[9:] in HOSTILE:
        html(writer, page("hostile", HOSTILE[path[9:]]))
    elif path == "/":
        html(writer, HOME.encode())
    else:
        html(writer, page("none", "no such page"), "404 Not Found")
    return None


async def serve(reader, writer, to, port, sni=None):
    conn = next(numbers)
    while True:
        method, target, fields = await world.read_request(reader)
        if not method:
            return
        path, session = target.partition("?")[0], session_of(fields)
        world.note("https" if sni is not None else "http", to, port, method=method, target=target, host=fields.get("host"),
                   fields=fields, conn=conn, session=session, form=await read_form(reader, fields), made=None)
        note = world.HEARD[-1]
        if path == "/ticks":
            await tick(writer)
        note["made"] = answer(writer, path, note["form"], session)
        await writer.drain()


if __name__ == "__main__":
    world.run(sys.argv[1], serve)
