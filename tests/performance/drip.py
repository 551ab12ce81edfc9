"""drip.py - a sandbox that keeps egress busy with many small packets. A program, in the network of crowd.py:

    python3 drip.py ADDRESS KIND CONNECTIONS RATE

From ADDRESS, on so many connections, it sends RATE packets a second, round and round, until its standard input ends.
KIND says what: `pieces` of 1 KiB for a server that throws them away, as an honest program would; or one byte at a time of a
first message that egress has to understand before it dials anybody: a `head` of HTTP with thousands of lines, or a `greeting`
of TLS in records of one byte. It prints "ready" when it has been at it for a while, and at the end how many packets it sent.
"""

import os
import select
import socket
import sys
import time

SERVER, PORT = "93.184.216.34", 19
PIECE = b"\0" * 1024
LINES = b"GET / HTTP/1.1\r\nHost: good.test\r\n" + b"a:\r\n" * 7980  # nearly as long as a head may be
MESSAGE = b"\x01\x00\x20\x00" + bytes(2500)
RECORDS = b"".join(b"\x16\x03\x01\x00\x01" + MESSAGE[i:i + 1] for i in range(len(MESSAGE)))
FIRST = {"pieces": PIECE, "head": LINES, "greeting": RECORDS[:15000]}  # of each connection, at once
WHILE_S = 0.5
TURNS = 400  # then a connection is replaced by a new one


class Connection:
    def __init__(self, address, kind):
        self.address, self.kind = address, kind
        self.open()

    def open(self):
        self.sent = 0
        self.sock = socket.socket()
        self.sock.bind((self.address, 0))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.connect((SERVER, PORT))
        self.sock.sendall(FIRST[self.kind])
        self.sock.setblocking(False)

    def packet(self):
        if self.kind == "pieces":
            return PIECE
        return b"x" if self.kind == "head" else RECORDS[15000 + self.sent % 6:][:1]

    def drip(self):
        """One packet, if there is room; a connection that was ended begins again."""
        try:
            self.sock.send(self.packet())
        except BlockingIOError:
            return False
        except OSError:
            self.sent = TURNS
        self.sent += 1
        if self.sent >= TURNS and self.kind != "pieces":
            self.sock.close()
            self.open()
        return True


def main():
    address, kind, n, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    connections = [Connection(address, kind) for _ in range(n)]
    begin, sent, at, ready = time.monotonic(), 0, 0, False
    while not select.select([0], [], [], 0)[0]:
        seconds = time.monotonic() - begin
        if seconds > WHILE_S and not ready:
            ready = True
            print("ready", flush=True)
        due = seconds * rate
        for _ in range(n):  # at most once round before it looks up
            if sent >= due:
                break
            sent += connections[at % n].drip()
            at += 1
        time.sleep(0.001)
    print(sent, time.monotonic() - begin, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
