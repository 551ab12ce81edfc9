"""probes.py - runs in the guest, as root: tries to get out in the ways it is told.

    python3 probes.py FILE [ROUNDS]      # FILE: JSON, {"title": [kind, {arguments}]}; prints {"title": result}

A result is `ADDRESS:PORT` of the server whose answer arrived, what a resolver said, or `no: ` and what happened.
Each kind is a function of that name below, or in frames.py. With ROUNDS everything is tried that often; a result
that is no refusal stays.

An emulated guest takes a second or more to import what few probes need: they import it themselves.
"""

import contextlib
import errno
import json
import re
import socket
import ssl
import sys
import threading
import time

import frames
import names

SECONDS = 8  # for an answer
AT_ONCE = 6
REFUSALS = ("no: ", "nxdomain", "nodata", "code ")
KEPT = 1 << 21


class Nobody(Exception):
    """No server's answer arrived."""


def lookup(to):
    """The first IPv4 address, or the IPv6 one that was written."""
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    return family, socket.getaddrinfo(to, 0, family, socket.SOCK_STREAM)[0][4]


def connected(to, port):
    family, address = lookup(to)
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(SECONDS)
    s.connect((address[0], port, *address[2:]))
    return s


def who_answered(data, need=1):
    found = re.findall(rb"reached ([0-9a-f.:]+:\d+)", data)
    if len(found) < need:
        status = re.match(rb"HTTP/1.1 (\d+)[^\n]*\r\n\r?.*?\r\n\r\n(.*)", data, re.S)
        raise Nobody(f"{status[1].decode()} {status[2][:120].decode()}" if status else f"{len(data)} bytes")
    return found[need - 1].decode()


def read_all(s, data=b"", need=1):
    """Until nothing comes any more, or as many answers as are needed came."""
    while data.count(b"reached") < need and len(data) < KEPT:
        piece = s.recv(65536)
        if not piece:
            break
        data += piece
    return data


# --- plain ------------------------------------------------------------------------------------------------


def say(to, port, parts=(), need=1, gap=0.6):
    """Each part is sent, and a while waited between them; an empty one stands for the waiting alone."""
    with connected(to, port) as s:
        for i, part in enumerate(parts):
            if i:
                time.sleep(gap)
            s.sendall(part.encode("latin-1"))
        return who_answered(read_all(s, need=need), need)


def http(to, port=80, host=None, path="/", method="GET", more="", quiet=0, close=False):
    request = f"{method} {path} HTTP/1.1\r\nHost: {to if host is None else host}\r\n{more}\r\n"
    with connected(to, port) as s:
        time.sleep(quiet)
        s.sendall(request.encode("latin-1"))
        if close:
            s.shutdown(socket.SHUT_WR)
        return who_answered(read_all(s))


