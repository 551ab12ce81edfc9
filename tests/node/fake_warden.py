"""fake_warden.py - a warden without VMs: it says hello, lists what it is told to, and remembers what it was asked.

    with FakeWarden(folder / "warden.sock") as warden:
        warden.cells = {"ia0": 7}   # VMs that run: id and slot
        warden.owners["ia0"] = "x"  # of which installation; else of none
        warden.stopped              # ids that node wanted gone, in order
"""

import contextlib
import os
import socket
import threading

import link_hello
import protocol as p


class FakeWarden:
    def __init__(self, path):
        self.path = path
        self.cells, self.owners, self.stopped = {}, {}, []
        self.looks = 0  # how often node has been through the whole list
        self.listener, self.callers = None, []
        self.version = p.VERSION

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.path))
        os.chmod(self.path, 0o666)
        self.listener.listen()
        threading.Thread(target=self.serve, args=[self.listener], daemon=True).start()
        return self

    def __exit__(self, *exc):
        for s in (self.listener, *self.callers):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()

    def hang_up(self):
        """As a warden that is started again: node comes back and looks."""
        for s in self.callers:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def serve(self, listener):
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            self.callers.append(caller)
            threading.Thread(target=self.serve_one, args=[caller], daemon=True).start()

    def serve_one(self, caller):
        with contextlib.suppress(OSError):
            link_hello.answer(caller, self.version)
            while raw := self.receive(caller):
                caller.send(bytes(self.answer(p.Request.from_buffer_copy(raw))))

    def receive(self, caller):
        raw, fds, _, _ = socket.recv_fds(caller, 4096, p.FDS_MAX)
        for fd in fds:
            os.close(fd)
        return raw

    def answer(self, rq):
        reply = p.Reply(tag=rq.tag)
        if rq.verb == p.Verb.FACTS:
            reply.facts.vmm_version, reply.facts.accel, reply.facts.cpu_model = b"none", b"tcg", b"none"
        elif rq.verb == p.Verb.LIST:
            later = sorted(i for i in self.cells if i > rq.id.decode())[:p.LIST_MAX]
            reply.count = len(later)
            self.looks += reply.count < p.LIST_MAX
            for at, i in enumerate(later):
                reply.cells[at] = p.Cell(id=i.encode(), state=p.State.RUNNING, slot=self.cells[i],
                                         installation=self.owners.get(i, "").encode())
        elif rq.verb == p.Verb.STOP and self.is_others(rq):
            reply.code = p.CODES.index("denied")
        elif rq.verb == p.Verb.STOP:
            self.stopped.append(rq.id.decode())
            if self.cells.pop(rq.id.decode(), None) is None:
                reply.code = p.CODES.index("not_found")
        else:
            reply.code, reply.msg = p.CODES.index("unavailable"), b"a stand-in"
        return reply

    def is_others(self, rq):
        owner = self.owners.get(rq.id.decode())
        return owner and owner != rq.installation.decode()
