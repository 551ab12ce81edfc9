"""test_silence.py - commands that say nothing for long, behind a proxy that cuts connections on which nothing moves.

HOTCELL_SILENT_S (100) seconds of silence, HOTCELL_IDLE_S (20) seconds until the proxy cuts; the long suite asks for 900
and 60. All clients wait at the same time.
"""

import asyncio
import concurrent.futures
import contextlib
import os
import socket
import subprocess
import threading
import time

import pytest

from engine import artefact
from process_stream import ProcessStream, rpc
from server import Server, wait_for

SILENT_S = int(os.environ.get("HOTCELL_SILENT_S", "100"))
IDLE_S = int(os.environ.get("HOTCELL_IDLE_S", "20"))
PATIENCE_S = SILENT_S + 300
COMMAND = f"echo begun; sleep {SILENT_S}; echo over; exit 7"


class Proxy:
    """Passes bytes on, and cuts off whoever is silent both ways for too long."""

    def __init__(self, to_port):
        self.to_port, self.cut, self.port = to_port, 0, None
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        assert self.ready.wait(30)
        return self

    def __exit__(self, *exc):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def run(self):
        async def listen():
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
        self.loop.create_task(listen())
        self.loop.run_forever()

    async def serve(self, reader, writer):
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.to_port)
        moved = [time.monotonic()]
        tasks = [asyncio.create_task(self.copy(reader, to_writer, moved)),
                 asyncio.create_task(self.copy(to_reader, writer, moved))]
        while not all(t.done() for t in tasks):
            left = moved[0] + IDLE_S - time.monotonic()
            if left <= 0:
                self.cut += 1
                break
            await asyncio.wait(tasks, timeout=left)
        for t in tasks:
            t.cancel()
        for w in (writer, to_writer):
            w.transport.abort()

    async def copy(self, reader, writer, moved):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                moved[0] = time.monotonic()
                writer.write(data)
                await writer.drain()
            await writer.drain()
            writer.write_eof()


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture(scope="module")
def box(server):
    box = server.create()
    yield box
    server.delete(box)


@pytest.fixture(scope="module")
def proxy(server):
    with Proxy(server.port) as p:
        yield p


# --- the clients -------------------------------------------------------------------------------------


def check(stream, wanted):
    assert stream.all_of("stdout") == wanted
    assert stream.exit_code == 7
    assert stream.keepalives >= SILENT_S // IDLE_S - 1


def start(server, box, proxy, **headers):
    with ProcessStream.start(server, box, ["/bin/sh", "-c", COMMAND], port=proxy.port, seconds=PATIENCE_S,
                             **headers) as s:
        check(s, b"begun\nover\n")


def start_with_long_interval(server, box, proxy):
    """A client that asks for a sign of life so seldom that it would be cut off."""
    start(server, box, proxy, **{"Keepalive-Ping-Interval": "50"})


def attach(server, box, proxy):
    """The process was started by somebody else, who is gone."""
    script = COMMAND.replace("echo begun", "read x; echo begun")
    with ProcessStream.start(server, box, ["/bin/sh", "-c", script], stdin=True) as first:
        pid = first.pid
    with ProcessStream.connect(server, box, pid, port=proxy.port, seconds=PATIENCE_S) as s:
        rpc(server, box, "process.Process", "SendInput", {"process": {"pid": pid}, "input": {"stdin": "Cg=="}})
        check(s, b"begun\nover\n")


PYTHON = f"""
from e2b import CommandExitException, Sandbox
import sys
box = Sandbox.connect(sys.argv[1])
try:
    box.commands.run({COMMAND!r}, timeout=0)
except CommandExitException as e:
    print(e.exit_code, repr(e.stdout))
"""
JAVASCRIPT = f"""
import {{ Sandbox, CommandExitError }} from 'e2b'
const box = await Sandbox.connect(process.argv[2])
try {{
  await box.commands.run({COMMAND!r}, {{ timeoutMs: 0 }})
}} catch (e) {{
  if (!(e instanceof CommandExitError)) throw e
  console.log(e.exitCode, JSON.stringify(e.stdout))
}}
"""


