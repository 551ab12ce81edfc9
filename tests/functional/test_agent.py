"""The guest agent in its server role, on the host, over loopback.

HOTCELL_AGENT names the program to test (hotcell-agent-test, best with sanitizers). It leaves the
machine alone: names and files of an identity go below a folder of the test.
"""

import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import pwd
import select
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.parse

import pytest

ROOT = os.getuid() == 0
ME = pwd.getpwuid(os.getuid()).pw_name
MIB = 1024 * 1024
DENIED = {
    "code": 401,
    "message": "unauthorized access, please provide a valid access token"
    " or method signing if supported",
}


class Agent:
    def __init__(self, root, *options, dry="--dry-effects"):
        self.root = root
        for folder in ("etc", "run", "var/lib", "home/alice"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        home = root / "home/alice"
        (root / "etc/passwd").write_text(
            f"{ME}:x:{os.getuid()}:{os.getgid()}::{root}:/bin/sh\n"
            f"alice:x:54321:54322::{home}:/bin/sh\n"
        )
        (root / "etc/group").write_text("alice:x:54322:\nextra:x:54323:bob,alice\n")
        if ROOT:
            os.chown(home, 54321, 54322)
            for parent in [root, *root.parents]:  # so that alice gets there
                if parent.stat().st_uid == 0 and str(parent).startswith("/tmp/"):
                    parent.chmod(0o755)
        env = dict(os.environ)
        # freed memory is given back at once, so that the figures below mean something
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
        self.proc = subprocess.Popen(
            [os.environ["HOTCELL_AGENT"], dry, "--serve", "--port", "0", "--listen", "127.0.0.1",
             "--root", str(root), "--user", ME, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
        )
        line = self.proc.stdout.readline().split()
        assert line and line[0] == b"ready", self.proc.stderr.read()
        self.port = int(line[1])

    def stop(self):
        self.proc.terminate()
        out, err = self.proc.communicate(timeout=20)
        assert b"Sanitizer" not in err and b"runtime error" not in err, err.decode()
        assert self.proc.returncode == 0, err.decode()
        return out.decode().split("\n")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def ask(self, method, target, body=None, headers=None, conn=None):
        c = conn or self.connect()
        c.request(method, target, body, headers or {})
        r = c.getresponse()
        r.data = r.read()
        if not conn:
            c.close()
        return r

    def rss(self):
        """Resident memory in bytes."""
        with open(f"/proc/{self.proc.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def peak(self):
        with open(f"/proc/{self.proc.pid}/status") as f:
            return next(int(l.split()[1]) * 1024 for l in f if l.startswith("VmHWM"))

    def forget_peak(self):
        with open(f"/proc/{self.proc.pid}/clear_refs", "w") as f:
            f.write("5")

    def children(self):
        pid = self.proc.pid
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return f.read().split()


@pytest.fixture
def agent(tmp_path):
    a = Agent(tmp_path)
    yield a
    a.stop()


# --- process.Process/Start, spoken by hand ---------------------------------------------------


def envelope(message, flags=0):
    data = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


def start_body(cmd, args=(), stdin=False, **more):
    extra = {k: more.pop(k) for k in ("tag", "pty") if k in more}
    message = {"process": {"cmd": cmd, "args": list(args), **more}, **extra}
    if stdin is not None:
        message["stdin"] = stdin
    return envelope(message)


class Stream:
    """One Start call: events as they arrive."""

    def __init__(self, agent, body, headers=None, receive_buffer=None):
        self.conn = agent.connect()
        if receive_buffer:
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            s.settimeout(30)
            s.connect(("127.0.0.1", agent.port))
            self.conn.sock = s
        h = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}
        h.update(headers or {})
        self.conn.request("POST", "/process.Process/Start", body, h)
        self.response = self.conn.getresponse()

    def next(self):
        """(flags, message), or None at the end of the body."""
        head = self.response.read(5)
        if not head:
            return None
        flags, n = struct.unpack(">BI", head)
        return flags, json.loads(self.response.read(n))

    def __iter__(self):
        while (m := self.next()) is not None:
            yield m

    def drop(self):
        """Go away without a word."""
        s = self.conn.sock or self.response.fp.raw._sock
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.response.close()
        self.conn.close()


class Result:
    def __init__(self, stream):
        assert stream.response.status == 200
        assert stream.response.headers["Content-Type"] == "application/connect+json"
        self.events, self.end, self.last = [], None, None
        self.out, self.err = bytearray(), bytearray()
        self.sizes = []
        for flags, m in stream:
            assert self.last is None, "something after the end of the stream"
            if flags == 2:
                self.last = m
                continue
            assert flags == 0 and list(m) == ["event"]
            ((kind, value),) = m["event"].items()
            self.events.append(kind)
            if kind == "start":
                self.pid = value["pid"]
            if kind == "data":
                ((where, text),) = value.items()
                piece = base64.b64decode(text, validate=True)
                self.sizes.append(len(piece))
                if where == "stdout":
                    self.out += piece
                else:
                    assert where == "stderr"
                    self.err += piece
            if kind == "end":
                self.end = value
        assert self.last is not None, "no end of stream"


def run(agent, cmd, *args, headers=None, **more):
    return Result(Stream(agent, start_body(cmd, args, **more), headers))


def sh(agent, script, **more):
    return run(agent, "/bin/sh", "-c", script, **more)


def as_user(name):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:".encode()).decode()}


def refused(result, code, message):
    assert result.events == []
    assert result.last == {"error": {"code": code, "message": message}}


# --- health, routes, tokens ------------------------------------------------------------------


def test_health_has_no_body_and_is_not_kept(agent):
    r = agent.ask("GET", "/health")
    assert (r.status, r.data, r.headers["Cache-Control"]) == (204, b"", "no-store")


def test_unknown_routes_and_methods(agent):
    for method, target, status in [
        ("GET", "/", 404),
        ("GET", "/healthz", 404),
        ("GET", "/health/", 404),
        ("DELETE", "/files", 405),
        ("GET", "/process.Process/Start", 405),
        ("POST", "/control/clock", 404),
        ("GET", "/control/identity", 404),
        ("GET", "/control/nothing", 404),
    ]:
        r = agent.ask(method, target)
        assert r.status == status, (method, target)
        assert json.loads(r.data)["code"] == status


def test_methods_that_are_to_come_say_so(agent):
    r = agent.ask("POST", "/process.Process/Nothing", b"{}", {"Content-Type": "application/json"})
    assert r.status == 501 and json.loads(r.data)["code"] == "unimplemented"


def identity(**more):
    return {
        "clockOffsetNs": "1700000000000000000",
        "entropy": base64.b64encode(bytes(range(64))).decode(),
        "hostname": "i0abc",
        "machineId": "0123456789abcdef0123456789abcdef",
        "bootId": "01234567-89ab-cdef-0123-456789abcdef",
        "sandboxId": "i0abc",
        "templateId": "base",
        "env": {"COLOUR": "blue", "E2B_SANDBOX_ID": "fake"},
        "accessToken": "client-token",
        "controlToken": "control-token",
        **more,
    }


def give_identity(agent, token=None, **more):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["X-Hotcell-Control"] = token
    return agent.ask("POST", "/control/identity", json.dumps(identity(**more)), headers)


def test_who_may_do_what(agent):
    start = start_body("/bin/true")
    stream = {"Content-Type": "application/connect+json"}
    client_routes = [
        ("GET", "/envs", None, {}),
        ("GET", "/files?path=/etc/hostname", None, {}),
        ("POST", "/files?path=x", b"x", {"Content-Type": "application/octet-stream"}),
        ("POST", "/process.Process/Start", start, stream),
    ]
    for method, target, body, headers in client_routes:  # open, as long as there is no token
        assert agent.ask(method, target, body, headers).status == 200, target
    assert give_identity(agent).status == 200
    for method, target, body, headers in client_routes:
        for token in [None, "", "wrong", "client-toke", "client-token2", "control-token"]:
            h = headers if token is None else {**headers, "X-Access-Token": token}
            r = agent.ask(method, target, body, h)
            if target.startswith("/files"):  # a signature would do as well
                assert r.status == 401 and json.loads(r.data)["code"] == 401
            else:
                assert (r.status, json.loads(r.data)) == (401, DENIED), (target, token)
        h = {**headers, "X-Access-Token": "client-token"}
        assert agent.ask(method, target, body, h).status == 200, target
    # what does not exist is not told apart, either
    assert agent.ask("GET", "/nothing").status == 401
    assert agent.ask("GET", "/nothing", headers={"X-Access-Token": "client-token"}).status == 404
    # free for all, always
    assert agent.ask("GET", "/health").status == 204
    assert agent.ask("GET", "/control/clock").status == 200
    # the host's own routes do not exist for anybody else
    for token in [None, "wrong", "client-token"]:
        assert give_identity(agent, token).status == 404
        h = {} if token is None else {"X-Hotcell-Control": token}
        assert agent.ask("POST", "/control/freeze", headers=h).status == 404
    assert give_identity(agent, "control-token").status == 200


def test_an_empty_access_token_asks_for_none(agent):
    assert give_identity(agent, accessToken="").status == 200
    assert agent.ask("GET", "/envs").status == 200


# --- the host's routes -----------------------------------------------------------------------


def test_the_clock_is_told(agent):
    r = json.loads(agent.ask("GET", "/control/clock").data)
    assert list(r) == ["monotonicNs", "realtimeNs"]
    assert abs(int(r["monotonicNs"]) - time.monotonic_ns()) < 5e9
    assert abs(int(r["realtimeNs"]) - time.time_ns()) < 5e9


def test_an_identity_is_taken_on(tmp_path):
    agent = Agent(tmp_path)
    (tmp_path / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 old\n")
    r = give_identity(agent)
    assert r.status == 200 and list(json.loads(r.data)) == ["monotonicNs", "realtimeNs"]
    files = {
        "etc/hostname": "i0abc\n",
        "etc/hosts": "127.0.0.1 localhost\n127.0.1.1 i0abc\n",
        "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        "run/hotcell/boot_id": "01234567-89ab-cdef-0123-456789abcdef\n",
        "run/hotcell/generation": "1\n",
        "run/e2b/.E2B_SANDBOX": "true",
        "run/e2b/.E2B_SANDBOX_ID": "i0abc",
        "run/e2b/.E2B_TEMPLATE_ID": "base",
    }
    for name, text in files.items():
        assert (tmp_path / name).read_text() == text
    token = {"X-Access-Token": "client-token"}
    envs = json.loads(agent.ask("GET", "/envs", headers=token).data)
    assert envs == {"COLOUR": "blue", "E2B_SANDBOX": "true", "E2B_SANDBOX_ID": "i0abc",
                    "E2B_TEMPLATE_ID": "base"}
    r = run(agent, "/usr/bin/env", headers=token, envs={"COLOUR": "red", "ONCE": "1"})
    env = dict(line.split("=", 1) for line in r.out.decode().splitlines())
    assert env["COLOUR"] == "red" and env["ONCE"] == "1" and env["E2B_SANDBOX_ID"] == "i0abc"
    r = run(agent, "/usr/bin/env", headers=token)
    assert b"COLOUR=blue\n" in r.out and b"ONCE" not in r.out
    # another one replaces all of it
    r = give_identity(agent, "control-token", env={}, accessToken="two", sandboxId="i0def")
    assert r.status == 200
    assert agent.ask("GET", "/envs", headers=token).status == 401
    envs = json.loads(agent.ask("GET", "/envs", headers={"X-Access-Token": "two"}).data)
    assert envs == {"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": "i0def", "E2B_TEMPLATE_ID": "base"}
    assert (tmp_path / "run/hotcell/generation").read_text() == "2\n"
    effects = ["effect clock", "effect entropy", "effect hostname", "effect boot_id"]
    assert [line for line in agent.stop() if line] == effects * 2


@pytest.mark.parametrize("step", ["clock", "entropy", "hostname", "boot_id"])
def test_an_identity_that_fails_leaves_everything_closed(tmp_path, step):
    agent = Agent(tmp_path, dry=f"--dry-effects={step}")
    r = give_identity(agent)
    assert r.status == 500
    assert json.loads(r.data)["message"].endswith("told to fail")
    assert json.loads(agent.ask("GET", "/envs").data) == {"E2B_SANDBOX": "true"}
    assert (tmp_path / "run/hotcell/session").read_text() == "none\n"
    assert agent.stop()[-2] == f"effect {step}"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"hostname":"a"}',
                                  json.dumps(identity(controlToken="")).encode(),
                                  json.dumps(identity(entropy="AAAA")).encode()])
