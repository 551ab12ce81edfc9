"""driver.py - hotcell-driver as a Python object: ask, and wait for the answer.

    with Driver(warden="/run/.../warden.sock", state="/var/lib/...") as d:
        d.call("template", template="t1", kernel=..., disk=...)
        box = d.call("create", template="t1")
        print(d.exec(box["sandbox"], "echo hello").stdout)

        waiting = [d.submit("create", template="t1") for _ in range(10)]   # at the same time
        boxes = [w.wait() for w in waiting]

An answer that is not ok raises DriverError, with .code and .reason; a driver that ended raises
DriverGone, with what it wrote to its standard error. Nothing polls.
HOTCELL_BUILD names the build folder.
"""

import base64
import collections
import json
import os
import pathlib
import subprocess
import tempfile
import threading

ANSWER_SECONDS = 180
END_SECONDS = 10

Result = collections.namedtuple("Result", "stdout stderr exit_code exited status answer")


class DriverError(Exception):
    """The driver answered that something failed."""

    def __init__(self, op, answer):
        self.op, self.answer = op, answer
        self.code = answer.get("code")
        self.reason = answer.get("reason")
        why = f" ({self.reason})" if self.reason else ""
        super().__init__(f"{op}: {self.code}{why}: {answer.get('error')}")


class DriverGone(Exception):
    """The driver ended, or was never there."""


class Waiting:
    """An operation that was begun."""

    def __init__(self, driver, op):
        self.driver, self.op = driver, op
        self.answer = None
        self.done = threading.Event()

    def wait(self, seconds=ANSWER_SECONDS):
        """The answer, as a dict."""
        if not self.done.wait(seconds):
            raise TimeoutError(f"{self.op}: no answer in {seconds} s")
        if self.answer is None:
            raise DriverGone(f"{self.op}: the driver ended: {self.driver.errors()}")
        if not self.answer.get("ok"):
            raise DriverError(self.op, self.answer)
        return self.answer

    def error(self, seconds=ANSWER_SECONDS):
        """The DriverError that this operation must end with."""
        try:
            answer = self.wait(seconds)
        except DriverError as e:
            return e
        raise AssertionError(f"{self.op} succeeded: {answer}")


class Driver:
    """One hotcell-driver process. Usable from any thread."""

    def __init__(self, warden, state, path=None, wrapper=()):
        self.argv = [*map(str, wrapper), str(path or self.default_path()), "--warden", str(warden),
                     "--state", str(state)]
        self.process = None
        self.facts = None
        self.waiting = {}
        self.number = 0
        self.lock = threading.Lock()

    @staticmethod
    def default_path():
        build = os.environ.get("HOTCELL_BUILD")
        if not build:
            raise RuntimeError("HOTCELL_BUILD must name the build folder")
        return pathlib.Path(build).resolve() / "tests" / "driver" / "hotcell-driver"

    def start(self):
        self.stderr = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.stderr, text=True, bufsize=1)
        first = self.process.stdout.readline()
        if not first:
            self.process.wait(END_SECONDS)
            raise DriverGone(f"the driver did not start: {self.errors()}")
        self.facts = json.loads(first)["warden"]
        self.reader = threading.Thread(target=self._read, name="driver", daemon=True)
        self.reader.start()
        return self

    def _read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            with self.lock:
                waiting = self.waiting.pop(answer.get("id"), None)
            if waiting:
                waiting.answer = answer
                waiting.done.set()
        with self.lock:
            left, self.waiting = self.waiting, None
        for waiting in left.values():
            waiting.done.set()

    def errors(self):
        """What it wrote to its standard error."""
        self.stderr.seek(0)
        return self.stderr.read().strip()

    def submit(self, op, **args):
        """Begin an operation."""
        waiting = Waiting(self, op)
        with self.lock:
            if self.waiting is None:
                raise DriverGone(f"{op}: the driver ended: {self.errors()}")
            self.number += 1
            self.waiting[self.number] = waiting
            line = json.dumps({"id": self.number, "op": op, **args})
            try:
                self.process.stdin.write(line + "\n")
                self.process.stdin.flush()
            except BrokenPipeError as e:
                raise DriverGone(f"{op}: the driver ended: {self.errors()}") from e
        return waiting

    def call(self, op, seconds=ANSWER_SECONDS, **args):
        """An operation from its beginning to its answer."""
        return self.submit(op, **args).wait(seconds)

    def error(self, op, seconds=ANSWER_SECONDS, **args):
        """The DriverError of an operation that must fail."""
        return self.submit(op, **args).error(seconds)

    def exec(self, sandbox, cmd, **args):
        """Run a command in a sandbox; its output as bytes."""
        a = self.call("exec", sandbox=sandbox, cmd=cmd, **args)
        return Result(base64.b64decode(a["stdout"]), base64.b64decode(a["stderr"]), a["exit_code"],
                      a["exited"], a["status"], a)

    def read_file(self, sandbox, path, **args):
        return base64.b64decode(self.call("read_file", sandbox=sandbox, path=path, **args)["content"])

    def write_file(self, sandbox, path, content, **args):
        text = base64.b64encode(content).decode()
        return self.call("write_file", sandbox=sandbox, path=path, content=text, **args)

    def close(self):
        """Let it finish and end. A sanitizer's complaint is a failure."""
        if not self.process:
            return
        self.process.stdin.close()
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the driver did not end: {self.errors()}") from None
        finally:
            self.reader.join(END_SECONDS)
            self.process.stdout.close()
            self.process = None
        assert code == 0 and "Sanitizer" not in self.errors(), self.errors()

    def kill(self):
        """SIGKILL. Its sandboxes run on."""
        self.process.kill()
        self.process.wait()
        self.reader.join(END_SECONDS)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, *exc):
        if exc[0] and self.process:
            self.kill()
        else:
            self.close()
