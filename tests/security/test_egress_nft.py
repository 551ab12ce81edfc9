"""The second lock of egress: rules of the kernel for its user, in namespaces of this test's own.

Two of them with a cable between: one is the host, where the rules are loaded and a user tries; the other holds
whatever addresses that user could want, and answers on all of them.
"""
import contextlib
import os
import pathlib
import subprocess
import sys

import pytest
from warden import build_dir

USER = 65534
REFUSED_SECONDS = 1  # what is dropped is waited for so long; what passes, passes at once or is waited for
PATIENCE_SECONDS = 60

RESOLVER, SERVICE = "10.0.0.53", "10.1.2.3"
PUBLIC = "93.184.216.34"
INSIDE = ["10.0.0.5", "172.16.9.9", "192.168.7.7", "169.254.169.254", "100.64.1.1", "168.63.129.16", "198.18.0.9"]
PORTS = [53, 80, 5432]

SERVER = """
import selectors, socket, sys
s = selectors.DefaultSelector()
for port in map(int, sys.argv[1:]):
    l = socket.create_server(("0.0.0.0", port), backlog=64)
    s.register(l, selectors.EVENT_READ)
print("ready", flush=True)
while True:
    for key, _ in s.select():
        key.fileobj.accept()[0].close()
"""

CALLER = """
import os, socket, sys
ip, port, seconds, uid = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
os.setresuid(uid, uid, uid)
try:
    socket.create_connection((ip, port), timeout=seconds).close()
    print("passed")
except OSError as e:
    print("refused", e)
"""


def run(*args, **more):
    return subprocess.run([str(a) for a in args], check=True, capture_output=True, text=True,
                          timeout=PATIENCE_SECONDS, **more).stdout


class Host:
    """The namespaces, by name; what is in them ends with the test."""

    def __init__(self):
        self.near, self.far = (f"hotcell-nft-{os.getpid()}-{end}" for end in ("near", "far"))

    def near_run(self, *args, **more):
        return run("ip", "netns", "exec", self.near, *args, **more)

    def calls(self, ip, port, uid=USER):
        """May a user of that number connect? What must fail is not waited for long: it was dropped, not slow."""
        passes = self.near_run(sys.executable, "-c", CALLER, ip, port,
                               REFUSED_SECONDS if uid == USER else PATIENCE_SECONDS, uid)
        return passes.startswith("passed")

    def must_pass(self, ip, port, uid=USER):
        # on a busy machine a single second may be too short
        assert any(self.calls(ip, port, uid) for _ in range(20)), f"{ip}:{port} is not reached by {uid}"

    def must_fail(self, ip, port):
        assert not self.calls(ip, port), f"{ip}:{port} is reached"


