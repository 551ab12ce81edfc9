"""test_cli_copy.py - `hotcell cp`: the API is played, the agent is the real one, on the host; of a guest that lies the
agent is played, too. HOTCELL_AGENT names it (see test_agent.py).
"""

import contextlib
import http.server
import json
import os
import pty
import select
import signal
import socket
import subprocess
import threading
import time

import pytest

from test_agent import ME, agent  # noqa: F401
from test_cli_run import BOX, command, env_of, server  # noqa: F401
from warden import wait_for

SECONDS = 120
DATA = bytes(range(256)) * 5000


def cp(server, agent, *words, **how):
    """As the user whom this agent knows. `there` below is that user's folder."""
    url = agent if isinstance(agent, str) else f"http://127.0.0.1:{agent.port}"
    return subprocess.run(command("cp", "--user", ME, *map(str, words)), capture_output=True, timeout=SECONDS,
                          env=env_of(server, E2B_SANDBOX_URL=url), stdin=subprocess.DEVNULL, check=False, **how)


def fine(r):
    assert (r.returncode, r.stdout, r.stderr) == (0, b"", b""), r


@pytest.fixture
def there(agent):
    return agent.root


@pytest.fixture
def here(tmp_path_factory):
    return tmp_path_factory.mktemp("here")


def tree_of(top):
    return {str(p.relative_to(top)): (p.stat().st_mode & 0o777, None if p.is_dir() else p.read_bytes()) for p in top.rglob("*")}


def plant(top):
    (top / "sub/empty").mkdir(parents=True)
    for name, data, mode in (("a.txt", b"one\n", 0o644), ("sub/run.sh", b"#!/bin/sh\n", 0o755), ("sub/é %&?=+#'\" x", DATA, 0o600), ("none", b"", 0o640)):
        (top / name).write_bytes(data)
        (top / name).chmod(mode)


# --- both ways --------------------------------------------------------------------------------------------------------

def test_a_file_goes_there_and_comes_back(server, agent, there, here):
    (here / "a.bin").write_bytes(DATA)
    fine(cp(server, agent, here / "a.bin", f"{BOX}:b.bin"))
    assert (there / "b.bin").read_bytes() == DATA
    assert server.asked == [("POST", f"/sandboxes/{BOX}/connect", {"timeout": 300})]
    fine(cp(server, agent, f"{BOX}:b.bin", here / "c.bin"))
    assert (here / "c.bin").read_bytes() == DATA and sorted(p.name for p in here.iterdir()) == ["a.bin", "c.bin"]


@pytest.mark.parametrize("target, at", [("", "a"), ("new", "new"), ("new/", "new/a"), ("dir", "dir/a"), ("deep/er/x", "deep/er/x"), ("dir/b", "dir/b")])
def test_where_a_file_goes(server, agent, there, here, target, at):
    (there / "dir").mkdir()
    (here / "a").write_text("x")
    fine(cp(server, agent, here / "a", f"{BOX}:{target}"))
    assert (there / at).read_text() == "x"
    (here / "dir").mkdir()
    if target == "deep/er/x" or target == "new/":  # what is here is not made for it
        return
    fine(cp(server, agent, f"{BOX}:{at}", target or ".", cwd=here))
    assert (here / {"": "a", "dir": "dir/a"}.get(target, target)).read_text() == "x"


def test_a_folder_goes_whole_both_ways(server, agent, there, here):
    plant(here / "src")
    fine(cp(server, agent, here / "src", f"{BOX}:dst"))
    want = tree_of(here / "src")
    assert tree_of(there / "dst") == want and len(want) == 6
    fine(cp(server, agent, f"{BOX}:dst/", here / "back", umask=0))
    assert tree_of(here / "back") == want
    fine(cp(server, agent, f"{BOX}:dst", here / "back", umask=0))  # it is there: into it
    assert tree_of(here / "back/dst") == want
    (here / "in").mkdir()
    fine(cp(server, agent, f"{BOX}:dst/.", here / "in", umask=0))  # what is in it
    assert tree_of(here / "in") == want