def test_a_bad_identity_does_nothing(tmp_path, body):
    agent = Agent(tmp_path)
    r = agent.ask("POST", "/control/identity", body)
    assert r.status == 400 and json.loads(r.data)["code"] == 400
    assert agent.stop() == [""]  # not one effect


def test_a_server_started_again_remembers_its_tokens(tmp_path):
    agent = Agent(tmp_path)
    assert give_identity(agent).status == 200
    agent.stop()
    again = Agent(tmp_path)
    assert again.ask("GET", "/envs").status == 401
    r = again.ask("GET", "/envs", headers={"X-Access-Token": "client-token"})
    assert json.loads(r.data)["COLOUR"] == "blue"
    again.stop()
    (tmp_path / "run/hotcell/session").write_text("{}")
    sealed = Agent(tmp_path)
    for token in ["", "client-token"]:
        assert sealed.ask("GET", "/envs", headers={"X-Access-Token": token}).status == 401
        assert give_identity(sealed, "control-token").status == 404
    assert sealed.ask("GET", "/health").status == 204
    sealed.stop()


def cgroup2_mount():
    with open("/proc/mounts") as f:
        return next((l.split()[1] for l in f if l.split()[2] == "cgroup2"), None)


@pytest.fixture
def cgroup():
    """A cgroup of version 2 for user processes, emptied and removed afterwards."""
    mount = cgroup2_mount()
    if not ROOT or not mount or not os.access(mount, os.W_OK):
        pytest.skip("needs root and a cgroup2 mount")
    path = os.path.join(mount, f"hotcell-test-{os.getpid()}")
    os.mkdir(path)
    yield path
    with open(os.path.join(path, "cgroup.kill"), "w") as f:
        f.write("1")
    events = os.path.join(path, "cgroup.events")
    with open(events) as f:
        p = select.poll()
        p.register(f, select.POLLPRI)
        while "populated 1" in (f.seek(0), f.read())[1]:
            p.poll(5000)
    for command in next(os.walk(path))[1]:
        os.rmdir(os.path.join(path, command))
    os.rmdir(path)


