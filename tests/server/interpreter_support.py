"""interpreter_support.py - code that is run by the published packages of the code interpreter, from a test that has another Python.

    with InterpreterClient(server, sdks) as py, InterpreterClient(server, sdks, "js") as js:
        box = py.create()                             # Sandbox.create() of e2b-code-interpreter
        ran = box.run("1 + 1", language="python")     # Ran: text, results, stdout, stderr, error, count
        same = js.connect(box)                        # the same sandbox by @e2b/code-interpreter
        going = box.begin("while True: print(1)")     # goes on; going.first() is its first output
        box.call("restart_code_context", context)     # any other method of the class Sandbox
        py.kill()                                     # the client's process is gone, and its connections

Options have the names that the package has: `timeout=5` in Python, `timeoutMs=5000` in JavaScript. What a client asks
goes on beside what it asked before. `Guest` looks at the processes of the interpreter, `Peak` at memory.
"""

import json
import pathlib
import queue

from sdk_process import SdkProcess, sdk_words

HERE = pathlib.Path(__file__).resolve().parent
ANSWER_SECONDS = 300
CREATE_SECONDS = 3600  # a sandbox's life


class Failed(Exception):
    """What a package raised: `kind` is its class."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Ran:
    """An execution. Texts of more than 64 KiB are {"size", "sha256"}."""

    def __init__(self, value):
        self.__dict__.update(value)  # text, results, stdout, stderr, error, count

    def __repr__(self):
        return f"Ran({vars(self)})"


class Asked:
    """A question that was not answered yet."""

    def __init__(self, client, make):
        self.client, self.make, self.said, self.done = client, make, queue.Queue(), None

    def take(self, seconds):
        try:
            said = self.said.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no answer within {seconds} s: {self.client.log()[-2000:]}") from None
        if said is None:
            raise Failed("ClientEnded", self.client.log()[-2000:])
        return said

    def first(self, seconds=ANSWER_SECONDS):
        """The next piece of output; the execution must not be over."""
        said = self.take(seconds)
        assert "out" in said, said
        return said["out"]

    def wait(self, seconds=ANSWER_SECONDS):
        while "out" in (said := self.take(seconds)):
            pass
        if "error" in said:
            raise Failed(said["kind"], said["error"])
        return self.make(said["value"])


class Box:
    """A sandbox as one client has it."""

    def __init__(self, client, sandbox_id):
        self.client, self.id = client, sandbox_id

    def begin(self, code, streamed=True, **options):
        return self.client.send(Ran, do="run", box=self.id, code=code, streamed=streamed,
                                **{**self.client.patience, **options})

    def run(self, code, seconds=ANSWER_SECONDS, **options):
        return self.begin(code, streamed=False, **options).wait(seconds)

    def command(self, cmd, **options):
        """Standard output of a command that must succeed."""
        return self.client.send(str, do="command", box=self.id, cmd=cmd, **options).wait()

    def call(self, method, *args, **options):
        return self.client.send(lambda value: value, do="call", box=self.id, method=method, args=args, options=options).wait()

    def fork(self, **options):
        """Copies of it, which go on where it is. Python's package alone."""
        return self.client.send(lambda ids: [Box(self.client, i) for i in ids], do="fork", box=self.id, **options).wait()


class InterpreterClient(SdkProcess):
    def __init__(self, server, sdks, language="python", key=None):
        """`sdks`: artefact("sdks")."""
        super().__init__(server, sdk_words(sdks, language, HERE / "interpreter_client"), key)
        self.language, self.last, self.asked = language, 0, {}
        # an emulated guest is slow; a package waits a minute unless told
        self.patience = {} if language == "python" else {"timeoutMs": ANSWER_SECONDS * 1000, "requestTimeoutMs": ANSWER_SECONDS * 1000}

    def __exit__(self, *exc):
        self.kill()

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.reader.join()
            self.process.stdout.close()
            self.process.stdin.close()
            self.process = None

    def log(self):
        return self.log_path.read_text(errors="replace")

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            self.asked[said["n"]].said.put(said)
        for asked in list(self.asked.values()):
            asked.said.put(None)

    def send(self, make, **question):
        self.last += 1
        asked = self.asked[self.last] = Asked(self, make)
        self.say({"n": self.last, **question})
        return asked

    def create(self, **options):
        """Of `code-interpreter-v1`, without its being named."""
        options = {**({"timeout": CREATE_SECONDS} if self.language == "python" else {"timeoutMs": CREATE_SECONDS * 1000}), **options}
        return Box(self, self.send(str, do="create", **options).wait())

    def connect(self, box):
        return Box(self, self.send(str, do="connect", sandbox_id=getattr(box, "id", box)).wait())


class Guest:
    """The interpreter's processes in a sandbox."""

    def __init__(self, box):
        self.box = box

    def root(self, command):
        return self.box.command(command, user="root")

    def server(self):
        return int(self.root("pgrep -x hotcell-interp"))

    def kernel(self, language="python"):
        """The oldest that the server started."""
        return int(self.root(f"pgrep -o -P $(pgrep -x hotcell-interp) -f kernels/{language}/"))

    def peak_mib(self, pid):
        return peak_of(self.root(f"cat /proc/{pid}/status"))

    def forget_peak(self, pid):
        self.root(f"echo 5 > /proc/{pid}/clear_refs")


class Peak:
    """The most memory that a process of the host has at any time from now on."""

    def __init__(self, pid):
        self.proc = pathlib.Path(f"/proc/{pid}")
        (self.proc / "clear_refs").write_text("5")
        self.before = self.mib()

    def mib(self):
        return peak_of((self.proc / "status").read_text())


def peak_of(status):
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
