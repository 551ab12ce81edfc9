"""attacked.py - what a gateway under attack costs its host, and another client.

    with Watched(gateway) as watched: ...      # from now on
    watched.check()                            # its memory, and the kernel's for it, were never more than they may be

    compare("pings", gateway, hostile, polite)   # p95 of an innocent client beside either, in turns
"""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

from warden import is_sanitized

HERE = pathlib.Path(__file__).resolve().parent
ASKS = int(os.environ.get("HOTCELL_ASKS", "200"))
MEMORY_MAX_KIB = 256 << 10
KERNEL_MAX = 256 << 20  # bytes
LOOK_SECONDS = 0.05
TIMES_MAX = 1.5  # p95, of that beside an equally busy neighbour
THINK_SECONDS = 0.003  # between two questions: who asks all the time leaves no processor for those beside it
ROUNDS, ROUNDS_MAX = 2, 9
HEALTH = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
# of a socket: received, reserved, to be sent, options, not yet looked at
SKMEM = re.compile(r"skmem:\(r(\d+),rb\d+,t\d+,tb\d+,f(\d+),w(\d+),o(\d+),bl(\d+)")


def memory_kib(gateway, what):
    for line in pathlib.Path(f"/proc/{gateway.daemon.pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1])
    raise AssertionError(what)


def busy_seconds(gateway):
    words = pathlib.Path(f"/proc/{gateway.daemon.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def socket_bytes(where, which):
    """Memory of sockets, not only what is said in it: a byte may take a page."""
    said = subprocess.run([*where, "ss", "-tanmH", *which], stdout=subprocess.PIPE, check=True, text=True).stdout
    return sum(int(n) for each in SKMEM.findall(said) for n in each)


def kernel_bytes(gateway):
    """In the gateway's ends of its connections: those of clients, also when it has closed them, and those into sandboxes."""
    ports = [gateway.port, getattr(gateway, "tls_port", gateway.port)]
    return (socket_bytes([], ["sport", "=", f":{ports[0]}", "or", "sport", "=", f":{ports[1]}"]) +
            socket_bytes(gateway.node.command(), ["dport", "<", ":32768"]))


class Watched:
    def __init__(self, gateway):
        self.gateway, self.kernel, self.looks = gateway, 0, 0
        self.stopping, self.thread = threading.Event(), threading.Thread(target=self.look_on)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        self.thread.join()

    def look_on(self):
        while not self.stopping.wait(LOOK_SECONDS):
            self.look()

    def look(self):
        self.kernel = max(self.kernel, kernel_bytes(self.gateway))
        self.looks += 1

    def check(self):
        self.gateway.daemon.check_alive()
        own = memory_kib(self.gateway, "VmHWM")  # the most it ever was
        print(f"most memory so far {own / 1024:.1f} MiB, of the kernel this time {self.kernel / 2**20:.1f} MiB ({self.looks} looks)")
        assert self.looks > 0 and self.kernel <= KERNEL_MAX
        assert is_sanitized() or own <= MEMORY_MAX_KIB


def steady(value, seconds=20):
    """Until it has not grown for a while."""
    last, since, end = value(), time.monotonic(), time.monotonic() + seconds
    while time.monotonic() < end and time.monotonic() - since < 0.5:
        now = value()
        if now > last:
            last, since = now, time.monotonic()
        time.sleep(0.05)


# --- another client ---

def p95(times):
    return sorted(times)[len(times) * 95 // 100]


def on_one_connection(gateway):
    """How long each answer takes, in seconds."""
    taken = []
    with socket.create_connection(("127.0.0.1", gateway.port), 30) as s:
        for _ in range(ASKS):
            begun = time.monotonic()
            s.sendall(HEALTH)
            assert s.recv(4096).startswith(b"HTTP/1.1 204")
            taken.append(time.monotonic() - begun)
            time.sleep(THINK_SECONDS)
    return taken


class Beside:
    """What was noticed beside one of two kinds of neighbours, in the quietest of some rounds: whatever else goes on in the
    machine, or on its host, only adds to it, while an attack is there in each of them."""

    def __init__(self, load):
        self.load, self.best, self.wall, self.busy = load, None, 0, 0

    def ask(self, gateway, ask):
        with self.load():
            begun, busy = time.monotonic(), busy_seconds(gateway)
            noticed = p95(ask(gateway))
            self.wall += time.monotonic() - begun
            self.busy += busy_seconds(gateway) - busy
        self.best = min(noticed, self.best or noticed)

    def __str__(self):
        return f"{self.best * 1000:.2f} ms (gateway {self.busy / self.wall:.0%} busy)"


AWAKE = """
import os
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
print("ready", flush=True)
while os.getppid() == {pid}:
    pass
"""


@contextlib.contextmanager
def awake():
    """No processor rests. One that does is woken late where this machine is a guest itself, by milliseconds where its host is
    busy: what makes the gateway work less would seem to make it slower."""
    with contextlib.ExitStack() as stack:
        for _ in range(os.cpu_count()):
            one = stack.enter_context(subprocess.Popen([sys.executable, "-c", AWAKE.format(pid=os.getpid())],
                                                       stdout=subprocess.PIPE))
            stack.callback(one.kill)
            assert one.stdout.readline() == b"ready\n"
        yield


@contextlib.contextmanager
def preferred(gateway):
    """What is measured are the turns of the gateway, not who gets a processor of this machine: so it, its signer and who
    asks come before whatever else runs here. To be nice would not do: the kernel may weigh sessions, not processes."""
    with awake(), scheduled_first(gateway):
        yield


@contextlib.contextmanager
def scheduled_first(gateway):
    signer = getattr(gateway, "signer", None)
    pids = (gateway.daemon.pid, *([signer.daemon.pid] if signer else []), os.getpid())
    try:
        for pid in pids:
            os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        yield
    finally:
        for pid in pids:
            os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


def compare(name, gateway, hostile, polite, ask=on_one_connection):
    """In turns, now this one first, now that one; so often, and more often where the machine is noisy."""
    hostile, polite = Beside(hostile), Beside(polite)
    for n in range(ROUNDS_MAX):
        for each in (hostile, polite) if n % 2 else (polite, hostile):
            with preferred(gateway):
                each.ask(gateway, ask)
        times = hostile.best / polite.best
        print(f"{name}: p95 {hostile}, beside polite ones {polite}: {times:.2f} times, after {n + 1} rounds")
        if n + 1 >= ROUNDS and times <= TIMES_MAX:
            return
    raise AssertionError(f"{name}: {times:.2f} times")
