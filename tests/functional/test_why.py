"""test_why.py - `hotcell-why` as a guest has it, and what programs say of a name that is refused; without a guest.

A real egress answers: its doors are in a network that looks as a guest's does, and the internet is a test's own.
"""

import ctypes
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading

import pytest

import egress as engine_egress
from internet import RESOLVER, Internet
from warden import build_dir

SLOT = 3
CLONE_NEWNET = 0x40000000
HOST_SIDE = "169.254.77.1"  # as in src/warden/protocol.h
CONF = "/etc/hotcell/egress.conf"
LISTED = "good.test inside.test *.wild.test"
BASE = pathlib.Path(__file__).resolve().parents[2] / "guest/base"  # what package managers are told in a guest
ASKED_MAX = 6  # questions of a program that tries once more, with room for one that was lost; pip would ask 12 times, apt 8


class GuestNetwork:
    """A network of its own with the address of a sandbox's resolver, and programs that ask there. They have a home of
    their own: pip asks rustc for its version, which makes folders in there."""

    def __enter__(self):
        self.home = tempfile.TemporaryDirectory()
        script = f"ip link set lo up && ip addr add {HOST_SIDE}/32 dev lo && echo ready && exec cat"
        self.process = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.home.cleanup()

    def sockets(self):
        """The two doors of a sandbox: a thread is enough to be in another network."""
        made = []

        def make():
            with open(f"/proc/{self.process.pid}/ns/net", "rb") as network:
                assert ctypes.CDLL(None).setns(network.fileno(), CLONE_NEWNET) == 0
            tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            tcp.bind((HOST_SIDE, 0))
            tcp.listen()
            udp.bind((HOST_SIDE, 53))
            made.extend((tcp, udp))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        return made

    def run(self, *command, resolv_conf=None):
        inside = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net"]
        if resolv_conf:
            inside += ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', resolv_conf]
        return subprocess.run([*inside, *command], capture_output=True, text=True, check=False, timeout=100,
                              env={"PATH": os.environ["PATH"], "HOME": self.home.name, "LC_ALL": "C"})


@pytest.fixture(scope="module")
def world():
    with Internet() as internet, GuestNetwork() as guest, \
            engine_egress.Egress(inside=internet.inside, network="allowlist", allow=LISTED, resolvers=RESOLVER,
                                 services="db=10.1.2.3:5432") as egress:
        egress.start()
        egress.open(SLOT, guest.sockets())
        egress.call(engine_egress.NAME, SLOT, b"sandbox")
        egress.rule(SLOT, {})
        guest.egress, guest.internet = egress, internet
        yield guest


@pytest.fixture(scope="module")
def hotcell_why(tmp_path_factory):
    agent = build_dir() / "src/agent/hotcell-agent"
    if not agent.exists():
        pytest.skip("this build has no static agent")
    link = tmp_path_factory.mktemp("bin") / "hotcell-why"
    link.symlink_to(agent)
    return link


@pytest.mark.parametrize("asked, status, says", [
    ("good.test", 0, ["good.test: yes", "  why: operator: good.test"]),
    ("https://a.wild.test:443/x?y", 0, ["https://a.wild.test:443/x?y: yes", "  why: operator: *.wild.test"]),
    ("GitHub.com.", 1, ["GitHub.com.: no", "  why: operator: not listed",
                        f"  fix: the operator adds github.com to allow in {CONF}, then: systemctl restart hotcell-egress"]),
    ("inside.test:443", 1, ["inside.test:443: no", "  why: the address is private",
                            "  fix: no rule allows such an address; the operator can publish one as a service: "
                            f"services = NAME=ADDRESS:PORT in {CONF}, then: systemctl restart hotcell-egress"]),
    ("169.254.169.254", 1, None),
    ("db.hotcell.internal", 1, None),
    ("a..b", 2, []),
    ("good.test:0", 2, []),
    ("x" * 300, 2, []),
    ("--help", 0, None),
    ("", 2, []),
])
def test_whoever_asks_is_told(world, hotcell_why, asked, status, says):
    done = world.run("setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", hotcell_why, asked)
    assert done.returncode == status, done
    if says is not None:
        assert done.stdout.splitlines() == says and bool(done.stderr) == (status == 2)


