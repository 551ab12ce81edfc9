"""played_systemd.py - a host that Hotcell is installed on, for `hotcell setup`: systemd is played, the gateway and the signer are
the real ones, node is played (tests/node/played_node.py).

    with InstalledHost() as host:
        r = host.setup("--yes", "--team", "acme")       # subprocess.CompletedProcess
        host.calls()                                    # what systemctl was told
        host.say("hotcell-warden.service", active="failed")

What `systemctl start hotcell.target` would start is started, with the configuration files as they are then.
"""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading

from asking import UnixConnection, ask
from daemon import free_port
from lone_gateway import GATEWAY_UID
from lone_signer import SIGNER_UID
from played_node import PlayedNode
from warden import build_dir, is_sanitized, wait_for

SECONDS = 60 * (3 if is_sanitized() else 1)
UNIT = {"active": "active", "sub": "running", "result": "success", "restarts": 0, "looked": 5, "condition": "yes"}
SHOWN = {"active": "ActiveState", "sub": "SubState", "result": "Result", "restarts": "NRestarts",
         "looked": "ConditionTimestampMonotonic", "condition": "ConditionResult"}
PROGRAMS = {
    "systemctl": """#!/bin/sh
cd "$PLAYED" && echo "$*" >>calls
for last; do :; done
case $1 in
is-enabled) test -e enabled ;;
enable) ! test -e refused || { cat refused; exit 1; }; : >enabled ;;
start) : >"started-$last" ;;
show)
    cat "unit-$last" 2>/dev/null || cat unit
    ! test -e "dies-$last" || { echo again >>"dies-$last"; echo "NRestarts=$(wc -l <"dies-$last")"; } ;;
esac
""",
    "journalctl": "#!/bin/sh\ncat \"$PLAYED/journal\"\n",
    "getent": "#!/bin/sh\n! test -e \"$PLAYED/no-names\" || exit 2\nat=127.0.0.1; ! test -e \"$PLAYED/wrong-names\" || at=93.184.216.34\n"
              "echo \"$at       STREAM api.hotcell.localhost\"\n",
    # until the next gateway serves
    "hotcell-gateway-replace": """#!/bin/sh
cd "$PLAYED" && echo replace >>calls && : >replace
n=0; while test -e replace && test $n -lt 600; do n=$((n + 1)); sleep 0.1; done
""",
}
GATEWAY_CONF = """# hotcell-gateway: all settings. A line that begins with # is a comment, or shows a default.

# where clients connect
listen = 127.0.0.1:{port}

# where they connect by TLS
#listen_tls =

# what names of sandboxes end in
#domain =

# the last one
data_dir = {base}/gateway
admin_socket = {base}/gateway/admin.sock
node_socket = {base}/node.sock
user = {gateway_uid}
tls_dir = {base}/etc/tls
signer_socket = {base}/signer/signer.sock
"""


class Node(PlayedNode):
    """`base` is what `told` says, one after the other; the last one stays."""

    def __init__(self, path):
        super().__init__(path)
        self.told = [{"buildStatus": "ready"}]
        self.templates, self.on_list, self.logs, self.at_the_end = [], iter([]), iter([]), lambda: None
        self.warden = True

    def serve_status(self, caller, rq, _):
        self.reply(caller, rq, text=json.dumps({"sandboxes": 0, "warden": self.warden, "egress": True}).encode())

    def serve_templates(self, caller, rq, _):
        now = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        self.reply(caller, rq, text=json.dumps([{"templateID": "base", "alias": "base", **now}]).encode())

    def serve_template_list(self, caller, rq, _):
        """What teams have, one answer after the other; the last one stays."""
        if rq["after_ns"]:  # the page behind the first one
            self.reply(caller, rq, text=b"[]")
            return
        after = next(self.on_list, None)
        if after is None:
            self.at_the_end()
        else:
            self.templates = after
        self.reply(caller, rq, text=json.dumps(self.templates).encode())

    def serve_build_status(self, caller, rq, _):
        said = [{"timestamp": "2026-01-02T03:04:05Z", "level": "info", "message": m} for m in [next(self.logs, None)] if m]
        self.reply(caller, rq, text=json.dumps({"buildID": rq["id"], "status": "building", "logEntries": said}).encode())


