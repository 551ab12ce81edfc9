"""process.Process of the guest agent beyond Start: attach, list, feed, signal, all on the host."""

import base64
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import struct
import threading
import time

import pytest

from test_agent import (MIB, Agent, Result, Stream, agent, cgroup, envelope,  # noqa: F401
                        fifo, give_identity, read_line, run, sh, start_body, wait_gone)


class Rpc:
    """A unary answer: status, message."""

    def __init__(self, agent, method, message, headers=None):
        h = {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        h.update(headers or {})
        body = message if isinstance(message, bytes) else json.dumps(message)
        r = agent.ask("POST", f"/process.Process/{method}", body, h)
        self.status, self.message = r.status, json.loads(r.data)
        self.type = r.headers["Content-Type"]

    def ok(self):
        assert (self.status, self.message, self.type) == (200, {}, "application/json")

    def failed(self, code, text=None):
        status = {"invalid_argument": 400, "not_found": 404, "internal": 500, "unknown": 500,
                  "unimplemented": 501, "deadline_exceeded": 504}[code]
        assert (self.status, self.message["code"]) == (status, code), self.message
        assert text is None or text in self.message["message"], self.message


class Attached(Stream):
    """One Connect call."""

    def __init__(self, agent, selector, headers=None):
        self.conn = agent.connect()
        h = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}
        h.update(headers or {})
        self.conn.request("POST", "/process.Process/Connect", envelope({"process": selector}), h)
        self.response = self.conn.getresponse()


def begin(agent, script, **more):
    """A running process: its stream after the start event, and its pid."""
    headers = more.pop("headers", None)
    more.setdefault("stdin", True)
    s = Stream(agent, start_body("/bin/sh", ["-c", script], **more), headers)
    return s, s.next()[1]["event"]["start"]["pid"]


def b64(data):
    return base64.b64encode(data).decode()


