"""world.py - the test's internet. A program, in a network of its own:

    unshare --net python3 world.py FOLDER

Every address there is is its own, so whatever egress dials it gets to somebody who writes down that it came: what
protocol, to which address, saying which name. Each server's answer holds `reached ADDRESS:PORT`. Of the commands on
its standard input `heard` prints, as JSON, who came since it was last asked, and `ready` that it still lives.
FOLDER has the certificate (cert.pem, key.pem) of all its servers; /files/X is its file files/X, /echo the request's headers.
"""

import asyncio
import base64
import collections
import contextlib
import hashlib
import json
import logging
import mimetypes
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import time

import names

HEARD = []
HTTP_PORTS, TLS_PORTS = (80, 8080, 3128), (443, 853, 8443)
UDP_PORTS = (53, 123, 443, 4789, 5353, 9999)
BLOCK = bytes(range(256)) * 4
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
IP_PKTINFO = 8
asked = collections.Counter()


def note(proto, to, port, **said):
    HEARD.append({"proto": proto, "to": to, "port": port, **said})


def reached(to, port):
    return f"reached {to}:{port}".encode()


# --- those who speak first, or binary ---------------------------------------------------------------------


async def serve_ssh(reader, writer, to, port):
    writer.write(b"SSH-2.0-" + reached(to, port) + b"\r\n")
    await reader.read(100)


async def serve_smtp(reader, writer, to, port):
    writer.write(b"220 " + reached(to, port) + b" ESMTP\r\n")
    while line := await reader.readline():
        note("smtp", to, port, said=line.decode("latin-1").strip())
        writer.write(b"250 fine\r\n")


async def serve_postgres(reader, writer, to, port):
    """No TLS; and whoever begins is told that it reached us."""
    await reader.readexactly(8)
    writer.write(b"N")
    await reader.readexactly(8)
    text = b"SFATAL\0M" + reached(to, port) + b"\0\0"
    writer.write(b"E" + struct.pack(">I", 4 + len(text)) + text)


async def serve_dns(reader, writer, to, port):
    size = struct.unpack(">H", await reader.readexactly(2))[0]
    data = names.answer(await reader.readexactly(size), names.addresses("evil.test"))
    writer.write(struct.pack(">H", len(data)) + data)


async def serve_echo(reader, writer, to, port):
    writer.write(reached(to, port) + b"\r\n")
    try:
        while data := await reader.read(4096):
            note("echo", to, port, said=data[:64].decode("latin-1"))
            writer.write(data)
    finally:
        note("cut", to, port, at=time.monotonic())


# --- HTTP -------------------------------------------------------------------------------------------------


def respond(writer, text, status="200 OK", *fields):
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(text)}", *fields]
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + text)


def respond_file(writer, target):
    """Of the test's own, below FOLDER/files; of a folder its index.html."""
    path = pathlib.Path(sys.argv[1] + target)
    path = path / "index.html" if path.is_dir() else path
    if path.is_file():
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        respond(writer, path.read_bytes(), "200 OK", f"Content-Type: {kind}")
    else:
        respond(writer, b"", "404 Not Found")


async def upgrade(reader, writer, fields, to, port):
    key = base64.b64encode(hashlib.sha1(fields.get("sec-websocket-key", "").encode() + MAGIC).digest()).decode()
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                 b"Sec-WebSocket-Accept: " + key.encode() + b"\r\n\r\n" + reached(to, port) + b"\r\n")
    while data := await reader.read(4096):
        note("upgraded", to, port, said=data[:200].decode("latin-1"))
        writer.write(data)