def is_frozen(cgroup):
    with open(os.path.join(cgroup, "cgroup.events")) as f:
        return "frozen 1" in f.read()


def wait_thawed(cgroup):
    """The answer to an identity leaves before the thaw."""
    until = time.monotonic() + 30
    while is_frozen(cgroup):
        assert time.monotonic() < until
        time.sleep(0.001)


def test_frozen_until_it_has_an_identity(tmp_path, cgroup):
    agent = Agent(tmp_path, "--cgroup", cgroup)
    stream = Stream(agent, start_body("/bin/sh", ["-c", "cat /proc/self/cgroup; read x"],
                                      stdin=True))
    assert "start" in stream.next()[1]["event"]
    placed = base64.b64decode(stream.next()[1]["event"]["data"]["stdout"]).decode()
    assert os.path.basename(cgroup) in placed
    assert agent.ask("POST", "/control/freeze").status == 204
    assert is_frozen(cgroup)
    assert agent.ask("POST", "/control/freeze").status == 204  # again is as good
    # a process started meanwhile is born frozen, and nothing of it is heard
    late = agent.connect()
    late.request("POST", "/process.Process/Start", start_body("/bin/echo", ["hello"]),
                 {"Content-Type": "application/connect+json"})
    assert agent.ask("POST", "/control/identity", b"{}").status == 400
    assert is_frozen(cgroup)
    assert give_identity(agent, accessToken="").status == 200
    r = late.getresponse()
    assert b"aGVsbG8K" in r.read()
    wait_thawed(cgroup)
    stream.drop()
    late.close()
    agent.stop()


