"""closed_network.py - a network for a program of a user's: loopback, with the servers on it that a test wants.

    with Internet() as internet, Relay(internet, server.port) as relay:
        Popen([*internet.inside, ...])      # reaches the server at 127.0.0.1:PORT, as outside
        listen(internet)                    # a socket that it reaches, too

Every other address there is the test's internet, which writes down who came (tests/internet).
"""

import contextlib
import ctypes
import socket
import threading

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
PART = 65536


def listen(internet, port=0):
    """A socket that listens on loopback in there. It stays there, whoever uses it."""
    made = []

    def work():  # in a thread of its own, which is the only one that moves
        with open(f"/proc/{internet.process.pid}/ns/net") as where:
            if LIBC.setns(where.fileno(), CLONE_NEWNET) == 0:
                made.append(socket.create_server(("127.0.0.1", port), backlog=128))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert made, f"no socket at port {port} of the closed network"
    return made[0]


class Relay:
    """What is sent to a port in there goes to the same port out here."""

    def __init__(self, internet, port):
        self.port, self.listener, self.open = port, listen(internet, port), []
        self.thread = threading.Thread(target=self.accept)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)  # accept() returns
        self.thread.join()
        self.listener.close()
        for near, far, passing in self.open:
            for end in (near, far):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in passing:
                thread.join()
            near.close()
            far.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.port))
                passing = [threading.Thread(target=pass_on, args=ends) for ends in ((near, far), (far, near))]
                self.open.append((near, far, passing))
                for thread in passing:
                    thread.start()


def pass_on(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(PART):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
