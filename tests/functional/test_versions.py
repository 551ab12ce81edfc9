"""test_versions.py - daemons that speak different versions of their protocol: the client of the API is told why, and so
is the operator. The gateway, node and `hotcell` are real; the daemon of another version is played here.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

import pytest

import link_hello
import protocol
from lone_node import LoneNode
from node_client import value
from warden import build_dir, wait_for

OTHER = 4711  # a version that nobody speaks


class OtherNode:
    """It answers every hello with its own, and hangs up."""

    def __init__(self, path):
        self.heard = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            with caller:
                self.heard.append(link_hello.answer(caller, OTHER))

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Gateway:
    """One in a folder of its own, with a node of another version."""

    def __init__(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-versions-"))
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        settings = {"listen": f"127.0.0.1:{self.port}", "node_socket": self.base / "node.sock",
                    "data_dir": self.base / "data", "admin_socket": self.base / "admin.sock", "admin_uid": os.getuid()}
        (self.base / "gateway.conf").write_text("".join(f"{k} = {v}\n" for k, v in settings.items()))
        self.node = OtherNode(self.base / "node.sock")
        self.out = open(self.base / "log", "wb")
        self.process = subprocess.Popen([build_dir() / "src/gateway/hotcell-gateway", self.base / "gateway.conf"],
                                        stdin=subprocess.DEVNULL, stderr=self.out)
        wait_for(lambda: self.node.heard and (self.base / "admin.sock").exists(), "the gateway has asked node")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.node.close()
        self.out.close()
        shutil.rmtree(self.base)

    def hotcell(self, *arguments):
        # without a node doctor asks resolvers: where nobody is
        return subprocess.run(["unshare", "--net", build_dir() / "src/cli/hotcell", "--socket", self.base / "admin.sock", *arguments],
                              capture_output=True, text=True)

    def ask(self, path, key):
        rq = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"X-API-KEY": key})
        with pytest.raises(urllib.error.HTTPError) as e:
            urllib.request.urlopen(rq, timeout=30)
        return e.value.code, json.loads(e.value.read())


@pytest.fixture(scope="module")
def gateway():
    g = Gateway()
    yield g
    g.close()


def test_a_request_is_answered_with_the_reason(gateway):
    assert gateway.hotcell("teams", "add", "one").returncode == 0
    key = json.loads(gateway.hotcell("keys", "add", "one", "--json").stdout)["key"]
    status, answer = gateway.ask("/v2/sandboxes", key)
    version = value("NODE_VERSION_MAX")
    assert status == 503 and answer["reason"] == "version_mismatch", answer
    assert f"protocol {OTHER} to {OTHER}" in answer["message"] and f"protocol {version} to {version}" in answer["message"]
    assert "restart the older one" in answer["message"]


def test_the_operator_sees_it(gateway):
    wait_for(lambda: len(gateway.node.heard) > 2, "it was tried again")
    status = json.loads(gateway.hotcell("status", "--json").stdout)
    assert status["node"] is None and status["versions"]["node"] == "test"
    assert status["versions"]["gateway"] == gateway.node.heard[0][2]
    assert len(status["mismatches"]) == 1 and "restart the older one" in status["mismatches"][0]
    assert status["mismatches"][0] in gateway.hotcell("status").stdout
    found = {c["check"]: c for c in json.loads(gateway.hotcell("doctor", "--json").stdout)}["server"]
    assert found["verdict"] == "warn" and found["found"] == status["mismatches"][0]
    assert (gateway.base / "log").read_text().count("do not understand each other") == 1


def test_node_says_it_of_warden():
    with LoneNode() as node:
        node.warden.version = OTHER
        node.launch()
        node.client = wait_for(node.attempt, "node answers")
        status = wait_for(lambda: (s := node.client.status())["mismatches"] and s, "node has asked warden")
        assert not status["warden"] and status["versions"]["warden"] == "test"
        assert f"warden (build test, protocol {OTHER} to {OTHER})" in status["mismatches"][0]
        node.warden.version = protocol.VERSION  # as if it was replaced
        wait_for(lambda: node.client.status()["warden"], "they understand each other")
        assert node.client.status()["mismatches"] == []
