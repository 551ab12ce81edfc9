"""kit.py - what the checks stand on: one text for both halves of the Python package.

Checks are written with `await`. For the blocking half, Calm dresses its objects so that a call can be awaited;
it is made when it is awaited, and nothing else happens in between. So the blocking half is driven without any event
loop, as its users would.
"""

import asyncio
import concurrent.futures
import contextlib
import http.client
import json
import os
import time
import traceback
import urllib.parse

import e2b

PATIENCE = 300  # seconds; machines may be emulated
TERMINAL = 120
NOT_AWAITED = {"get_host", "download_url", "upload_url", "get_mcp_url"}


# --- the blocking half, dressed ---

class Call:
    def __init__(self, call):
        self.call = call

    def __await__(self):
        return dress(self.call())
        yield  # makes it a generator


class Calm:
    def __init__(self, bare):
        self.bare = bare

    def __getattr__(self, name):
        value = getattr(self.bare, name)
        if not callable(value) or name in NOT_AWAITED:
            return dress(value)
        if self.bare is e2b.Sandbox and name in ("list", "list_snapshots"):
            return lambda *args, **named: dress(value(*args, **named))
        return lambda *args, **named: Call(lambda: value(*args, **named))


def dress(value):
    blocking = type(value).__module__.startswith("e2b.sandbox_sync")
    return Calm(value) if blocking else value


