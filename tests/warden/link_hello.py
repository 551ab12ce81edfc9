"""link_hello.py - src/base/link_hello.h in Python: what both sides of a link between daemons say first.

    link_hello.say(sock, 4)      # as a client: the server's (min, max, build)
    link_hello.answer(sock, 4)   # as a server: the client's
"""

import struct

HELLO = struct.Struct("<8sII32s")
MAGIC = b"hotcell\0"


def pack(low, high, build="test"):
    return HELLO.pack(MAGIC, low, high, build.encode())


def receive(sock):
    raw = sock.recv(HELLO.size + 1)
    if not raw:
        raise ConnectionResetError("no hello")
    magic, low, high, build = HELLO.unpack(raw)
    assert magic == MAGIC, raw
    return low, high, build.rstrip(b"\0").decode()


def say(sock, version):
    sock.send(pack(version, version))
    return receive(sock)


def answer(sock, version):
    said = receive(sock)
    sock.send(pack(version, version))
    return said
