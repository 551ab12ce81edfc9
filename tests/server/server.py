"""server.py - a whole Hotcell for a test: warden, egress, node and gateway, from nothing to nothing.

    @pytest.fixture(scope="module")
    def server():
        with Server(node={"pool": 2}) as s:
            yield s

    box = server.create()                       # the API's answer, as a dict
    server.run(box, "uname -r")                 # a command's standard output
    server.kill("node"); server.start("node")   # SIGKILL, and the next one

Each daemon runs under a user of its own, from HOTCELL_BUILD, with folders, control group and uids that no other
run shares. Leaving the block ends every sandbox and asks leaks.py whether anything is left.

Its template is that of another test if there is one (shared_template.py), or built at the start, which takes half a
minute or more without KVM: one Server per module.
"""

import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import time

import leaks
import refused_calls
from asking import ApiError, UnixConnection, ask, frames, output_of
from daemon import CALL_SECONDS, Daemon, free_port
from engine import disk_path, guest_settings, kernel_path
from internet import RESOLVER
from shared_template import SharedTemplate
from warden import build_dir, is_alive, is_sanitized, wait_for
from warden_fixtures import Watched

DAEMONS = ("warden", "egress", "node", "gateway")  # in the order in which they start
START_SECONDS = 30
TEMPLATE_SECONDS = 300  # a first boot, emulated, on a busy machine
USERS_AFTER = 2000  # of the 2048 uids that one test has, the VMs use the first
TEMPLATE = "base"


