"""test_network_policy.py - rules that change, last, and meet the operator's: seen from inside a guest.

A change is in force when it is answered, for open connections within a second; rules survive pause, resume, fork,
snapshot and the death of every daemon; no sandbox gets more than the operator allows, nor takes more than its share;
a service of the operator's network is there for keys that have it. Printed: how long a change took.
"""

import concurrent.futures
import signal
import time
import urllib.parse

import pytest

import matrix
from guest import KNOWN, check_fails, check_heard, check_passes, one, prepare, probe
from internet import Internet
from names import EVIL, GOOD, INSIDE, METADATA, OTHER, RANGE
from scrape import Figures
from server import Server, wait_for

SERVICES = "db=10.1.2.3:5432 cache=10.1.2.4:6379"
IN_FORCE_SECONDS = 1
TRIES = 3
WAIT_SECONDS = 60
SLOW_SECONDS = 2
REACHED = {"good": f"{GOOD}:80", "evil": f"{EVIL}:80"}
LEFT = {"http": {"to": EVIL}, "tls": {"to": GOOD, "sni": "shared.test"}, "say": {"to": EVIL, "port": 22}}
FAIL = {**{f"still: {kind}": (kind, args) for kind, args in LEFT.items()},
        **{title: matrix.MUST_FAIL[title] for title in (
            "HTTP by a foreign name", "TLS for a foreign name at its address", "resolver elsewhere", "resolver: a foreign name",
            "HTTP for a neighbour of an allowed name", f"HTTP inside, {METADATA}", "silent at first, then TLS for another")}}
# Nobody asks for its address again: it is the one that was given.
BY_ADDRESS = {"SSH to an address that was given for a name": (f"{GOOD}:22", "say", {"to": GOOD, "port": 22})}


@pytest.fixture(scope="module")
def internet():
    with Internet() as i:
        yield i


@pytest.fixture(scope="module")
def server(internet):
    with Server(internet=internet, egress={"services": SERVICES}) as s:
        yield s


@pytest.fixture
def make(server):
    boxes = []

    def create(**args):
        box = server.create(**args)
        boxes.append(box)
        prepare(server, box)
        return box
    yield create
    for box in boxes:
        server.delete(box)


def put(server, box, network):
    answer = server.api("PUT", f"/sandboxes/{box['sandboxID']}/network", network)
    assert answer.status == 204, (answer.status, answer.raw)


def by_http(server, box, to, host=None):
    return one(server, box, "http", {"to": to, "host": host})


def each_by_http(server, box, *hosts):
    """{host: what became of it}; one start of Python in the guest, which takes a second or more."""
    return probe(server, box, {to: ("http", {"to": to}) for to in hosts})


# Connections of the guest that go on until they are cut: at which port, how, and what is heard when it is there.
HELD = {80: ("curl -sN -o /dev/null http://{}/drip", "http"), 443: ("curl -skN -o /dev/null https://{}/drip", "https"),
        7: ("bash -c 'exec 3<>/dev/tcp/{}/7; echo hello >&3; cat <&3'", "echo")}


def hold(server, internet, box, host):
    for how, proto in HELD.values():
        server.run(box, f"setsid {how.format(host)} < /dev/null > /dev/null 2>&1 & exit 0")
        wait_for(lambda: any(h["proto"] == proto for h in internet.heard()), f"{proto} to {host} is there", WAIT_SECONDS, 0.1)


def cut_at(internet, to):
    """When the last of the connections to that address was cut; nobody else's was."""
    found = {}

    def are_cut():
        found.update({(h["to"], h["port"]): h["at"] for h in internet.heard() if h["proto"] == "cut"})
        return len(found) >= len(HELD)
    wait_for(are_cut, "the open connections are cut", WAIT_SECONDS, 0.05)
    assert set(found) == {(to, port) for port in HELD}, found
    return max(found.values())


