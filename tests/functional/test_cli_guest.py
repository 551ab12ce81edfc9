"""test_cli_guest.py - `hotcell exec SANDBOX -- COMMAND` and `hotcell shell`: the API is played, the agent is the real
one, on the host. HOTCELL_AGENT names it (see test_agent.py).
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from test_agent import ME, agent  # noqa: F401
from test_cli_run import BOX, command, env_of, server  # noqa: F401
from warden import wait_for

SECONDS = 60


def env(server, agent, **more):
    return env_of(server, E2B_SANDBOX_URL=f"http://127.0.0.1:{agent.port}", **more)


def run(server, agent, *words, given=None, **how):
    """With the user that this agent knows."""
    return subprocess.run(command(words[0], "--user", ME, *words[1:]), capture_output=True, env=env(server, agent), timeout=SECONDS,
                          **({"input": given} if given is not None else {"stdin": subprocess.DEVNULL}), **how)


# --- commands ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("words, status, out, err", [
    (["echo", "a  b", "--json"], 0, b"a  b --json\n", b""),
    (["sh", "-c", "echo no >&2; exit 7"], 7, b"", b"no\n"),
    (["sh", "-c", "printf '\\377\\000\\033[2J'"], 0, b"\xff\x00\x1b[2J", b""),
    (["cat"], 0, b"", b""),
    (["sh", "-c", "kill -9 $$"], 255, b"", b"hotcell: signal: killed\n"),
])
def test_a_command_has_its_output_and_its_status(server, agent, words, status, out, err):
    r = run(server, agent, "exec", BOX, "--", *words)
    assert (r.returncode, r.stdout, r.stderr) == (status, out, err)
    assert server.asked == [("POST", f"/sandboxes/{BOX}/connect", {"timeout": 360})]


def test_variables_reach_a_command(server, agent):
    assert run(server, agent, "exec", "--env", "A=b=c", BOX, "--", "sh", "-c", "echo $A").stdout == b"b=c\n"


def test_input_goes_through_whole_and_ends(server, agent, tmp_path):
    data = bytes(range(256)) * 4096
    assert run(server, agent, "exec", "-i", BOX, "--", "cat", given=data).stdout == data
    (tmp_path / "file").write_bytes(data)  # a file cannot be waited for
    with open(tmp_path / "file", "rb") as f:
        r = subprocess.run(command("exec", "--user", ME, "--stdin", BOX, "--", "wc", "-c"), stdin=f, capture_output=True, env=env(server, agent), timeout=SECONDS)
    assert r.stdout.split() == [str(len(data)).encode()]


def test_a_command_that_is_not_there_says_so(server, agent):
    r = run(server, agent, "exec", BOX, "--", "no-such-program")
    assert r.returncode != 0 and b"no-such-program" in r.stderr and b"fix:" in r.stderr


@pytest.mark.parametrize("how", ["signal", "timeout", "reader"])
def test_a_command_that_is_left_is_ended(server, agent, how):
    more = ["--timeout", "1"] if how == "timeout" else []
    p = subprocess.Popen(command("exec", "--user", ME, *more, BOX, "--", "sh", "-c", "echo begun; while :; do echo; sleep 0.1; done"),
                         env=env(server, agent), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"begun\n" and agent.children()
    if how == "signal":
        p.send_signal(signal.SIGINT)
    if how == "reader":
        p.stdout.close()
    else:
        p.stdout.read()
    said = p.stderr.read()
    assert p.wait(SECONDS) == {"signal": 130, "timeout": 1, "reader": 141}[how], said
    assert (b"out of time" in said) == (how == "timeout") and (said == b"") == (how != "timeout")
    wait_for(lambda: not agent.children(), "its process is gone")
    p.stderr.close()
    p.stdout.close()


@pytest.mark.parametrize("words", [["exec", BOX], ["exec", BOX, "1", "2"], ["exec", "--lang", "r", BOX, "--", "ls"], ["exec", "--json", BOX, "--", "ls"],
                                   ["exec", "-i", BOX, "1"], ["shell"], ["shell", BOX, "ls"], ["shell", "--json", BOX], ["shell", "--timeout", "3", BOX]])
def test_wrong_usage(server, words):
    r = subprocess.run(command(*words), capture_output=True, env=env_of(server), timeout=SECONDS)
    assert r.returncode == 2 and b"usage: hotcell" in r.stderr and server.asked == []


# --- terminals --------------------------------------------------------------------------------------------------------

class Shell:
    """`hotcell shell` in a terminal of our own."""

    def __init__(self, server, agent, cols, rows, **more):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            argv = command("shell", "--user", ME, "--env", "PS1=> ", BOX)
            os.execve(argv[0], argv, env(server, agent, TERM="dumb", **more))
        self.seen = b""
        self.size(cols, rows)

    def size(self, cols, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def until(self, pattern):
        deadline = time.monotonic() + SECONDS
        while not (m := re.search(pattern, self.seen)):
            assert time.monotonic() < deadline, self.seen
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += os.read(self.fd, 65536)
        self.seen = self.seen[m.end():]
        return m

    def type(self, text):
        os.write(self.fd, text.encode())

    def status(self):
        try:
            while data := os.read(self.fd, 65536):
                self.seen += data
        except OSError:
            pass  # the last of it is gone
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status


def test_a_shell_is_a_terminal_of_the_sandbox(server, agent):
    shell = Shell(server, agent, 91, 33)
    shell.type("stty size; tty -s && echo t''ty; printf '\\033[1mb''old\\n'\r")
    shell.until(rb"33 91\r\n")
    shell.until(rb"tty\r\n")
    shell.until(rb"\x1b\[1mbold")  # the terminal is the guest's
    shell.size(70, 20)
    os.kill(shell.pid, signal.SIGWINCH)
    shell.type("until [ \"$(stty size)\" = '20 70' ]; do :; done; echo resi''zed\r")
    shell.until(rb"resized")
    shell.type("sh -c 'echo ru''ns; exec sleep 100'\r")
    shell.until(rb"runs\r\n")
    shell.type("\x03")  # for what runs inside, not for us
    shell.type("exit 5\r")
    assert shell.status() == 5, shell.seen
    wait_for(lambda: not agent.children(), "its process is gone")


def test_a_shell_keeps_its_sandbox_alive(server, agent):
    shell = Shell(server, agent, 91, 33, HOTCELL_KEEP_SOON="1")
    wait_for(lambda: len(server.asked) >= 5, "it is told again and again", SECONDS)
    shell.type("exit 5\r")
    assert shell.status() == 5, shell.seen
    assert set((method, path) for method, path, _ in server.asked) == {("POST", f"/sandboxes/{BOX}/connect")}
    assert all(body == {"timeout": 300} for _, _, body in server.asked)


def test_a_shell_wants_a_terminal(server, agent):
    r = run(server, agent, "shell", BOX, given=b"true\n")
    assert r.returncode == 1 and b"no terminal" in r.stderr and b"exec --stdin" in r.stderr and server.asked == []
