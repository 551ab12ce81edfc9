"""A hotcell-interp alone, on loopback and without a sandbox around it, and a client of it."""
import contextlib
import http.client
import json
import os
import pathlib
import select
import signal
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
KERNELS = TOP / "guest/interpreter/kernels"
START_S = 120


class Execution:
    """What a client makes of the lines of one execution."""

    def __init__(self, events):
        self.events = events
        self.stdout = "".join(e["text"] for e in events if e["type"] == "stdout")
        self.stderr = "".join(e["text"] for e in events if e["type"] == "stderr")
        self.results = [e for e in events if e["type"] == "result"]
        self.errors = [e for e in events if e["type"] == "error"]
        self.error = self.errors[0] if self.errors else None
        self.count = next((e["execution_count"] for e in events if e["type"] == "number_of_executions"), None)
        self.text = next((r.get("text") for r in self.results if r["is_main_result"]), None)

    def __repr__(self):
        return f"Execution({self.events})"


class Interp:
    def __init__(self, folder, eager=("python",), agent="none", kernels=(KERNELS,), within=()):
        """`within`: words before the program's, of what runs it."""
        self.within = list(within)
        self.folder, self.eager, self.agent, self.kernels = pathlib.Path(folder), eager, agent, kernels
        self.program = os.path.join(os.environ["HOTCELL_BUILD"], "src/interp/hotcell-interp")
        self.process = self.port = None
        self.partings = self.folder / "partings"

    def start(self, port=0):
        words = [*self.within, self.program, "--listen", "127.0.0.1", "--port", str(port), "--run", str(self.folder / "run"), "--cwd", str(self.folder), "--agent", self.agent,
                 "--partings", str(self.partings)]
        for language in self.eager:
            words += ["--eager", language]
        for kernels in self.kernels:
            words += ["--kernels", str(kernels)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        if port == 0:
            self.port = int(self.process.stdout.readline().removeprefix("ready "))
        wait_for(lambda: self.get("/health")[0] == 200, START_S, "kernels that are ready")
        return self

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(20)
        finally:
            self.process.kill()
            self.process.stdout.close()
        return code

    # --- requests -------------------------------------------------------------------------------------------------

    def send(self, method, path, body=None, timeout=60, headers=()):
        """A request that has been sent; its answer is not waited for."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **dict(headers)})
        return connection

    def ask(self, *what, **how):
        connection = self.send(*what, **how)
        return connection, connection.getresponse()

    def get(self, path, method="GET", body=None, timeout=60):
        """Status and the whole text."""
        connection, answer = self.ask(method, path, body, timeout)
        with contextlib.closing(connection):
            return answer.status, answer.read().decode()

    def open(self, code, timeout=60, headers=(), **more):
        """An execution that has begun: the connection and its answer."""
        connection, answer = self.ask("POST", "/execute", {"code": code, **more}, timeout, headers)
        assert answer.status == 200, (answer.status, answer.read())
        return connection, answer

    def run(self, code, timeout=60, **more):
        connection, answer = self.open(code, timeout, **more)
        with contextlib.closing(connection):
            return Execution(events_of(answer.read()))

    def context(self, **more):
        status, text = self.get("/contexts", "POST", more)
        assert status == 200, text
        return json.loads(text)

    # --- processes --------------------------------------------------------------------------------------------------

    def kernels_alive(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def must_have_taken(self, mib):
        """At most this, at any time. Of a build with sanitizers nothing can be said: they keep what was freed."""
        if b"__asan_init" not in pathlib.Path(self.program).read_bytes():
            assert self.peak_mib() < mib

    def peak_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def events_of(body):
    """The lines of an answer. Every one of them is whole JSON in ASCII, and the last says so."""
    lines = body.decode("ascii").split("\n")
    assert lines.pop() == "", lines[-1:]
    events = [json.loads(line) for line in lines]
    assert events[-1] == {"type": "end_of_execution"}, events
    return [e for e in events[:-1] if e["type"] != "keepalive"]


def next_event(answer):
    """The next line of an execution that goes on."""
    line = answer.readline()
    assert line.endswith(b"\n"), line
    return json.loads(line)


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if condition():
                return
        select.select([], [], [], 0.05)
    raise AssertionError(f"no {what} within {seconds} s")