def run_sdk(server, proxy, command, **more):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("E2B_", "PYTHON")) and "proxy" not in name.lower()}
    env = {**kept, "E2B_API_URL": server.url, "E2B_SANDBOX_URL": f"http://127.0.0.1:{proxy.port}",
           "E2B_API_KEY": server.key, "PYTHONDONTWRITEBYTECODE": "1"}
    r = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S, **more)
    assert r.returncode == 0, r.stderr[-3000:]
    return r.stdout.strip()


def python_sdk(server, box, proxy, sdks, folder):
    out = run_sdk(server, proxy, [sdks / "python/bin/python", "-c", PYTHON, box["sandboxID"]])
    assert out == r"7 'begun\nover\n'"


def javascript_sdk(server, box, proxy, sdks, folder):
    (folder / "node_modules").symlink_to(sdks / "js/node_modules")
    (folder / "silent.mjs").write_text(JAVASCRIPT)
    own = sdks / "js/node_modules/.bin/node"
    out = run_sdk(server, proxy, [own if own.exists() else "node", "silent.mjs", box["sandboxID"]], cwd=folder)
    assert out == r'7 "begun\nover\n"'


def see_the_cut(proxy):
    """The proxy does what it is here for."""
    with socket.create_connection(("127.0.0.1", proxy.port), IDLE_S * 3) as s:
        s.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 ")  # 204, or 503: no template yet; the gateway would keep it for minutes
        begun = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            while s.recv(4096):
                pass
        assert IDLE_S - 2 < time.monotonic() - begun < IDLE_S * 2
    assert proxy.cut > 0


def test_a_silent_command_ends_with_its_exit_code(server, box, proxy, tmp_path):
    sdks = artefact("sdks") / "newest"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(start, server, box, proxy),
                   pool.submit(start_with_long_interval, server, box, proxy),
                   pool.submit(attach, server, box, proxy),
                   pool.submit(python_sdk, server, box, proxy, sdks, tmp_path),
                   pool.submit(javascript_sdk, server, box, proxy, sdks, tmp_path),
                   pool.submit(see_the_cut, proxy)]
        for one in concurrent.futures.as_completed(waiting):
            one.result()


# --- clients that leave ----------------------------------------------------------------------------------

TALK = "echo before; read x; echo after; read y; echo last; exit 5"


def listed(server, box):
    return [p["pid"] for p in rpc(server, box, "process.Process", "List", {}).get("processes", [])]


def say(server, box, pid):
    rpc(server, box, "process.Process", "SendInput", {"process": {"pid": pid}, "input": {"stdin": "Cg=="}})


def read_line(stream):
    got = b""
    for name, data in stream.output():
        assert name == "stdout"
        got += data
        if got.endswith(b"\n"):
            return got
    raise AssertionError(f"it ended: {got}, {stream.end}")


def test_a_client_that_comes_back_sees_what_follows(server, box):
    first = ProcessStream.start(server, box, ["/bin/sh", "-c", TALK], stdin=True)
    assert read_line(first) == b"before\n"
    first.connection.sock.close()  # without a word
    first.connection.close()
    assert first.pid in listed(server, box)
    with ProcessStream.connect(server, box, first.pid) as second:
        say(server, box, first.pid)
        assert read_line(second) == b"after\n"
    with ProcessStream.connect(server, box, first.pid) as third:
        say(server, box, first.pid)
        assert third.all_of("stdout") == b"last\n"
        assert third.exit_code == 5
    wait_for(lambda: first.pid not in listed(server, box), "it is no longer listed", 30, 0.1)


def test_a_gateway_that_restarts_loses_no_process(server, box):
    first = ProcessStream.start(server, box, ["/bin/sh", "-c", TALK], stdin=True)
    assert read_line(first) == b"before\n"
    server.restart("gateway")
    with ProcessStream.connect(server, box, first.pid) as second:
        say(server, box, first.pid)
        assert read_line(second) == b"after\n"
        say(server, box, first.pid)
        assert second.all_of("stdout") == b"last\n"
        assert second.exit_code == 5
