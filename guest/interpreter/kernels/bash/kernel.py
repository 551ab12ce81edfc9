"""A kernel for bash: one shell that lives as long as the context, and is given one cell after the other.

    kernel.py -f CONNECTION_FILE

The shell is an interactive one, without a terminal: an interrupt ends the cell and not the shell. A cell is in a file
without a name; when it is over the shell says its exit status on a descriptor of its own.
"""
import os
import select
import signal
import subprocess
import sys
import threading
import time

sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../shared")
from hotcell_kernel import PIECE, WAITING, WaitingApp  # noqa: E402
sys.path.pop(0)

from ipykernel.kernelbase import Kernel  # noqa: E402
from traitlets import Type  # noqa: E402

PATIENCE, AGAIN_S = 15, 0.2  # how often a cell is interrupted before the shell is given up, and after how long
LEASH = ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"]  # the shell ends with us, whatever it does then
STATUS = 9  # the descriptor on which the shell says that a cell is over


class Interrupts:
    """SIGINT is noted, never raised: it may come at any moment, and each of them is the wrong one."""

    seen, when = False, 0.0

    def note(self, *_):
        self.seen, self.when = True, time.monotonic()


interrupts = Interrupts()


class Shell:
    def __init__(self):
        self.cell = os.memfd_create("cell")  # no file: /tmp may be full, or cleaned up
        said, say = os.pipe()
        self.said = said
        words = [*LEASH, "/bin/bash", "-c", f"exec {STATUS}>&{say} {say}>&-; exec /bin/bash --noprofile --norc --noediting -i"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        pass_fds=[say], env={**os.environ, "PS1": "", "PS2": "", "HISTFILE": ""})
        os.close(say)
        self.out, self.err = self.process.stdout.fileno(), self.process.stderr.fileno()
        for fd in (self.out, self.err):
            os.set_blocking(fd, False)
        # no words about jobs, no history in what is typed
        self.run("PS1= PS2= PROMPT_COMMAND=; export -n PS1 PS2; set +m +H +o history; unset HISTFILE", lambda *_: None)

    def run(self, code, tell):
        """The exit status; None: the shell has ended. tell(name, bytes) gets what is printed."""
        os.ftruncate(self.cell, 0)
        with open(self.cell, "r+", encoding="utf-8", errors="surrogateescape", closefd=False) as file:
            file.seek(0)
            file.write(code)
        try:
            self.process.stdin.write(f'eval "$(</proc/{os.getpid()}/fd/{self.cell})" </dev/null\nprintf "%d\\n" "$?" >&{STATUS}\n'.encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        return self.listen(tell)

    def listen(self, tell):
        """Until the cell is over, and what it printed has been told.

        The shell has every interrupt that we have, unless the cell had not begun: so it gets it again, for a while.
        """
        left = PATIENCE
        while left > 0:
            ready = select.select([self.out, self.err, self.said], [], [], AGAIN_S)[0]
            self.drain(ready, tell)
            if self.said in ready:
                text = os.read(self.said, 64)
                self.drain((self.out, self.err), tell)
                return int(text.split()[-1]) if text else None
            if interrupts.seen and time.monotonic() - interrupts.when >= AGAIN_S:
                os.killpg(0, signal.SIGINT)
                left -= 1
        return None

    def drain(self, ready, tell):
        for fd, name in ((self.out, "stdout"), (self.err, "stderr")):
            for _ in range(16 if fd in ready else 0):
                try:
                    piece = os.read(fd, PIECE)
                except BlockingIOError:
                    break
                if not piece:
                    break
                tell(name, piece)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.cell)
        os.close(self.said)


class Bash(Kernel):
    implementation = "hotcell"
    implementation_version = "1"
    banner = "bash"
    language_info = {"name": "bash", "mimetype": "text/x-sh", "file_extension": ".sh"}
    shell_process = None
    waiting = 0
    rest = {}

    def tell(self, name, piece):
        """Bytes as text: a character that is cut in two waits for its other half."""
        piece = self.rest.pop(name, b"") + piece
        try:
            text = piece.decode()
        except UnicodeDecodeError as error:
            cut = error.start if error.reason == "unexpected end of data" else len(piece)
            self.rest[name] = piece[cut:]
            text = piece[:cut].decode(errors="replace")
        self.send_response(self.iopub_socket, "stream", {"name": name, "text": text})
        self.waiting += len(piece)
        if self.waiting >= WAITING:
            self.waiting = 0
            taken = threading.Event()
            self.iopub_socket.io_thread.schedule(taken.set)
            taken.wait()

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        if self.shell_process is None:
            self.shell_process = Shell()
        tell = (lambda *_: None) if silent else self.tell
        self.rest = {}
        interrupts.seen = False
        status = self.shell_process.run(code, tell)
        if status is None:
            self.shell_process.close()
            self.shell_process = None
        if status == 0 and not interrupts.seen:
            return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}
        return self.failed(*self.reason(status), silent)

    def pre_handler_hook(self):
        """The usual one would have an interrupt raise KeyboardInterrupt."""

    def post_handler_hook(self):
        """Nor is there anything to undo."""

    @staticmethod
    def reason(status):
        if status is None:
            return "ShellExited", "The shell has ended; the next cell has a new one"
        if interrupts.seen:
            return "KeyboardInterrupt", "The execution was interrupted"
        return "ExitStatus", str(status)

    def failed(self, name, value, silent):
        error = {"ename": name, "evalue": value, "traceback": []}
        if not silent:
            self.send_response(self.iopub_socket, "error", error)
        return {"status": "error", "execution_count": self.execution_count, **error}


class App(WaitingApp):
    kernel_class = Type(Bash)
    capture_fd_output = False


def main():
    app = App.instance()
    app.initialize()
    signal.signal(signal.SIGINT, interrupts.note)
    app.start()


if __name__ == "__main__":
    main()