async def drip(writer, to, port):
    """A byte now and again, until somebody cuts it, and when that was."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        while not writer.is_closing():
            writer.write(b"1\r\n.\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)
    finally:
        note("cut", to, port, at=time.monotonic())


async def read_body(reader, fields):
    if "chunked" in fields.get("transfer-encoding", ""):
        while size := int((await reader.readline()).split(b";")[0], 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    elif "content-length" in fields:
        await reader.readexactly(int(fields["content-length"]))


async def read_request(reader):
    """As lenient as the most lenient server: empty lines before it, line ends without CR."""
    line = b"\n"
    while line.strip() == b"" and line:
        line = await reader.readline()
    if not line:
        return None, None, None
    words, fields = line.decode("latin-1").split(), {}
    while (more := await reader.readline()).strip():
        name, _, value = more.decode("latin-1").partition(":")
        name, value = name.strip().lower(), value.strip()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return words[0], words[1] if len(words) > 1 else "", fields


async def serve_http(reader, writer, to, port, sni=None):
    while True:
        method, target, fields = await read_request(reader)
        if not method:
            return
        note("https" if sni is not None else "http", to, port, method=method, target=target,
             host=fields.get("host"), sni=sni, fields=fields)
        await read_body(reader, fields)
        text = reached(to, port)
        if target == "/ws":
            await upgrade(reader, writer, fields, to, port)
            return
        if target == "/drip":
            await drip(writer, to, port)
        elif target == "/large":
            respond(writer, text + BLOCK * 1024)
        elif target.startswith("/redirect?"):
            respond(writer, text, "302 Found", "Location: " + target.partition("?")[2])
        elif target == "/echo":
            respond(writer, json.dumps(fields).encode())
        elif target.startswith("/files/"):
            respond_file(writer, target.partition("?")[0])
        else:
            respond(writer, text)
        await writer.drain()


async def pass_on(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def serve_proxy(reader, writer, to, port):
    """CONNECT to whomever it is asked for, inside too: egress has to judge."""
    method, target, _ = await read_request(reader)
    host, _, number = target.rpartition(":")
    note("proxy", to, port, method=method, target=target)
    ips = [host] if host.replace(".", "").isdigit() else names.addresses(host)
    if method != "CONNECT" or not ips:
        respond(writer, b"not there", "403 Forbidden")
        return
    server = await asyncio.open_connection(ips[0], int(number), local_addr=(names.BEHIND, 0))
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
    await asyncio.gather(pass_on(reader, server[1]), pass_on(server[0], writer))
    server[1].close()


async def serve_tls(reader, writer, to, port, context, serve=serve_http):
    await writer.start_tls(context)
    tls = writer.get_extra_info("ssl_object")
    sni = getattr(tls, "said", None) or ""
    note("tls", to, port, sni=sni)
    await serve(reader, writer, to, port, sni)


def tls_context(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")

    def said(tls, name, _):
        tls.said = name
    context.sni_callback = said
    return context


# --- the rest ---------------------------------------------------------------------------------------------


def taken(serve, *more):
    async def accept(reader, writer):
        to, port = writer.get_extra_info("sockname")[:2]
        to = to.removeprefix("::ffff:")
        note("tcp", to, port, peer=writer.get_extra_info("peername")[0].removeprefix("::ffff:"))
        with contextlib.suppress(OSError, EOFError, ValueError, ssl.SSLError):
            await serve(reader, writer, to, port, *more)
            await writer.drain()
        with contextlib.suppress(OSError, ssl.SSLError):
            writer.close()
    return accept


def found(name):
    """flip.test is outside for those who ask first, and inside for those who ask again."""
    asked[name] += 1
    if name == "flip.test":
        return [names.MOVED if asked[name] == 1 else names.INSIDE]
    return names.addresses(name)


def serve_udp(s, port):
    data, more, _, who = s.recvmsg(4096, 256)
    to = next((socket.inet_ntoa(value[8:12]) for _, kind, value in more if kind == IP_PKTINFO), "?")
    if port != 53:
        note("udp", to, port)
        s.sendto(reached(to, port) + data, who)
        return
    with contextlib.suppress(IndexError):
        name, kind, _ = names.read_question(data)
        note("dns", to, port, name=name, kind=kind)
        ips = found(name)
        s.sendto(names.answer(data, ips, names.NOERROR if ips else names.NXDOMAIN), who)


async def orders():
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line == b"heard\n":
            print(json.dumps(HEARD), flush=True)
            HEARD.clear()
        else:
            print(json.dumps("ready"), flush=True)


async def main(folder, serve=serve_http):
    """`serve`: what is spoken at the ports of HTTP, with TLS and without."""
    context = tls_context(folder)
    ports = {22: (serve_ssh,), 25: (serve_smtp,), 53: (serve_dns,), 5432: (serve_postgres,), 7: (serve_echo,),
             6379: (serve_echo,), **{p: (serve,) for p in HTTP_PORTS},
             **{p: (serve_tls, context, serve) for p in TLS_PORTS}}
    for port, how in ports.items():
        await asyncio.start_server(taken(*how), None, port, backlog=1024, limit=1 << 20)  # both families
    await asyncio.start_server(taken(serve_proxy), names.PROXY, names.PROXY_PORT, backlog=1024)
    for port in UDP_PORTS:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        s.bind(("0.0.0.0", port))
        s.setblocking(False)
        asyncio.get_running_loop().add_reader(s, serve_udp, s, port)
    await orders()


def run(folder, serve=serve_http):
    logging.disable(logging.CRITICAL)
    for words in ("ip link set lo up", "ip route add local default dev lo", "ip -6 route add local default dev lo"):
        subprocess.run(words.split(), check=True)
    asyncio.run(main(folder, serve))


if __name__ == "__main__":
    run(sys.argv[1])
