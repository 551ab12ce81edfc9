"""test_network_matrix.py - a guest, as root in it, tries to get out in every way we know (tests/internet/matrix.py).

What the rules allow passes, to whom they allow it; everything else reaches nobody, and nobody hears of it. With
egress there, without it, with the next one, and while it is killed again and again. Printed: the table.
"""

import contextlib
import json
import os
import socket
import subprocess
import threading

import pytest

import matrix
from guest import KNOWN, Neighbour, check_fails, check_heard, check_passes, one, prepare, probe, show
from internet import Internet
from names import GOOD, INSIDE, MOVED, PROXY, PROXY_PORT, RANGE
from server import Server, wait_for

DEATHS = int(os.environ.get("HOTCELL_EGRESS_DEATHS", "5"))
AGAIN_SECONDS = 60
NOBODYS_PORT = 9
QUICK = {title: how for title, how in matrix.MUST_FAIL.items() if how[0] in ("http", "tls", "say", "odd_hello", "dns_tcp")}


@pytest.fixture(scope="module")
def internet():
    with Internet() as i:
        yield i


@pytest.fixture(scope="module")
def server(internet):
    with Server(internet=internet) as s:
        yield s


@pytest.fixture(scope="module")
def box(server):
    box = server.create(network=matrix.RULES)
    prepare(server, box)
    yield box
    server.delete(box)


def is_ruled(server, box):
    """Does egress know its rules?"""
    return one(server, box, "http", {"to": "good.test"}) == "93.184.216.34:80"


def wait_ruled(server, box):
    wait_for(lambda: is_ruled(server, box), "the sandbox's rules are in force again", AGAIN_SECONDS, 0.2)


def test_there_are_enough():
    assert len(matrix.MUST_PASS) + len(matrix.MUST_FAIL) >= 60


def test_nothing_else_gets_out(server, internet, box):
    check_passes(server, box, KNOWN)  # from now on its address is as good as its name
    check_fails(server, box, matrix.MUST_FAIL)
    check_heard(internet)


def test_what_is_allowed_passes(server, internet, box):
    """After all that was tried above: spoofed frames have changed nothing."""
    check_passes(server, box, matrix.MUST_PASS)
    check_heard(internet)


def host_addresses():
    out = subprocess.run(["ip", "-j", "-4", "address"], check=True, capture_output=True).stdout
    return [a["local"] for link in json.loads(out) for a in link["addr_info"] if not a["local"].startswith("127.")]


def test_the_host_hears_nothing(server, internet, box):
    with socket.create_server(("0.0.0.0", 0)) as door:
        door.setblocking(False)
        port = door.getsockname()[1]
        check_fails(server, box, {f"{how} to {to}": (how, {"to": to, "port": port})
                                  for to in [*host_addresses(), matrix.DOOR] for how in ("http", "tls", "say")})
        with pytest.raises(BlockingIOError):
            door.accept()
    check_heard(internet)


def test_a_neighbour_hears_nothing(server, internet, box):
    """One that listens, has addresses by which it might be found, and says that it is everybody else."""
    other = server.create(network=matrix.RULES)
    neighbour = Neighbour(server, other)
    neighbour.check_hears()
    gateways = [(to, server.port) for to in [*host_addresses(), "127.0.0.1", matrix.DOOR]]
    check_fails(server, box, {**matrix.NEIGHBOUR_FAIL, **matrix.by_gateway(gateways, other["sandboxID"])})
    assert neighbour.heard() == []
    check_fails(server, other, {title: how for title, how in matrix.MUST_FAIL.items() if "ARP" in title})
    check_passes(server, box, {**KNOWN, **matrix.SHARED})
    assert neighbour.heard() == []
    neighbour.check_hears()
    check_heard(internet)
    server.delete(other)


def test_an_address_that_moves_inside_is_not_followed(server, internet, box):
    assert one(server, box, "dns", {"server": matrix.DOOR, "name": "flip.test"}) == MOVED
    wait_for(lambda: "private" in one(server, box, "http", {"to": INSIDE, "host": "flip.test"}),
             "its new address is noticed", AGAIN_SECONDS, 0.2)
    check_heard(internet)


def test_without_egress_nobody_gets_out(server, internet, box):
    server.kill("egress")
    try:
        internet.heard()
        everything = {**{title: how for title, (_, *how) in matrix.MUST_PASS.items()}, **QUICK}
        check_fails(server, box, everything)
        assert internet.heard() == []
    finally:
        server.start("egress")


def test_the_next_egress_lets_out_the_same(server, internet, box):
    wait_ruled(server, box)
    check_fails(server, box, matrix.MUST_FAIL)
    check_passes(server, box, matrix.MUST_PASS)
    check_heard(internet)


def test_nothing_gets_out_while_egress_dies(server, internet, box):
    """The guest goes on trying; egress is killed and started, as often as the guest has tried it all."""
    results, done = {}, threading.Event()

    def try_all():
        with contextlib.suppress(AssertionError):
            results.update(probe(server, box, QUICK, rounds=3))
        done.set()

    guest = threading.Thread(target=try_all)
    guest.start()
    deaths = 0
    while not done.wait(0.5) or deaths < DEATHS:
        server.restart("egress")
        deaths += 1
    guest.join()
    show(f"must fail, {deaths} deaths of egress meanwhile", results)
    assert results and all(matrix.is_refusal(got) for got in results.values()), results
    wait_ruled(server, box)
    check_passes(server, box, KNOWN)
    check_heard(internet)


@pytest.fixture
def proxied(server, box):
    """Egress, with the operator's proxy; or with one at that port, where nobody is."""
    def proxied(port, **more):
        server.restart("egress", proxy=f"{PROXY}:{port}", **more)
    yield proxied
    server.restart("egress")
    wait_ruled(server, box)


def test_everything_goes_by_the_operators_proxy(server, internet, box, proxied):
    proxied(PROXY_PORT)
    wait_ruled(server, box)
    internet.heard()
    check_fails(server, box, matrix.PROXY_FAIL)
    check_passes(server, box, matrix.MUST_PASS)
    heard = internet.heard()
    around = [h for h in heard if not matrix.is_proxied(h)]
    assert not around, around
    assert {f"{GOOD}:80", f"{GOOD}:443", f"{GOOD}:22", f"{RANGE}:80"} <= {h.get("target") for h in heard}


def test_where_the_proxy_resolves_it_is_asked_for_names(server, internet, box, proxied):
    proxied(PROXY_PORT, proxy_resolves="yes", network="allowlist", allow=matrix.RESOLVING_NAMES)
    wait_ruled(server, box)
    internet.heard()
    check_fails(server, box, matrix.RESOLVING_FAIL)
    check_passes(server, box, matrix.RESOLVING_PASS)
    heard = internet.heard()
    around = [h for h in heard if not matrix.is_proxied(h, resolves=True)]
    assert not around, around
    assert {"good.test:80", "good.test:443", "good.test:22", f"{RANGE}:80"} <= {h.get("target") for h in heard}


def test_without_its_proxy_nobody_gets_out(server, internet, box, proxied):
    proxied(NOBODYS_PORT)
    wait_for(lambda: one(server, box, "resolve", {"name": "good.test"}) == GOOD, "its names are told", AGAIN_SECONDS)
    internet.heard()
    check_fails(server, box, {title: how for title, (_, *how) in matrix.MUST_PASS.items() if how[0] not in ("resolve", "dns", "frame")})
    assert [h for h in internet.heard() if h["proto"] != "dns" or not matrix.is_expected(h)] == []
