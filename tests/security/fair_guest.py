"""fair_guest.py - a node made of a few answers, and guests that send and take as fast as they can. A program, in a
network of its own:

    unshare --net python3 fair_guest.py NODE_SOCKET

Each port has a process of its own, and each connection there a thread.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading

from evil_guest import ADDRESS, FakeNode

TINY_PORT, LARGE_PORT, SINK_PORT, OK_PORT = 8001, 8002, 8003, 8004
TINY = b"1\r\nx\r\n" * 16_000
LARGE = (b"10000\r\n" + bytes(65536) + b"\r\n") * 2
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def read_head(s):
    got = b""
    while b"\r\n\r\n" not in got:
        piece = s.recv(65536)
        if not piece:
            raise ConnectionResetError
        got += piece


def flood(s, block):
    read_head(s)
    s.sendall(CHUNKED)
    while True:
        s.sendall(block)


def swallow(s):
    room = bytearray(1 << 20)
    while s.recv_into(room):
        pass


def answer(s):
    while True:
        read_head(s)
        s.sendall(OK)


SERVED = {
    TINY_PORT: lambda s: flood(s, TINY),
    LARGE_PORT: lambda s: flood(s, LARGE),
    SINK_PORT: swallow,
    OK_PORT: answer,
}


def serve(port):
    def one(s):
        with s, contextlib.suppress(OSError):
            SERVED[port](s)

    door = socket.create_server((ADDRESS, port), backlog=1024)
    while True:
        s, _ = door.accept()
        threading.Thread(target=one, args=(s,), daemon=True).start()


async def be_node():
    FakeNode(sys.argv[1])
    print(json.dumps({"ready": True}), flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the test ends


def main():
    for command in ("ip link set lo up", f"ip address add {ADDRESS}/32 dev lo"):
        subprocess.run(command.split(), check=True)
    children = []
    for port in SERVED:
        children.append(os.fork())
        if children[-1] == 0:
            serve(port)
    try:
        asyncio.run(be_node())
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
