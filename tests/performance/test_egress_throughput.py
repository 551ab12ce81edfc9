"""test_egress_throughput.py - bytes of a guest through egress, next to plain forwarding and NAT by the kernel, of the same
guest to the same server.

Two addresses of one server: the guest's connections to one of them take the way of every sandbox, by the door and through
egress. For the other the test opens what no sandbox has: a cable out of its network, a route, forwarding, NAT. The two take
turns; what counts is the median of the ratios.

    guest - tap - the sandbox's network -+- door - egress -+- host - cable - server
                                         +- NAT, cable ----+

HOTCELL_EGRESS_MIB (16) per transfer, HOTCELL_PAIRS (5) pairs, HOTCELL_CALLS (50) connections for the rate.
"""

import contextlib
import os
import statistics
import subprocess
import sys

import pytest

from egress import COUNT, Egress
from engine import Engine

MIB = 1 << 20
SIZE = int(os.environ.get("HOTCELL_EGRESS_MIB", "16"))
PAIRS = int(os.environ.get("HOTCELL_PAIRS", "5"))
CALLS = int(os.environ.get("HOTCELL_CALLS", "50"))
TRIES = 3
WANTED = 0.7
SECONDS = 600
BY_EGRESS, BY_NAT = "93.184.216.34", "93.184.216.35"
PORT = 9

# The first byte says what is wanted: so many MiB, or to be read to the end. A process for each connection.
SERVE = f"""
import os, signal, socket
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
door, block = socket.create_server(("0.0.0.0", {PORT}), backlog=128), bytes(1 << 20)
print("ready", flush=True)
while True:
    s, _ = door.accept()
    if os.fork():
        s.close()
        continue
    wish = s.recv(1)
    if wish == b"\\1":
        for _ in range({SIZE}):
            s.sendall(block)
    elif wish == b"\\2":
        while s.recv(1 << 20):
            pass
    s.sendall(b".")
    os._exit(0)
"""

# In the guest: how long it takes.
CALL = f"""
import socket, sys, time
host, wish, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
room = bytearray(1 << 20)
begin = time.monotonic()
for _ in range(n):
    s = socket.create_connection((host, {PORT}), timeout={SECONDS})
    s.sendall({{"down": b"\\1", "up": b"\\2", "call": b"\\3"}}[wish])
    want = 1
    if wish == "down":
        want += {SIZE * MIB}
    elif wish == "up":
        for _ in range({SIZE}):
            s.sendall(room)
        s.shutdown(socket.SHUT_WR)
    got = 0
    while got < want:
        k = s.recv_into(room)
        assert k, "cut"
        got += k
    s.close()
print(time.monotonic() - begin)
""".encode()


class Network:
    """A network of its own, as long as the block lasts."""

    def __init__(self):
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"],
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()
        inside(self.pid, "ip", "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    @property
    def pid(self):
        return self.process.pid

    @property
    def before(self):
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net"]


def inside(pid, *command, **more):
    subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", *command], check=True, timeout=SECONDS, **more)


def cable(one, other, name, subnet):
    """Between the networks of two processes: .1 is the one's, .2 the other's."""
    inside(one, "ip", "link", "add", name, "type", "veth", "peer", "name", name, "netns", str(other))
    for pid, last in ((one, 1), (other, 2)):
        inside(pid, "ip", "addr", "add", f"{subnet}.{last}/24", "dev", name)
        inside(pid, "ip", "link", "set", name, "up")


@contextlib.contextmanager
def internet():
    """The host's network and, behind a cable, that of the server."""
    with Network() as host, Network() as far:
        cable(host.pid, far.pid, "wire", "94.0.0")
        for address in (BY_EGRESS, BY_NAT):
            inside(far.pid, "ip", "addr", "add", f"{address}/32", "dev", "lo")
        inside(far.pid, "ip", "route", "add", "default", "via", "94.0.0.1")
        inside(host.pid, "ip", "route", "add", "default", "via", "94.0.0.2")
        inside(host.pid, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        with subprocess.Popen([*far.before, sys.executable, "-c", SERVE], stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout.readline() == b"ready\n"
                yield host
            finally:
                server.kill()


@contextlib.contextmanager
def nat(box, host):
    """What no sandbox has: a way out, for one address."""
    pid = box["pid"]
    cable(pid, host.pid, "nat", "10.200.0")
    inside(pid, "ip", "route", "add", "default", "via", "10.200.0.2")
    inside(pid, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    inside(pid, "nft", "-f", "-", input=f"""
        insert rule inet cell doors ip daddr {BY_NAT} accept
        insert rule inet cell forward accept
        table ip by_nat {{
            chain out {{
                type nat hook postrouting priority 100;
                oifname "nat" masquerade
            }}
        }}
        """.encode())
    yield
    inside(pid, "ip", "link", "del", "nat")


@pytest.fixture(scope="module")
def engine():
    with Engine() as e:
        yield e


@pytest.fixture(scope="module")
def box(engine):
    with internet() as host, Egress(inside=host.before, network="open", mbit=0) as egress:
        box = engine.create()
        egress.start().open(box["slot"], engine.warden.doors(box["slot"]))
        egress.rule(box["slot"], {"network": {"allowOut": [BY_EGRESS], "denyOut": ["0.0.0.0/0"]}})
        engine.driver.write_file(box["sandbox"], "/home/user/call.py", CALL)
        with nat(box, host):
            yield box
        counts = egress.call(COUNT, box["slot"]).counts
        assert counts.tcp_allowed > 0 and counts.tcp_failed == 0
        engine.stop(box)


def seconds(engine, box, host, wish, n=1):
    return float(engine.run(box, f"python3 /home/user/call.py {host} {wish} {n}"))


def ratio(engine, box, wish, n=1):
    """How much of NAT's speed egress has, the median of pairs; and both ways' own medians in seconds."""
    pairs = []
    for _ in range(PAIRS):
        by_nat = seconds(engine, box, BY_NAT, wish, n)
        pairs.append((by_nat, seconds(engine, box, BY_EGRESS, wish, n)))
    return statistics.median(a / b for a, b in pairs), *(statistics.median(p) for p in zip(*pairs))


@pytest.mark.parametrize("wish", ["down", "up"])
def test_bytes_pass_nearly_as_fast_as_by_nat(engine, box, wish):
    seconds(engine, box, BY_EGRESS, wish)  # both ways work, and are warm
    seconds(engine, box, BY_NAT, wish)
    for _ in range(TRIES):
        got, by_nat, by_egress = ratio(engine, box, wish)
        print(f"{wish}: {SIZE / by_egress:.1f} MiB/s through egress, {SIZE / by_nat:.1f} MiB/s by NAT: {got:.2f}")
        if got >= WANTED:
            break
    assert got >= WANTED


def test_connections_one_after_the_other(engine, box):
    got, by_nat, by_egress = ratio(engine, box, "call", CALLS)
    print(f"connections, each with a byte there and back: {CALLS / by_egress:.0f}/s through egress, "
          f"{CALLS / by_nat:.0f}/s by NAT: {got:.2f}")
    assert by_egress / CALLS < 1  # nobody waits for a time-out
