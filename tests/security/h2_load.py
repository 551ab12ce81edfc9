"""h2_load.py - clients of a gateway that speak HTTP/2, politely or not. A program:

    python3 h2_load.py PORT KIND CLIENTS [MOST [HOST]]

Says "ready" when every client has sent its first block. Ends when its standard input does, or when MOST streams were
opened in all, and says how many it opened, and how often it was sent away. HOST: of the requests.
"""

import contextlib
import itertools
import os
import socket
import ssl
import struct
import sys
import threading
import time

SECONDS = 30
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
LAST_ID = 2**31 - 1
BLOCK = 500  # frames, or pairs of them, in one write
A_FEW = 20   # streams of a polite client at a time
TABLE = 3900  # bytes of a field in the table of compression
TIMES = 12_000  # that it is meant in one head
HUNDRED = 100  # streams of a connection
PATIENT = 300  # resets of a connection that is not sent away
TAKEN = 20 << 20  # bytes of an answer, before no more is taken


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(data):
    """A string of HPACK, not compressed."""
    if len(data) < 127:
        return bytes([len(data)]) + data
    left, out = len(data) - 127, b"\x7f"
    while left >= 128:
        out, left = out + bytes([left % 128 | 128]), left // 128
    return out + bytes([left]) + data


def get(path, host="a"):
    return b"\x82\x86\x04" + text(path.encode()) + b"\x01" + text(host.encode())


def window(size):
    """Of each stream, at first."""
    return frame(SETTINGS, payload=struct.pack(">HI", 4, size))


SETTINGS_FRAME = frame(SETTINGS)
BOMB = get("/health") + b"\x40\x01z" + text(b"v" * TABLE) + b"\xbe" * TIMES


