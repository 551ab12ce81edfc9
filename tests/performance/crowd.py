"""crowd.py - many sandboxes without machines: their doors, their programs and a server, in one network of their own.

    with Crowd(50) as crowd, Egress(inside=crowd.inside) as egress:
        crowd.open_doors(egress.start())
        s = crowd.connect(7)      # what a guest of sandbox 7 would have

A sandbox is a source address: whatever it dials is turned to its own door, as the rules of its network would do.
Egress dials the server itself. Nothing leads out of that network.
"""

import contextlib
import ctypes
import os
import resource
import socket
import subprocess
import sys

CLONE_NEWNET = 0x40000000
SERVER = "93.184.216.34"
ECHO, BULK = 7, 9
DOORS = 20000  # and the number of the sandbox
SECONDS = 300
libc = ctypes.CDLL(None, use_errno=True)

# Echoes on one port; on the other it sends as fast as it is read. Each connection has a process's share of time.
SERVE = f"""
import selectors, socket, sys
ready, block = selectors.DefaultSelector(), bytes(1 << 20)
for port in {ECHO}, {BULK}:
    door = socket.create_server(("{SERVER}", port), backlog=4096)
    door.setblocking(False)
    ready.register(door, selectors.EVENT_READ, port)
print("ready", flush=True)
while True:
    for key, events in ready.select():
        s = key.fileobj
        try:
            if isinstance(key.data, int):
                new, _ = s.accept()
                new.setblocking(False)
                ready.register(new, selectors.EVENT_READ if key.data == {ECHO} else 3, None)
                continue
            if events & selectors.EVENT_READ:
                data = s.recv(4096)
                if not data:
                    raise OSError
                if key.events == selectors.EVENT_READ:
                    s.send(data)
            if events & selectors.EVENT_WRITE:
                s.send(block)
        except BlockingIOError:
            pass
        except OSError:
            ready.unregister(s)
            s.close()
"""


def address(sandbox):
    return f"10.99.{sandbox // 250}.{1 + sandbox % 250}"


def rules(n):
    lines = "".join(f"ip saddr {address(i)} meta l4proto tcp redirect to :{DOORS + i}\n" for i in range(n))
    return f"table ip crowd {{\nchain out {{ type nat hook output priority -100;\n{lines}}}\n}}\n"


def enter(path):
    with open(path, "rb") as ns:
        if libc.setns(ns.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


class Crowd:
    def __init__(self, n):
        self.n = n
        self.network = self.server = None

    def __enter__(self):
        self.limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.limit[1], self.limit[1]))
        self.network = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"],
                                        stdout=subprocess.PIPE)
        self.network.stdout.readline()
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "route", "add", "local", f"{SERVER}/32", "dev", "lo")  # here, but not the host's own
        self.run("ip", "addr", "add", "10.99.0.0/16", "dev", "lo")
        self.run("nft", "-f", "-", input=rules(self.n).encode())
        self.server = subprocess.Popen([*self.inside, sys.executable, "-c", SERVE], stdout=subprocess.PIPE)
        assert self.server.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_):
        for process in (self.server, self.network):
            if process:
                process.kill()
                process.wait()
                process.stdout.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, self.limit)

    @property
    def inside(self):
        """What to put before a command that shall run there."""
        return ["nsenter", f"--net=/proc/{self.network.pid}/ns/net"]

    def run(self, *command, **more):
        subprocess.run([*self.inside, *command], check=True, timeout=SECONDS, **more)

    @contextlib.contextmanager
    def entered(self):
        """This thread makes its sockets there meanwhile."""
        enter(f"/proc/{self.network.pid}/ns/net")
        try:
            yield
        finally:
            enter(f"/proc/{os.getpid()}/ns/net")

    def open_doors(self, egress, allow=("93.184.216.34",)):
        for i in range(self.n):
            with self.entered():
                tcp = socket.create_server(("0.0.0.0", DOORS + i), backlog=4096)
                udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                udp.bind(("127.0.0.1", DOORS + i))
            for door in (tcp, udp):
                door.setblocking(False)
            egress.open(i, (tcp, udp))
            egress.rule(i, {"network": {"allowOut": list(allow), "denyOut": ["0.0.0.0/0"]}})

    def connect(self, sandbox, port=ECHO, blocking=True):
        with self.entered():
            s = socket.socket()
            s.bind((address(sandbox), 0))
        s.settimeout(SECONDS)
        s.setblocking(blocking)
        with contextlib.suppress(BlockingIOError):
            s.connect((SERVER, port))
        if blocking:
            s.settimeout(SECONDS)
        return s