def crowd(to, n, port=80):
    """How many of n connections at the same time are answered."""
    kept = []
    for _ in range(n):
        kept.append(connected(to, port))
        with contextlib.suppress(OSError):
            kept[-1].sendall(f"GET / HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
    answered = 0
    for s in kept:
        with contextlib.suppress(OSError):
            answered += b"reached" in read_all(s)
    for s in kept:
        s.close()
    return f"{answered} of {n}"


def large(to, port=80):
    with connected(to, port) as s:
        s.sendall(f"GET /large HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while not data.partition(b"\r\n\r\n")[2].endswith(BLOCK) or len(data) < len(BLOCK) * 1024:
            piece = s.recv(1 << 16)
            if not piece:
                raise Nobody(f"{len(data)} bytes")
            data += piece
    body = data.partition(b"\r\n\r\n")[2]
    assert body.endswith(BLOCK * 1024), "something was changed on its way"
    return who_answered(data)


BLOCK = bytes(range(256)) * 4


def websocket(to, port=80, host=None, tls=None, early=""):
    """Upgraded, and then bytes both ways."""
    request = (f"GET /ws HTTP/1.1\r\nHost: {host or to}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
               f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n{early}")
    with Tls(to, port, tls) if tls else connected(to, port) as s:
        s.sendall(request.encode())
        who = who_answered(read_all(s))
        s.sendall(b"frame")
        if s.recv(100) != b"frame":
            raise Nobody("no echo")
        return who


def follow(url):
    """Wherever it is sent."""
    import urllib.request

    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=SECONDS) as answer:
        return who_answered(answer.read())


def command(words):
    """A client as people use it."""
    import subprocess

    try:
        done = subprocess.run(words, capture_output=True, timeout=30, check=False)
    except subprocess.SubprocessError as e:
        raise Nobody(e) from None
    if done.returncode:
        raise Nobody(f"exit {done.returncode}: {done.stderr[-100:].decode(errors='replace')}")
    return who_answered(done.stdout)


# --- TLS --------------------------------------------------------------------------------------------------


class Tls:
    """A connection whose greeting is made before it is dialled, so that it is sent at once, or as one likes."""

    def __init__(self, to, port, sni, change=None, pieces=1, quiet=0):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.inward, self.outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.inward, self.outward, server_hostname=sni or None)
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        hello = self.outward.read()
        hello = change(hello) if change else hello
        self.s = s = connected(to, port)
        time.sleep(quiet)
        step = -(-len(hello) // pieces)
        for at in range(0, len(hello), step):
            s.sendall(hello[at:at + step])
            time.sleep(0.05 if pieces > 1 else 0)
        if not change:
            self.until(self.tls.do_handshake)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def until(self, what, *args):
        while True:
            try:
                done = what(*args)
                self.s.sendall(self.outward.read())
                return done
            except ssl.SSLWantReadError:
                self.s.sendall(self.outward.read())
                data = self.s.recv(65536)
                if not data:
                    raise Nobody("the connection ended in the handshake") from None
                self.inward.write(data)

    def sendall(self, data):
        self.until(self.tls.write, data)

    def recv(self, n):
        try:
            return self.until(self.tls.read, n)
        except ssl.SSLZeroReturnError:
            return b""


def tls(to, port=443, sni=None, host=None, pieces=1, quiet=0):
    with Tls(to, port, sni, pieces=pieces, quiet=quiet) as t:
        t.sendall(f"GET / HTTP/1.1\r\nHost: {host or sni or to}\r\n\r\n".encode())
        return who_answered(read_all(t))


def longer(hello, more):
    """The same greeting with another extension."""
    at = 5 + 4 + 34
    at += 1 + hello[at]
    at += 2 + int.from_bytes(hello[at:at + 2], "big")
    at += 1 + hello[at]
    size = int.from_bytes(hello[at:at + 2], "big") + len(more)
    body = hello[9:at] + size.to_bytes(2, "big") + hello[at + 2:] + more
    return (hello[:3] + (len(body) + 4).to_bytes(2, "big") + hello[5:6] + len(body).to_bytes(3, "big") + body)


def in_records(hello):
    """The same greeting, in many records."""
    body = hello[5:]
    return b"".join(hello[:3] + len(body[i:i + 20]).to_bytes(2, "big") + body[i:i + 20] for i in range(0, len(body), 20))


def odd_hello(to, port, sni, how):
    """A greeting of an unusual kind; any answer of the server to it counts."""
    change = {"ech": lambda h: longer(h, b"\xfe\x0d\0\x0a" + bytes(10)), "records": in_records,
              "alert": lambda h: b"\x15\3\1\0\2\1\x5a" + h, "cipher": lambda h: b"\x14\3\3\0\1\1" + h,
              "as is": lambda h: h}[how]
    with Tls(to, port, sni, change) as t:
        data = t.s.recv(100)
        if not data or data[0] == 0x15:
            raise Nobody(data.hex())
        return f"{t.s.getpeername()[0]}:{port}"


# --- names ------------------------------------------------------------------------------------------------


def said(data):
    code, n, found = names.read_answer(data)
    if code or not n:
        return {names.NOERROR: "nodata", names.NXDOMAIN: "nxdomain"}.get(code, f"code {code}")
    return ",".join(found) or f"{n} records"


def dns(server, name, kind=names.A, port=53):
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(SECONDS / 2)
        s.connect((server, port))
        for _ in range(2):
            s.send(names.question(name, kind))
            try:
                return said(s.recv(4096))
            except TimeoutError:
                pass
        raise Nobody("silence")


def dns_tcp(server, name, port=53):
    with connected(server, port) as s:
        ask = names.question(name)
        s.sendall(len(ask).to_bytes(2, "big") + ask)
        data = s.recv(4096)
        if len(data) < 14:
            raise Nobody("no answer")
        return said(data[2:])


def ask_often(server, name, n, seconds):
    """How many of n questions, asked at once, are answered in that time."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((server, 53))
        for i in range(n):
            s.send(names.question(name, tag=i))
        end, answered = time.monotonic() + seconds, 0
        with contextlib.suppress(TimeoutError):
            while (left := end - time.monotonic()) > 0:
                s.settimeout(left)
                answered += len(s.recv(4096)) > 0
        return str(answered)


def resolve(name):
    return ",".join(sorted({a[4][0] for a in socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)}))


# --- the rest ---------------------------------------------------------------------------------------------


def udp(to, port, text="hello", wait=2):
    with socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.settimeout(wait)
        s.sendto(text.encode("latin-1"), (to, port))
        return who_answered(s.recv(2000))


def ping(to, wait=2):
    text = b"\x08\0\0\0HC\0\1hotcell"
    text = text[:2] + frames.checksum(text) + text[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        s.settimeout(wait)
        s.sendto(text, (to, 0))
        while data := s.recv(2000):
            if data[20] == 0 and b"hotcell" in data:  # an echo of ours
                return f"{to}:0"


def frame(how, wait=2):
    return frames.send(how, wait)


KINDS = {f.__name__: f for f in (say, http, crowd, large, websocket, follow, command, tls, odd_hello, dns, dns_tcp, ask_often,
                                 resolve, udp, ping, frame)}


def attempt(kind, args):
    try:
        return KINDS[kind](**args) or "no: nothing"
    except OSError as e:
        return "no: " + (errno.errorcode.get(e.errno, str(e)) if e.errno and not isinstance(e, socket.gaierror)
                         else str(e))
    except (Nobody, ValueError, IndexError) as e:
        return f"no: {e}"


def side_by_side(probes):
    results, left = {}, list(reversed(probes.items()))

    def work():
        while left:
            try:
                title, probe = left.pop()
            except IndexError:
                return
            results[title] = attempt(*probe)

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def main():
    with open(sys.argv[1], encoding="ascii") as f:
        probes = json.load(f)
    results = {}
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
        got = side_by_side(probes)
        results = {title: got[title] if results.get(title, "no: ").startswith(REFUSALS) else results[title]
                   for title in probes}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
