"""test_node_network.py - the rules of a sandbox's network are with it wherever it goes.

Whether they are is seen from inside: a service of the operator's own network is reached by those whose rules name it,
and by nobody else.
"""

import os
import subprocess
import sys

import pytest

from node import NodeError, NodeHost, wait_for
from node_client import value

TEAM = "team-one"
HELLO = b"hello from the service"
ADDRESS = "10.77.77.77"
SERVICE = {"services": ["echo"]}


SERVER = """
import socket, sys
with socket.create_server(("%s", 0)) as s:
    print(s.getsockname()[1], flush=True)
    while True:
        caller, _ = s.accept()
        with caller:
            caller.sendall(%r)
"""


def ip(*args):
    subprocess.run(["ip", *args], check=True)


class Service:
    """Says hello to whoever connects; in a network of its own, which egress shares."""

    def __init__(self):
        self.name = f"hotcell-test-{os.getpid()}"
        self.within = ["ip", "netns", "exec", self.name]
        ip("netns", "add", self.name)
        try:
            ip("-n", self.name, "link", "set", "lo", "up")
            ip("-n", self.name, "address", "add", f"{ADDRESS}/32", "dev", "lo")
            self.process = subprocess.Popen([*self.within, sys.executable, "-c", SERVER % (ADDRESS, HELLO)],
                                            stdout=subprocess.PIPE, text=True)
            self.port = int(self.process.stdout.readline())
        except BaseException:
            self.close()
            raise

    def close(self):
        if hasattr(self, "process"):
            self.process.kill()
            self.process.communicate()
        ip("netns", "delete", self.name)


@pytest.fixture(scope="module")
def service():
    s = Service()
    yield s
    s.close()


@pytest.fixture(scope="module")
def host(service):
    settings = {"network": "none", "services": f"echo={ADDRESS}:{service.port}", "resolvers": f"{ADDRESS}:53"}
    with NodeHost(pool=1, egress_settings=settings, egress_within=service.within) as h:
        h.wait_template()
        yield h


@pytest.fixture
def make(host):
    made = []

    def create(**args):
        made.append(host.client.create(TEAM, **args))
        return made[-1]

    yield create
    for b in made:
        kill(host, b)


def kill(host, b):
    try:
        host.client.kill(TEAM, b.id)
    except NodeError as e:
        assert e.code == "not_found"


def reaches(host, service, b):
    """Does it, now? Asked from inside."""
    script = ("import socket\n"
              "try:\n"
              f" c = socket.create_connection(('echo.hotcell.internal', {service.port}), 20)\n"
              " print(c.recv(100).decode() or 'closed')\n"
              "except OSError as e:\n"
              " print('refused', e)")
    said = host.run(b, f"python3 -c \"{script}\"")
    assert said == HELLO.decode() or said.startswith(("refused", "closed")), said
    return said == HELLO.decode()


def refused(code, call, *args, **kw):
    with pytest.raises(NodeError) as e:
        call(*args, **kw)
    assert e.value.code == code, e.value
    return e.value.msg


def test_only_those_whose_rules_say_so_reach_it(host, service, make):
    may, may_not = make(text=SERVICE), make()
    assert reaches(host, service, may)
    assert not reaches(host, service, may_not)
    assert host.client.get(TEAM, may.id).text == SERVICE


def test_rules_that_make_no_sense_are_refused(host, make):
    assert "allowOut" in refused("invalid", make, text={"network": {"allowOut": ["no such name"]}})
    box = make(text=SERVICE)
    refused("invalid", host.client.network, TEAM, box.id, network={"allowOut": [7]})
    refused("invalid", host.client.network, TEAM, box.id, network=[])
    assert host.client.get(TEAM, box.id).text == SERVICE


def test_other_rules_are_in_force_when_they_are_answered(host, service, make):
    box = make(text={**SERVICE, "metadata": {"k": "v"}, "allowInternetAccess": False,
                     "network": {"denyOut": ["1.2.3.4"], "maskRequestHost": "x"}})
    host.client.network(TEAM, box.id, services=[], network={"allowOut": ["1.2.3.5"]})
    assert not reaches(host, service, box)
    assert host.client.get(TEAM, box.id).text == {"services": [], "metadata": {"k": "v"}, "network": {
        "allowOut": ["1.2.3.5"], "maskRequestHost": "x"}}
    host.client.network(TEAM, box.id, **SERVICE)
    assert reaches(host, service, box)
    host.kill_node()  # what was answered is kept
    host.start_node()
    assert host.client.get(TEAM, box.id).text["services"] == ["echo"]


def test_rules_outlive_egress_and_node(host, service, make):
    may, may_not = make(text=SERVICE), make()
    host.end_egress()
    assert refused("unavailable", host.client.network, TEAM, may.id, services=[])
    host.start_egress()
    host.wait_status("egress", True)
    wait_for(lambda: reaches(host, service, may), "its rules are told again", 60)
    assert not reaches(host, service, may_not)
    host.kill_node()
    host.start_node()
    wait_for(lambda: reaches(host, service, may), "its rules are told again", 60)
    assert not reaches(host, service, may_not)


def test_rules_are_paused_and_resumed_with_it(host, service, make):
    may, may_not = make(text=SERVICE), make()
    for b in (may, may_not):
        host.client.pause(TEAM, b.id)
        refused("exists", host.client.network, TEAM, b.id, services=[])
        assert host.client.resume(TEAM, b.id).sandbox.state == value("NODE_RUNNING")
    assert reaches(host, service, may)
    assert not reaches(host, service, may_not)
    host.client.network(TEAM, may.id, services=[])
    host.client.pause(TEAM, may.id, flags=["NO_MEMORY"])
    host.client.resume(TEAM, may.id)
    assert not reaches(host, service, may)


def test_a_change_waits_for_a_snapshot_that_is_being_taken(host, service, make):
    box = make(text=SERVICE)
    taking = host.client.send("SNAPSHOT", team=TEAM, id=box.id)
    host.client.network(TEAM, box.id, services=[])
    snapshot = host.client.receive(taking).text["snapshotID"]
    assert not reaches(host, service, box)
    kill(host, box)
    host.client.snapshot_delete(TEAM, snapshot)


def test_copies_have_the_rules_of_their_source(host, service, make):
    may, may_not = make(text=SERVICE), make()
    for b, expected in ((may, True), (may_not, False)):
        (copy,) = host.client.fork(TEAM, b.id, 1)
        assert reaches(host, service, copy) == expected
        kill(host, copy)
