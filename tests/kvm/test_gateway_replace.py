"""test_gateway_replace.py - the gateway as deploy/ installs it: systemd's sockets, its instances, one in the place of another.

Run by tests/kvm/systemd in the emulated host, after deploy/install. Needs no sandbox, and no node.
"""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from warden import wait_for

INSTANCES = range(1, 5)
PORT = 3000
SECONDS = 240
CONF = pathlib.Path("/etc/hotcell/gateway.conf")
TLS_DIR = pathlib.Path("/etc/hotcell/tls")
DOMAIN = "hotcell.localhost"


def systemctl(*words):
    return subprocess.run(["systemctl", *words], check=True, capture_output=True, text=True).stdout.strip()


def state(n):
    return systemctl("show", "-P", "ActiveState", f"hotcell-gateway@{n}")


def accepting():
    """The instance that is neither off nor on its way there."""
    found = [n for n in INSTANCES if state(n) in ("active", "activating")]
    assert len(found) == 1, found
    return found[0]


def https_socket():
    return systemctl("show", "-P", "ActiveState", "hotcell-https.socket")


def main_pid(n):
    return int(systemctl("show", "-P", "MainPID", f"hotcell-gateway@{n}"))


def replace(*words):
    return subprocess.run(["hotcell-gateway-replace", *words], capture_output=True, text=True)


def health(connection):
    connection.request("GET", "/health")
    answer = connection.getresponse()
    told = answer.read()
    # 503 with a reason is an answer, too: of a host that makes no sandbox at the moment
    assert answer.status == 204 or (answer.status == 503 and b'"reason"' in told), (answer.status, told)


def connection():
    return http.client.HTTPConnection("127.0.0.1", PORT, timeout=SECONDS)


class Secure(http.client.HTTPSConnection):
    """At port 443 of this host, who has to be what the authority says."""

    def __init__(self):
        super().__init__(f"api.{DOMAIN}", timeout=SECONDS, context=ssl.create_default_context(cafile=TLS_DIR / "authority/ca.pem"))

    def connect(self):
        self.sock = self._context.wrap_socket(socket.create_connection(("127.0.0.1", 443), SECONDS), server_hostname=self.host)


def asked(connect=connection):
    with contextlib.closing(connect()) as c:
        health(c)
    return True


def is_served():
    with contextlib.suppress(OSError):
        return asked(Secure)
    return False


class Load:
    """Two that ask all the time, over one connection each and over a new one each time; and what failed."""

    def __init__(self, connect=connection, rest=0.01, enough=20):
        self.connect, self.rest, self.enough = connect, rest, enough
        self.over, self.failed, self.done = threading.Event(), [], 0
        self.threads = [threading.Thread(target=self.run, args=[kept]) for kept in (True, False)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        for t in self.threads:
            t.join()

    def run(self, kept):
        c = self.connect()
        while not self.over.wait(self.rest):
            try:
                health(c)
                self.done += 1
            except (OSError, http.client.HTTPException, AssertionError) as e:
                self.failed.append(repr(e))
                c.close()
            if not kept:
                c.close()
        c.close()

    def go_on(self):
        before = self.done
        wait_for(lambda: self.done >= before + self.enough or self.failed, "the load goes on", SECONDS)


@pytest.fixture(scope="module", autouse=True)
def running():
    wait_for(asked, "the gateway answers", SECONDS)


def test_the_sockets_are_systemds():
    for name in ("http", "admin"):
        assert systemctl("show", "-P", "ActiveState", f"hotcell-{name}.socket") == "active"
    assert https_socket() == "inactive", "there is no certificate"
    status = json.loads(subprocess.run(["hotcell", "--json", "status"], check=True, capture_output=True).stdout)
    assert [(g["pid"], g["state"]) for g in status["gateways"]] == [(main_pid(accepting()), "accepts")]


@pytest.fixture(scope="module")
def certificate():
    subprocess.run(["hotcell", "tls", "init", DOMAIN], check=True, capture_output=True)
    yield
    subprocess.run(["rm", "-r", TLS_DIR / "authority", TLS_DIR / DOMAIN], check=True)
    systemctl("stop", "hotcell-https.socket")


def replace_under(*loads):
    old = accepting()
    for load in loads:
        load.go_on()
    done = replace("--wait")
    assert done.returncode == 0, done.stderr
    assert f"gateway {old} has ended" in done.stderr and accepting() != old
    for load in loads:
        load.go_on()


def test_the_first_certificate_opens_the_port_with_the_next_gateway(certificate):
    """The first gateway of all runs: the socket must not be that one's."""
    assert accepting() == 1 and https_socket() == "inactive"
    with Load() as load:
        replace_under(load)
    assert not load.failed, load.failed[:5]
    assert https_socket() == "active"
    wait_for(is_served, "it is served", SECONDS)


def test_one_in_the_place_of_another_under_load(certificate):
    with Load() as load, Load(Secure, 0.5, 6) as secure:  # emulated, a handshake takes all there is of a processor
        replace_under(load, secure)
    assert not load.failed + secure.failed, (load.failed[:5], secure.failed[:5])


def test_a_restart_keeps_newcomers_waiting():
    n = accepting()
    pid = main_pid(n)
    with Load() as load:
        load.go_on()
        systemctl("restart", f"hotcell-gateway@{n}")
        load.go_on()
    assert main_pid(n) != pid
    assert not [f for f in load.failed if "refused" in f.lower()], load.failed[:5]


def test_so_does_a_death():
    n = accepting()
    os.kill(main_pid(n), signal.SIGKILL)
    for _ in range(20):
        asked()
    assert accepting() == n


def test_one_that_does_not_start_changes_nothing():
    old, good = accepting(), CONF.read_text()
    pid = main_pid(old)
    CONF.write_text(good + "no_such_setting = 1\n")
    try:
        done = replace()
    finally:
        CONF.write_text(good)
    assert done.returncode == 1 and f"gateway {old} goes on" in done.stderr and "no_such_setting" in done.stderr, done.stderr
    assert accepting() == old and main_pid(old) == pid and asked()


def test_a_client_of_tls_starts_a_gateway(certificate):
    systemctl("stop", f"hotcell-gateway@{accepting()}")
    assert asked(Secure)
    assert accepting() == 1


def test_after_a_restart_of_all_one_accepts():
    """The target wants the first, whichever there was: the next replace makes one of the two."""
    assert accepting() == 1 and replace("--wait").returncode == 0 and accepting() == 2
    systemctl("restart", "hotcell.target")
    wait_for(asked, "the gateway answers", SECONDS)
    assert {n for n in INSTANCES if state(n) == "active"} == {1, 2}
    assert replace("--wait").returncode == 0
    assert accepting() == 3


def test_a_stop_of_all_stops_the_sockets(certificate):
    systemctl("stop", "hotcell.target")
    wait_for(lambda: {state(n) for n in INSTANCES} == {"inactive"}, "every gateway has ended", SECONDS)
    for connect in (connection, Secure):
        with pytest.raises(ConnectionRefusedError):
            asked(connect)
    systemctl("start", "hotcell.target")
    wait_for(asked, "the gateway answers", SECONDS)
    wait_for(is_served, "and over TLS", SECONDS)
    assert accepting() == 1
