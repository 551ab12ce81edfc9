"""test_egress_calls.py - egress does all it does with the system calls it has.

None that it makes is refused, or the fixture says so; test_needed_calls.py runs this with one call less each time, and
each must be missed here. What happens too seldom to be waited for is made to happen: memory that grows, a bug, the
calls of another version of a library.
"""

import platform
import signal
import socket

import names
import pytest
from egress import EXPLAIN, KNOWN, LOG, NAME, memory_file
from place import HOST, SECONDS, Place
from taken import Taken, may_make
from warden import is_sanitized

# Which of two calls a library makes depends on its version; the clock is read without a call where it can be; a lock is
# seldom waited for; memory is seldom moved to grow.
SELDOM = ("epoll_wait", "epoll_pwait", "fstat", "newfstatat", "clock_gettime", "futex", "mremap")

pytestmark = pytest.mark.skipif(is_sanitized(), reason="a build with sanitizers allows what they need")


@pytest.fixture
def place():
    with Place() as p:
        yield p.open()


def read_all(s):
    data = b""
    while part := s.recv(1 << 16):
        data += part
    return data


def test_names_are_resolved(place):
    assert place.ask(HOST) == [names.GOOD]
    assert place.ask("nobody.test") == []
    place.egress.end()


def test_bytes_pass_both_ways(place):
    with place.dial(names.EVIL, 7) as s:
        s.settimeout(SECONDS)
        assert b"reached" in s.recv(100)
        s.sendall(b"x" * 1000)
        s.shutdown(socket.SHUT_WR)
        assert len(read_all(s)) == 1000
    place.egress.end()


def test_much_passes_to_one_who_reads_late(place):
    assert place.ask("a.wild.test") == [names.OTHER]
    with place.dial(names.OTHER, 80) as s:
        s.sendall(b"GET /large HTTP/1.1\r\nHost: a.wild.test\r\nConnection: close\r\n\r\n" * 4)
        s.shutdown(socket.SHUT_WR)
        assert len(read_all(s)) > 4 << 20
    place.egress.end()


def test_a_host_with_a_rule_is_handed_over(place):
    assert b"200 OK" in place.fetch(HOST, names.GOOD)
    place.egress.end()


def test_the_others_are_refused(place):
    with place.dial(names.INSIDE, 80) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n")
        assert b" 403 " in s.recv(100)
    place.egress.end()


def test_node_is_told(place):
    place.ask(HOST)
    with memory_file({"rules": place.rules(), "question": f"{HOST}:443"}) as file:
        for verb, fds in ((LOG, []), (KNOWN, []), (EXPLAIN, [file.fileno()])):
            place.egress.call(verb, fds=fds)
    place.egress.call(NAME, 0, b"another")
    assert place.egress.counts(0) == (0, 0)
    place.egress.end()


def test_there_is_room_for_long_rules(place):
    """More than libc takes from the heap, and growing."""
    names_of_many = [f"{i}." + "x" * 60 + "." + "y" * 60 + "." + "z" * 60 + ".test" for i in range(900)]
    rules = {"network": {"allowOut": names_of_many, "denyOut": []}}
    with memory_file({"rules": rules}) as file:
        place.egress.call(EXPLAIN, fds=[file.fileno()])
    place.egress.rule(0, rules)
    place.egress.end()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its registers are not known here")
def test_what_libraries_do_elsewhere_is_allowed(place):
    may_make(place.egress.pid, *SELDOM)
    place.egress.end()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its registers are not known here")
def test_a_bug_ends_it_as_a_bug(place):
    """abort(), as a failed assertion calls it: a supervisor sees a signal, and nothing was refused on the way."""
    with Taken(place.egress.pid) as taken:
        taken.go_on_at("abort")
    assert place.egress.process.wait(SECONDS) == -signal.SIGABRT
