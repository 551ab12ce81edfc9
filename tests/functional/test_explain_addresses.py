"""test_explain_addresses.py - `explain` resolves a name and judges what it finds as egress does when a guest asks.

A real egress, a name server on loopback, and a door that a test holds in place of a guest's network: no VM.
"""

import os
import select
import socket
import struct
import threading

import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from egress import EXPLAIN, LOG, Egress, memory_file

WAIT_SECONDS = 30
TTL = 60
ZONE = {
    "public.example.": ["8.8.4.4"],
    "private.example.": ["10.1.2.3"],
    "special.example.": ["203.0.113.80"],
    "both.example.": ["192.168.0.9", "8.8.4.4"],
    "nothing.example.": [],
}
RULES = {"network": {"allowOut": [name.rstrip(".") for name in ZONE] + ["silent.example", "missing.example"],
                     "denyOut": ["0.0.0.0/0"]}}
SAID = {  # what is said of each name, and whether a guest is told an address
    "public.example": (True, "allowOut public.example"),
    "private.example": (False, "the address is private"),
    "special.example": (False, "the address is special purpose"),
    "both.example": (True, "allowOut both.example"),
    "nothing.example": (False, "the name has no address"),
    "missing.example": (False, "the name has no address"),
    "other.example": (False, "denyOut 0.0.0.0/0"),
}


class NameServer:
    """Says what is in ZONE. silent.example is never answered."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"", ("127.0.0.1", self.port))
        self.thread.join()
        self.socket.close()

    def serve(self):
        while True:
            data, peer = self.socket.recvfrom(4096)
            if not data:
                return
            asked = dns.message.from_wire(data)
            name = asked.question[0].name
            if str(name).lower() == "silent.example.":
                continue
            answer = dns.message.make_response(asked)
            found = ZONE.get(str(name).lower())
            if found is None:
                answer.set_rcode(dns.rcode.NXDOMAIN)
            elif found:
                answer.answer.append(dns.rrset.from_text(name, TTL, "IN", "A", *found))
            self.socket.sendto(answer.to_wire(), peer)


@pytest.fixture(scope="module")
def egress():
    server = NameServer()
    try:
        with Egress(network="open", resolvers=f"127.0.0.1:{server.port}") as e:
            yield e.start()
    finally:
        server.close()


def answer(egress, question):
    return egress.told(EXPLAIN, question={"rules": RULES, "question": question})["answer"]


@pytest.mark.parametrize("name", SAID)
def test_it_says_what_a_guest_finds(egress, name):
    allowed, why = SAID[name]
    said = answer(egress, f"{name}:443")
    assert said["allowed"] is allowed and why in said["why"], said
    assert said["question"] == f"{name}:443" and said["opened"] is False
    found = [a["address"] for a in said.get("addresses", []) if a["allowed"]]
    assert bool(found) is allowed
    assert guest_asks(egress, name) == found
    logged = [e for e in egress.told(LOG, 1) if e["name"] == name][-1]
    assert (logged["verdict"] == "allowed") is allowed and logged["why"] in said["why"], (logged, said)


def guest_asks(egress, name):
    """What the door of a sandbox under the same rules says."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as guest:
        guest.connect(doors(egress))
        asked = dns.message.make_query(name, "A")
        guest.send(asked.to_wire())
        assert select.select([guest], [], [], WAIT_SECONDS)[0], "the door says nothing"
        said = dns.message.from_wire(guest.recv(4096))
    return [r.address for rrset in said.answer for r in rrset if r.rdtype == dns.rdatatype.A]


def doors(egress):
    tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tcp.bind(("127.0.0.1", 0))
    tcp.listen()
    udp.bind(("127.0.0.1", 0))
    at = udp.getsockname()
    egress.open(1, [tcp, udp])
    egress.rule(1, RULES)
    return at


def test_a_name_server_that_is_silent_is_not_waited_for_long(egress):
    said = answer(egress, "silent.example")
    assert said["allowed"] is False and "no resolver answers" in said["why"], said
    assert "allowOut silent.example" in said["why"]


def test_who_hangs_up_takes_its_question_along(egress):
    """Others are answered meanwhile, in any order, and nobody is told what another asked for."""
    with memory_file({"rules": RULES, "question": "silent.example"}) as file:
        rq = struct.pack("=QII64s", 99, EXPLAIN, 0, b"")
        socket.send_fds(egress.sock, [rq], [file.fileno()])
    egress.hang_up()
    egress.connect()
    assert answer(egress, "public.example")["allowed"] is True
    with memory_file({"rules": RULES, "question": "silent.example"}) as file:
        many = [struct.pack("=QII64s", 1000 + i, EXPLAIN, 0, b"") for i in range(40)]
        for rq in many:
            socket.send_fds(egress.sock, [rq], [file.fileno()])
    tags = set()
    while len(tags) < 40:
        data, fds, _, _ = socket.recv_fds(egress.sock, 4096, 1)
        tags.add(struct.unpack_from("=Q", data)[0])
        for fd in fds:
            os.close(fd)
    assert tags == {1000 + i for i in range(40)}
    assert answer(egress, "private.example")["allowed"] is False
