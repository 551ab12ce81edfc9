"""test_signer.py - where the private keys are and where they are not, and what a gateway that was taken over gets signed."""

import array
import contextlib
import hashlib
import os
import re
import socket
import struct
import subprocess
import sys
import textwrap

import pytest

import certs
import link_hello
from lone_gateway import DOMAIN, GATEWAY_UID
from lone_signer import ECDSA_SHA256, HAS, PKCS_SHA256, PSS_SHA256, REQUEST, SIGN, VERSION, Refused, signer_with, tls12, tls13
from search import CHUNK, Needles
from tls_gateway import TlsGateway
from warden import is_alive, is_sanitized, wait_for

PART = 16  # bytes of a number: nothing else has them by chance
STRANGER = 64399  # nobody's
HANDSHAKES = 20
assert CHUNK > PART


def private_numbers(pair):
    """All that is secret in a key, as bytes: d of an EC key; d, both primes and what is derived from them of an RSA key."""
    text = certs.openssl("pkey", "-noout", "-text", input=pair.key.encode()).decode()
    found = re.findall(r"^(priv|privateExponent|prime[12]|exponent[12]|coefficient):\n((?:    .*\n)+)", text, re.M)
    return [bytes.fromhex(re.sub(r"[^0-9a-f]", "", digits)).lstrip(b"\0") for _name, digits in found]


class KeyNeedles(Needles):
    """A private key in any form that it may have in memory: numbers in both orders of bytes, and the text of its file."""

    def __init__(self, pair):  # pylint: disable=super-init-not-called
        self.all = []
        for number in private_numbers(pair):
            self.all += [number[:PART], number[-PART:], number[::-1][:PART], number[::-1][-PART:]]
        lines = pair.key.split("\n")[1:-2]
        self.all += [line[4:4 + 2 * PART].encode() for line in lines[:1] + lines[-2:-1]]


@pytest.fixture(scope="module", params=["P-256", "RSA"], name="gateway")
def fixture_gateway(request):
    with TlsGateway(kind=request.param) as gateway:
        yield gateway


def test_the_numbers_of_a_key_are_known(gateway):
    numbers = private_numbers(gateway.pair)
    assert len(numbers) in (1, 6) and all(len(number) > 2 * PART - 2 for number in numbers)


@pytest.mark.skipif(is_sanitized(), reason="sanitizers reserve terabytes, all of which would be searched")
def test_the_key_is_in_the_signer_and_not_in_the_gateway(gateway):
    """After handshakes in full and resumed ones, and after a reload: everywhere in the memory of both."""
    for _ in range(HANDSHAKES):
        with gateway.connect() as sock:
            gateway.get(sock)
    new = gateway.authority.issue(DOMAIN, f"*.{DOMAIN}")
    gateway.put("own", new)
    gateway.wait_served("own", new)
    gateway.ask_tls()
    for pair in (gateway.pair, new):
        needles = KeyNeedles(pair)
        assert needles.in_memory(gateway.signer.daemon.pid), "the search finds nothing, wherever it is"
        assert not needles.in_memory(gateway.daemon.pid)
        assert not needles.in_folder(gateway.base / "gateway")[1]


def test_the_gateway_cannot_read_the_file(gateway):
    """Its user may not; the file view that it has left itself makes no difference."""
    path = gateway.tls_dir / "own/privkey.pem"
    said = subprocess.run([sys.executable, "-c", f"open({str(path)!r})"], user=GATEWAY_UID, group=GATEWAY_UID, extra_groups=[],
                          capture_output=True, text=True, check=False)
    assert said.returncode == 1 and "PermissionError" in said.stderr


# --- a gateway that was taken over ---

@pytest.fixture(scope="module", name="place")
def fixture_place():
    """A signer with a key of each kind, asked by somebody who means it ill."""
    with signer_with("P-256", "RSA", gateway_uid=GATEWAY_UID) as (signer, pairs, _authority, _folder):
        yield signer, pairs


SCHEMES = {"P-256": ECDSA_SHA256, "RSA": PSS_SHA256}
HASH = hashlib.sha256(b"x").digest()
WANTED = {  # what else such a key would be good for
    "a certificate": b"\x30\x82\x01\x0a" + b"\xa0\x03\x02\x01\x02" + bytes(150),
    "a short certificate": b"\x30\x81\x90" + bytes(140),
    "a token": b"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJyb290IiwiZXhwIjo5OTk5OTk5OTk5fQ",
    "a hash": HASH,
    "a hash with its name": bytes.fromhex("3031300d060960864801650304020105000420") + HASH,
    "a client of TLS 1.3": tls13(HASH).replace(b"server", b"client"),
    "TLS 1.3 with more": tls13(HASH + HASH),
    "TLS 1.3 with less": tls13(HASH[:31]),
    "TLS 1.3 without a zero": tls13(HASH).replace(b"\0", b" ", 1),
    "an exchange that is longer": tls12(bytes(64), bytes(33)),
    "an exchange in a finite field": bytes(64) + b"\x00\x20" + bytes(32) + b"\x00\x01\x02\x00\x20" + bytes(32),
    "an explicit curve": bytes(64) + b"\x01\x00\x1d\x20" + bytes(32),
    "a host key of SSH": b"\x00\x00\x00\x20" + HASH + b"\x32",
    "QUIC, a token, TLS 1.3's other contexts": b" " * 64 + b"HTTP/1 Exchange\0" + HASH,
    "nothing": b"",
}