def send(agent, pid, data, **more):
    return Rpc(agent, "SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(data)}}, **more)


def close_stdin(agent, pid):
    return Rpc(agent, "CloseStdin", {"process": {"pid": pid}})


def kill(agent, pid, name="SIGNAL_SIGKILL"):
    return Rpc(agent, "SendSignal", {"process": {"pid": pid}, "signal": name})


def listed(agent):
    return Rpc(agent, "List", {}).message["processes"]


def output(stream, n):
    """At least n bytes of output, of any kind."""
    got = bytearray()
    while len(got) < n:
        event = stream.next()[1]["event"]
        for text in event.get("data", {}).values():
            got += base64.b64decode(text)
        assert "end" not in event, bytes(got)
    return bytes(got)


# --- input -----------------------------------------------------------------------------------


def test_what_is_sent_comes_back(agent):
    s, pid = begin(agent, "exec cat")
    send(agent, pid, b"no newline").ok()
    assert output(s, 10) == b"no newline"
    send(agent, pid, b"").ok()
    data = os.urandom(5000)
    send(agent, pid, data).ok()
    assert output(s, 5000) == data
    close_stdin(agent, pid).ok()
    assert Result(s).end == {"exited": True, "status": "exit status 0"}


def test_an_end_of_input_may_be_asked_for_twice(agent):
    s, pid = begin(agent, "cat; exec sleep 1000")
    close_stdin(agent, pid).ok()
    close_stdin(agent, pid).ok()
    kill(agent, pid).ok()
    s.drop()


def test_input_larger_than_any_pipe(agent):
    data = os.urandom(2 * MIB)
    s, pid = begin(agent, "exec cat")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sent = pool.submit(send, agent, pid, data)
        assert output(s, len(data)) == data
        sent.result().ok()
    close_stdin(agent, pid).ok()
    assert Result(s).end["exited"]


def test_writers_wait_and_come_in_order(agent, tmp_path):
    go = fifo(tmp_path / "go")
    s, pid = begin(agent, "read x < go; exec cat")
    first, second = b"1" * 300_000, b"2" * 300_000
    before = agent.rss()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        a = pool.submit(send, agent, pid, first)
        with contextlib.suppress(concurrent.futures.TimeoutError):
            a.result(1)
        b = pool.submit(send, agent, pid, second)
        with contextlib.suppress(concurrent.futures.TimeoutError):
            b.result(1)
        assert not a.done() and not b.done()
        assert agent.ask("GET", "/health").status == 204
        assert agent.rss() - before < 8 * MIB
        # the third one does not wait for ever
        send(agent, pid, b"3" * 1000, headers={"Connect-Timeout-Ms": "300"}).failed(
            "deadline_exceeded")
        os.write(go, b"go\n")
        assert output(s, 600_000) == first + second
        a.result().ok()
        b.result().ok()
    kill(agent, pid).ok()
    s.drop()


def test_the_end_of_input_comes_after_what_waits(agent, tmp_path):
    go = fifo(tmp_path / "go")
    s, pid = begin(agent, "read x < go; wc -c")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        a = pool.submit(send, agent, pid, b"1" * 300_000)
        with contextlib.suppress(concurrent.futures.TimeoutError):
            a.result(1)
        close_stdin(agent, pid).ok()
        send(agent, pid, b"more").failed("internal", "stdin not enabled or closed")
        os.write(go, b"go\n")
        a.result().ok()
    assert Result(s).out == b"300000\n"


def test_writers_hear_that_the_process_is_gone(agent):
    s, pid = begin(agent, "exec sleep 1000")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        a = pool.submit(send, agent, pid, b"1" * 300_000)
        with contextlib.suppress(concurrent.futures.TimeoutError):
            a.result(1)
        kill(agent, pid).ok()
        a.result().failed("internal")
    s.drop()


def test_no_input_where_there_is_none(agent):
    s, pid = begin(agent, "exec sleep 1000", stdin=False)
    send(agent, pid, b"x").failed("internal", "stdin not enabled or closed")
    Rpc(agent, "SendInput", {"process": {"pid": pid}, "input": {"pty": b64(b"x")}}).failed(
        "internal", "tty not assigned")
    Rpc(agent, "Update", {"process": {"pid": pid}, "pty": {"size": {"cols": 1, "rows": 1}}}
        ).failed("internal", "tty not assigned")
    close_stdin(agent, pid).ok()
    kill(agent, pid).ok()
    s.drop()
    for call, message in [("SendInput", {"input": {"stdin": ""}}), ("CloseStdin", {}),
                          ("Update", {}), ("SendSignal", {"signal": 9})]:
        Rpc(agent, call, {"process": {"pid": 4194304}, **message}).failed(
            "not_found", "process with pid 4194304 not found")
        Rpc(agent, call, {"process": {"tag": "nö"}, **message}).failed(
            "not_found", "process with tag nö not found")


@pytest.mark.parametrize("call, message", [
    ("SendInput", {}),
    ("SendInput", {"process": {}}),
    ("SendInput", {"process": {"pid": 1, "tag": "x"}, "input": {"stdin": ""}}),
    ("SendInput", {"process": {"pid": 1}, "input": {}}),
    ("SendInput", {"process": {"pid": 1}, "input": {"stdin": "", "pty": ""}}),
    ("SendInput", {"process": {"pid": 1}, "input": {"stdin": "!"}}),
    ("SendInput", {"process": {"pid": -1}, "input": {"stdin": ""}}),
    ("SendSignal", {"process": {"pid": 1}, "signal": "SIGNAL_SIGHUP"}),
    ("SendSignal", {"process": {"pid": 1}, "signal": []}),
    ("Update", {"process": {"pid": 1}, "pty": {"size": 3}, "x": 0, "process ": 1}),
    ("CloseStdin", {"process": "1"}),
    ("CloseStdin", b"{"),
    ("CloseStdin", b""),
])
def test_malformed_messages_are_answered(agent, call, message):
    s, pid = begin(agent, "exec cat")
    if isinstance(message, dict) and message.get("process") == {"pid": 1}:
        message = {**message, "process": {"pid": pid}}
    Rpc(agent, call, message).failed("invalid_argument")
    kill(agent, pid).ok()
    s.drop()


def test_unary_calls_want_json(agent):
    for kind in ["application/connect+json", "application/proto", ""]:
        r = agent.ask("POST", "/process.Process/List", b"{}", {"Content-Type": kind})
        assert r.status == 415


# --- StreamInput -----------------------------------------------------------------------------


def stream_input(agent, messages):
    c = agent.connect()
    body = (m if isinstance(m, bytes) else envelope(m) for m in messages)
    c.request("POST", "/process.Process/StreamInput", body,
              {"Content-Type": "application/connect+json"}, encode_chunked=True)
    r = c.getresponse()
    assert (r.status, r.headers["Content-Type"]) == (200, "application/connect+json")
    data, answers = r.read(), []
    while data:
        flags, n = struct.unpack(">BI", data[:5])
        answers.append((flags, json.loads(data[5 : 5 + n])))
        data = data[5 + n :]
    c.close()
    return answers


def test_a_stream_of_input(agent):
    s, pid = begin(agent, "exec cat")
    data = os.urandom(400_000)

    def messages():
        yield {"start": {"process": {"pid": pid}}}
        for i in range(0, len(data), 100_000):
            yield {"data": {"input": {"stdin": b64(data[i : i + 100_000])}}}
            yield {"keepalive": {}}

    with concurrent.futures.ThreadPoolExecutor() as pool:
        sent = pool.submit(stream_input, agent, messages())
        assert output(s, len(data)) == data
        assert sent.result() == [(0, {}), (2, {})]
    kill(agent, pid).ok()
    s.drop()


@pytest.mark.parametrize("messages, code", [
    ([{"data": {"input": {"stdin": ""}}}], "invalid_argument"),
    ([{"start": {"process": {"pid": 4194304}}}], "not_found"),
    ([{"start": {}}], "invalid_argument"),
    ([{}], "invalid_argument"),
    ([{"start": {}, "keepalive": {}}], "invalid_argument"),
    ([b"\0\0\0\0\5{}"], "invalid_argument"),
    ([b"\2\0\0\0\2{}"], "invalid_argument"),
    ([b"\1"], "invalid_argument"),
    ([b"\0\xff\xff\xff\xff"], "resource_exhausted"),
])
def test_malformed_streams_of_input_are_answered(agent, messages, code):
    ((flags, m),) = stream_input(agent, messages)
    assert (flags, m["error"]["code"]) == (2, code)


# --- attaching -------------------------------------------------------------------------------


def test_a_client_that_vanished_comes_back(agent, tmp_path):
    s, pid = begin(agent, "echo early; while read x; do echo $x; done; exit 5", tag="job")
    assert output(s, 6) == b"early\n"
    s.drop()
    for selector in [{"pid": pid}, {"tag": "job"}]:
        s = Attached(agent, selector)
        assert s.next() == (0, {"event": {"start": {"pid": pid}}})
        send(agent, pid, b"late\n").ok()
        assert output(s, 5) == b"late\n"
        s.drop()
    s = Attached(agent, {"pid": pid})
    close_stdin(agent, pid).ok()
    r = Result(s)
    assert r.pid == pid and r.events[0] == "start"
    assert r.end == {"exitCode": 5, "exited": True, "status": "exit status 5",
                     "error": "exit status 5"}
    assert r.last == {}


def test_an_end_is_told_to_those_who_come_late(agent):
    r = sh(agent, "exit 3", tag="gone")
    for selector in [{"pid": r.pid}, {"tag": "gone"}]:
        late = Result(Attached(agent, selector))
        assert late.events == ["start", "end"] and late.pid == r.pid
        assert late.end == r.end and late.last == {}
    assert listed(agent) == []
    kill(agent, r.pid).failed("not_found")
    s = Attached(agent, {"pid": 4194304})
    assert Result(s).last == {"error": {"code": "not_found",
                                        "message": "process with pid 4194304 not found"}}
    # one that never ran is not remembered
    run(agent, "/nonexistent", tag="never")
    assert Result(Attached(agent, {"tag": "never"})).last["error"]["code"] == "not_found"


def test_many_hear_the_same(agent):
    s, pid = begin(agent, "read x; head -c 300000 /dev/urandom; exit 1")
    others = [Attached(agent, {"pid": pid}) for _ in range(5)]
    for o in others:
        assert "start" in o.next()[1]["event"]
    send(agent, pid, b"\n").ok()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        results = list(pool.map(Result, [s, *others]))
    assert len(results[0].out) == 300000
    for r in results:
        assert r.out == results[0].out and r.end["exitCode"] == 1


def test_the_time_of_a_connect_ends_the_stream_alone(agent):
    s, pid = begin(agent, "exec cat")
    r = Result(Attached(agent, {"pid": pid}, {"Connect-Timeout-Ms": "400"}))
    assert r.events == ["start"]
    assert r.last == {"error": {"code": "deadline_exceeded",
                                "message": "context deadline exceeded"}}
    send(agent, pid, b"alive").ok()
    assert output(s, 5) == b"alive"
    kill(agent, pid).ok()
    s.drop()


def test_the_time_of_a_start_counts_though_its_client_left(agent):
    s, pid = begin(agent, "exec sleep 1000", headers={"Connect-Timeout-Ms": "1000"})
    other = Attached(agent, {"pid": pid})
    s.drop()
    r = Result(other)
    assert r.end == {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"}
    assert r.last == {}


def test_silence_is_filled_for_those_attached(agent):
    s, pid = begin(agent, "exec cat")
    a = Attached(agent, {"pid": pid}, {"Keepalive-Ping-Interval": "1"})
    kinds = [list(a.next()[1]["event"])[0] for _ in range(3)]
    assert kinds == ["start", "keepalive", "keepalive"]
    kill(agent, pid).ok()
    s.drop()


# --- the list --------------------------------------------------------------------------------


def test_the_list_shows_what_was_asked_for(agent, tmp_path):
    assert Rpc(agent, "List", {}).message == {"processes": []}
    body = {"process": {"cmd": "/bin/sh", "args": ["-c", "exec cat"], "envs": {"A": "ü"},
                        "cwd": str(tmp_path), "unknown": 1}, "tag": "t"}
    s = Stream(agent, envelope(body))
    pid = s.next()[1]["event"]["start"]["pid"]
    del body["process"]["unknown"]
    assert listed(agent) == [{"config": body["process"], "pid": pid, "tag": "t"}]
    s.drop()
    plain = Stream(agent, envelope({"process": {"cmd": "cat", "args": [], "envs": {}}}))
    second = plain.next()[1]["event"]["start"]["pid"]
    assert {"config": {"cmd": "cat"}, "pid": second} in listed(agent)
    assert sorted(p["pid"] for p in listed(agent)) == sorted([pid, second])
    kill(agent, pid).ok()
    kill(agent, second).ok()
    assert listed(agent) == []
    plain.drop()


def test_a_long_list_arrives_whole(agent):
    long = "x" * 100_000
    streams = [begin(agent, f"exec cat # {long}") for _ in range(5)]
    shown = listed(agent)
    assert len(shown) == 5 and all(p["config"]["args"][1].endswith(long) for p in shown)
    for s, pid in streams:
        kill(agent, pid).ok()
        s.drop()


def test_the_memory_of_the_list_is_bounded(agent):
    long = "x" * 100_000
    streams, refusal = [], None
    for _ in range(200):
        s = Stream(agent, start_body("/bin/sh", ["-c", f"exec cat # {long}"], stdin=True))
        flags, m = s.next()
        if flags == 2:
            refusal = m
            break
        streams.append((s, m["event"]["start"]["pid"]))
    assert refusal["error"]["code"] == "resource_exhausted"
    for s, pid in streams:
        kill(agent, pid).ok()
        s.drop()
    assert sh(agent, "echo again").out == b"again\n"


# --- signals and ends ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SIGNAL_SIGKILL", 9])
def test_after_a_kill_it_is_gone(agent, name):
    for _ in range(20):
        s, pid = begin(agent, "exec sleep 1000")
        kill(agent, pid, name).ok()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        r = Result(s)
        assert r.end == {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"}
        kill(agent, pid).failed("not_found")


def test_sigterm_may_be_handled(agent):
    s, pid = begin(agent, "trap 'echo bye; exit 9' TERM; echo up; while :; do read x; done")
    assert output(s, 3) == b"up\n"
    kill(agent, pid, "SIGNAL_SIGTERM").ok()
    r = Result(s)
    assert (r.out, r.end["exitCode"]) == (b"bye\n", 9)
    s, pid = begin(agent, "exec sleep 1000")
    kill(agent, pid, 15).ok()
    assert Result(s).end == {"exitCode": -1, "status": "signal: terminated",
                             "error": "signal: terminated"}


def test_other_signals_are_not_implemented(agent):
    s, pid = begin(agent, "exec cat")
    for name in ["SIGNAL_UNSPECIFIED", 0, 1, None]:
        kill(agent, pid, name).failed("unimplemented")
    os.kill(pid, 0)
    kill(agent, pid).ok()
    s.drop()


def test_what_was_said_before_the_kill_is_heard(agent, tmp_path):
    """Also when somebody else holds the pipe open."""
    said = fifo(tmp_path / "said")
    for _ in range(5):
        s, pid = begin(agent, "sleep 1000 & head -c 50000 /dev/zero; echo x > said; wait")
        assert read_line(said) == b"x\n"
        kill(agent, pid).ok()
        r = Result(s)
        assert len(r.out) == 50000 and r.end["status"] == "signal: killed"


def test_a_slow_reader_loses_nothing_while_others_come_and_go(agent):
    s, pid = begin(agent, "read x; head -c 10000000 /dev/urandom | tee copy | cat; exit 0")
    go = threading.Event()

    def visit():
        while not go.is_set():
            v = Attached(agent, {"pid": pid})
            v.next()
            v.drop()

    t = threading.Thread(target=visit)
    t.start()
    send(agent, pid, b"\n").ok()
    time.sleep(0.5)  # a reader that does something else meanwhile
    r = Result(s)
    go.set()
    t.join()
    assert r.out == (agent.root / "copy").read_bytes() and len(r.out) == 10000000
    assert r.end["exited"]


def test_the_other_users_of_the_token_are_all_refused(agent):
    give_identity(agent)
    for call in ["List", "SendInput", "CloseStdin", "SendSignal", "Update"]:
        r = agent.ask("POST", f"/process.Process/{call}", b"{}",
                      {"Content-Type": "application/json"})
        assert r.status == 401
    for call in ["Connect", "StreamInput"]:
        r = agent.ask("POST", f"/process.Process/{call}", envelope({}),
                      {"Content-Type": "application/connect+json"})
        assert r.status == 401


def test_it_stops_cleanly_while_calls_wait(tmp_path):
    agent = Agent(tmp_path)
    s, pid = begin(agent, "exec sleep 1000")
    a = Attached(agent, {"pid": pid})
    socks = []
    for method, body, kind in [
        ("SendInput", json.dumps({"process": {"pid": pid},
                                  "input": {"stdin": b64(b"x" * 500_000)}}).encode(),
         "application/json"),
        ("StreamInput", envelope({"start": {"process": {"pid": pid}}})
         + envelope({"data": {"input": {"stdin": b64(b"x" * 500_000)}}}),
         "application/connect+json"),
    ]:
        k = socket.create_connection(("127.0.0.1", agent.port))
        k.sendall(f"POST /process.Process/{method} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
                  f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        socks.append(k)
    assert agent.ask("GET", "/health").status == 204
    agent.stop()
    os.kill(pid, signal.SIGKILL)
    s.drop()
    a.drop()


# --- a cgroup for every command --------------------------------------------------------------


def group_of(pid):
    with open(f"/proc/{pid}/cgroup") as f:
        return next(l for l in f if l.startswith("0::")).strip().rsplit("/", 1)[1]


def test_every_command_has_its_cgroup_until_there_are_too_many(tmp_path, cgroup):
    agent = Agent(tmp_path, "--cgroup", cgroup)
    running = [begin(agent, "exec cat") for _ in range(130)]
    groups = [group_of(pid) for _, pid in running]
    assert sorted(groups[:128]) == sorted(f"command-{i}" for i in range(128))
    assert groups[128:] == ["rest", "rest"]
    for s, pid in running:
        kill(agent, pid).ok()
        s.drop()
    s, pid = begin(agent, "exec cat")
    assert group_of(pid) == "command-0"  # used again, as nobody is left in it
    kill(agent, pid).ok()
    s.drop()
    # a child that lives on keeps the place to itself
    r = sh(agent, "sleep 1000 >/dev/null 2>&1 & echo $!")
    orphan = int(r.out)
    assert group_of(orphan) == "command-0"
    s, pid = begin(agent, "exec cat")
    assert group_of(pid) == "command-1"
    kill(agent, pid).ok()
    os.kill(orphan, signal.SIGKILL)
    s.drop()
    agent.stop()