class Server:
    def __init__(self, vms_max=512, warden=None, egress=None, injector=None, node=None, gateway=None, internet=None,
                 own_template=False, disk=None, tls=None, images=None):
        """`internet`: an Internet (tests/internet), in which egress lives. Without one nobody is let out.
        `injector`: its settings, {} if need be; without them there is none.
        `images`: settings of the daemon that fetches images, {} if need be; without them there is none.
        `tls`: a domain; HTTPS is spoken for it, and `hotcell tls init` makes what is trusted for that.
        `own_template`: it is built here, whatever others have; `disk`: of another image than base's."""
        self.kernel, self.disk = kernel_path(), disk or disk_path()  # may take minutes, or fail
        self.template_seconds = TEMPLATE_SECONDS * (3 if disk else 1)  # more tools, more to ask and to write
        self.warden = Watched(vms_max=vms_max, **guest_settings(), **(warden or {}))
        self.base = self.warden.base
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.admin_socket = self.base / "gateway/admin.sock"
        self.domain = tls and f"{tls}:{free_port()}"  # as clients have it in E2B_DOMAIN
        self.tls_dir = self.base / "tls"
        self.names = (("warden", *(["injector"] if injector is not None else []), "egress",
                       *(["images"] if images is not None else []), "node", *(["signer"] if tls else []), "gateway"))
        self.users = {name: self.warden.uid_base + USERS_AFTER + n for n, name in enumerate(self.names)}
        self.data = self.base / "node"
        self.internet = internet
        self.make_folders()
        self.daemons = {"warden": self.warden,
                        "egress": self.daemon("egress", self.egress_settings(), egress),
                        "node": self.daemon("node", self.node_settings(), node),
                        "gateway": self.daemon("gateway", self.gateway_settings(), gateway)}
        if tls:
            self.daemons["signer"] = self.daemon("signer", self.signer_settings(), None)
        if images is not None:
            self.daemons["images"] = self.daemon("images", self.images_settings(), images)
        if injector is not None:
            self.daemons["injector"] = self.daemon("injector", self.injector_settings(), injector)
        self.team = self.key = None
        self.shared = self.shared_template(own_template)

    def shared_template(self, own):
        settings = self.daemons["node"].settings
        files = [settings[name] for name in ("kernel", "disk", "guest_ca", "extra_ca") if settings.get(name)]
        return SharedTemplate(self.warden, () if own else files, [settings["vcpus"], settings["memory_mib"]],
                              self.base / "injector" if "injector" in self.names else None)

    def daemon(self, name, settings, changes):
        where = ["unshare", "--net"] if name in ("injector", "node") else ()  # they need none, as in their units
        if self.internet and name == "egress":
            where = self.internet.inside
        return Daemon(name, self.base, {**settings, **(changes or {})}, where)

    def make_folders(self):
        for name in self.names[1:]:
            folder = self.base / name
            folder.mkdir()
            os.chown(folder, self.users[name], self.users[name])
            folder.chmod(0o755)
        if self.domain:
            self.make_certificate()
        self.warden.settings.update(client_uid=self.users["node"], client_gid=self.users["node"])

    def make_certificate(self):
        self.tls_dir.mkdir()
        self.tls_dir.chmod(0o755)
        subprocess.run([build_dir() / "src/cli/hotcell", "tls", "init", self.domain.split(":")[0], "--tls-dir",
                        self.tls_dir, "--owner", str(self.users["signer"])], check=True, capture_output=True)

    # --- the settings of each ---

    def egress_settings(self):
        where = {"network": "open", "resolvers": RESOLVER} if self.internet else {"network": "none"}
        return {"socket": self.base / "egress/egress.sock", "node_uid": self.users["node"],
                "user": self.users["egress"], **where}

    def injector_settings(self):
        return {"socket": self.base / "injector/injector.sock", "node_uid": self.users["node"],
                "user": self.users["injector"], "state_dir": self.base / "injector",
                "extra_ca": self.internet.certificate if self.internet else ""}

    def images_settings(self):
        return {"socket": self.base / "images/images.sock", "node_uid": self.users["node"],
                "user": self.users["images"],
                "data_dir": self.base / "images/data", "unpack": build_dir() / "src/unpack/hotcell-unpack",
                "agent": build_dir() / "src/agent/hotcell-agent", "reserve_mib": 0}

    def node_settings(self):
        images = self.base / "images/images.sock" if "images" in self.names else ""
        injector = self.base / "injector/injector.sock" if "injector" in self.names else ""
        return {"node_id": "a", "injector_socket": injector, "images_socket": images,
                "state_dir": self.warden.state, "data_dir": self.base / "node",
                "socket": self.base / "node/node.sock", "warden_socket": self.warden.socket_path,
                "egress_socket": self.base / "egress/egress.sock", "user": self.users["node"],
                "gateway_uid": self.users["gateway"], "gateway_gid": self.users["gateway"],
                "kernel": self.kernel, "disk": self.disk, "cgroup": self.warden.cgroup,
                "vcpus": 1, "memory_mib": 512, "pool": 0, "pool_each_max": 0, "slots": 2,
                "sandboxes_max": self.warden.uids - 16}

    def gateway_settings(self):
        return {"listen": f"127.0.0.1:{self.port}", "node_socket": self.base / "node/node.sock",
                "data_dir": self.base / "gateway", "admin_socket": self.admin_socket,
                "user": self.users["gateway"], **(self.tls_settings() if self.domain else {})}

    def tls_settings(self):
        port = self.domain.split(":")[1]
        at = ("127.0.0.1", "[::1]") if socket.has_ipv6 and can_bind("::1") else ("127.0.0.1",)
        return {"domain": self.domain, "tls_dir": self.tls_dir, "signer_socket": self.base / "signer/signer.sock",
                "listen_tls": ",".join(f"{address}:{port}" for address in at)}

    def signer_settings(self):
        return {"socket": self.base / "signer/signer.sock", "gateway_uid": self.users["gateway"],
                "user": self.users["signer"], "tls_dir": self.tls_dir}

    # --- the daemons ---

    @property
    def pids(self):
        return {name: d.pid for name, d in self.daemons.items() if d.process}

    def launch(self, name, **changes):
        self.daemons[name].launch(**changes)

    def start(self, *names, **changes):
        """Start one or more, and wait until each does its work. Settings may be changed."""
        names = names or self.names
        for name in [n for n in self.names if n in names]:
            self.launch(name, **changes)
            self.wait_started(name)

    def wait_started(self, name):
        ready = getattr(self, f"{name}_serves")
        wait_for(ready, f"{name} serves; its log: {self.daemons[name].log()[-2000:]}", START_SECONDS, 0.05)
        if name == "warden":
            self.warden.hang_up()

    def kill(self, *names, how=signal.SIGKILL):
        """All at the same instant, as far as that exists."""
        names = names or self.names
        for name in names:
            if self.daemons[name].process:
                self.daemons[name].process.send_signal(how)
        for name in names:
            self.daemons[name].kill()

    def restart(self, *names, **changes):
        self.kill(*names)
        self.start(*names, **changes)

    def warden_serves(self):
        return self.warden.serves()

    def listens(self, name, path, kind):
        self.daemons[name].check_alive()
        with socket.socket(socket.AF_UNIX, kind) as s:
            with contextlib.suppress(OSError):
                s.connect(str(path))
                return True
        return False

    def egress_serves(self):
        return self.listens("egress", self.base / "egress/egress.sock", socket.SOCK_SEQPACKET)

    def injector_serves(self):
        return self.listens("injector", self.base / "injector/injector.sock", socket.SOCK_SEQPACKET)

    def images_serves(self):
        return self.listens("images", self.base / "images/images.sock", socket.SOCK_SEQPACKET)

    def node_serves(self):
        return self.listens("node", self.base / "node/node.sock", socket.SOCK_SEQPACKET)

    def signer_serves(self):
        return self.listens("signer", self.base / "signer/signer.sock", socket.SOCK_SEQPACKET)

    def gateway_serves(self):
        self.daemons["gateway"].check_alive()
        with contextlib.suppress(OSError, http.client.HTTPException):
            return (self.api("GET", "/health", key=None).status in (204, 503) and  # 503: its template is still made
                    self.admin("GET", "/admin/teams").status == 200)
        return False

    def node_is_up(self):
        """Does node answer through the gateway, after it has looked at what it found?"""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.admin("GET", "/admin/sandboxes").status == 200
        return False

    def wait_up(self, seconds=START_SECONDS):
        wait_for(self.node_is_up, f"node answers; its log: {self.daemons['node'].log()[-2000:]}",
                 seconds, 0.05)

    def has_template(self):
        for daemon in self.daemons.values():
            if daemon is not self.warden:
                daemon.check_alive()
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = self.admin("GET", "/admin/templates")
            return answer.status == 200 and any(is_ready(t) for t in answer.json)
        return False

    def wait_template(self):
        wait_for(self.has_template, "the template is ready", self.template_seconds, 0.25)

    # --- asking ---

    def admin(self, method, target, body=None):
        return ask(UnixConnection(self.admin_socket, CALL_SECONDS), method, target, body)

    def api(self, method, target, body=None, key=True, headers=(), seconds=CALL_SECONDS):
        """`key`: True for the test's own, None for none, or another one."""
        headers = dict(headers)
        if key:
            headers["X-API-KEY"] = self.key if key is True else key
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        return ask(connection, method, target, body, headers)

    def must(self, method, target, body=None, **args):
        """The JSON of an answer that must be a success."""
        answer = self.api(method, target, body, **args)
        if answer.status >= 300:
            raise ApiError(answer.status, answer.raw.decode(errors="replace"))
        return answer.json

    def new_team(self, name):
        """A team and a key of it."""
        team = self.admin("POST", "/admin/teams", {"name": name})
        assert team.status == 201, team.raw
        key = self.admin("POST", f"/admin/teams/{team.json['teamID']}/keys", {"name": "test"})
        assert key.status == 201, key.raw
        return team.json["teamID"], key.json["key"]

    # --- sandboxes ---

    def create(self, timeout=3600, key=True, **more):
        return self.must("POST", "/sandboxes", {"templateID": TEMPLATE, "timeout": timeout, **more}, key=key)

    def delete(self, box, key=True):
        return self.api("DELETE", f"/sandboxes/{box['sandboxID']}", key=key).status

    def ids(self):
        """Of all sandboxes of all teams."""
        return {box["sandboxID"] for box in self.all_sandboxes()}

    def all_sandboxes(self):
        return self.all_pages("/admin/sandboxes")

    def all_pages(self, path):
        """Of a list of the admin door."""
        found, target = [], path
        while True:
            answer = self.admin("GET", target)
            assert answer.status == 200, answer.raw
            found += answer.json
            token = answer.headers.get("x-next-token")
            if not token:
                return found
            target = f"{path}?nextToken={token}"

    def agent(self, box, method, target, body=None, headers=(), seconds=CALL_SECONDS):
        """A request to the sandbox's agent, through the gateway."""
        headers = {"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": "49983", **dict(headers)}
        if box.get("envdAccessToken"):
            headers["X-Access-Token"] = box["envdAccessToken"]
        return self.api(method, target, body, key=None, headers=headers, seconds=seconds)

    def write(self, box, path, data):
        """A file, in one request."""
        answer = self.agent(box, "POST", f"/files?path={path}&username=user", data,
                            {"content-type": "application/octet-stream"})
        assert answer.status == 200, (answer.status, answer.raw)

    def read(self, box, path):
        answer = self.agent(box, "GET", f"/files?path={path}&username=user")
        assert answer.status == 200, (answer.status, answer.raw)
        return answer.raw

    def run(self, box, command, seconds=CALL_SECONDS, user="user", shell=("/bin/bash", "-l", "-c")):
        """The standard output of a shell command that must succeed."""
        body = {"process": {"cmd": shell[0], "args": [*shell[1:], command]}}
        data = json.dumps(body).encode()
        answer = self.agent(box, "POST", "/process.Process/Start",
                            bytes([0]) + len(data).to_bytes(4, "big") + data,
                            {"content-type": "application/connect+json",
                             "connect-protocol-version": "1",
                             "authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode()},
                            seconds)
        assert answer.status == 200, (answer.status, answer.raw)
        return output_of(answer.raw)

    def vm_pid(self, box):
        """Of its QEMU: the one process in its control group."""
        for group in self.warden.groups():
            if group.name == box["sandboxID"]:
                members = (group / "cgroup.procs").read_text().split()
                assert len(members) == 1, members
                return int(members[0])
        raise AssertionError(f"{box['sandboxID']} has no control group")

    # --- from nothing to nothing ---

    def __enter__(self):
        try:
            self.start("warden")
            self.shared.take()
            self.start(*self.names[1:])
            self.wait_template()
            self.shared.give(self.admin("GET", "/admin/templates").json[0]["templateID"])
            self.team, self.key = self.new_team("test")
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *exc):
        if exc[0]:
            self.print_logs()
            self.remove()
            return
        try:
            self.check_clean()
        except BaseException:
            self.print_logs()
            raise
        finally:
            self.remove()

    def check_clean(self):
        """End all sandboxes through the API, then all daemons; nothing may be left of either."""
        for name in self.names:
            if not self.daemons[name].process:
                self.start(name)
        self.wait_up()
        for sandbox in self.ids():
            status = self.admin("DELETE", f"/admin/sandboxes/{sandbox}").status
            assert status in (204, 404), f"kill of {sandbox}: {status}"
        wait_for(lambda: not self.ids(), "every sandbox is gone")
        wait_for(lambda: not self.lost_data(), "every folder has its row")
        for name in reversed(self.names[1:]):
            self.end(name)
        self.warden.kill()  # and with it the network slots that were ready
        self.warden.start()
        self.warden.stop_all()  # the pool's
        self.warden.check_clean()
        self.warden.kill()
        self.warden.check_clean()

    def end(self, name):
        """As a supervisor would: asked, and given time. What it said is looked at, too."""
        daemon = self.daemons[name]
        process, daemon.process = daemon.process, None
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"{name} does not end when asked") from None
        assert status == 0 or is_sanitized(), f"{name} ended with {status}: {daemon.log()[-3000:]}"
        for word in ("runtime error:", "ERROR: AddressSanitizer", "Assertion"):
            assert word not in daemon.log(), daemon.log()[-6000:]
        refused_calls.check(name, daemon.log())

    def leaks(self, seconds=30):
        """What is left on the host that belongs to no sandbox of the list.

        What is ready for the next sandbox (slots, the pool) is nobody's either and does not count; what is being
        made or removed is waited for."""
        until = time.monotonic() + seconds
        while True:
            keep = self.ids() | set(self.node_status().get("pooledIDs", ()))
            found = [leak for leak in self.warden.leaks(keep, grace=0)
                     if leak.kind in ("process", "cgroup", "file", "mount")] + self.lost_data()
            if not found or time.monotonic() > until:
                return found
            time.sleep(0.2)

    def lost_data(self):
        """The same of node's own folders, at this instant."""
        try:
            rows, pooled = self.all_sandboxes(), set(self.node_status().get("pooledIDs", ()))
            paused = {box["sandboxID"] for box in rows if box["state"] == "paused"}
            kept = {s["snapshotID"] for s in self.all_pages("/admin/snapshots")}
            return list(leaks.lost_data(self.data, {box["sandboxID"] for box in rows} - paused | pooled, paused, kept))
        except FileNotFoundError as gone:  # removed while it was looked at
            return [leaks.Leak("file", str(gone.filename), "it comes and goes")]

    def node_status(self):
        return self.admin("GET", "/admin/status").json["node"] or {}

    def print_logs(self):
        for name, daemon in self.daemons.items():
            print(f"--- {name}\n{daemon.log()[-6000:]}")

    def remove(self):
        self.shared.release()
        for name in reversed(self.names[1:]):
            self.daemons[name].kill()
        self.warden.kill()
        with contextlib.suppress(Exception):
            self.warden.start()
            self.warden.stop_all()
        self.warden.remove()


def can_bind(address):
    with socket.socket(socket.AF_INET6) as s, contextlib.suppress(OSError):
        s.bind((address, 0))
        return True
    return False


def is_ready(template):
    return template.get("buildStatus", template.get("state")) in ("ready", "uploaded", "built")


__all__ = ["ApiError", "CALL_SECONDS", "DAEMONS", "Server", "TEMPLATE", "ask", "frames",
           "is_alive", "wait_for"]