class InstalledHost:
    def __init__(self):
        # where the daemons' users may go, which is not so of pytest's own folders
        base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-setup-", dir=os.environ.get("HOTCELL_TEST_DIR")))
        self.base, self.etc, self.played = base, base / "etc", base / "played"
        self.port, self.tls_port = free_port(), free_port()
        self.domain = f"hotcell.localhost:{self.tls_port}"
        self.node = Node(base / "node.sock")
        self.daemons, self.over = {}, threading.Event()
        self.watcher = threading.Thread(target=self.watch)
        base.chmod(0o755)
        for folder in (self.etc, self.played, base / "bin", base / "gateway", base / "signer"):
            folder.mkdir()
        os.chown(base / "gateway", GATEWAY_UID, GATEWAY_UID)
        self.conf("gateway", GATEWAY_CONF.format(port=self.port, base=base, gateway_uid=GATEWAY_UID))
        self.conf("node", "user = hotcell-node\n")
        self.conf("warden", "# without KVM\n#allow_emulation = no\n")
        self.conf("signer", f"socket = {base}/signer/signer.sock\ngateway_uid = {GATEWAY_UID}\nuser = {SIGNER_UID}\n"
                            f"tls_dir = {self.etc}/tls\n")
        for name, text in PROGRAMS.items():
            (base / "bin" / name).write_text(text)
            (base / "bin" / name).chmod(0o755)
        self.say("")
        for template in ("code-interpreter-v1", "browser", "desktop"):
            self.say(f"hotcell-template@{template}.service", active="inactive", condition="no")
        self.say("hotcell-https.socket", active="inactive")
        (self.played / "journal").write_text("what it said\n")

    def conf(self, name, text=None):
        path = self.etc / f"{name}.conf"
        if text is not None:
            path.write_text(text)
        return path.read_text()

    # --- systemd ---

    def say(self, unit, **how):
        """What `systemctl show` says of it; "": of all that have nothing of their own."""
        path = self.played / ("unit-" + unit if unit else "unit")
        draft = path.with_suffix(".new")
        draft.write_text("".join(f"{SHOWN[k]}={v}\n" for k, v in {**UNIT, **how}.items()))
        draft.rename(path)

    def dies(self, unit):
        """Once more between any two looks."""
        (self.played / f"dies-{unit}").touch()

    def calls(self):
        path = self.played / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def changes(self):
        return [c for c in self.calls() if c.split()[0] not in ("show", "is-enabled")]

    def watch(self):
        while not self.over.wait(0.05):
            if (self.played / "started-hotcell.target").exists() and not self.daemons:
                self.launch("signer")
                self.launch("gateway")
            if (self.played / "replace").exists():
                self.stop("gateway")
                self.launch("gateway")
                with contextlib.suppress(AssertionError):
                    wait_for(self.answers, "the next gateway answers", SECONDS, 0.05)
                (self.played / "replace").unlink()

    # --- daemons ---

    def launch(self, name):
        with open(self.base / f"{name}.log", "ab") as log:
            self.daemons[name] = subprocess.Popen(
                [build_dir() / f"src/{name}/hotcell-{name}", self.etc / f"{name}.conf"], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)

    def stop(self, name):
        if daemon := self.daemons.pop(name, None):
            daemon.send_signal(signal.SIGKILL)
            daemon.wait()

    def answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.admin("GET", "/admin/status").status == 200
        return False

    def admin(self, method, target, body=None):
        return ask(UnixConnection(self.base / "gateway/admin.sock", SECONDS), method, target, body)

    def teams(self):
        return {t["name"]: t["teamID"] for t in self.admin("GET", "/admin/teams").json}

    def keys(self):
        return [k["id"] for team in self.teams().values() for k in self.admin("GET", f"/admin/teams/{team}/keys").json]

    def __enter__(self):
        self.node.__enter__()
        self.watcher.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.watcher.join()
        for name in list(self.daemons):
            self.stop(name)
        self.node.__exit__(*exc)
        if exc[0]:
            for log in self.base.glob("*.log"):
                print(log, log.read_text(errors="replace")[-2000:])
        shutil.rmtree(self.base, ignore_errors=True)

    # --- the command ---

    def env(self, **more):
        return {**os.environ, "PATH": f"{self.base}/bin:{os.environ['PATH']}", "PLAYED": str(self.played),
                "HOTCELL_ADMIN_SOCKET": f"{self.base}/gateway/admin.sock", **more}

    def command(self, *words):
        return [str(build_dir() / "src/cli/hotcell"), "setup", "--conf", str(self.etc), *map(str, words)]

    def setup(self, *words, **more):
        return subprocess.run(self.command(*words), env=self.env(**more), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=SECONDS * 3)

    def files(self):
        """Bytes, owner, mode, inode and times of all that is configured."""
        return {str(p.relative_to(self.etc)): (p.read_bytes() if p.is_file() else b"", s.st_uid, s.st_mode, s.st_ino, s.st_mtime_ns)
                for p in sorted([self.etc, *self.etc.rglob("*")]) for s in [p.lstat()]}


def exports(text):
    """The variables that a shell has after it read this."""
    r = subprocess.run(["env", "-i", "sh", "-euc", 'eval "$1"; env', "sh", text], capture_output=True, text=True, timeout=SECONDS)
    assert r.returncode == 0, r.stderr
    return dict(line.split("=", 1) for line in r.stdout.splitlines() if line.split("=")[0] not in ("PWD", "SHLVL", "_", "OLDPWD"))


def no_kvm():
    r = subprocess.run([build_dir() / "src/cli/hotcell", "doctor", "--before", "--json"], capture_output=True, text=True, timeout=SECONDS)
    return next(c["verdict"] for c in json.loads(r.stdout) if c["check"] == "accelerator") != "ok"
