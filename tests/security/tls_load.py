"""tls_load.py - clients of a gateway that shake hands, politely or not. A program:

    python3 tls_load.py PORT KIND CLIENTS [RATE]

Says "ready" when every client has said what it has to say. Ends when its standard input does. Clients come from ADDRESSES
addresses of this host, in turns. One that is cut off comes again; RATE: so many of them a second at most, once all were there.
"""

import contextlib
import itertools
import os
import select
import socket
import ssl
import struct
import sys
import threading
import time

SECONDS = 30
ADDRESSES = 20
NAME = "api.hotcell.test"
HELLO_MAX = 16 << 10  # src/wire/tls_hello.h
LIBRARY_MAX = 131_000  # what OpenSSL would make room for
ANSWER_MAX = 1 << 16
AT_ONCE = 64  # that come again before it is looked who else was cut off


def hello():
    """A whole one."""
    context, out = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.MemoryBIO()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=NAME).do_handshake()
    return out.read()


def long_hello(said, size):
    """So many bytes of a hello that is said to have more."""
    message = struct.pack(">IH", 1 << 24 | said, 0x0303) + bytes(size)
    records = (message[at:at + 16384] for at in range(0, size, 16384))
    return b"".join(struct.pack(">BHH", 22, 0x0301, 16384) + r for r in records)[:size]


WHOLE = hello()
SAID = {
    "silent": [b""],
    "begun": [WHOLE[:100]],
    "large": [long_hello(HELLO_MAX - 100, HELLO_MAX - 200)],
    "unanswered": [WHOLE],  # what the gateway says to it is not answered
    "oversized": [long_hello(LIBRARY_MAX, HELLO_MAX + 5000)],
    "promised": [long_hello(LIBRARY_MAX, 9)],
}
SAID["half_open"] = [*SAID["silent"], *SAID["begun"], *SAID["large"], *SAID["unanswered"]]


def connect(port, number):
    s = socket.socket()
    s.settimeout(SECONDS)
    s.bind((f"127.0.1.{1 + number % ADDRESSES}", 0))
    s.connect(("127.0.0.1", port))
    return s


class Crowd:
    """One thread for all."""

    def __init__(self, port, said, rate):
        self.port, self.said, self.pause, self.next = port, itertools.cycle(said), 1 / rate if rate else 0, 0
        self.numbers, self.sockets, self.waiting = itertools.count(), {}, select.epoll()

    def come(self):
        with contextlib.suppress(OSError):
            s = connect(self.port, next(self.numbers))
            with contextlib.suppress(OSError):
                s.sendall(next(self.said))
            s.setblocking(False)
            self.sockets[s.fileno()] = s
            self.waiting.register(s, select.EPOLLIN | select.EPOLLRDHUP)

    def look(self, fd):
        s = self.sockets[fd]
        with contextlib.suppress(OSError):
            if s.recv(ANSWER_MAX):
                return  # it is left at that
        self.waiting.unregister(fd)
        self.sockets.pop(fd).close()
        self.next = max(self.next + self.pause, time.monotonic())
        time.sleep(max(self.next - time.monotonic(), 0))
        self.come()

    def run(self, clients):
        for _ in range(clients):
            self.come()
        print("ready", flush=True)
        while True:
            for fd, _ in self.waiting.poll(SECONDS, AT_ONCE):
                self.look(fd)


def polite(port, number, begun, going):
    """A whole handshake, a question, its answer; and once more, until nobody holds the other end of `going`."""
    context, ready = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), select.poll()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    ready.register(going, select.POLLIN)
    while not ready.poll(0):
        with context.wrap_socket(connect(port, number), server_hostname=NAME) as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert s.recv(4096).startswith(b"HTTP/1.1 204")
        if begun is not None:
            os.write(begun, b".")
            begun = None


def polite_ones(port, clients):
    """A process each: one cannot keep a gateway busy."""
    begun, going = os.pipe(), os.pipe()
    for n in range(clients):
        if os.fork() == 0:
            os.close(going[1])
            polite(port, n, begun[1], going[0])
            os._exit(0)
    for _ in range(clients):
        os.read(begun[0], 1)
    print("ready", flush=True)


def main(port, kind, clients, rate):
    if kind == "polite":
        polite_ones(port, clients)
    else:
        threading.Thread(target=Crowd(port, SAID[kind], rate).run, args=[clients], daemon=True).start()
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int((sys.argv + ["0"])[4]))