def test_a_failed_identity_leaves_it_frozen(tmp_path, cgroup):
    agent = Agent(tmp_path, "--cgroup", cgroup, dry="--dry-effects=entropy")
    assert agent.ask("POST", "/control/freeze").status == 204
    assert give_identity(agent).status == 500
    assert is_frozen(cgroup)
    agent.stop()


def fake_cgroup(tmp_path):
    """A folder with the files of a cgroup that never freezes."""
    path = tmp_path / "cgroup"
    path.mkdir()
    (path / "cgroup.freeze").write_text("0\n")
    (path / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    return path


def test_a_freeze_that_takes_too_long_is_told(tmp_path):
    path = fake_cgroup(tmp_path)
    agent = Agent(tmp_path, "--cgroup", str(path))
    before = time.monotonic()
    r = agent.ask("POST", "/control/freeze")
    assert r.status == 504 and json.loads(r.data)["code"] == 504
    assert 0.2 <= time.monotonic() - before < 5
    assert (path / "cgroup.freeze").read_text() == "1\n"  # and is still wanted
    # seen as soon as it happens
    conn = agent.connect()
    conn.request("POST", "/control/freeze")
    (path / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    assert conn.getresponse().status == 204
    conn.close()
    agent.stop()


def test_a_freeze_that_must_be_is_waited_for(tmp_path):
    path = fake_cgroup(tmp_path)
    agent = Agent(tmp_path, "--cgroup", str(path))
    conn = agent.connect()
    conn.request("POST", "/control/freeze?sure=1")
    conn.sock.settimeout(1)
    with pytest.raises(TimeoutError):  # where another would have given up long ago
        conn.sock.recv(1, socket.MSG_PEEK)
    conn.sock.settimeout(30)
    (path / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    assert conn.getresponse().status == 204
    conn.close()
    agent.stop()


def test_the_answer_to_an_identity_leaves_before_the_thaw(tmp_path):
    path = fake_cgroup(tmp_path)
    (path / "cgroup.freeze").unlink()
    os.mkfifo(path / "cgroup.freeze")  # whoever opens it for writing waits for a reader
    agent = Agent(tmp_path, "--cgroup", str(path))
    assert give_identity(agent).status == 200
    with open(path / "cgroup.freeze", "rb") as f:
        assert f.read(1) == b"0"
    agent.stop()


def test_there_is_no_freeze_without_a_cgroup(agent):
    r = agent.ask("POST", "/control/freeze")
    assert r.status == 500


# --- Start -----------------------------------------------------------------------------------


def test_output_and_exit_status(agent):
    r = sh(agent, "echo out; echo err >&2; exit 3")
    assert (r.out, r.err) == (b"out\n", b"err\n")
    assert r.events[0] == "start" and r.events[-1] == "end"
    assert r.end == {"exitCode": 3, "exited": True, "status": "exit status 3",
                     "error": "exit status 3"}
    assert r.last == {}


def test_success_says_little(agent):
    r = run(agent, "true")
    assert r.events == ["start", "end"]
    assert r.end == {"exited": True, "status": "exit status 0"}


@pytest.mark.parametrize("signo, word", [
    (signal.SIGKILL, "killed"), (signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupt"),
    (signal.SIGUSR1, "user defined signal 1"),
])
def test_ended_by_a_signal(agent, signo, word):
    r = sh(agent, f"kill -{int(signo)} $$")
    assert r.end == {"exitCode": -1, "status": f"signal: {word}", "error": f"signal: {word}"}


def test_the_pid_is_the_real_one(agent):
    r = sh(agent, "echo $$")
    assert int(r.out) == r.pid


def test_a_process_gets_a_clean_start(agent):
    r = sh(agent, "ls -l /proc/self/fd | grep -c -- '->';"
           "grep -E '^Sig(Blk|Ign)' /proc/self/status")
    lines = r.out.decode().split("\n")
    assert lines[0] == "4"  # the three, and ls's own
    assert lines[1:3] == ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"]
    r = sh(agent, "(yes; echo $? >&2) | head -n 1")
    assert r.err == b"141\n"  # SIGPIPE


def test_the_environment_is_small_and_the_client_has_the_last_word(agent):
    r = run(agent, "/usr/bin/env", envs={"A": "ü=1", "HOME": "/elsewhere"})
    env = dict(line.split("=", 1) for line in r.out.decode().splitlines())
    assert env == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/elsewhere", "USER": ME, "LOGNAME": ME, "E2B_SANDBOX": "true", "A": "ü=1",
    }


def test_the_image_says_in_etc_environment_what_every_process_has(agent):
    at = agent.root / "etc/environment"
    at.parent.mkdir(exist_ok=True)
    at.write_text('# a comment\nFROM_IMAGE="of the image"\nA=image\nUSER=nobody\nnonsense\n')
    try:
        r = run(agent, "/usr/bin/env", envs={"A": "client"})
    finally:
        at.unlink()
    env = dict(line.split("=", 1) for line in r.out.decode().splitlines())
    assert (env["FROM_IMAGE"], env["A"], env["USER"]) == ("of the image", "client", ME)


def test_working_directories(agent):
    (agent.root / "sub").mkdir()
    assert sh(agent, "pwd").out.decode() == f"{agent.root}\n"
    assert sh(agent, "pwd", cwd="sub").out.decode() == f"{agent.root}/sub\n"
    assert sh(agent, "pwd", cwd="~/sub/..").out.decode() == f"{agent.root}\n"
    assert sh(agent, "pwd", cwd="/usr").out == b"/usr\n"
    refused(sh(agent, "pwd", cwd="missing"), "invalid_argument",
            f"cwd '{agent.root}/missing' does not exist")
    refused(sh(agent, "pwd", cwd="~other/x"), "invalid_argument",
            "cannot expand user-specific home dir")


def test_what_cannot_start(agent):
    refused(run(agent, "/no/such/program", "a", "b"), "invalid_argument",
            "error starting process '/no/such/program a b': exec: No such file or directory")
    refused(run(agent, "no-such-program"), "invalid_argument",
            "error starting process 'no-such-program': exec: No such file or directory")
    refused(run(agent, ""), "invalid_argument", "cmd is empty")
    refused(run(agent, "true", envs={"A=B": "1"}), "invalid_argument",
            "an environment variable needs a name without '='")


def test_unknown_users_are_told_so(agent):
    refused(run(agent, "true", headers=as_user("nobody-there")), "unauthenticated",
            "invalid username: 'nobody-there'")
    refused(run(agent, "true", headers={"Authorization": "Basic !"}), "unauthenticated",
            run(agent, "true", headers={"Authorization": "Basic !"}).last["error"]["message"])
    assert run(agent, "true", headers=as_user(ME)).end["status"] == "exit status 0"
    assert run(agent, "true", headers={"Authorization": "Bearer x"}).end["exited"]


@pytest.mark.skipif(not ROOT, reason="only root can be somebody else")
def test_another_user(agent):
    r = run(agent, "id", headers=as_user("alice"))
    assert r.out.startswith(b"uid=54321") and b"gid=54322" in r.out
    assert b"54323" in r.out and b"(root)" not in r.out
    r = sh(agent, "pwd; echo $HOME $USER $LOGNAME; grep ^Cap /proc/self/status",
           headers=as_user("alice"))
    home = f"{agent.root}/home/alice"
    lines = r.out.decode().split("\n")
    assert lines[:2] == [home, f"{home} alice alice"]
    assert "CapEff:\t0000000000000000" in lines


@pytest.mark.parametrize("body, code", [
    (b"", "invalid_argument"),
    (b"\0\0", "invalid_argument"),
    (b"\0\0\0\0\5{}", "invalid_argument"),
    (b"\1\0\0\0\2{}", "invalid_argument"),
    (b"\2\0\0\0\2{}", "invalid_argument"),
    (envelope({}) + envelope({}), "invalid_argument"),
    (b"\0\xff\xff\xff\xff{}", "resource_exhausted"),
    (b"\0\0\0\0\1{", "invalid_argument"),
    (envelope({}), "invalid_argument"),
    (envelope({"process": {"cmd": 1}}), "invalid_argument"),
])
def test_malformed_requests_are_answered(agent, body, code):
    r = Result(Stream(agent, body))
    assert r.events == [] and r.last["error"]["code"] == code


def test_other_content_types_are_refused(agent):
    for kind in ["application/json", "application/connect+proto", "application/proto", ""]:
        r = agent.ask("POST", "/process.Process/Start", start_body("true"), {"Content-Type": kind})
        assert r.status == 415


def test_a_request_may_come_in_pieces(agent):
    body = start_body("echo", ["x" * 1000])
    c = agent.connect()
    c.request("POST", "/process.Process/Start", iter([body[:1], body[1:7], body[7:]]),
              {"Content-Type": "application/connect+json"}, encode_chunked=True)
    assert b'"end"' in c.getresponse().read()
    c.close()


def test_stdin_is_a_pipe_unless_declined(agent):
    assert sh(agent, "readlink /proc/self/fd/0").out == b"/dev/null\n"
    assert sh(agent, "readlink /proc/self/fd/0", stdin=True).out.startswith(b"pipe:")
    assert sh(agent, "readlink /proc/self/fd/0", stdin=None).out.startswith(b"pipe:")


def test_bytes_arrive_as_they_are(agent, tmp_path):
    data = os.urandom(3 * MIB)
    (tmp_path / "data").write_bytes(data)
    r = sh(agent, "cat data & cat data >&2; wait")
    assert r.out == data and r.err == data
    assert max(r.sizes) <= 32 * 1024


def test_silence_is_filled(agent):
    s = Stream(agent, start_body("sh", ["-c", "read x"], stdin=True),
               {"Keepalive-Ping-Interval": "1"})
    kinds = [list(s.next()[1]["event"])[0] for _ in range(3)]
    assert kinds == ["start", "keepalive", "keepalive"]
    s.drop()


def test_time_runs_out(agent):
    r = sh(agent, "echo $$; exec sleep 1000", headers={"Connect-Timeout-Ms": "700"})
    assert r.events == ["start", "data"]
    assert r.last == {"error": {"code": "deadline_exceeded",
                                "message": "context deadline exceeded"}}
    wait_gone(r.pid)
    # zero means no limit, nonsense is refused
    assert run(agent, "true", headers={"Connect-Timeout-Ms": "0"}).end["exited"]
    for bad in ["-1", "x", "12345678901"]:
        refused(run(agent, "true", headers={"Connect-Timeout-Ms": bad}), "invalid_argument",
                "invalid connect-timeout-ms")


def wait_gone(pid):
    """Until the process is reaped."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([fd], [], [], 10)[0], "it lives on"
    os.close(fd)


def fifo(path):
    os.mkfifo(path)
    return os.open(path, os.O_RDWR)  # so that no open() waits for the other side


def read_line(fd):
    assert select.select([fd], [], [], 20)[0], "nothing was said"
    return os.read(fd, 4096)


def test_a_process_outlives_its_client(agent, tmp_path):
    go, done = fifo(tmp_path / "go"), fifo(tmp_path / "done")
    s = Stream(agent, start_body("sh", [
        "-c", "read x < go; head -c 5000000 /dev/zero; echo finished > done"]))
    pid = s.next()[1]["event"]["start"]["pid"]
    s.drop()
    assert agent.ask("GET", "/health").status == 204
    os.kill(pid, 0)
    os.write(go, b"go\n")
    # its output is read and thrown away: 5 MB would not fit into any pipe
    assert read_line(done) == b"finished\n"
    wait_gone(pid)


def test_the_end_waits_for_children_that_hold_the_pipe(agent, tmp_path):
    go = fifo(tmp_path / "go")
    s = Stream(agent, start_body("sh", ["-c", "(read x < go; echo late) & echo early"]))
    seen = [s.next()[1]["event"] for _ in range(2)]
    assert "start" in seen[0] and "data" in seen[1]
    os.write(go, b"go\n")
    rest = [m for _, m in s]
    assert rest[0] == {"event": {"data": {"stdout": "bGF0ZQo="}}}
    assert rest[1]["event"]["end"]["exited"] and rest[2] == {}


SLOW_WRITER = """
import os, select, sys
n = 0
while select.select([], [1], [], 1.5)[1]:  # until nobody takes anything for a while
    n += os.write(1, b"x" * 4096)
open("stalled", "w").write(f"{n}\\n")
os.write(1, b"x" * (20000000 - n) + b"end")
"""


def test_a_slow_reader_stops_the_process_and_costs_little(agent, tmp_path):
    stalled = fifo(tmp_path / "stalled")
    before = agent.rss()
    s = Stream(agent, start_body("python3", ["-c", SLOW_WRITER]), receive_buffer=262144)
    assert "start" in s.next()[1]["event"]
    produced = int(read_line(stalled))
    assert 0 < produced < 10_000_000
    assert agent.rss() - before < 4 * MIB
    r = Result(s)
    assert len(r.out) == 20000003 and r.out.endswith(b"xend")
    assert r.end["exited"]


def test_a_thousand_processes_leave_nothing(agent):
    def some(n):
        conn = agent.connect()
        for i in range(n):
            conn.request("POST", "/process.Process/Start", start_body("echo", [str(i)]),
                         {"Content-Type": "application/connect+json"})
            r = conn.getresponse()
            data = r.read()
            assert b'"exited":true' in data and data.endswith(b"{}")
        conn.close()
        return n

    some(10)
    fds = len(os.listdir(f"/proc/{agent.proc.pid}/fd"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(some, [250] * 4)) == 1000
    assert agent.children() == []
    some(1)  # the other connections are seen to be closed by then
    assert len(os.listdir(f"/proc/{agent.proc.pid}/fd")) <= fds + 4


def test_many_streams_at_once(agent):
    streams = [Stream(agent, start_body("sh", ["-c", f"echo {i}; read x"], stdin=True))
               for i in range(100)]
    for i, s in enumerate(streams):
        assert "start" in s.next()[1]["event"]
        out = base64.b64decode(s.next()[1]["event"]["data"]["stdout"])
        assert out == b"%d\n" % i
    for s in streams:
        s.drop()


def test_it_stops_cleanly_in_the_middle_of_everything(tmp_path):
    path = fake_cgroup(tmp_path)
    agent = Agent(tmp_path, "--cgroup", str(path))
    (tmp_path / "big").write_bytes(bytes(30 * MIB))
    conns = []
    for head in ["GET /files?path=big HTTP/1.1\r\nHost: x\r\n\r\n",
                 "POST /files?path=new HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
                 "Content-Type: application/octet-stream\r\n\r\nabc",
                 "POST /control/identity HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
                 "POST /control/freeze HTTP/1.1\r\nHost: x\r\n\r\n",
                 "POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
                 "Content-Type: application/connect+json\r\n\r\n",
                 "GET /hea"]:
        conns.append(socket.create_connection(("127.0.0.1", agent.port)))
        conns[-1].sendall(head.encode())
    assert agent.ask("GET", "/health").status == 204
    agent.stop()
    assert not (tmp_path / "new").exists()


def test_it_stops_cleanly_while_processes_run(tmp_path):
    agent = Agent(tmp_path)
    go, done = fifo(tmp_path / "go"), fifo(tmp_path / "done")
    s = Stream(agent, start_body("sh", ["-c", "read x < go; echo finished > done"]))
    assert "start" in s.next()[1]["event"]
    late = Stream(agent, start_body("sh", ["-c", "exec cat"], stdin=True))
    assert "start" in late.next()[1]["event"]
    agent.stop()
    os.write(go, b"go\n")
    assert read_line(done) == b"finished\n"  # they live on


# --- files -----------------------------------------------------------------------------------


def files(path=None, **more):
    query = {**({} if path is None else {"path": str(path)}), **more}
    return "/files?" + urllib.parse.urlencode(query)


def put(agent, path, data, **more):
    return agent.ask("POST", files(path, **more), data,
                     {"Content-Type": "application/octet-stream"})


def test_a_file_there_and_back(agent, tmp_path):
    target = tmp_path / "deep/er/ü b.txt"
    r = put(agent, target, b"hello")
    assert r.status == 200
    assert json.loads(r.data) == [{"path": str(target), "name": "ü b.txt", "type": "file"}]
    assert target.read_bytes() == b"hello" and target.stat().st_mode & 0o7777 == 0o644
    assert (tmp_path / "deep").stat().st_mode & 0o7777 == 0o755
    r = agent.ask("GET", files(target))
    assert (r.status, r.data, r.headers["Content-Length"]) == (200, b"hello", "5")
    assert r.headers["Vary"] == "Accept-Encoding"
    assert r.headers["Content-Disposition"] == "inline; filename*=utf-8''%C3%BC%20b.txt"


def test_relative_paths_are_below_home(agent, tmp_path):
    assert json.loads(put(agent, "a.txt", b"1").data)[0]["path"] == f"{tmp_path}/a.txt"
    assert json.loads(put(agent, "~/b/../c.txt", b"2").data)[0]["path"] == f"{tmp_path}/c.txt"
    assert agent.ask("GET", files("c.txt")).data == b"2"


def test_empty_files_have_a_length(agent):
    assert put(agent, "empty", b"").status == 200
    r = agent.ask("GET", files("empty"))
    assert (r.status, r.data, r.headers["Content-Length"]) == (200, b"", "0")


def test_files_of_the_kernel_are_read_to_their_end(agent):
    r = agent.ask("GET", files("/proc/sys/kernel/random/boot_id"))
    with open("/proc/sys/kernel/random/boot_id", "rb") as f:
        assert (r.status, r.data) == (200, f.read())


def test_what_is_no_file(agent, tmp_path):
    fifo(tmp_path / "pipe")

    def fails(target, status, message, method="GET", body=None, kind=None):
        r = agent.ask(method, target, body, {"Content-Type": kind} if kind else {})
        assert (r.status, json.loads(r.data)) == (status, {"code": status, "message": message})

    raw = "application/octet-stream"
    fails(files(tmp_path), 400, f"path '{tmp_path}' is a directory")
    fails(files(), 400, f"path '{tmp_path}' is a directory")
    fails(files("nö"), 404, f"path '{tmp_path}/nö' does not exist")
    fails(files("/etc/passwd/x"), 404, "path '/etc/passwd/x' does not exist")
    fails(files("pipe"), 400, f"path '{tmp_path}/pipe' is not a regular file")
    fails(files("/dev/zero"), 400, "path '/dev/zero' is not a regular file")
    fails(files("x", username="eve"), 401,
          "error looking up user 'eve': user: unknown user eve")
    fails(files("~bob/x"), 400,
          "error resolving path '~bob/x': cannot expand user-specific home dir")
    fails(files("x", username="eve"), 401,
          "error looking up user 'eve': user: unknown user eve", "POST", b"x", raw)
    fails(files(), 400, "path query parameter is required for raw body upload", "POST", b"x", raw)
    fails(files(tmp_path), 400, f"path is a directory: {tmp_path}", "POST", b"x", raw)
    fails(files("x"), 400, "unsupported content type: text/plain, expected multipart/form-data"
          " or application/octet-stream", "POST", b"x", "text/plain")
    r = agent.ask("POST", files("x"), b"x", {"Content-Type": "multipart/form-data; boundary=a"})
    assert r.status == 400
    r = agent.ask("POST", files("x"), b"x", {"Content-Type": raw, "Content-Encoding": "gzip"})
    assert r.status == 400
    r = agent.ask("POST", files("x"), b"x", {"Content-Type": raw, "Content-Encoding": "br"})
    assert r.status == 400
    assert agent.ask("GET", "/files?path=a&path=b").status == 400
    assert agent.ask("GET", "/files?path=%00").status == 400
    assert not (tmp_path / "x").exists()


@pytest.mark.skipif(not ROOT, reason="only root can be somebody else")
def test_files_belong_to_their_user(agent, tmp_path):
    r = put(agent, "new/file", b"x", username="alice")
    path = tmp_path / "home/alice/new/file"
    assert json.loads(r.data)[0]["path"] == str(path)
    for p in [path, path.parent]:
        assert (p.stat().st_uid, p.stat().st_gid) == (54321, 54322)


def test_fifty_megabytes_cost_no_memory(agent, tmp_path):
    data = os.urandom(50 * MIB)
    agent.ask("GET", "/health")
    agent.forget_peak()
    before = agent.rss()
    chunks = (data[i : i + 100_000] for i in range(0, len(data), 100_000))
    c = agent.connect()
    c.request("POST", files("big"), chunks, {"Content-Type": "application/octet-stream"},
              encode_chunked=True)
    assert c.getresponse().read().endswith(b'"type":"file"}]')
    assert (tmp_path / "big").read_bytes() == data
    c.request("GET", files("big"))
    r = c.getresponse()
    assert r.headers["Content-Length"] == str(len(data))
    assert r.read() == data
    c.close()
    assert agent.peak() - before < 16 * MIB


def test_a_download_nobody_takes_waits(agent, tmp_path):
    (tmp_path / "big").write_bytes(os.urandom(30 * MIB))
    before = agent.rss()
    s = socket.create_connection(("127.0.0.1", agent.port))
    s.sendall(b"GET /files?path=big HTTP/1.1\r\nHost: x\r\n\r\n")
    assert s.recv(4096).startswith(b"HTTP/1.1 200")
    for _ in range(20):
        assert agent.ask("GET", "/health").status == 204  # the others go on
    assert agent.rss() - before < 4 * MIB
    s.close()


def test_an_upload_cut_off_leaves_nothing(agent, tmp_path):
    put(agent, "old", b"old")
    listing = sorted(os.listdir(tmp_path))
    for name in ["old", "new"]:
        s = socket.create_connection(("127.0.0.1", agent.port))
        s.sendall(f"POST /files?path={name} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n"
                  "Content-Type: application/octet-stream\r\n\r\n".encode() + b"x" * 500_000)
        # the agent has read some of it once it answers somebody else on the same loop
        agent.ask("GET", "/health")
        s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert s.recv(100) == b""
        s.close()
    assert sorted(os.listdir(tmp_path)) == listing
    assert os.listdir(tmp_path / "var/lib/hotcell") == []
    assert (tmp_path / "old").read_bytes() == b"old"


def test_a_reader_sees_the_old_file_or_the_new_one(agent, tmp_path):
    old, new = b"o" * 200_000, b"n" * 300_000
    put(agent, "f", old)
    stop = threading.Event()
    bad = []

    def read():
        while not stop.is_set():
            data = (tmp_path / "f").read_bytes()
            if data not in (old, new):
                bad.append(len(data))

    t = threading.Thread(target=read)
    t.start()
    for i in range(30):
        assert put(agent, "f", new if i % 2 else old).status == 200
    stop.set()
    t.join()
    assert bad == []
