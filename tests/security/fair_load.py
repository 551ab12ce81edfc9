"""fair_load.py - clients of a gateway that keep it busy, politely or not. A program:

    python3 fair_load.py PORT KIND CLIENTS

Says "ready" when every client was answered, or has sent its first block; ends when its standard input does.
"""

import contextlib
import os
import select
import socket
import sys
import threading

from fair_guest import LARGE, LARGE_PORT, OK_PORT, SINK_PORT, TINY, TINY_PORT

SECONDS = 30
HEALTH = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
PIPELINED = 1500
A_FEW = 8  # as a busy client may send, who then waits
FIELDS = 90
HEAD_BYTES = 30_000  # of a large head


def head(method, port, fields=b""):
    return (f"{method} /x HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: fair\r\nE2b-Sandbox-Port: {port}\r\n".encode() +
            fields + b"\r\n")


def hop_head():
    """A list of very many names, and the fields that are looked for in it."""
    names = b"".join(b"a%d: b\r\n" % n for n in range(FIELDS))
    return head("GET", OK_PORT, b"Connection: " + b"," * (HEAD_BYTES - len(names)) + b"\r\n" + names)


def plain_head():
    """As large, and as many fields."""
    return head("GET", OK_PORT, b"".join(b"a%d: %s\r\n" % (n, b"b" * (HEAD_BYTES // FIELDS)) for n in range(FIELDS)))


class Load:
    def __init__(self, port, clients):
        self.port, self.clients = port, clients
        self.begun = threading.Semaphore(0)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)

    def run(self, act):
        for _ in range(self.clients):
            threading.Thread(target=act, daemon=True).start()
        for _ in range(self.clients):
            self.begun.acquire()

    def upload(self, block):
        s = self.connect()
        s.settimeout(None)
        s.sendall(head("POST", SINK_PORT, b"Transfer-Encoding: chunked\r\n") + block)
        self.begun.release()
        while True:
            s.sendall(block)

    def download(self, port):
        s, room = self.connect(), bytearray(1 << 20)
        s.sendall(head("GET", port))
        s.recv_into(room)
        self.begun.release()
        while s.recv_into(room):
            pass

    def pipeline(self, at_once):
        s, room, block = self.connect(), bytearray(1 << 20), HEALTH * at_once
        s.settimeout(None)
        s.setblocking(False)
        left, due, tail, first = b"", 0, b"", True
        while True:
            select.select([s], [s] if left or due < at_once else [], [], SECONDS)
            with contextlib.suppress(BlockingIOError):
                if not left and due < at_once:
                    left, due = block, due + at_once
                left = left[s.send(left):]
            with contextlib.suppress(BlockingIOError):
                tail += room[:s.recv_into(room)]
                due -= tail.count(b"\r\n\r\n")
                tail = tail[-3:]
                if first:
                    self.begun.release()
                first = False

    def ask(self, request):
        """One after the other; who is refused and cut off connects again."""
        first, s = True, None
        while True:
            with contextlib.suppress(OSError):
                s = s or self.connect()
                s.sendall(request)
                got = s.recv(65536)
                if first:
                    self.begun.release()
                first = False
                if got.startswith(b"HTTP/1.1 200"):
                    continue
            if s:
                s.close()
            s = None

    def rest(self, anew):
        """Connections that were used once; one that is cut off is made anew. `anew`: so is one after the other, as busily as
        by somebody who is cut off all the time."""
        watched, sockets = select.epoll(), {}

        def add():
            s = self.connect()
            s.sendall(HEALTH)
            sockets[s.fileno()] = s
            watched.register(s, select.EPOLLRDHUP)

        for _ in range(self.clients):
            add()
        print("ready", flush=True)
        while anew:
            fd = next(iter(sockets))
            watched.unregister(fd)
            sockets.pop(fd).close()
            add()
        while True:
            for fd, _ in watched.poll(SECONDS):
                watched.unregister(fd)
                sockets.pop(fd).close()
                with contextlib.suppress(OSError):
                    add()


KINDS = {
    "tiny chunks up": lambda load: load.run(lambda: load.upload(TINY)),
    "large chunks up": lambda load: load.run(lambda: load.upload(LARGE)),
    "tiny chunks down": lambda load: load.run(lambda: load.download(TINY_PORT)),
    "large chunks down": lambda load: load.run(lambda: load.download(LARGE_PORT)),
    "pipelined": lambda load: load.run(lambda: load.pipeline(PIPELINED)),
    "a few at a time": lambda load: load.run(lambda: load.pipeline(A_FEW)),
    "hop-by-hop names": lambda load: load.run(lambda: load.ask(hop_head())),
    "large heads": lambda load: load.run(lambda: load.ask(plain_head())),
    "idle": lambda load: threading.Thread(target=load.rest, args=(False,), daemon=True).start(),
    "idle, made anew": lambda load: threading.Thread(target=load.rest, args=(True,), daemon=True).start(),
}


def main():
    port, kind, clients = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    KINDS[kind](Load(port, clients))
    if not kind.startswith("idle"):
        print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
