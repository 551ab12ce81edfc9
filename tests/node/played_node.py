"""played_node.py - a node without sandboxes, for tests of the gateway: their table is a dict, their ports are the test's.

    with PlayedNode(folder / "node.sock") as node:
        box = node.add("i1", team)          # one that runs; the gateway finds it
        server = node.listen(8080)          # a listening socket in the network of all sandboxes
        node.command("python3", "-m", "http.server", "8080")   # or words that run a program in there
        node.verbs                          # what the gateway asked, in order

A create answers with a new row, a kill ends it. Whatever else is asked is refused.
"""

import contextlib
import ctypes
import itertools
import json
import os
import socket
import subprocess
import threading
import time

import link_hello
from node_client import LAYOUT, pack, value

GUEST_ADDRESS = "169.254.77.2"  # of every sandbox: src/gateway/relay/guest_cache.h
CLONE_NEWNET = 0x40000000
NUMBERS = itertools.count()
VERBS = {row[1]: name.removeprefix("NODE_") for name, row in LAYOUT.rows.items() if row[2] == "node_verb"}
LIBC = ctypes.CDLL(None, use_errno=True)


def asked(raw):
    rq = LAYOUT.structs["node_request"].from_buffer_copy(raw)
    numbers_and_texts = {name: getattr(rq, name) for name in LAYOUT.fields("node_request")}
    return {name: v.decode() if isinstance(v, bytes) else v for name, v in numbers_and_texts.items()}


class PlayedNode:
    def __init__(self, path):
        self.path = path
        self.namespace = f"hotcell-played-{os.getpid()}-{next(NUMBERS)}"
        self.sandboxes, self.texts, self.verbs = {}, {}, []
        self.unready, self.figures = None, b""  # {"reason":, "message":}; what NODE_FIGURES says
        self.listener, self.callers, self.lock = None, [], threading.Lock()

    # --- the network of its sandboxes ---

    def command(self, *words):
        return ["ip", "netns", "exec", self.namespace, *map(str, words)]

    def inside(self, make):
        """What `make` returns when it is called by a thread in that network."""
        made = []

        def work():
            with open(f"/run/netns/{self.namespace}") as where:
                if LIBC.setns(where.fileno(), CLONE_NEWNET) != 0:
                    made.append(OSError(ctypes.get_errno(), "setns"))
                    return
            try:
                made.append(make())
            except OSError as e:
                made.append(e)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]

    def listen(self, port):
        return self.inside(lambda: socket.create_server((GUEST_ADDRESS, port), backlog=4096))

    def __enter__(self):
        subprocess.run(["ip", "netns", "add", self.namespace], check=True)
        subprocess.run(self.command("ip", "address", "add", f"{GUEST_ADDRESS}/32", "dev", "lo"), check=True)
        subprocess.run(self.command("ip", "link", "set", "lo", "up"), check=True)
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()
        subprocess.run(["ip", "netns", "delete", self.namespace], check=False)

    # --- its door ---

    def start(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.path))
        os.chmod(self.path, 0o666)
        self.listener.listen()
        threading.Thread(target=self.serve, args=[self.listener], daemon=True).start()

    def stop(self):
        for s in (self.listener, *self.callers):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()
        self.callers.clear()

    def serve(self, listener):
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            self.callers.append(caller)
            threading.Thread(target=self.serve_one, args=[caller], daemon=True).start()

    def serve_one(self, caller):
        size = value("node_request")
        with contextlib.suppress(OSError):
            link_hello.answer(caller, value("NODE_VERSION_MAX"))
            while raw := caller.recv(value("NODE_MESSAGE_MAX")):
                self.answer(caller, asked(raw[:size]), raw[size:])

    def reply(self, caller, rq, fds=(), text=b"", code="none", sandbox=None, **values):
        if code != "none":
            values["code"] = LAYOUT.errors.index(code)
        if sandbox:
            values["sandbox"] = {k: v.encode() if isinstance(v, str) else v for k, v in sandbox.items()}
        head = pack("node_reply", tag=rq["tag"], text_len=len(text), **values)
        with self.lock:
            socket.send_fds(caller, [head + text], fds)

    def answer(self, caller, rq, text):
        verb = VERBS[rq["verb"]]
        self.verbs.append(verb)
        serve = getattr(self, "serve_" + verb.lower(), None)
        if serve:
            serve(caller, rq, text)
        else:
            self.reply(caller, rq, code="invalid", msg=f"a played node does not know {verb}")

    # --- its sandboxes ---

    def add(self, sandbox_id, team, text=None, **more):
        now = time.time_ns()
        row = {"id": sandbox_id, "team": team, "template_id": "base-0123456789ab", "alias": "base",
               "started_ns": now, "end_ns": now + 3600 * 10**9, "vcpus": 1, "memory_mib": 512, "disk_mib": 1024,
               "state": value("NODE_RUNNING"), "generation": 1, **more}
        self.sandboxes[sandbox_id] = row
        self.texts[sandbox_id] = json.dumps(text or {}).encode()
        return row

    def find(self, caller, rq):
        row = self.sandboxes.get(rq["id"])
        if row and rq["team"] in ("", row["team"]):
            return row
        self.reply(caller, rq, code="not_found", msg="not here")
        return None

    def serve_create(self, caller, rq, text):
        row = self.add(f"iplayed{next(NUMBERS):013d}", rq["team"], json.loads(text or b"{}"))
        self.reply(caller, rq, sandbox=row, text=self.texts[row["id"]])

    def serve_get(self, caller, rq, _):
        if row := self.find(caller, rq):
            self.reply(caller, rq, sandbox=row, text=self.texts[row["id"]])

    serve_connect = serve_timeout = serve_get

    def serve_kill(self, caller, rq, _):
        if row := self.find(caller, rq):
            del self.sandboxes[row["id"]]
            self.reply(caller, rq)

    def serve_list(self, caller, rq, _):
        rows = [row for row in self.sandboxes.values() if rq["team"] in ("", row["team"]) and
                (row["started_ns"], row["id"]) > (rq["after_ns"], rq["id"])]
        rows = sorted(rows, key=lambda row: (row["started_ns"], row["id"]))[:20]
        entries = b"".join(pack("node_entry", sandbox={k: v.encode() if isinstance(v, str) else v
                                                       for k, v in row.items()},
                                text_len=len(self.texts[row["id"]])) + self.texts[row["id"]] for row in rows)
        self.reply(caller, rq, count=len(rows), text=entries)

    def serve_sockets(self, caller, rq, _):
        if row := self.find(caller, rq):
            count = min(rq["count"], value("NODE_FDS_MAX"))
            made = self.inside(lambda: [socket.socket() for _ in range(count)])
            self.reply(caller, rq, sandbox=row, count=count, fds=[s.fileno() for s in made],
                       text=self.texts[row["id"]] if row.get("flags", 0) & value("NODE_INGRESS") else b"")
            for s in made:
                s.close()

    def serve_status(self, caller, rq, _):
        self.reply(caller, rq, text=json.dumps({"sandboxes": len(self.sandboxes)}).encode())

    def serve_ready(self, caller, rq, _):
        self.reply(caller, rq, text=json.dumps(self.unready).encode() if self.unready else b"")

    def serve_figures(self, caller, rq, _):
        self.reply(caller, rq, text=self.figures)

    def serve_templates(self, caller, rq, _):
        self.reply(caller, rq, text=b"[]")

    def serve_give_up(self, caller, rq, _):
        self.reply(caller, rq)
