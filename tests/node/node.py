"""node.py - a hotcell-node of its own on top of a warden of its own, from nothing to nothing.

    with NodeHost(pool=2) as host:
        box = host.client.create("team")
        host.kill_node()      # SIGKILL; sandboxes run on
        host.start_node()     # the next node adopts them
"""

import base64
import contextlib
import http.client
import json
import signal
import sqlite3
import subprocess

import refused_calls
from engine import disk_path, guest_settings, kernel_path
from node_client import Gone, NodeClient, NodeError
from shared_template import SharedTemplate
from warden import build_dir, wait_for
from warden_fixtures import Watched

AGENT = ("169.254.77.2", 49983)
READY_SECONDS = 300  # a template is built meanwhile
STOP_SECONDS = 30
NODE_UID, EGRESS_UID = 64321, 64322  # nobody's


def ask(sock, method, path, token=None, body=b"", seconds=60):
    """One request over an unconnected socket of a sandbox: status, body."""
    head = f"{method} {path} HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n"
    if token:
        head += f"x-access-token: {token}\r\n"
    if body or method == "POST":
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    with sock:
        sock.settimeout(seconds)
        sock.connect(AGENT)
        sock.sendall(head.encode() + b"\r\n" + body)
        raw = b""
        while piece := sock.recv(65536):
            raw += piece
    top, _, rest = raw.partition(b"\r\n\r\n")
    return int(top.split()[1]), rest


