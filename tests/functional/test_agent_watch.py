"""Watches of the guest agent: WatchDir, the polled watchers, and /metrics."""

import collections
import http.client
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest

from test_agent import ME, ROOT, Agent, agent, as_user, envelope, give_identity
from test_agent_filesystem import call, good, refused
from test_agent_files import RAW, files

DEADLINE = 30


class Watch:
    """A WatchDir stream: its events are collected in the background."""

    def __init__(self, agent, path, headers=None, **more):
        self.conn = agent.connect()
        self.conn.request("POST", "/filesystem.Filesystem/WatchDir",
                          envelope({"path": str(path), **more}),
                          {"Content-Type": "application/connect+json", **(headers or {})})
        self.response = self.conn.getresponse()
        assert self.response.status == 200
        assert self.response.headers["Content-Type"] == "application/connect+json"
        self.events, self.end, self.keepalives = [], None, 0
        self.changed = threading.Condition()
        first = self.read()
        if first == (0, {"start": {}}):
            self.thread = threading.Thread(target=self.collect, daemon=True)
            self.thread.start()
        else:
            assert first[0] == 2
            self.end = first[1]

    def read(self):
        head = self.response.read(5)
        if len(head) < 5:
            return None
        flags, n = struct.unpack(">BI", head)
        return flags, json.loads(self.response.read(n))

    def collect(self):
        try:
            while (m := self.read()) is not None:
                with self.changed:
                    if m[0] == 2:
                        self.end = m[1]
                    elif "keepalive" in m[1]:
                        self.keepalives += 1
                    else:
                        self.events.append(m[1]["filesystem"])
                    self.changed.notify_all()
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # the test has left

    def wait(self, ready):
        with self.changed:
            assert self.changed.wait_for(lambda: ready(self), DEADLINE), self.seen()

    def seen(self):
        return [(e["name"], e["type"].removeprefix("EVENT_TYPE_")) for e in self.events]

    def expect(self, *want):
        """All of these come, in this order, whatever is between."""
        def ready(_):
            rest = iter(self.seen())
            return all(w in rest for w in want)
        self.wait(ready)

    def close(self):
        sock = self.conn.sock or self.response.fp.raw._sock
        sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.conn.close()


def mark(watch, folder, name="zzz-mark"):
    """Everything that happened before is seen when this is."""
    (folder / name).touch()
    watch.expect((name, "CREATE"))


# --- WatchDir -------------------------------------------------------------------------------------


def test_what_happens_in_a_directory_is_told(agent, tmp_path):
    d = tmp_path / "d"
    d.mkdir()
    (d / "old").write_text("old")
    w = Watch(agent, "d")
    (d / "new").write_text("content")
    (d / "old").chmod(0o600)
    (d / "new").rename(d / "newer")
    (d / "old").unlink()
    (d / "sub").mkdir()
    (d / "sub/quiet").write_text("not asked for")
    mark(w, d)
    assert [e for e in w.seen() if e[0] != "zzz-mark"] == [
        ("new", "CREATE"), ("new", "WRITE"), ("old", "CHMOD"), ("new", "RENAME"),
        ("newer", "CREATE"), ("old", "REMOVE"), ("sub", "CREATE")]
    assert all(set(e) == {"name", "type"} for e in w.events)
    w.close()


def test_an_upload_is_seen_as_a_write(agent, tmp_path):
    (tmp_path / "d").mkdir()
    w = Watch(agent, "d")
    for content in (b"one", b"two"):
        assert agent.ask("POST", files("d/x"), content, RAW).status == 200
    mark(w, tmp_path / "d")
    assert {e[0] for e in w.seen()} == {"x", "zzz-mark"}
    assert w.seen().count(("x", "WRITE")) == 2
    w.close()


def test_directories_below_are_watched_if_asked_for(agent, tmp_path):
    d = tmp_path / "d"
    (d / "a/b").mkdir(parents=True)
    w = Watch(agent, d, recursive=True)
    (d / "a/b/x").write_text("x")
    (d / "new").mkdir()
    w.expect(("a/b/x", "CREATE"), ("a/b/x", "WRITE"), ("new", "CREATE"))
    (d / "new/y").write_text("y")
    w.expect(("new/y", "CREATE"), ("new/y", "WRITE"))
    (d / "new/deep/er").mkdir(parents=True)
    (d / "new/deep/er/z").write_text("z")
    w.expect(("new/deep/er/z", "CREATE"), ("new/deep/er/z", "WRITE"))
    shutil.rmtree(d / "new")
    w.expect(("new/deep/er/z", "REMOVE"), ("new/deep/er", "REMOVE"), ("new", "REMOVE"))
    w.close()