@pytest.mark.parametrize("what", WANTED)
@pytest.mark.parametrize("kind", SCHEMES)
def test_nothing_but_handshakes_is_signed(place, kind, what):
    signer, pairs = place
    with pytest.raises(Refused, match="handshake"):
        signer.ask(SIGN, certs.key_id(pairs[kind]), SCHEMES[kind], WANTED[what])


@pytest.mark.parametrize("kind", SCHEMES)
def test_handshakes_are_signed(place, kind):
    signer, pairs = place
    for what in (tls13(HASH), tls13(HASH + HASH[:16]), tls12(os.urandom(64), os.urandom(32))):
        assert len(signer.ask(SIGN, certs.key_id(pairs[kind]), SCHEMES[kind], what)) > 60


def test_an_old_padding_is_for_the_old_version_alone(place):
    signer, pairs = place
    key = certs.key_id(pairs["RSA"])
    assert signer.ask(SIGN, key, PKCS_SHA256, tls12(os.urandom(64), os.urandom(32)))
    with pytest.raises(Refused, match="handshake"):
        signer.ask(SIGN, key, PKCS_SHA256, tls13(HASH))


def test_a_key_is_not_told(place):
    """Whether there is one, and no word more; of no file that is not a key of the folder."""
    signer, pairs = place
    assert signer.ask(HAS, certs.key_id(pairs["RSA"])) == b""
    with pytest.raises(Refused, match="no key"):
        signer.ask(HAS, bytes(32))
    with pytest.raises(Refused, match="no key"):
        signer.ask(SIGN, bytes(32), ECDSA_SHA256, tls13(HASH))


def requests_of_the_wrong_form(key):
    good = REQUEST.pack(1, SIGN, ECDSA_SHA256, 130, key, tls13(HASH))
    yield from (good[:-1], good + b"x", good * 2, b"x", b"\0" * 5000, os.urandom(len(good) + 8))


def test_who_speaks_otherwise_is_hung_up_on_and_nobody_else(place):
    signer, pairs = place
    key = certs.key_id(pairs["P-256"])
    for request in requests_of_the_wrong_form(key):
        signer.hang_up()
        signer.connect()
        signer.client.send(request)
        with contextlib.suppress(ConnectionResetError):
            assert signer.client.recv(4096) == b""
        signer.hang_up()
    signer.connect()
    good = REQUEST.pack(1, SIGN, ECDSA_SHA256, 130, key, tls13(HASH))
    with open("/dev/null") as file:  # with a descriptor that nobody asked for
        signer.client.sendmsg([good], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])
    with contextlib.suppress(ConnectionResetError):
        assert signer.client.recv(4096) == b""
    signer.hang_up()
    for verb in (2, 3, 0xffffffff):
        with pytest.raises(Refused):
            signer.ask(verb, key)
    for n in (173, 1 << 16, 0xffffffff):  # a length that lies
        signer.client.send(struct.pack("=QIII", 9, SIGN, ECDSA_SHA256, n) + key + bytes(172))
        assert struct.unpack_from("=QI", signer.client.recv(4096))[1] != 0
    signer.hang_up()
    assert signer.ask(SIGN, key, ECDSA_SHA256, tls13(HASH))
    assert is_alive(signer.daemon.pid)


def test_one_who_never_reads_is_hung_up_on(place):
    signer, pairs = place
    key = certs.key_id(pairs["P-256"])
    signer.hang_up()
    signer.connect()
    deaf, signer.client = signer.client, None
    deaf.settimeout(20)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        for tag in range(1, 20000):
            deaf.send(REQUEST.pack(tag, SIGN, ECDSA_SHA256, 130, key, tls13(HASH)))
    deaf.close()
    assert signer.ask(SIGN, key, ECDSA_SHA256, tls13(HASH))


def test_a_crowd_of_connections_leaves_room(place):
    """As many as it takes, and more, all silent: those that came first are served, and all are when they go."""
    signer, pairs = place
    key = certs.key_id(pairs["P-256"])
    signer.hang_up()
    signer.connect()
    crowd = []
    for _ in range(20):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(os.fspath(signer.socket))
        crowd.append(sock)
    assert signer.ask(SIGN, key, ECDSA_SHA256, tls13(HASH))
    for sock in crowd:
        sock.close()
    signer.hang_up()

    def serves():
        with contextlib.suppress(OSError):
            return bool(signer.ask(SIGN, key, ECDSA_SHA256, tls13(HASH)))
        signer.hang_up()
        return False

    wait_for(serves, "there is room again", 20, 0.02)


def ask_as(user, signer):
    """(status, what was said) of a process of that user's that says hello."""
    script = textwrap.dedent(f"""
        import socket, sys
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(20)
        s.connect({os.fspath(signer.socket)!r})
        s.send({link_hello.pack(VERSION, VERSION)!r})
        sys.exit(0 if s.recv(100) else 9)
        """)
    return subprocess.run([sys.executable, "-c", script], user=user, group=user, extra_groups=[], check=False,
                          capture_output=True).returncode


def test_only_the_gateway_is_answered(place):
    signer, _pairs = place
    signer.hang_up()
    assert ask_as(GATEWAY_UID, signer) == 0
    assert ask_as(STRANGER, signer) != 0