def test_a_change_is_in_force_at_once(server, internet, make):
    box = make(network=matrix.RULES)
    took = []
    for _ in range(TRIES):
        hold(server, internet, box, "a.wild.test")
        hold(server, internet, box, "good.test")
        begun = time.monotonic()
        put(server, box, {"allowOut": ["*.wild.test"], "denyOut": ["0.0.0.0/0"]})
        answered = time.monotonic()
        took.append((cut_at(internet, GOOD) - begun, answered - begun))
        assert by_http(server, box, "good.test").startswith("no: ")
        assert by_http(server, box, GOOD, "good.test").startswith("no: ")
        assert by_http(server, box, "a.wild.test") == f"{OTHER}:80"
        put(server, box, {"allowOut": ["good.test"], "denyOut": ["0.0.0.0/0"]})  # and the other way round
        cut_at(internet, OTHER)
        assert by_http(server, box, "good.test") == REACHED["good"]
        assert by_http(server, box, "a.wild.test").startswith("no: ")
        put(server, box, matrix.RULES)
        if max(took[-1]) <= IN_FORCE_SECONDS:
            break
    print("\nopen connections were cut, and the change answered, after", took)
    assert min(max(both) for both in took) <= IN_FORCE_SECONDS  # new ones obey when it is answered
    check_passes(server, box, KNOWN)
    check_heard(internet)


def test_what_a_change_leaves_out_is_gone(server, internet, make):
    box = make(network=matrix.RULES)
    check_fails(server, box, FAIL)
    put(server, box, {})
    assert by_http(server, box, "evil.test") == REACHED["evil"]
    put(server, box, {"allow_internet_access": False})
    assert by_http(server, box, "evil.test").startswith("no: ") and by_http(server, box, RANGE).startswith("no: ")
    internet.heard()


def test_what_is_allowed_wins_over_what_is_denied(server, internet, make):
    """E2B's order, of addresses, ranges and names."""
    box = make(network={"denyOut": [EVIL, "45.33.0.0/16"]})
    steps = [(None, {"good.test": REACHED["good"], EVIL: None, "evil.test": None, RANGE: None}),
             ({"allowOut": [RANGE], "denyOut": ["45.33.0.0/16"]},
              {RANGE: f"{RANGE}:80", "45.33.32.8": None, EVIL: REACHED["evil"]}),
             ({"allowOut": ["8.8.0.0/16"], "denyOut": ["0.0.0.0/0"]}, {EVIL: REACHED["evil"], RANGE: None, "good.test": None}),
             ({"allowOut": ["good.test", "*.evil.test"], "denyOut": ["0.0.0.0/0", EVIL]},
              {"good.test": REACHED["good"], "x.evil.test": REACHED["evil"], "evil.test": None, RANGE: None})]
    for network, wanted in steps:
        if network:
            put(server, box, network)
        got = probe(server, box, {to: ("http", {"to": to}) for to in wanted})
        assert {to: None if got[to].startswith("no: ") else got[to] for to in got} == wanted, (network, got)
    internet.heard()


def check_same(server, internet, box):
    """As it was made; what it knew it knows."""
    check_passes(server, box, BY_ADDRESS)
    check_fails(server, box, FAIL)
    check_passes(server, box, KNOWN)
    check_heard(internet)


def test_rules_survive_a_pause_and_every_daemon(server, internet, make):
    box = make(network=matrix.RULES)
    check_passes(server, box, KNOWN)
    assert server.api("POST", f"/sandboxes/{box['sandboxID']}/pause").status == 204
    server.must("POST", f"/sandboxes/{box['sandboxID']}/connect", {"timeout": 3600})
    check_same(server, internet, box)
    server.restart("node")
    server.wait_up()
    wait_for(lambda: by_http(server, box, "good.test") == REACHED["good"], "its rules are back", WAIT_SECONDS, 0.2)
    check_fails(server, box, FAIL)
    put(server, box, {"allowOut": ["a.wild.test"], "denyOut": ["0.0.0.0/0"]})  # a change is kept as well
    assert server.api("POST", f"/sandboxes/{box['sandboxID']}/pause").status == 204
    server.restart("egress", "node", "gateway")
    server.wait_up()
    server.must("POST", f"/sandboxes/{box['sandboxID']}/connect", {"timeout": 3600})
    assert by_http(server, box, "good.test").startswith("no: ")
    assert by_http(server, box, "a.wild.test") == f"{OTHER}:80"
    check_heard(internet)