def test_nothing_falls_between_a_new_directory_and_its_watch(agent, tmp_path):
    """A storm of new trees: every file is told exactly once as created, and as written."""
    d = tmp_path / "d"
    d.mkdir()
    w = Watch(agent, d, recursive=True)
    for i in range(60):
        deep = d / f"t{i}/a/b"
        deep.mkdir(parents=True)
        for j in range(5):
            (deep / f"f{j}").write_text("x")
            (deep.parent / f"g{j}").write_text("x")
    mark(w, d)
    want = sorted(os.path.relpath(os.path.join(at, n), d)
                  for at, dirs, names in os.walk(d) for n in dirs + names)
    w.wait(lambda w: {n for n, t in w.seen() if t == "CREATE"} >= set(want))
    often = collections.Counter(n for n, t in w.seen() if t == "CREATE")
    assert {n: c for n, c in often.items() if c != 1} == {} and set(often) == set(want)
    written = {n for n, t in w.seen() if t == "WRITE"}
    assert written == {n for n in want if os.path.basename(n)[0] in "fg"}
    w.close()


def test_a_tree_that_moves_in_is_told_and_watched(agent, tmp_path):
    d = tmp_path / "d"
    d.mkdir()
    (tmp_path / "out/a").mkdir(parents=True)
    (tmp_path / "out/a/f").write_text("f")
    w = Watch(agent, d, recursive=True)
    (tmp_path / "out").rename(d / "in")
    w.expect(("in", "CREATE"), ("in/a", "CREATE"), ("in/a/f", "CREATE"), ("in/a/f", "WRITE"))
    (d / "in/a/g").touch()
    w.expect(("in/a/g", "CREATE"))
    w.close()


def test_a_tree_that_moves_within_or_away(agent, tmp_path):
    d = tmp_path / "d"
    (d / "one/deep").mkdir(parents=True)
    (d / "one/deep/old").touch()
    w = Watch(agent, d, recursive=True)
    (d / "one").rename(d / "two")
    (d / "two/deep/f").write_text("f")
    w.expect(("one", "RENAME"), ("two", "CREATE"), ("two/deep/f", "CREATE"),
             ("two/deep/f", "WRITE"))
    assert not any(n == "two/deep/old" for n, _ in w.seen())  # it only moved
    (d / "two").rename(tmp_path / "away")
    mark(w, d)
    before = len(w.events)
    (tmp_path / "away/deep/g").touch()
    (d / "three").mkdir()
    w.expect(("three", "CREATE"))
    assert all(n == "three" or n == "zzz-mark" for n, _ in w.seen()[before:])
    w.close()


def test_entries_come_with_the_events_if_asked_for(agent, tmp_path):
    d = tmp_path / "d"
    d.mkdir()
    w = Watch(agent, "d/", includeEntry=True)
    (d / "x").write_text("hello")
    (d / "x").chmod(0o600)
    w.expect(("x", "CREATE"), ("x", "WRITE"), ("x", "CHMOD"))
    for e in w.events:
        entry = e["entry"]
        assert entry["name"] == "x" and entry["path"] == str(d / "x")
        assert entry["type"] == "FILE_TYPE_FILE" and entry["owner"] == ME
    (d / "x").unlink()
    w.expect(("x", "REMOVE"))
    assert "entry" not in w.events[-1]
    w.close()


def test_the_directory_itself(agent, tmp_path):
    d = tmp_path / "d"
    d.mkdir()
    w = Watch(agent, d)
    d.chmod(0o700)
    w.expect((".", "CHMOD"))
    d.rmdir()
    w.expect((".", "REMOVE"))
    w.close()


def test_names_of_any_bytes_are_told(agent, tmp_path):
    (tmp_path / "d").mkdir()
    w = Watch(agent, "d", includeEntry=True)
    for name in (b"new\nline", b"latin\xe9", "ü".encode(), b"n" * 255):
        open(os.fsencode(tmp_path / "d") + b"/" + name, "w").close()
    w.expect(("new\nline", "CREATE"), ("latin?", "CREATE"), ("ü", "CREATE"), ("n" * 255, "CREATE"))
    w.close()


def test_what_cannot_be_watched(agent, tmp_path):
    (tmp_path / "f").touch()
    for path, headers, code, text in [
        ("no", {}, "not_found", "path not found"),
        ("f/x", {}, "not_found", "path not found"),
        ("f", {}, "invalid_argument", "path is not a directory"),
        ("~x/y", {}, "invalid_argument", "home"),
        ("", as_user("eve"), "unauthenticated", "invalid username: 'eve'"),
    ]:
        error = Watch(agent, path, headers).end["error"]
        assert error["code"] == code and text in error["message"]
        refused(agent, code, text, "CreateWatcher", headers, path=path)
    assert Watch(agent, "", recursive="yes").end["error"]["code"] == "invalid_argument"


