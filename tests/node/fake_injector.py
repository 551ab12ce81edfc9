"""fake_injector.py - an injector that remembers what it was told: src/injector/protocol.h in Python.

    with FakeInjector(folder) as injector:   # it listens at injector.path
        injector.started                   # {slot: {"id", "team", "rules", "sealed"}} of the workers there would be
"""

import base64
import contextlib
import json
import os
import socket
import struct
import subprocess
import threading

import link_hello

START, STOP, RESET, FACTS = range(4)
REQUEST, REPLY = struct.Struct("<QII64s64s"), struct.Struct("<QII128s")
VERSION = 4
INVALID = 1  # ERR_INVALID


def authority(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=fake injector", "-keyout", folder / "ca.key", "-out", folder / "ca.pem"],
                   check=True, capture_output=True)
    return (folder / "ca.pem").read_text()


def memory_file(text):
    fd = os.memfd_create("fake")
    os.write(fd, text.encode())
    return fd


class FakeInjector:
    def __init__(self, folder):
        self.path = folder / "injector.sock"
        self.facts = {"ca": authority(folder), "sealKey": base64.b64encode(b"k" * 32).decode()}
        self.lock = threading.Lock()
        self.started, self.ends, self.heard = {}, {}, []
        self.listener, self.caller = None, None

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *exc):
        self.close()

    def open(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.path))
        os.chmod(self.path, 0o666)
        self.listener.listen()
        threading.Thread(target=self.serve, args=[self.listener], daemon=True).start()

    def close(self):
        """As if it died: its workers go with it."""
        for s in (self.listener, self.caller):
            with contextlib.suppress(OSError, AttributeError):
                s.shutdown(socket.SHUT_RDWR)
                s.close()
        self.forget()
        self.path.unlink(missing_ok=True)

    def forget(self):
        with self.lock:
            for end in self.ends.values():
                end.close()
            self.started, self.ends = {}, {}

    def serve(self, listener):
        while True:
            try:
                self.caller, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):
                link_hello.answer(self.caller, VERSION)
                while self.serve_one(self.caller):
                    pass
            self.caller.close()  # a socket of the caller's network, which goes with the caller

    def serve_one(self, caller):
        raw, fds, _, _ = socket.recv_fds(caller, 512, 4)
        if not raw:
            return False
        tag, verb, slot, name, team = REQUEST.unpack(raw)
        assert tag and len(fds) == (verb == START), (tag, fds)
        given, code = [], 0
        if verb == RESET:
            self.forget()
        elif verb == STOP:
            self.stop(slot)
        elif verb == FACTS:
            given = [memory_file(json.dumps(self.facts))]
        else:
            said = json.loads(os.pread(fds[0], 1 << 20, 0))
            os.close(fds[0])
            if "refuse.example" in said["rules"]:
                code = INVALID
            else:
                given = [self.start(slot, {"id": name.rstrip(b"\0").decode(),
                                           "team": team.rstrip(b"\0").decode(), **said})]
        self.heard.append((verb, slot))
        socket.send_fds(caller, [REPLY.pack(tag, code, slot, b"refused" if code else b"")], given)
        for fd in given:
            os.close(fd)
        return True

    def start(self, slot, said):
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stop(slot)
        with self.lock:
            self.started[slot], self.ends[slot] = said, mine
        return theirs.detach()

    def stop(self, slot):
        with self.lock:
            self.started.pop(slot, None)
            end = self.ends.pop(slot, None)
        if end:
            end.close()

    def worker_dies(self, slot):
        self.stop(slot)
        self.caller.send(REPLY.pack(0, 0, slot, b"its worker ended"))

    def of(self, box):
        """What its worker was started with; None: it has none."""
        with self.lock:
            return next((s for s in self.started.values() if s["id"] == box.id), None)

    def slot_of(self, box):
        with self.lock:
            return next(slot for slot, s in self.started.items() if s["id"] == box.id)
