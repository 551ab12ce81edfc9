"""lone_gateway.py - a real gateway, confined as in production, before a played node (tests/node/played_node.py).

    with LoneGateway(address_connections_max=10) as gateway:
        box = gateway.node.add("i1", gateway.team)
        server = gateway.node.listen(8080)
        gateway.ask("GET", "/", headers={"Host": gateway.host(box, 8080)})

A second or less from nothing to a first answer; no guest, no QEMU.
"""

import contextlib
import http.client
import os
import pathlib
import shutil
import tempfile

from asking import UnixConnection, ask
from daemon import Daemon, free_port
from played_node import PlayedNode
from warden import is_sanitized, wait_for

GATEWAY_UID = 64322  # nobody's
START_SECONDS = 30
DOMAIN = "hotcell.test"


class LoneGateway:
    def __init__(self, **settings):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-gateway-", dir=os.environ.get("HOTCELL_TEST_DIR")))
        self.base.chmod(0o755)
        (self.base / "gateway").mkdir()
        os.chown(self.base / "gateway", GATEWAY_UID, GATEWAY_UID)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.admin_socket = self.base / "gateway/admin.sock"
        self.node = PlayedNode(self.base / "node.sock")
        self.daemon = Daemon("gateway", self.base, {
            "listen": f"127.0.0.1:{self.port}", "node_socket": self.node.path, "data_dir": self.base / "gateway",
            "admin_socket": self.admin_socket, "user": GATEWAY_UID, "domain": DOMAIN, **settings})
        self.team = self.key = None

    def host(self, box, port):
        return f"{port}-{box['id']}.{DOMAIN}"

    def __enter__(self):
        try:
            self.node.__enter__()
            self.start()
            self.team, self.key = self.new_team("test")
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *exc):
        if exc[0]:
            print(self.daemon.log()[-6000:])
        try:
            for word in ("runtime error:", "ERROR: AddressSanitizer", "Assertion"):
                assert exc[0] or word not in self.daemon.log(), self.daemon.log()[-6000:]
        finally:
            self.remove()

    def remove(self):
        self.daemon.kill()
        with contextlib.suppress(Exception):
            self.node.__exit__()
        shutil.rmtree(self.base, ignore_errors=True)

    def start(self, **changes):
        self.daemon.launch(**changes)
        wait_for(self.serves, f"the gateway serves; its log: {self.daemon.log()[-2000:]}",
                 START_SECONDS * (3 if is_sanitized() else 1), 0.02)

    def serves(self):
        self.daemon.check_alive()
        with contextlib.suppress(OSError, http.client.HTTPException):
            return (self.ask("GET", "/health", key=None).status in (204, 503) and  # a node without a template
                    self.admin("GET", "/admin/status").json["node"] is not None)
        return False

    def admin(self, method, target, body=None):
        return ask(UnixConnection(self.admin_socket, START_SECONDS), method, target, body)

    def ask(self, method, target, body=None, key=True, headers=(), seconds=START_SECONDS):
        headers = dict(headers)
        if key:
            headers["X-API-KEY"] = self.key if key is True else key
        return ask(http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds), method, target, body, headers)

    def new_team(self, name):
        team = self.admin("POST", "/admin/teams", {"name": name})
        assert team.status == 201, team.raw
        key = self.admin("POST", f"/admin/teams/{team.json['teamID']}/keys", {"name": "test"})
        assert key.status == 201, key.raw
        return team.json["teamID"], key.json["key"]
