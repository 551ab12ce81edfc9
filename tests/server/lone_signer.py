"""lone_signer.py - a real signer, confined as in production, and a client that asks it as a gateway does.

    with LoneSigner(base, tls_dir) as signer:
        signer.ask(SIGN, key_id, scheme=ECDSA_SHA256, what=tls13(os.urandom(32)))   # the signature
"""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import tempfile

import certs
import link_hello
import refused_calls
from daemon import Daemon
from warden import is_sanitized, wait_for

VERSION = 1
SIGN, HAS = range(2)
REQUEST = struct.Struct("=QIII32s172s")  # src/signer/protocol.h
REPLY = struct.Struct("=QII128s512s")
ECDSA_SHA256, PSS_SHA256, PKCS_SHA256 = 0x0403, 0x0804, 0x0401
SIGNER_UID = 64323  # nobody's
START_SECONDS = 30
PATIENCE = 30


def tls13(transcript):
    """What a server signs in a handshake of TLS 1.3."""
    return b" " * 64 + b"TLS 1.3, server CertificateVerify\0" + transcript


def tls12(randoms, point):
    """The same of TLS 1.2 with X25519."""
    return randoms + b"\x03\x00\x1d\x20" + point


class Refused(Exception):
    pass


class LoneSigner:
    def __init__(self, base, tls_dir, gateway_uid=0, **settings):
        self.socket = base / "signer" / "signer.sock"
        self.socket.parent.mkdir(exist_ok=True)
        self.daemon = Daemon("signer", base, {"socket": self.socket, "gateway_uid": gateway_uid, "user": SIGNER_UID,
                                              "tls_dir": tls_dir, **settings})
        self.client, self.tag, self.known = None, 0, 0

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        if exc[0]:
            print(self.daemon.log()[-6000:])
        self.end()
        if not exc[0]:
            refused_calls.check("the signer", self.daemon.log())

    def end(self):
        self.hang_up()
        if self.daemon.process and self.daemon.process.poll() is None:
            self.daemon.process.send_signal(signal.SIGTERM)
            assert self.daemon.process.wait(PATIENCE) == 0, self.daemon.log()[-3000:]
        self.daemon.process = None

    def start(self):
        self.known = len(self.daemon.log())
        self.daemon.launch()
        wait_for(self.serves, "the signer serves", START_SECONDS * (3 if is_sanitized() else 1), 0.02)
        return self

    def serves(self):
        self.daemon.check_alive()
        return self.socket.exists() and "serving on" in self.daemon.log()[self.known:]

    def hang_up(self):
        if self.client:
            self.client.close()
        self.client = None

    def connect(self):
        self.client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.client.settimeout(PATIENCE)
        self.client.connect(os.fspath(self.socket))
        link_hello.say(self.client, VERSION)

    def ask(self, verb, key_id, scheme=0, what=b""):
        if not self.client:
            self.connect()
        self.tag += 1
        self.client.send(REQUEST.pack(self.tag, verb, scheme, len(what), key_id, what))
        tag, code, n, text, signature = REPLY.unpack(self.client.recv(REPLY.size))
        assert tag == self.tag
        if code:
            raise Refused(text.rstrip(b"\0").decode())
        return signature[:n]


@contextlib.contextmanager
def signer_with(*kinds, **settings):
    """One that has a key of each kind, with these pairs, their authority and the folder."""
    # no folder of pytest's: whoever starts pytest beside this closes the one above those for all but himself
    with tempfile.TemporaryDirectory(prefix="hotcell-") as made:
        base = pathlib.Path(made)
        base.chmod(0o755)
        folder = base / "tls"
        folder.mkdir()
        authority = certs.Authority(base)
        pairs = {kind: authority.issue(f"{kind.lower()}.example", kind=kind) for kind in kinds}
        for kind, pair in pairs.items():
            certs.put(folder, kind, pair, SIGNER_UID)
        with LoneSigner(base, folder, **settings) as signer:
            yield signer, pairs, authority, folder