def test_several_at_once(server, agent, there, here):
    plant(here / "src")
    (here / "b").write_text("b")
    (there / "dir").mkdir()
    fine(cp(server, agent, here / "b", here / "src", f"{BOX}:dir"))
    assert (there / "dir/b").read_text() == "b" and tree_of(there / "dir/src") == tree_of(here / "src")
    (here / "to").mkdir()
    r = cp(server, agent, f"{BOX}:dir/b", f"{BOX}:dir/src/a.txt", here / "to", "--json")
    assert r.returncode == 0 and json.loads(r.stdout) == {"files": 2, "bytes": 5, "skipped": 0}
    assert sorted(p.name for p in (here / "to").iterdir()) == ["a.txt", "b"]
    r = cp(server, agent, here / "b", here / "src", f"{BOX}:dir/b")
    assert r.returncode == 1 and b"is no folder, and there are 2 to copy" in r.stderr


def test_what_is_no_file_is_named_and_left_out(server, agent, there, here):
    (here / "src").mkdir()
    (here / "src/a").write_text("a")
    (here / "src/link").symlink_to("/etc/passwd")
    os.mkfifo(here / "src/fifo")
    r = cp(server, agent, here / "src", f"{BOX}:dst")
    assert r.returncode == 1 and r.stderr.count(b"not copied: ") == 2 and b"/link: it is a link\n" in r.stderr
    assert [p.name for p in (there / "dst").iterdir()] == ["a"]
    (there / "dst/link").symlink_to("/etc/passwd")
    os.mkfifo(there / "dst/fifo")
    r = cp(server, agent, f"{BOX}:dst", here / "back")
    assert r.returncode == 1 and r.stderr.count(b"not copied: ") == 2
    assert [p.name for p in (here / "back").iterdir()] == ["a"]


@pytest.mark.parametrize("words, said", [
    ([f"{BOX}:none", "x"], b"none"), (["none", f"{BOX}:x"], b"none: No such file"), ([f"{BOX}:a", "none/x"], b"none/x: No such file"),
    ([f"{BOX}:a", "dir-link"], b"is there, and no regular file"), (["a", f"{BOX}:a/b"], b"sandbox: ")])
def test_a_failure_names_cause_and_fix(server, agent, there, here, words, said):
    (there / "a").write_text("a")
    (here / "a").write_text("a")
    (here / "dir-link").symlink_to("nowhere")
    r = cp(server, agent, *words, cwd=here)
    assert r.returncode == 1 and said in r.stderr and b"\n  fix: " in r.stderr, r
    assert sorted(p.name for p in here.iterdir()) == ["a", "dir-link"]


@pytest.mark.parametrize("words", [[], ["a"], ["a", "b"], [f"{BOX}:a", f"{BOX}:b"], ["i1:a", "i2:b", "c"], ["a", "i1:b", "c"], ["./i1:a", "b"], ["I:a", "b"]])
def test_wrong_usage(server, words):
    r = subprocess.run(command("cp", *words), capture_output=True, env=env_of(server), timeout=SECONDS)
    assert r.returncode == 2 and b"usage: hotcell cp" in r.stderr and server.asked == []


# --- a guest that lies ------------------------------------------------------------------------------------------------

class Liar(http.server.ThreadingHTTPServer):
    """An agent whose folder `top` has `entries`; every file has b"mine"."""

    daemon_threads = True

    def __init__(self, *entries, body=None):
        self.entries, self.body, self.gone = entries, body, threading.Event()
        super().__init__(("127.0.0.1", 0), Lies)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        self.gone.set()


