"""test_node_network.py - the rules of a sandbox's network are with it wherever it goes.

Whether they are is seen from inside: a service of the operator's own network is reached by those whose rules name it,
and by nobody else.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from fake_injector import START, FakeInjector
from node import NodeError, NodeHost, wait_for
from node_client import value

TEAM = "team-one"
HELLO = b"hello from the service"
ADDRESS = "10.77.77.77"
PUBLIC = "8.77.77.77"  # of known.example
SERVICE = {"services": ["echo"]}


SERVER = """
import socket, threading

def answer_names():  # each has the same address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("%s", 53))
        while True:
            q, who = s.recvfrom(2048)
            end = q.index(0, 12) + 5
            s.sendto(q[:2] + bytes.fromhex("81800001000100000000") + q[12:end] +
                     bytes.fromhex("c00c00010001000000050004") + socket.inet_aton("%s"), who)

threading.Thread(target=answer_names, daemon=True).start()
with socket.create_server(("0.0.0.0", 0)) as s:
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
            for address in (ADDRESS, PUBLIC):  # delivered here, but not the host's own, which nobody may dial
                ip("-n", self.name, "route", "add", "local", f"{address}/32", "dev", "lo")
            self.process = subprocess.Popen([*self.within, sys.executable, "-c", SERVER % (ADDRESS, PUBLIC, HELLO)],
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
def injector():
    with tempfile.TemporaryDirectory(prefix="hotcell-injector-") as folder:
        os.chmod(folder, 0o755)  # node is somebody else
        with FakeInjector(pathlib.Path(folder)) as o:
            yield o


@pytest.fixture(scope="module")
def host(service, injector):
    settings = {"network": "allowlist", "allow": "known.example", "services": f"echo={ADDRESS}:{service.port}", "resolvers": f"{ADDRESS}:53"}
    with NodeHost(pool=1, own_template=True, injector_socket=injector.path, egress_settings=settings, egress_within=service.within) as h:
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


def reaches(host, service, b, at="echo.hotcell.internal"):
    """Does it, now? Asked from inside."""
    script = ("import socket\n"
              "try:\n"
              f" c = socket.create_connection(('{at}', {service.port}), 20)\n"
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


def test_it_says_what_is_allowed_and_what_it_refused(host, service, make):
    box = make(text={**SERVICE, "network": {"denyOut": ["1.2.3.4"]}})
    question = f"echo.hotcell.internal:{service.port}"
    told = host.client.explain(TEAM, box.id, question)
    assert told["answer"]["allowed"] and told["denyOut"] == ["1.2.3.4"], told
    assert not host.client.explain(TEAM, box.id, "example.com:443")["answer"]["allowed"]
    assert "answer" not in host.client.explain(TEAM, box.id)
    refused("not_found", host.client.explain, "another", box.id)
    refused("not_found", host.client.egress_log, "another", box.id)
    host.run(box, "getent hosts no.such.example || true")
    said = wait_for(lambda: [x for x in host.client.egress_log(TEAM, box.id) if "no.such.example" in json.dumps(x)],
                    "a name that was refused is in the log", 30)
    assert said
    host.client.pause(TEAM, box.id)
    assert host.client.explain(TEAM, box.id, question)["answer"]["allowed"]
    assert host.client.egress_log(TEAM, box.id) == []


def test_each_private_one_has_a_token_of_its_own(host, make):
    box, public = make(flags=["PRIVATE"]), make()
    assert len(box.traffic_token) == 32 and public.traffic_token == ""
    assert host.client.get(TEAM, box.id).sandbox.traffic_token == box.traffic_token
    host.client.pause(TEAM, box.id)
    host.kill_node()
    host.start_node()
    assert host.client.resume(TEAM, box.id).sandbox.traffic_token == box.traffic_token
    copies = host.client.fork(TEAM, box.id, 2)
    assert len({box.traffic_token, *(c.traffic_token for c in copies)}) == 3
    assert all(len(c.traffic_token) == 32 for c in copies)
    for c in copies:
        kill(host, c)


def test_what_it_knows_of_names_goes_with_it(host, service, make):
    """An address is as good as the name it was given for, where nothing else says a name."""
    box, other = make(), make()
    assert host.run(box, "getent ahostsv4 known.example | head -1").split()[0] == PUBLIC
    assert reaches(host, service, box, at=PUBLIC)
    assert not reaches(host, service, other, at=PUBLIC)
    host.client.pause(TEAM, box.id)
    host.kill_node()
    host.start_node()
    host.client.resume(TEAM, box.id)
    assert reaches(host, service, box, at=PUBLIC)
    (copy,) = host.client.fork(TEAM, box.id, 1)
    assert reaches(host, service, copy, at=PUBLIC)
    kill(host, copy)
    snapshot = host.client.snapshot(TEAM, box.id)["snapshotID"]
    host.kill_node()
    host.start_node()
    host.wait_template()
    copy = make(template=snapshot)
    assert reaches(host, service, copy, at=PUBLIC)
    kill(host, copy)
    host.client.snapshot_delete(TEAM, snapshot)


# --- rules of headers: a worker of the injector knows them, and nobody else ---

RULES = {"a.example": [{"transform": {"headers": {"authorization": "Bearer ${e2b.secrets.key}"}}}]}


def with_rules(**sealed):
    return {"network": {"rules": RULES}, "sealed": sealed or {"key": "b2xk"}}


def wants(b, **sealed):
    return {"id": b.id, "team": TEAM, "rules": RULES, "sealed": sealed or {"key": "b2xk"}}


def wait_worker(injector, b, expected):
    wait_for(lambda: injector.of(b) == expected, "it has its worker", 60)


def test_one_with_rules_of_headers_has_a_worker(host, injector, make):
    box, other = make(text=with_rules()), make()
    assert injector.of(box) == wants(box) and injector.of(other) is None
    refused("invalid", make, text={"network": {"rules": {"refuse.example": []}}})
    told = host.client.explain(TEAM, box.id, "a.example:443")
    assert told["opened"] == ["a.example"] and "authorization" not in json.dumps(told)
    (copy,) = host.client.fork(TEAM, box.id, 1)
    assert injector.of(copy) == wants(copy)
    kill(host, copy)
    assert injector.of(copy) is None
    host.client.pause(TEAM, box.id)
    wait_worker(injector, box, None)
    host.client.resume(TEAM, box.id)
    assert injector.of(box) == wants(box)
    host.client.network(TEAM, box.id, network={})
    wait_worker(injector, box, None)
    assert "sealed" not in host.client.get(TEAM, box.id).text
    host.client.network(TEAM, box.id, **with_rules())
    assert injector.of(box) == wants(box)
    refused("invalid", host.client.network, TEAM, box.id, network={"rules": {"refuse.example": []}})
    wait_worker(injector, box, wants(box))
    kill(host, box)
    assert injector.of(box) is None


def test_workers_come_back(host, injector, make):
    box = make(text=with_rules())
    injector.worker_dies(injector.slot_of(box))
    wait_worker(injector, box, wants(box))
    injector.close()
    other = make(text=with_rules())  # nobody waits for an injector: its hosts are closed meanwhile
    injector.open()
    for b in (box, other):
        wait_worker(injector, b, wants(b))
    for restart in ((host.kill_node, host.start_node), (host.end_egress, host.start_egress)):
        injector.heard.clear()
        for step in restart:
            step()
        for b in (box, other):
            wait_worker(injector, b, wants(b))
        wait_for(lambda: [v for v, _ in injector.heard].count(START) >= 2, "each is started again", 60)


def test_another_value_of_a_secret_reaches_all_who_use_it(host, injector, make):
    elsewhere = json.loads(json.dumps(RULES).replace("secrets.key", "secrets.else_"))
    box, paused = make(text=with_rules()), make(text=with_rules())
    others = make(text={"network": {"rules": elsewhere}, "sealed": {"else_": "b2xk"}})
    host.client.pause(TEAM, paused.id)
    host.client.secret(TEAM, "key", "bmV3")
    assert injector.of(box) == wants(box, key="bmV3")
    assert injector.of(others) == {**wants(others), "rules": elsewhere, "sealed": {"else_": "b2xk"}}
    host.client.secret("another-team", "key", "b3RoZXI=")
    host.kill_node()
    host.start_node()
    for b in (box, paused):
        assert host.client.get(TEAM, b.id).text["sealed"] == {"key": "bmV3"}
    host.client.resume(TEAM, paused.id)
    assert injector.of(paused) == wants(paused, key="bmV3")
    host.client.secret(TEAM, "key", None)
    assert injector.of(paused)["sealed"] == {} and host.client.get(TEAM, paused.id).text["sealed"] == {}
    refused("invalid", host.client.secret, TEAM, None, "x")


def test_it_tells_the_key_that_secrets_are_sealed_with(host, injector):
    assert host.client.call("SEAL_KEY").text == {"sealKey": injector.facts["sealKey"]}