def test_copies_have_the_same_rules(server, internet, make):
    box = make(network=matrix.RULES)
    check_passes(server, box, KNOWN)
    [answer] = server.must("POST", f"/sandboxes/{box['sandboxID']}/fork", {"count": 1, "timeout": 3600}, seconds=600)
    check_same(server, internet, answer["sandbox"])
    check_same(server, internet, box)
    put(server, box, {"allow_internet_access": False})  # each has its own
    check_passes(server, answer["sandbox"], KNOWN)
    server.delete(answer["sandbox"])
    check_heard(internet)


def snapshot_before_egress_answers(server, box):
    """Egress, which is asked for what the guest knows, is slower than all the rest of it."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        server.daemons["egress"].process.send_signal(signal.SIGSTOP)
        try:
            answer = pool.submit(server.must, "POST", f"/sandboxes/{box['sandboxID']}/snapshots", {"name": "ruled"}, seconds=600)
            concurrent.futures.wait([answer], SLOW_SECONDS)
        finally:
            server.daemons["egress"].process.send_signal(signal.SIGCONT)
        return answer.result()["snapshotID"]


def test_one_made_from_a_snapshot_has_the_network_it_asks_for(server, internet, make):
    """As with E2B: lists are the create's own, not those of what the snapshot was taken of. What the guest knows of names
    it goes on knowing, where they are allowed."""
    source = make(network=matrix.RULES)
    check_passes(server, source, KNOWN)
    made = snapshot_before_egress_answers(server, source)
    check_same(server, internet, source)
    put(server, source, {"allow_internet_access": False})  # no longer its business
    same = make(templateID=made, network=matrix.RULES)
    check_same(server, internet, same)
    other = make(templateID=made, network={"allowOut": ["a.wild.test"], "denyOut": ["0.0.0.0/0"]})
    check_fails(server, other, {title: how for title, (_, *how) in {**BY_ADDRESS, "by name": KNOWN["HTTP by name"]}.items()})
    assert by_http(server, other, "a.wild.test") == f"{OTHER}:80"
    check_heard(internet)
    closed = make(templateID=made, allow_internet_access=False)
    check_fails(server, closed, {title: how for title, (_, *how) in {**BY_ADDRESS, **KNOWN}.items()})
    assert internet.heard() == []
    free = make(templateID=made)
    assert by_http(server, free, "evil.test") == REACHED["evil"] and by_http(server, free, METADATA).startswith("no: ")
    internet.heard()
    shown = [server.must("GET", f"/sandboxes/{box['sandboxID']}").get("network") or {} for box in (same, free)]
    assert shown[0]["allowOut"] == matrix.RULES["allowOut"] and not shown[1].get("allowOut")
    for box in (source, same, other, closed, free):
        server.delete(box)
    assert server.api("DELETE", f"/templates/{urllib.parse.quote(made, safe='')}").status == 204


def test_a_sandbox_narrows_what_the_operator_allows(server, internet, make):
    """It never widens it. Three egresses, one after the other, with the same sandboxes."""
    free, greedy = make(), make(network={"allowOut": ["good.test", "evil.test", EVIL], "denyOut": ["0.0.0.0/0"]})
    closed = make(allow_internet_access=False)

    def reached(box):
        got = each_by_http(server, box, "good.test", "evil.test")
        return [name for name in ("good", "evil") if got[f"{name}.test"] == REACHED[name]]

    def after(expected, **settings):
        server.restart("egress", **settings)
        wait_for(lambda: reached(free) == expected, f"{settings} are in force", WAIT_SECONDS, 0.2)
        assert reached(greedy) == expected and reached(closed) == []
        return each_by_http(server, free, EVIL, INSIDE, METADATA, "inside.test")

    try:
        raw = after(["good", "evil"])
        assert raw.pop(EVIL) == REACHED["evil"] and all(got.startswith("no: ") for got in raw.values()), raw
        raw = after(["good"], network="allowlist", allow="good.test")
        assert all(got.startswith("no: ") for got in raw.values()), raw
        raw = after([], network="none")
        assert all(got.startswith("no: ") for got in raw.values()), raw
    finally:
        server.restart("egress")
    heard = internet.heard()
    assert not [h for h in heard if h["to"] in (INSIDE, METADATA)], heard


def decisions(server, box):
    answer = server.admin("GET", f"/admin/sandboxes/{box['sandboxID']}/egress")
    assert answer.status == 200, answer.raw
    return {(d["kind"], d["verdict"], d.get("name", "")) for d in answer.json}


def test_packages_are_what_may_be_reached_unless_something_else_is_said(server, internet, make):
    """The hosts of the template's own package managers: they alone exist."""
    server.restart("egress", network="allowlist")
    try:
        box = make()
        told = server.admin("GET", f"/admin/sandboxes/{box['sandboxID']}/explain").json
        assert told["operator"]["allow"] == ["packages"] and told["packages"], told
        internet.heard()
        probe(server, box, {name: ("resolve", {"name": name}) for name in (*told["packages"], "good.test", "evil.test")})
        assert {h["name"] for h in internet.heard() if h["proto"] == "dns"} == set(told["packages"])
        assert by_http(server, box, GOOD, "good.test").startswith("no: ")
        # each decision is known, and has its line
        log = server.daemons["egress"].log()
        assert {("name", "refused", "good.test"), ("http", "refused", "good.test")} <= decisions(server, box)
        assert f"sandbox {box['sandboxID']}: name good.test refused" in log
        assert f"sandbox {box['sandboxID']}: http good.test {GOOD}:80 refused" in log
    finally:
        server.restart("egress")