class Lies(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if self.path.endswith("/Stat"):
            said = {"entry": {"name": "top", "type": "FILE_TYPE_DIRECTORY", "mode": 0o777}}
        elif self.path.endswith("/ListDir"):
            said = {"entries": self.server.entries if asked["path"] in ("top", "top/.") or self.server.body == "deep" else []}
        elif callable(self.server.body):
            self.server.body(self)
            return
        else:
            said = "mine"
        data = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer


@contextlib.contextmanager
def liar(*entries, body=None):
    with Liar(*entries, body=body) as it:
        thread = threading.Thread(target=it.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield it
        finally:
            it.shutdown()
            thread.join()


@pytest.mark.parametrize("name", ["..", ".", "", "/nonexistent/x", "../x", "a/b", "a\nb", "\x1b[2J", "\x7f", "\u009b2J", "a" * 300, 7, None])
@pytest.mark.parametrize("kind", ["FILE", "DIRECTORY"])
def test_a_hostile_name_stays_outside(server, here, name, kind):
    with liar({"name": name, "type": f"FILE_TYPE_{kind}", "path": "/etc/shadow"}, {"name": "good", "type": "FILE_TYPE_FILE", "mode": 0o7777}) as it:
        r = cp(server, it.url, f"{BOX}:top", here / "deep", umask=0)
    assert r.returncode == 1 and r.stderr.count(b"not copied: top: ") == 1 and r.stderr.isascii() and b"\x1b" not in r.stderr, r
    assert {str(p.relative_to(here)) for p in here.rglob("*")} == {"deep", "deep/good"}
    assert (here / "deep/good").stat().st_mode & 0o7777 == 0o777


def test_a_link_that_is_here_leads_nowhere(server, here, tmp_path):
    """Of an earlier copy, say: a folder and a file are not written through it."""
    (here / "to/top").mkdir(parents=True)
    (here / "to/top/sub").symlink_to(tmp_path)
    with liar({"name": "sub", "type": "FILE_TYPE_DIRECTORY"}) as it:
        r = cp(server, it.url, f"{BOX}:top", here / "to")
    assert r.returncode == 1 and b"sub: " in r.stderr
    with liar({"name": "sub", "type": "FILE_TYPE_FILE"}) as it:
        r = cp(server, it.url, f"{BOX}:top", here / "to")
    assert r.returncode == 1 and b"no regular file" in r.stderr
    assert list(tmp_path.iterdir()) == [] and (here / "to/top/sub").is_symlink()


def test_folders_without_end_have_one(server, here):
    with liar({"name": "d", "type": "FILE_TYPE_DIRECTORY"}, body="deep") as it:
        r = cp(server, it.url, f"{BOX}:top", here / "x")
    assert r.returncode == 1 and b"more than 64 deep" in r.stderr


def cut_short(handler):
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b"half")
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)


def without_end(handler):
    handler.send_response(200)
    handler.send_header("content-length", str(10**12))
    handler.end_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"x" * 65536)
            time.sleep(0.05)
    handler.server.gone.set()


def test_half_a_file_is_none(server, here):
    (here / "f").write_text("old")
    with liar({"name": "f", "type": "FILE_TYPE_FILE"}, body=cut_short) as it:
        r = cp(server, it.url, f"{BOX}:top/.", here)
    assert r.returncode != 0 and (here / "f").read_text() == "old" and len(list(here.iterdir())) == 1


def test_an_interrupt_ends_it_and_leaves_nothing(server, here):
    with liar({"name": "f", "type": "FILE_TYPE_FILE"}, body=without_end) as it:
        p = subprocess.Popen(command("cp", f"{BOX}:top/.", here), stderr=subprocess.PIPE, env=env_of(server, E2B_SANDBOX_URL=it.url))
        wait_for(lambda: any(f.stat().st_size for f in here.iterdir()), "it copies")
        p.send_signal(signal.SIGINT)
        assert p.wait(SECONDS) == 130 and p.stderr.read() == b""
        p.stderr.close()
        assert it.gone.wait(SECONDS)
    assert list(here.iterdir()) == []


def test_a_terminal_sees_how_far_it_is(server, here):
    with liar({"name": "big", "type": "FILE_TYPE_FILE", "size": str(10**12)}, body=without_end) as it:
        pid, fd = pty.fork()
        if pid == 0:
            argv = command("cp", f"{BOX}:top/.", str(here))
            os.execve(argv[0], argv, env_of(server, E2B_SANDBOX_URL=it.url))
        seen, until = b"", time.monotonic() + SECONDS
        while b" of 931" not in seen:
            assert time.monotonic() < until, seen
            if select.select([fd], [], [], 0.2)[0]:
                seen += os.read(fd, 4096)
        os.kill(pid, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 143
        os.close(fd)
    assert b"big  " in seen