def test_a_watch_has_a_deadline(agent, tmp_path):
    w = Watch(agent, "", {"Connect-Timeout-Ms": "300"})
    w.wait(lambda w: w.end)
    assert w.end == {"error": {"code": "deadline_exceeded",
                               "message": "context deadline exceeded"}}


def test_a_watch_shows_that_it_lives(agent, tmp_path):
    w = Watch(agent, "", {"Keepalive-Ping-Interval": "1"})
    w.wait(lambda w: w.keepalives >= 2)
    w.close()


def test_watches_that_leave_take_nothing_with_them(agent, tmp_path):
    (tmp_path / "d/e").mkdir(parents=True)
    fds = lambda: len(os.listdir(f"/proc/{agent.proc.pid}/fd"))
    before = fds()
    for _ in range(20):
        Watch(agent, "d", recursive=True).close()
    limit = time.monotonic() + DEADLINE
    while fds() > before:
        assert time.monotonic() < limit
        time.sleep(0.02)


def queue_length():
    with open("/proc/sys/fs/inotify/max_queued_events") as f:
        return int(f.read())


def test_a_client_that_does_not_read_is_told_what_it_lost(agent, tmp_path):
    """The kernel's queue runs over while nobody takes events: the stream says so."""
    d = tmp_path / "d"
    d.mkdir()
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(DEADLINE)
    s.connect(("127.0.0.1", agent.port))
    body = envelope({"path": str(d)})
    s.sendall(b"POST /filesystem.Filesystem/WatchDir HTTP/1.1\r\nHost: x\r\nContent-Type: "
              b"application/connect+json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert s.recv(1024).startswith(b"HTTP/1.1 200")
    before = agent.rss()
    a, b = d / ("a" * 200), d / ("b" * 200)
    a.touch()
    for _ in range(queue_length() // 2 + 30_000):
        os.rename(a, b)  # two events that the kernel cannot fold into one
        a, b = b, a
    assert agent.rss() - before < 16 * 1024 * 1024
    got = b""
    while b"data_loss" not in got:
        piece = s.recv(65536)
        assert piece, "it ended without a word"
        got = got[-100:] + piece
    s.close()


# --- watchers that are polled -----------------------------------------------------------------------


def fetch(agent, watcher, want):
    """Ask until all of these came, in this order; returns everything seen."""
    seen, limit = [], time.monotonic() + DEADLINE
    while True:
        for e in good(agent, "GetWatcherEvents", watcherId=watcher)["events"]:
            seen.append((e["name"], e["type"].removeprefix("EVENT_TYPE_")))
        rest = iter(seen)
        if all(w in rest for w in want):
            return seen
        assert time.monotonic() < limit, seen
        time.sleep(0.02)


def test_events_are_kept_until_they_are_fetched(agent, tmp_path):
    (tmp_path / "d").mkdir()
    w = good(agent, "CreateWatcher", path="d", recursive=True)["watcherId"]
    assert w[0] == "w" and len(w) == 21
    assert good(agent, "GetWatcherEvents", watcherId=w) == {"events": []}
    (tmp_path / "d/x").write_text("x")
    (tmp_path / "d/sub").mkdir()
    fetch(agent, w, [("x", "CREATE"), ("x", "WRITE"), ("sub", "CREATE")])
    (tmp_path / "d/sub/y").write_text("y")
    seen = fetch(agent, w, [("sub/y", "CREATE"), ("sub/y", "WRITE")])
    assert not any(n == "x" for n, _ in seen)  # each one once
    assert good(agent, "RemoveWatcher", watcherId=w) == {}
    for method in ("GetWatcherEvents", "RemoveWatcher"):
        refused(agent, "not_found", "not found", method, watcherId=w)
    refused(agent, "not_found", "not found", "GetWatcherEvents")


def test_a_polled_watcher_tells_all_that_an_upload_does(agent, tmp_path):
    """As if it were made, given to its owner and written in its place."""
    (tmp_path / "d/sub").mkdir(parents=True)
    w = good(agent, "CreateWatcher", path="d", recursive=True)["watcherId"]
    for name, content, more in (("full", b"x", ["WRITE"]), ("empty", b"", [])):
        assert agent.ask("POST", files(f"d/sub/{name}"), content, RAW).status == 200
        seen = fetch(agent, w, [(f"sub/{name}", kind) for kind in ("CREATE", "CHMOD", *more)])
        assert len(seen) == 2 + len(more), seen


def pipelined(agent, *requests):
    """All sent before the first is answered: the agent finds the next one as soon as it has answered."""
    head = "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n"
    sent = b"".join(head.format(target, kind, len(body)).encode() + body for target, kind, body in requests)
    with socket.create_connection(("127.0.0.1", agent.port), DEADLINE) as s, s.makefile("rb") as answers:
        s.sendall(sent)
        for _ in requests:
            status, headers = answers.readline(), http.client.parse_headers(answers)
            body = answers.read(int(headers["Content-Length"]))
            assert b" 200 " in status, (status, body)
    return json.loads(body)  # of the last


def test_who_writes_and_then_asks_is_told_of_the_write(agent, tmp_path):
    (tmp_path / "d").mkdir()
    w = good(agent, "CreateWatcher", path="d", recursive=True)["watcherId"]
    events = pipelined(agent,
                       ("/filesystem.Filesystem/MakeDir", "application/json", b'{"path": "d/new"}'),
                       (files("d/new/x"), RAW["Content-Type"], b"x"),
                       ("/filesystem.Filesystem/GetWatcherEvents", "application/json",
                        json.dumps({"watcherId": w}).encode()))["events"]
    seen = [(e["name"], e["type"]) for e in events]
    assert ("new", "EVENT_TYPE_CREATE") in seen and ("new/x", "EVENT_TYPE_WRITE") in seen


def test_entries_of_a_polled_watcher(agent, tmp_path):
    (tmp_path / "d").mkdir()
    w = good(agent, "CreateWatcher", path="d", include_entry=True)["watcherId"]
    (tmp_path / "d/x").mkdir()
    limit, events = time.monotonic() + DEADLINE, []
    while not events:
        events = good(agent, "GetWatcherEvents", watcherId=w)["events"]
        assert time.monotonic() < limit
    assert events[0]["entry"]["type"] == "FILE_TYPE_DIRECTORY"


def test_the_number_of_watchers_is_bounded(agent, tmp_path):
    made = []
    while True:
        r = call(agent, "CreateWatcher", path="")
        if r.status != 200:
            break
        made.append(r.json["watcherId"])
    assert r.status == 429 and r.json["code"] == "resource_exhausted"
    assert 0 < len(made) <= 256 and len(set(made)) == len(made)
    good(agent, "RemoveWatcher", watcherId=made[0])
    good(agent, "CreateWatcher", path="")


def test_a_polled_watcher_says_what_it_lost(agent, tmp_path):
    d = tmp_path / "d"
    d.mkdir()
    w = good(agent, "CreateWatcher", path="d", recursive=True)["watcherId"]
    before = agent.rss()
    a, b = d / ("a" * 200), d / ("b" * 200)
    a.touch()
    lost = None
    for _ in range(100):
        for _ in range(queue_length() // 2):
            os.rename(a, b)
            a, b = b, a
        if agent.rss() - before > 32 * 1024 * 1024:
            pytest.fail("it keeps too much")
    (d / "late").mkdir()  # its own event is lost
    for _ in range(100):
        r = call(agent, "GetWatcherEvents", watcherId=w)
        if r.status != 200:
            lost = r.json
            break
        time.sleep(0.05)
    assert lost["code"] == "data_loss" and "lost" in lost["message"]
    (d / "late/x").touch()  # afterwards all is well, also in what was made meanwhile
    fetch(agent, w, [("late/x", "CREATE")])


# --- file systems -----------------------------------------------------------------------------------


@pytest.mark.skipif(not ROOT, reason="mounts file systems")
def test_file_systems_of_the_kernel_are_not_entered(tmp_path):
    proc = tmp_path / "d/proc"
    proc.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "proc", "proc", proc]).returncode != 0:
        pytest.skip("no mounting here")
    agent = Agent(tmp_path)
    try:
        before = time.monotonic()
        w = Watch(agent, "d", recursive=True)
        assert time.monotonic() - before < 5
        mark(w, tmp_path / "d")
        w.close()
    finally:
        agent.stop()
        subprocess.run(["umount", proc], check=True)


# --- metrics ----------------------------------------------------------------------------------------


def test_metrics(agent):
    def ask():
        return json.loads(agent.ask("GET", "/metrics").data)
    m = ask()
    assert list(m) == ["ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache",
                       "mem_total_mib", "mem_used_mib", "disk_used", "disk_total"]
    assert abs(m["ts"] - time.time()) < 10 and m["cpu_count"] == os.cpu_count()
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert m["mem_total"] == total and m["mem_total_mib"] == total >> 20
    assert 0 < m["mem_used"] < total and m["mem_used_mib"] == m["mem_used"] >> 20
    assert 0 < m["disk_used"] <= m["disk_total"]
    assert m["disk_total"] == shutil.disk_usage("/").total
    spin = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        time.sleep(1)  # of work, to be measured
        assert 0 < ask()["cpu_used_pct"] <= 100
    finally:
        spin.kill()
        spin.wait()


def test_metrics_ask_for_a_token(agent):
    assert give_identity(agent).status == 200
    assert agent.ask("GET", "/metrics").status == 401
    assert agent.ask("GET", "/metrics", headers={"X-Access-Token": "client-token"}).status == 200