class Load:
    def __init__(self, port, clients, most, host):
        self.port, self.clients, self.most, self.host = port, clients, most, host
        self.begun, self.full = threading.Semaphore(0), threading.Event()
        self.opened = self.sent_away = self.answered = 0
        self.lock = threading.Lock()

    def connect(self, settings=SETTINGS_FRAME):
        s = socket.create_connection(("127.0.0.1", self.port), SECONDS)
        s.sendall(PREFACE + settings)
        return s

    def run(self, act):
        def one():
            act()
            self.begun.release()  # the others may have opened MOST before this one began

        for _ in range(self.clients):
            threading.Thread(target=one, daemon=True).start()
        for _ in range(self.clients):
            self.begun.acquire()

    def count(self, n):
        with self.lock:
            self.opened += n
            if self.most and self.opened >= self.most:
                self.full.set()

    def again_and_again(self, blocks, opens=0):
        """Blocks of a connection, as fast as they are taken; and once more when that is cut."""
        first = True
        while not self.full.is_set():
            with contextlib.suppress(OSError), self.connect() as s:
                drain = threading.Thread(target=self.swallow, args=[s], daemon=True)
                drain.start()
                try:
                    for block in blocks():
                        s.sendall(block)
                        self.count(opens)
                        if first:
                            self.begun.release()
                            first = False
                        if self.full.is_set():
                            return
                finally:
                    with contextlib.suppress(OSError):
                        s.shutdown(socket.SHUT_RDWR)
                    drain.join()
            self.sent_away += 1
            time.sleep(0.001)

    @staticmethod
    def swallow(s):
        with contextlib.suppress(OSError):
            while s.recv(65536):
                pass

    def streams(self, one):
        """Blocks of what `one` says on each new stream."""
        def blocks():
            ids = iter(range(1, LAST_ID, 2))
            while some := list(itertools.islice(ids, BLOCK)):
                yield b"".join(one(n) for n in some)
        self.again_and_again(blocks, BLOCK)

    def frames(self, one):
        self.again_and_again(lambda: itertools.repeat(one * BLOCK))

    def rapid_reset(self):
        head, code = get("/health"), struct.pack(">I", 8)
        self.streams(lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n, head) + frame(RST_STREAM, 0, n, code))

    def rapid_reset_patient(self):
        """As many on a connection as it may, so that it is never sent away; then on a new one."""
        head, code, said = get("/health"), struct.pack(">I", 8), b"12345678"
        block = b"".join(frame(HEADERS, END_STREAM | END_HEADERS, n, head) + frame(RST_STREAM, 0, n, code)
                         for n in range(1, 2 * PATIENT, 2)) + frame(PING, payload=said)
        while not self.full.is_set():
            with contextlib.suppress(OSError), self.connect() as s:
                s.sendall(block)
                got = b""
                while frame(PING, 1, payload=said) not in got:  # all before it was dealt with
                    more = s.recv(65536)
                    if not more:
                        self.sent_away += 1
                        break
                    got = got[-64:] + more
                else:
                    self.count(PATIENT)
                self.begun.release()

    def provoked_resets(self):
        self.streams(lambda n: frame(HEADERS, END_STREAM | END_HEADERS, n, b"\x82" + get("/health")))

    def window_overflow(self):
        head, much = get("/health"), struct.pack(">I", LAST_ID)
        self.streams(lambda n: frame(HEADERS, END_HEADERS, n, head) + frame(WINDOW_UPDATE, 0, n, much))

    def continuations(self):
        def blocks():
            yield frame(HEADERS, 0, 1, get("/health"))
            yield from itertools.repeat(frame(CONTINUATION, 0, 1, b"\x00\x01x\x01y" * 100) * 50)
        self.again_and_again(blocks)

    def hpack_bombs(self):
        def blocks():
            for n in range(1, LAST_ID, 2):
                yield frame(HEADERS, END_STREAM | END_HEADERS, n, BOMB)
        self.again_and_again(blocks, 1)

    def settings(self):
        self.frames(window(70000))

    def pings(self):
        self.frames(frame(PING, payload=b"12345678"))

    def priorities(self):
        self.frames(frame(PRIORITY, 0, 3, b"\0\0\0\0\x10"))

    def nothing(self):
        def blocks():
            yield frame(HEADERS, END_HEADERS, 1, get("/health"))
            yield from itertools.repeat(frame(DATA, 0, 1) * BLOCK)
        self.again_and_again(blocks)

    def padding(self):
        def blocks():
            yield frame(HEADERS, END_HEADERS, 1, get("/health"))
            yield from itertools.repeat(frame(DATA, PADDED, 1, b"\x05" + bytes(5)) * BLOCK)
        self.again_and_again(blocks)

    def slow_prefaces(self):
        """Never says more than the beginning of it."""
        s = socket.create_connection(("127.0.0.1", self.port), SECONDS)
        s.sendall(PREFACE[:17])
        self.begun.release()
        self.swallow(s)

    def ask_a_hundred(self, s):
        head = get("/big", self.host)
        s.sendall(b"".join(frame(HEADERS, END_STREAM | END_HEADERS, n, head) for n in range(1, 2 * HUNDRED, 2)))
        self.count(HUNDRED)

    def stalled(self, wrap=lambda s: s):
        """A hundred answers that may not be sent."""
        s = wrap(socket.create_connection(("127.0.0.1", self.port), SECONDS))
        s.sendall(PREFACE + window(0))
        self.ask_a_hundred(s)
        self.begun.release()
        self.swallow(s)

    def stalled_tls(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        self.stalled(context.wrap_socket)

    def stalled_later(self):
        """A hundred answers, one after the other. Of each a part is taken, as fast as it comes, and then no more."""
        s = self.connect(window(TAKEN) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", LAST_ID - 65535)))
        head, room = get("/big", self.host), bytearray(1 << 20)
        for n in range(1, 2 * HUNDRED, 2):
            s.sendall(frame(HEADERS, END_STREAM | END_HEADERS, n, head))
            taken = 0
            while taken < TAKEN:
                taken += s.recv_into(room)
        self.count(HUNDRED)
        self.begun.release()
        self.swallow(s)

    def held(self):
        """A hundred answers that have begun, and of which no more comes."""
        s, begun, got = self.connect(), 0, b""
        self.ask_a_hundred(s)
        while begun < HUNDRED:
            got += s.recv(65536)
            while len(got) >= 9 and len(got) >= 9 + (size := int.from_bytes(got[:3], "big")):
                begun += got[3] == DATA
                got = got[9 + size:]
        self.begun.release()
        self.swallow(s)

    def resting(self):
        """One that was used once."""
        s = self.connect()
        s.sendall(frame(HEADERS, END_STREAM | END_HEADERS, 1, get("/health")))
        s.recv(65536)
        self.begun.release()
        self.swallow(s)

    def polite(self, turns=None):
        """As many requests as are answered, A_FEW at a time; `turns`: so often on one connection."""
        head, got, s = get("/health"), b"", self.connect()
        ids = iter(range(1, LAST_ID, 2))
        waiting, turn = 0, 0
        while not self.full.is_set():
            if waiting == 0:
                if turn == turns:
                    break
                s.sendall(b"".join(frame(HEADERS, END_STREAM | END_HEADERS, n, head)
                                   for n in itertools.islice(ids, A_FEW)))
                waiting, turn = A_FEW, turn + 1
                self.begun.release()
            got += s.recv(65536)
            while len(got) >= 9 and len(got) >= 9 + (size := int.from_bytes(got[:3], "big")):
                waiting -= got[3] == HEADERS
                self.answered += got[3] == HEADERS
                got = got[9 + size:]
        s.close()

    def polite_anew(self):
        """The same, on a new connection each time: as one who is sent away again and again."""
        while not self.full.is_set():
            self.polite(1)


def main(port, kind, clients, most="0", host="a"):
    load = Load(int(port), int(clients), int(most), host)
    load.run(getattr(load, kind))
    print("ready", flush=True)
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), load.full.set()), daemon=True).start()
    load.full.wait()
    print(f"{load.opened} {load.sent_away} {load.answered}", flush=True)
    os._exit(0)  # threads wait in sockets, and one for standard input


if __name__ == "__main__":
    main(*sys.argv[1:])
