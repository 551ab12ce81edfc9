"""test_dev.py - `tools/dev` as the README has it: up, use, up again, down, and nothing is left."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import leaks
from server import free_port, output_of, wait_for
from warden import build_dir, cgroup_trees, is_alive

TOP = pathlib.Path(__file__).resolve().parents[2]
CGROUP, UID_BASE, VMS_MAX = "hotcell-dev", 786432, 1024
SECONDS = 500


class Dev:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-dev-", dir=os.environ.get("HOTCELL_TEST_DIR")))
        self.listen, self.tls_port = f"127.0.0.1:{free_port()}", free_port()
        self.before = leaks.baseline()

    def __call__(self, word, check=True):
        """Its standard output; what it says to people is shown when a test fails."""
        r = subprocess.run([TOP / "tools/dev", word], capture_output=True, text=True, timeout=SECONDS,
                           env={**os.environ, "HOTCELL_DEV": str(self.folder), "HOTCELL_DEV_LISTEN": self.listen,
                                "HOTCELL_DEV_LISTEN_TLS": f"127.0.0.1:{self.tls_port}",
                                "HOTCELL_BUILD": str(build_dir())})
        print(r.stderr)
        assert not check or r.returncode == 0, r.stderr
        return r.stdout

    def hotcell(self, *words):
        command = [build_dir() / "src/cli/hotcell", "--socket", self.folder / "gateway/admin.sock", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def pid(self, name):
        return int((self.folder / f"{name}.pid").read_text())

    def left(self):
        scope = leaks.Scope(self.folder / "state", self.folder / "run", CGROUP, UID_BASE, VMS_MAX)
        return leaks.find(scope, self.before, grace=leaks.GRACE_SECONDS)


@pytest.fixture(scope="module")
def dev():
    if any((tree / CGROUP).exists() for tree in cgroup_trees()):
        pytest.skip("a Hotcell of tools/dev runs on this machine already")
    d = Dev()
    try:
        yield d
    finally:
        d("down", check=False)
        shutil.rmtree(d.folder, ignore_errors=True)


def variables(text):
    """`export NAME=VALUE` lines, and nothing else."""
    lines = text.splitlines()
    assert lines and all(re.match("export [A-Z][A-Z0-9_]*=.", line) for line in lines), text
    return dict(line.removeprefix("export ").split("=", 1) for line in lines)


def api_url(given):
    """As the SDKs make it."""
    return given.get("E2B_API_URL") or f"https://api.{given['E2B_DOMAIN']}"


def agent_url(given, box):
    return given.get("E2B_SANDBOX_URL") or f"https://49983-{box['sandboxID']}.{box['domain'] or given['E2B_DOMAIN']}"


def curl(given, *words):
    """It finds names below localhost by itself."""
    trusted = ["--cacert", given["SSL_CERT_FILE"]] if "SSL_CERT_FILE" in given else []
    return subprocess.run(["curl", "-sS", "--fail-with-body", *trusted, *words], capture_output=True, timeout=120)


def test_up_prints_what_a_client_needs(dev):
    given = variables(dev("up"))
    for name in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):  # and what the system trusts stays trusted
        with open(given[name]) as ours, open("/etc/ssl/certs/ca-certificates.crt") as systems:
            assert ours.read().startswith(systems.read()), name
    made = curl(given, "-H", f"X-API-KEY: {given['E2B_API_KEY']}", "-H", "content-type: application/json",
                "-d", '{"templateID":"base","timeout":600}', f"{api_url(given)}/sandboxes")
    assert made.returncode == 0, made.stdout
    box = json.loads(made.stdout)
    dev.box, dev.agent, dev.given = box["sandboxID"], agent_url(given, box), given
    # names are this machine's, with the port that the client used
    assert box["domain"].split(":")[0].endswith("localhost") and box["domain"].endswith(api_url(given).rpartition(":")[2])


def test_a_command_runs_in_it(dev):
    body = json.dumps({"process": {"cmd": "/bin/echo", "args": ["from inside"]}}).encode()
    frame = dev.folder / "frame"
    frame.write_bytes(bytes([0]) + len(body).to_bytes(4, "big") + body)
    said = curl(dev.given, "-H", f"E2b-Sandbox-Id: {dev.box}", "-H", "E2b-Sandbox-Port: 49983",
                "-H", "content-type: application/connect+json", "-H", "connect-protocol-version: 1",
                "-H", "authorization: Basic dXNlcjo=", "--data-binary", f"@{frame}",
                f"{dev.agent}/process.Process/Start")
    assert said.returncode == 0, said.stdout
    assert output_of(said.stdout) == "from inside"


def test_the_operator_sees_it_and_nothing_is_left_over(dev):
    assert dev.box in dev.hotcell("ps").stdout
    r = dev.hotcell("doctor", "--leaks", "--state", str(dev.folder / "state"), "--cgroup", CGROUP,
                    "--data", str(dev.folder / "node"))
    assert r.returncode == 0, r.stdout + r.stderr


def test_up_again_starts_only_what_is_missing(dev):
    for name in ("node", "gateway"):
        os.kill(dev.pid(name), signal.SIGKILL)
    wait_for(lambda: not is_alive(dev.pid("node")) and not is_alive(dev.pid("gateway")), "they are dead")
    warden = dev.pid("warden")
    assert variables(dev("up")) == dev.given
    assert dev.pid("warden") == warden
    wait_for(lambda: dev.box in dev.hotcell("ps").stdout, "the sandbox is still there", 30, 0.2)


def test_down_leaves_nothing(dev):
    pids = [dev.pid(name) for name in ("warden", "egress", "node", "gateway")]
    dev("down")
    assert not dev.folder.exists()
    assert not any(is_alive(pid) for pid in pids)
    assert dev.left() == []
    assert not any((tree / CGROUP).exists() for tree in cgroup_trees())