@contextlib.contextmanager
def namespaces(host):
    try:
        for ns in (host.near, host.far):
            run("ip", "netns", "add", ns)
            run("ip", "-n", ns, "link", "set", "lo", "up")
        run("ip", "-n", host.near, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", host.far)
        run("ip", "-n", host.near, "addr", "add", "94.0.0.1/24", "dev", "cable")
        run("ip", "-n", host.far, "addr", "add", "94.0.0.2/24", "dev", "cable")
        for ns, end in ((host.near, 1), (host.far, 2)):
            run("ip", "-n", ns, "addr", "add", f"10.66.0.{end}/24", "dev", "cable")
            run("ip", "-n", ns, "addr", "add", f"fd66::{end}/64", "dev", "cable", "nodad")
        for ip in [PUBLIC, RESOLVER, SERVICE, *INSIDE]:
            run("ip", "-n", host.far, "addr", "add", f"{ip}/32", "dev", "lo")
        for ns in (host.near, host.far):
            run("ip", "-n", ns, "link", "set", "cable", "up")
        run("ip", "-n", host.near, "route", "add", "default", "via", "94.0.0.2")
        yield host
    finally:
        for ns in (host.near, host.far):
            subprocess.run(["ip", "netns", "del", ns], capture_output=True, check=False)


@contextlib.contextmanager
def server(namespace):
    with subprocess.Popen(["ip", "netns", "exec", namespace, sys.executable, "-c", SERVER, *map(str, PORTS)],
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


@pytest.fixture
def host():
    with namespaces(Host()) as h, server(h.far), server(h.near):
        yield h


@pytest.fixture
def rules(tmp_path):
    config = tmp_path / "egress.conf"
    config.write_text(f"user = {USER}\nresolvers = {RESOLVER}:53\nservices = db={SERVICE}:5432\n")
    return run(build_dir() / "src/egress/hotcell-egress", "--nft", config)


def test_its_user_reaches_the_internet_and_what_is_named(host, rules):
    for ip in INSIDE:  # the test can see a pass
        host.must_pass(ip, 80)
    for _ in range(2):  # loaded twice is loaded once
        host.near_run("nft", "-f", "-", input=rules)
    host.must_pass(PUBLIC, 80)
    host.must_pass(RESOLVER, 53)
    host.must_pass(SERVICE, 5432)
    for ip in INSIDE:
        host.must_fail(ip, 80)
    host.must_fail(RESOLVER, 80)
    host.must_fail(SERVICE, 80)
    host.must_fail("127.0.0.1", 80)
    host.must_fail("94.0.0.1", 80)  # the host's own, though public
    for ip in INSIDE[:2]:
        host.must_pass(ip, 80, uid=0)  # nobody else is meant
    host.near_run("nft", "delete", "table", "inet", "hotcell_egress")
    host.must_pass(INSIDE[0], 80)


def test_what_the_kernel_sends_itself_is_nobodys(host, rules):
    """A reset, and over IPv6 the answer to a neighbour's question: no user's, and so not egress's."""
    host.near_run("nft", "-f", "-", input=rules)
    for ip in ("10.66.0.1", "fd66::1"):
        said = run("ip", "netns", "exec", host.far, sys.executable, "-c", CALLER, ip, 9, PATIENCE_SECONDS / 2, 0)
        assert "refused" in said and "Errno 111" in said, f"{ip}: {said}"


def printed(tmp_path, **settings):
    """What egress says to its settings."""
    config = tmp_path / "egress.conf"
    config.write_text("".join(f"{k} = {v}\n" for k, v in {"user": USER, "resolvers": f"{RESOLVER}:53", **settings}.items()))
    return subprocess.run([build_dir() / "src/egress/hotcell-egress", "--nft", config], capture_output=True,
                          text=True, check=False, timeout=PATIENCE_SECONDS)


def test_with_a_proxy_its_resolvers_are_reached_unless_the_proxy_resolves(tmp_path):
    proxy, resolver = "ip daddr 10.9.8.7 meta l4proto { tcp } th dport 3128 accept", f"ip daddr {RESOLVER} "
    here = printed(tmp_path, proxy="10.9.8.7:3128", network="open")
    assert here.returncode == 0 and proxy in here.stdout and resolver in here.stdout, here
    there = printed(tmp_path, proxy="10.9.8.7:3128", proxy_resolves="yes")
    assert there.returncode == 0 and proxy in there.stdout and resolver not in there.stdout, there


@pytest.mark.parametrize("every", [{"network": "open"}, {"network": "allowlist", "allow": "packages *"}])
def test_a_proxy_that_resolves_is_not_for_every_name(tmp_path, every):
    """Neither are there rules of the kernel nor does it start."""
    done = printed(tmp_path, proxy="10.9.8.7:3128", proxy_resolves="yes", **every)
    assert done.returncode == 1 and done.stdout == "" and "set proxy_resolves = no" in done.stderr, done
    config = tmp_path / "egress.conf"
    config.write_text(config.read_text().replace(f"user = {USER}", f"socket = {tmp_path}/egress.sock"))
    done = subprocess.run([build_dir() / "src/egress/hotcell-egress", config], capture_output=True, text=True,
                          check=False, timeout=PATIENCE_SECONDS)
    assert done.returncode == 1 and "set proxy_resolves = no" in done.stderr, done


def test_without_a_user_of_its_own_there_are_no_rules(tmp_path):
    config = tmp_path / "egress.conf"
    config.write_text("user =\n")
    done = subprocess.run([build_dir() / "src/egress/hotcell-egress", "--nft", config], capture_output=True,
                          text=True, check=False, timeout=PATIENCE_SECONDS)
    assert done.returncode == 1 and done.stdout == ""


def test_the_unit_loads_them_before_and_removes_them_after():
    unit = (pathlib.Path(__file__).parents[2] / "deploy/systemd/hotcell-egress.service").read_text()
    lines = [line for line in unit.splitlines() if line.startswith("Exec")]
    assert [line.split("=")[0] for line in lines] == ["ExecStartPre", "ExecStartPre", "ExecStopPost", "ExecStart"]
    assert "--nft" in lines[0] and "nft -f" in lines[1] and "delete table inet hotcell_egress" in lines[2]