def run(sock, command, token=None, user="root", seconds=120):
    """A command of bash in a sandbox, over an unconnected socket of it: what it wrote to its stdout."""
    message = json.dumps({"process": {"cmd": "/bin/bash", "args": ["-c", command]}}).encode()
    fields = {"content-type": "application/connect+json", "connect-protocol-version": "1",
              "authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode()}
    if token:
        fields["x-access-token"] = token
    sock.settimeout(seconds)
    sock.connect(AGENT)
    connection = http.client.HTTPConnection("agent")
    connection.sock = sock
    try:
        connection.request("POST", "/process.Process/Start", bytes([0]) + len(message).to_bytes(4, "big") + message,
                           fields)
        answer = connection.getresponse()
        raw = answer.read()
        assert answer.status == 200, (answer.status, raw)
    finally:
        connection.close()
    out, end = b"", None
    while raw:
        size = int.from_bytes(raw[1:5], "big")
        event = json.loads(raw[5:5 + size] or b"{}").get("event", {})
        out += base64.b64decode(event.get("data", {}).get("stdout", ""))
        end = event.get("end", end)
        raw = raw[5 + size:]
    assert end and end.get("exitCode", 0) == 0, (end, out)
    return out.decode().strip()


class NodeHost:
    def __init__(self, egress=None, egress_settings=None, egress_within=(), own_template=False, **settings):
        """`own_template`: it is built here, whatever other tests have (shared_template.py)."""
        self.warden = Watched(vms_max=512, client_uid=NODE_UID, client_gid=NODE_UID, **guest_settings())
        self.base = self.warden.base
        self.socket_path = self.base / "node.sock"
        self.process, self.client = None, None
        self.egress = (build_dir() / "src/egress/hotcell-egress").exists() if egress is None else egress
        self.egress_process, self.egress_settings = None, egress_settings or {}
        self.egress_within = egress_within  # a command that runs another, in a network of its own
        self.settings = {"state_dir": self.warden.state, "data_dir": self.base / "node",
                         "socket": self.socket_path, "warden_socket": self.warden.socket_path,
                         "egress_socket": self.egress_path if self.egress else "",
                         "user": NODE_UID, "kernel": kernel_path(), "disk": disk_path(), "starts_max": 2,
                         "memory_reserve_mib": 64, "pool_each_max": 0, "sandboxes_max": 256, "cgroup": self.warden.cgroup}
        self.settings.update(settings)
        own_template = own_template or self.settings.get("injector_socket")  # its authority is a part of it
        files = [self.settings[name] for name in ("kernel", "disk", "guest_ca", "extra_ca") if self.settings.get(name)]
        self.shared = SharedTemplate(self.warden, () if own_template else files,
                                     [self.settings.get("vcpus", 1), self.settings.get("memory_mib", 512)])

    @property
    def egress_path(self):
        return self.base / "egress.sock"

    def __enter__(self):
        try:
            self.warden.start()
            self.shared.take()
            self.start_egress()
            self.start_node()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *exc):
        try:
            if not exc[0]:
                self.stop_node()
                assert not self.warden.list(), "a stopped node leaves only what runs"
                self.end_egress()
                self.check_calls()
                self.warden.check_clean()
        finally:
            self.remove()

    def remove(self):
        self.remove_processes()
        self.warden.remove()

    def remove_processes(self):
        self.shared.release()
        self.kill_node()
        self.end_egress()
        with contextlib.suppress(Exception):
            self.warden.stop_all()

    # --- the daemons ---

    def path_of(self, program):
        return build_dir() / "src" / program / f"hotcell-{program}"

    def spawn(self, program, settings, log, within=()):
        config = self.base / f"{program}.conf"
        config.write_text("".join(f"{k} = {v}\n" for k, v in settings.items()))
        path = self.path_of(program)
        with open(log, "ab") as out:
            return subprocess.Popen([*within, path, config], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    env=refused_calls.environment(program in ("egress", "injector")))

    def start_egress(self):
        if self.egress:
            self.egress_process = self.spawn(
                "egress", {"socket": self.egress_path, "node_uid": NODE_UID, "user": EGRESS_UID,
                           **self.egress_settings},
                self.base / "egress.log", self.egress_within)

    def end_egress(self):
        if self.egress_process:
            self.egress_process.kill()
            self.egress_process.wait()
            self.egress_process = None

    def check_calls(self):
        if self.egress:
            refused_calls.check("egress", (self.base / "egress.log").read_text())

    def start_node(self, **settings):
        self.process = self.spawn("node", {**self.settings, **settings}, self.log_path, ["unshare", "--net"])  # as its unit
        self.connect()

    @property
    def log_path(self):
        return self.base / "node.log"

    def log(self):
        return self.log_path.read_text()

    def connect(self, seconds=30):
        def attempt():
            assert self.process.poll() is None, f"node ended: {self.log()[-2000:]}"
            with contextlib.suppress(OSError, Gone):
                return NodeClient(self.socket_path)

        self.client = wait_for(attempt, "node listens", seconds)

    def stop_node(self):
        """As a supervisor would: what is nobody's is ended, what runs runs on."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(STOP_SECONDS) == 0, self.log()[-2000:]
        self.process = None
        self.client.close()

    def kill_node(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
        if self.client:
            self.client.close()
            self.client = None

    def wait_template(self, seconds=READY_SECONDS):
        def ready():
            (base,) = self.client.templates()
            assert base["buildStatus"] != "error", base
            return base["buildStatus"] == "ready"

        wait_for(ready, "the template is ready", seconds, every=0.2)
        self.shared.give(self.client.templates()[0]["templateID"])

    def wait_status(self, name, wanted, seconds=60):
        wait_for(lambda: self.client.status()[name] == wanted, f"{name} is {wanted}", seconds, every=0.05)

    # --- what tests do often ---

    def agent(self, box, method, path, **args):
        (sock,) = self.client.sockets(box.id)
        return ask(sock, method, path, token=box.access_token, **args)

    def alive(self, box):
        status, _ = self.agent(box, "GET", "/health")
        return status == 204

    def run(self, box, command, **args):
        (sock,) = self.client.sockets(box.id)
        return run(sock, command, token=box.access_token, **args)

    def folders(self):
        """What is in the folder of each sandbox."""
        at = self.base / "node/sandboxes"
        return {f.name: sorted(x.name for x in f.iterdir()) for f in at.iterdir()}

    def rows(self):
        """(id, state) of the journal's rows, read beside node."""
        path = f"file:{self.base / 'node/journal.db'}?mode=ro"
        with contextlib.closing(sqlite3.connect(path, uri=True)) as db:
            return list(db.execute("select id, state from sandbox"))


__all__ = ["Gone", "NodeError", "NodeHost", "ask", "wait_for"]