def test_the_page_shows_what_is_printed(world, hotcell_why):
    """docs/network.md, What a sandbox reaches."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/network.md").read_text()
    shown, = re.findall(r"^```text\n\$ hotcell-why (\S+)\n(.*?)^```$", page, re.M | re.S)
    assert world.run(hotcell_why, shown[0]).stdout == shown[1]


def test_its_own_rules_are_told_and_that_it_asked_is_no_attempt(world, hotcell_why):
    before = world.egress.counts(SLOT)
    world.internet.heard()
    world.egress.rule(SLOT, {"allowInternetAccess": False})
    done = world.run(hotcell_why, "good.test")
    world.egress.rule(SLOT, {})
    assert done.returncode == 1 and "  why: denyOut 0.0.0.0/0\n  fix: whoever made the sandbox adds good.test to allowOut" \
        in done.stdout
    assert world.egress.counts(SLOT) == before
    assert not world.internet.heard()


def test_without_egress_it_says_so(hotcell_why):
    with GuestNetwork() as alone:
        done = alone.run(hotcell_why, "good.test")
    assert done.returncode == 2 and "does not tell" in done.stderr


# What is refused, and what leads inside: both do not exist, so that nobody waits for better times.
PROGRAMS = {
    "curl": (["curl", "-sS", "https://HOST/"], "Could not resolve host: HOST"),
    "git": (["git", "ls-remote", "https://HOST/x.git"], "Could not resolve host: HOST"),
    "apt": (["env", f"APT_CONFIG={BASE}/apt.conf", "/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=root", "-o",
             "Acquire::http::Proxy=DIRECT", "download-file", "http://HOST/x", "/dev/null/x"], "Could not resolve 'HOST'"),
    "pip": (["env", f"PIP_CONFIG_FILE={BASE}/pip.conf", "/usr/bin/python3", "-m", "pip", "--disable-pip-version-check",
             "download", "--no-deps", "-i", "https://HOST/simple", "tiny"], "Name or service not known"),
    "python": (["/usr/bin/python3", "-c", "import socket; socket.create_connection(('HOST', 443))"],
               "Name or service not known"),
    "node": (["node", "-e", "fetch('https://HOST/').catch(e => { console.error(e.cause.code); process.exit(1) })"],
             "ENOTFOUND"),
}


def asked(world):
    counts = world.egress.call(engine_egress.COUNT, SLOT).counts
    return counts.names_refused + counts.names_allowed


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("host", ["refused.test", "inside.test"])
def test_programs_give_up_at_once_and_say_it_is_the_name(world, tmp_path, name, host):
    command, says = PROGRAMS[name]
    (tmp_path / "resolv.conf").write_text(f"nameserver {HOST_SIDE}\n")
    before = asked(world)
    done = world.run(*(word.replace("HOST", host) for word in command), resolv_conf=tmp_path / "resolv.conf")
    assert done.returncode != 0 and says.replace("HOST", host) in done.stderr + done.stdout, done
    assert 0 < asked(world) - before <= ASKED_MAX


def test_who_looks_closer_sees_the_reason(world, tmp_path):
    """dig shows what other programs do not ask for."""
    done = world.run("dig", f"@{HOST_SIDE}", "refused.test")
    if done.returncode == 127 or "No such file" in done.stderr:
        pytest.skip("dig is not installed")
    assert "EDE: 15 (Blocked): (hotcell: operator: not listed; more: hotcell-why refused.test)" in done.stdout, done
    told = world.run("dig", "+short", f"@{HOST_SIDE}", "TXT", "refused.test.why.hotcell.internal").stdout
    assert told.startswith('"no" "operator: not listed" "the operator adds refused.test to allow'), told