def test_one_sandbox_has_so_much_and_no_more(server, internet, make):
    """Connections at a time, and questions in a second; what it does too much of takes nothing from another."""
    most, rate, seconds = 4, 10, 5
    box, other = make(network=matrix.RULES), make(network=matrix.RULES)
    server.restart("egress", connections=most, per_second=rate)
    try:
        for b in (box, other):
            wait_for(lambda b=b: by_http(server, b, "good.test") == REACHED["good"], "its rules are in force", WAIT_SECONDS, 0.2)
        assert one(server, box, "crowd", {"to": "good.test", "n": 2 * most}) == f"{most} of {2 * most}"
        assert one(server, other, "crowd", {"to": "good.test", "n": most}) == f"{most} of {most}"
        answered = int(one(server, box, "ask_often", {"server": matrix.DOOR, "name": "good.test", "n": 200, "seconds": seconds}))
        print(f"\n{answered} of 200 questions were answered in {seconds} s")
        assert 0 < answered <= rate * (seconds + 2)
        check_passes(server, other, KNOWN)
    finally:
        server.restart("egress")
    check_heard(internet)


def test_services_of_the_operator(server, internet, make):
    services = ("10.1.2.3", 5432),
    keys = server.admin("GET", f"/admin/teams/{server.team}/keys").json
    answer = server.admin("PATCH", f"/admin/keys/{keys[0]['id']}/services", {"services": ["db"]})
    assert answer.status == 200, answer.raw
    with_it = make(network=matrix.RULES)
    answer = server.admin("PATCH", f"/admin/keys/{keys[0]['id']}/services", {"services": []})
    assert answer.status == 200, answer.raw
    without = make(network=matrix.RULES)
    check_passes(server, with_it, matrix.SERVICES_PASS)
    check_fails(server, with_it, matrix.SERVICES_FAIL)
    check_fails(server, without, {title: how for title, (_, *how) in matrix.SERVICES_PASS.items()})
    check_heard(internet, services)


def test_what_was_let_out_is_counted(server, make):
    """Also of a sandbox that is gone: docs/metrics.md."""
    box, before = make(network=matrix.RULES), Figures(server.admin("GET", "/metrics").raw)
    assert by_http(server, box, "good.test") == REACHED["good"]
    after = Figures(server.admin("GET", "/metrics").raw)
    assert after.moved(before, "hotcell_egress_decisions_total", kind="connection", verdict="allowed") == 1
    assert after.moved(before, "hotcell_egress_decisions_total", kind="name", verdict="allowed") >= 1
    for direction in ("in", "out"):
        assert after.moved(before, "hotcell_egress_bytes_total", direction=direction) > 0
