"""test_signer_calls.py - the signer does all it does with the system calls it has.

None that it makes is refused, or the fixture says so; test_needed_calls.py runs this with one call less each time, and each
must be missed here. What happens too seldom to be waited for is made to happen.
"""

import platform
import signal

import pytest

import certs
from lone_signer import ECDSA_SHA256, HAS, PSS_SHA256, SIGN, SIGNER_UID, Refused, signer_with, tls12, tls13
from taken import Taken, may_make
from warden import is_sanitized, wait_for

PATIENCE = 30
# As in test_egress_calls.py; and it has a line for the log only when something changes.
SELDOM = ("epoll_wait", "epoll_pwait", "fstat", "newfstatat", "clock_gettime", "futex", "mmap", "mremap", "munmap", "write")

pytestmark = pytest.mark.skipif(is_sanitized(), reason="a build with sanitizers allows what they need")
known_registers = pytest.mark.skipif(platform.machine() != "x86_64", reason="its registers are not known here")


@pytest.fixture(name="place")
def fixture_place():
    with signer_with(*certs.KINDS) as place:
        yield place


def test_keys_of_each_kind_sign(place):
    signer, pairs, _authority, _folder = place
    for kind, scheme in (("P-256", ECDSA_SHA256), ("P-384", ECDSA_SHA256), ("RSA", PSS_SHA256)):
        key = certs.key_id(pairs[kind])
        assert signer.ask(HAS, key) == b""
        for what in (tls13(bytes(32)), tls12(bytes(64), bytes(32))):
            assert signer.ask(SIGN, key, scheme, what)
    with pytest.raises(Refused):
        signer.ask(SIGN, key, scheme, b"anything")


def test_keys_come_and_go(place):
    signer, _pairs, authority, folder = place
    new = authority.issue("new.example")
    certs.put(folder, "new", new, SIGNER_UID)
    certs.put_file(folder / "RSA/privkey.pem", "rubbish", SIGNER_UID, 0o444)

    def known():
        try:
            return signer.ask(HAS, certs.key_id(new)) == b""
        except Refused:
            return False

    wait_for(known, "the new key is found", PATIENCE, 0.05)
    wait_for(lambda: "RSA/privkey.pem is not used" in signer.daemon.log(), "the other one is refused", PATIENCE, 0.05)
    assert "can be read by others" in signer.daemon.log()


def test_clients_come_and_go(place):
    signer, pairs, _authority, _folder = place
    for _ in range(10):
        assert signer.ask(HAS, certs.key_id(pairs["P-256"])) == b""
        signer.hang_up()


@known_registers
def test_what_libraries_do_elsewhere_is_allowed(place):
    may_make(place[0].daemon.pid, *SELDOM)


@known_registers
def test_a_bug_ends_it_as_a_bug(place):
    """abort(), as a failed assertion calls it: nothing is refused on the way."""
    signer = place[0]
    with Taken(signer.daemon.pid) as taken:
        taken.go_on_at("abort")
    assert signer.daemon.process.wait(PATIENCE) == -signal.SIGABRT