def drive(coroutine):
    """Runs a check of the blocking half: there is nothing in it that could wait for something else."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a check of the blocking half awaited something that is not in the kit")


# --- saying what is wrong ---

def same(got, want):
    assert got == want, f"got {got!r:.800}, want {want!r:.800}"


@contextlib.contextmanager
def raises(*kinds):
    caught = type("Caught", (), {"value": None})()
    try:
        yield caught
    except kinds as error:
        caught.value = error
        return
    raise AssertionError(f"no {' or '.join(k.__name__ for k in kinds)}")


# --- what a check is given ---

class Kit:
    """Of one worker. `box()` is a sandbox that its checks share; `create()` makes one for this check alone."""

    def __init__(self, half):
        self.is_async = half == "async"
        self.Sandbox = e2b.AsyncSandbox if self.is_async else Calm(e2b.Sandbox)
        self.shared = None
        self.name = ""
        self.own = []

    async def box(self):
        if not self.shared:
            self.shared = await self.Sandbox.create(timeout=3600, metadata={"shared": "yes"},
                                                    envs={"GREETING": "hello"})
        return self.shared

    async def create(self, *args, timeout=600, **more):
        box = await self.Sandbox.create(*args, timeout=timeout, **more)
        self.own.append(box)
        return box

    async def folder(self, box):
        """A new one in the shared sandbox; its path."""
        path = f"/tmp/{self.name}"
        await box.files.make_dir(path)
        return path

    async def begin(self, check):
        self.name = f"{check.replace('.', '-')}-{os.urandom(4).hex()}"

    async def end(self, well):
        """What was made for a check goes; the shared one too when the check failed in it."""
        if not well and self.shared:
            self.own.append(self.shared)
            self.shared = None
        for box in self.own:
            with contextlib.suppress(Exception):
                await box.kill()
        self.own = []

    async def close(self):
        if self.shared:
            await self.shared.kill()

    # --- waiting ---

    async def sleep(self, seconds):
        if self.is_async:
            await asyncio.sleep(seconds)
        else:
            time.sleep(seconds)

    async def until(self, holds, what, seconds=PATIENCE):
        """Waits until `holds`, a coroutine function, gives something true; returns that."""
        deadline = time.monotonic() + seconds
        while True:
            value = await holds()
            if value:
                return value
            assert time.monotonic() < deadline, f"still not: {what}"
            await self.sleep(0.05)

    async def together(self, makers):
        """Results of coroutine functions that run side by side."""
        if self.is_async:
            return await asyncio.gather(*(make() for make in makers))
        with concurrent.futures.ThreadPoolExecutor(len(makers)) as pool:
            return list(pool.map(lambda make: drive(make()), makers))

    def callback(self, function):
        """A coroutine function as a callback of the client."""
        return function if self.is_async else lambda *args: drive(function(*args))

    async def all_of(self, pages):
        found = []
        while pages.has_next:
            found += await pages.next_items()
        return found

    # --- where the two halves differ ---

    async def terminal(self, box, cols=80, rows=24, **more):
        terminal = Terminal(self, box)
        size = e2b.PtySize(cols=cols, rows=rows)
        if self.is_async:
            more["on_data"] = terminal.hear
        terminal.handle = await box.pty.create(size, timeout=TERMINAL, **more)
        return terminal

    async def terminal_again(self, box, pid):
        terminal = Terminal(self, box)
        more = {"on_data": terminal.hear} if self.is_async else {}
        terminal.handle = await box.pty.connect(pid, timeout=TERMINAL, **more)
        return terminal

    async def watch(self, box, path, **more):
        watch = Watch(self)
        if self.is_async:
            more.update(on_event=watch.events.append, timeout=PATIENCE)
        watch.handle = await box.files.watch_dir(path, **more)
        return watch

    async def stream(self, pieces):
        """Pieces as the source of an upload: what each half takes."""
        if not self.is_async:
            return iter(pieces)

        async def give():
            for piece in pieces:
                yield piece
        return give()

    async def drain(self, stream):
        """All bytes of a download."""
        if self.is_async:
            return b"".join([piece async for piece in stream])
        return b"".join(stream)


class Terminal:
    """A terminal whose output is kept."""

    def __init__(self, kit, box):
        self.kit, self.box, self.handle, self.data = kit, box, None, b""

    def hear(self, data):
        self.data += data

    @property
    def pid(self):
        return self.handle.pid

    @property
    def text(self):
        return self.data.decode(errors="replace")

    async def send(self, text):
        await self.box.pty.send_stdin(self.pid, text.encode())

    async def hear_until(self, fragment):
        async def heard():
            if not self.kit.is_async and fragment not in self.text:
                for _, _, data in self.handle.bare:
                    self.hear(data or b"")
                    if fragment in self.text:
                        break
            return fragment in self.text
        await self.kit.until(heard, f"{fragment!r} in {self.text!r}")

    async def ended(self):
        """Its exit code."""
        try:
            return (await self.handle.wait()).exit_code
        except e2b.CommandExitException as error:
            return error.exit_code


class Watch:
    """A watch whose events are kept."""

    def __init__(self, kit):
        self.kit, self.handle, self.events = kit, None, []

    async def look(self):
        if not self.kit.is_async:
            self.events += await self.handle.get_new_events()
        return self.events

    def seen(self):
        return [(event.name, event.type.value) for event in self.events]

    async def until(self, *wanted):
        """Waits for events (NAME, KIND)."""
        async def came():
            await self.look()
            return all(event in self.seen() for event in wanted)
        try:
            await self.kit.until(came, "", 30)
        except AssertionError:
            raise AssertionError(f"want {wanted}, came {self.seen()}") from None


# --- plain HTTP, as somebody without the package ---

class Answer:
    def __init__(self, status, body):
        self.status, self.body = status, body

    @property
    def json(self):
        return json.loads(self.body)


def ask(method, url, body=None, headers=()):
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=60)
    try:
        connection.request(method, parts.path + ("?" + parts.query if parts.query else ""), body, dict(headers))
        answer = connection.getresponse()
        return Answer(answer.status, answer.read())
    finally:
        connection.close()


def ask_host(host, path="/", method="GET", headers=()):
    """A request to a sandbox's host name, at the server's address: there is no DNS here."""
    return ask(method, os.environ["PLAIN_URL"] + path, headers={"Host": host, **dict(headers)})


def ask_agent(box, path, method="GET", body=None, headers=()):
    """A request to the sandbox's agent with no token but what `headers` say."""
    return ask(method, os.environ["PLAIN_URL"] + path, body,
               {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "49983", **dict(headers)})


def why(error):
    """The last lines of a traceback, for the results."""
    return "".join(traceback.format_exception(error)[-3:])[-1500:]
