"""Terminals of the guest agent: a real session with a controlling terminal, on the host."""

import base64
import contextlib
import os
import re
import signal
import time

import pytest

from test_agent import ROOT, Result, Stream, agent, as_user, envelope  # noqa: F401
from test_agent_process import Attached, Rpc, kill, listed

# a terminal that knows no escape sequences, so that its output is easy to compare
SHELL = ["/usr/bin/env", "TERM=dumb", "/bin/bash", "--norc", "--noprofile", "-i"]


class Terminal:
    """A pty process, and what it printed so far."""

    def __init__(self, agent, cmd, *args, size=(80, 24), headers=None, envs=None, **more):
        self.agent = agent
        pty = {} if size is None else {"size": {"cols": size[0], "rows": size[1]}}
        message = {"process": {"cmd": cmd, "args": list(args),
                               "envs": {"PS1": "$ ", **(envs or {})}}, "pty": pty, **more}
        self.stream = Stream(agent, envelope(message), headers)
        self.pid = self.stream.next()[1]["event"]["start"]["pid"]
        self.seen = b""

    def until(self, pattern):
        """Read until it has printed this; returns the match and forgets all up to it."""
        deadline = time.monotonic() + 60
        while not (m := re.search(pattern, self.seen)):
            assert time.monotonic() < deadline, self.seen
            event = self.stream.next()[1]["event"]
            assert "end" not in event, self.seen
            for kind, text in event.get("data", {}).items():
                assert kind == "pty"
                piece = base64.b64decode(text)
                assert len(piece) <= 16 * 1024
                self.seen += piece
        self.seen = self.seen[m.end():]
        return m

    def type(self, data):
        Rpc(self.agent, "SendInput", {
            "process": {"pid": self.pid},
            "input": {"pty": base64.b64encode(data).decode()}}).ok()

    def resize(self, cols, rows):
        return Rpc(self.agent, "Update", {"process": {"pid": self.pid},
                                          "pty": {"size": {"cols": cols, "rows": rows}}})

    def end(self):
        end, last = None, None
        deadline = time.monotonic() + 60
        for flags, m in self.stream:
            assert time.monotonic() < deadline, self.seen
            if flags == 2:
                last = m
            elif "end" in m["event"]:
                end = m["event"]["end"]
            else:
                for text in m["event"].get("data", {}).values():
                    self.seen += base64.b64decode(text)
        assert last == {}
        return end


def test_a_shell(agent):
    t = Terminal(agent, *SHELL)
    t.until(rb"\$ ")
    t.type(b"tty; echo A$((20+22))B\n")
    assert t.until(rb"\n(/dev/pts/\d+)\r\nA42B")
    t.type(b"exit\n")
    assert t.end() == {"exited": True, "status": "exit status 0"}
    assert listed(agent) == []


def test_it_is_a_session_with_its_terminal(agent):
    t = Terminal(agent, "/bin/sh", "-c",
                 "ps -o pid=,sid=,pgid=,tpgid=,tty= -p $$; : < /dev/tty && echo opened $TERM;"
                 "ls -l /proc/self/fd | grep -c pts; stty -a")
    m = t.until(rb"(\d+) +(\d+) +(\d+) +(\d+) +(pts/\d+)")
    assert {int(m[i]) for i in range(1, 5)} == {t.pid}
    t.until(rb"opened xterm-256color\r\n")
    t.until(rb"\b2\r\n")  # stdin and stderr; the stdout of ls is a pipe
    t.until(rb"rows 24; columns 80")
    t.until(rb" iutf8")
    assert t.end()["exited"]


def test_the_size_follows(agent):
    t = Terminal(agent, *SHELL, size=(80, 24))
    t.until(rb"\$ ")
    t.type(b"stty size\n")
    t.until(rb"\n24 80\r\n")
    t.until(rb"\$ ")
    t.resize(100, 30).ok()
    t.type(b"stty size; tput cols\n")
    t.until(rb"\n30 100\r\n100\r\n")
    t.until(rb"\$ ")
    # a program in the foreground is told at once
    t.type(b"python3 -c 'import os,signal as s;w={s.SIGWINCH};s.pthread_sigmask(s.SIG_BLOCK,w);"
           b"print(\"rea\"+\"dy\",flush=True);s.sigwait(w);print(tuple(os.get_terminal_size()))'\n")
    t.until(rb"\nready")
    t.resize(132, 50).ok()
    t.until(rb"\(132, 50\)")
    t.resize(0, 40).ok()  # what is not said stays
    t.resize(70000, 1).failed("invalid_argument")
    t.until(rb"\$ ")
    t.type(b"stty size; exit 3\n")
    t.until(rb"\n40 132\r\n")
    assert t.end()["exitCode"] == 3


def test_a_size_that_is_not_said(agent):
    for size in [None, (0, 0)]:
        t = Terminal(agent, "stty", "size", size=size)
        t.until(rb"24 80\r\n")
        assert t.end()["exited"]


def test_keys_are_signals(agent):
    t = Terminal(agent, *SHELL)
    t.until(rb"\$ ")
    t.type(b"sleep 1000\n")
    t.until(rb"sleep 1000\r\n")
    time.sleep(0.5)  # until it is in the foreground
    t.type(b"\x03")
    t.until(rb"\$ ")
    t.type(b"echo $?\n")
    t.until(rb"\n130\r\n")
    t.until(rb"\$ ")
    t.type(b"\x04")
    assert t.end()["exited"]


def test_stdin_is_not_for_terminals(agent):
    t = Terminal(agent, "cat")
    for call, message, code in [
        ("SendInput", {"input": {"stdin": "eA=="}}, "internal"),
        ("CloseStdin", {}, "unknown"),
    ]:
        Rpc(agent, call, {"process": {"pid": t.pid}, **message}).failed(code)
    kill(agent, t.pid).ok()
    assert t.end()["status"] == "signal: killed"


def test_bytes_pass_through_a_raw_terminal(agent):
    data = bytes(range(256)) * 40
    t = Terminal(agent, "/bin/sh", "-c", f"stty raw -echo; echo up; head -c {len(data)} | od -An "
                 "-v -tx1 | tr -d ' \\n'; echo done")
    t.until(rb"up\n")
    t.type(data)
    while b"done" not in t.seen:
        for text in t.stream.next()[1]["event"].get("data", {}).values():
            t.seen += base64.b64decode(text)
    assert t.seen.strip().startswith(data.hex().encode())
    t.end()


def test_a_client_comes_back_to_its_terminal(agent):
    t = Terminal(agent, *SHELL, tag="shell")
    t.until(rb"\$ ")
    t.stream.drop()
    t.stream = Attached(agent, {"tag": "shell"})
    assert t.stream.next()[1] == {"event": {"start": {"pid": t.pid}}}
    t.type(b"echo la''ter; exit\n")
    t.until(rb"later\r\n")
    assert t.end()["exited"]


def test_it_ends_with_the_shell_though_others_hold_the_terminal(agent):
    t = Terminal(agent, "/bin/sh", "-c", "trap '' HUP; sleep 1000 & echo $!; echo last words")
    child = int(t.until(rb"(\d+)\r\n")[1])
    started = time.monotonic()
    assert t.end() == {"exited": True, "status": "exit status 0"}
    assert b"last words" in t.seen and time.monotonic() - started < 20
    os.kill(child, signal.SIGKILL)  # it was there all the time


def test_it_ends_though_others_talk_all_the_time(agent):
    t = Terminal(agent, "/bin/sh", "-c",
                 "trap '' HUP; (while echo noise; do sleep 0.01; done) & echo $!; exit 4")
    t.until(rb"\d+\r\n")
    assert t.end()["exitCode"] == 4  # the noise ends with the terminal


def test_the_last_words_reach_a_slow_reader(agent):
    t = Terminal(agent, "/bin/sh", "-c", "stty -opost; seq 1 200000; exit 0")
    time.sleep(1)  # the reader does something else; the shell waits for it, and ends meanwhile
    assert t.end()["exited"]
    lines = t.seen.split(b"\n")
    assert lines[:200000] == [b"%d" % i for i in range(1, 200001)]


def test_children_hear_of_the_end(agent):
    t = Terminal(agent, *SHELL)  # its folder is the agent's root
    t.until(rb"\$ ")
    t.type(b"sh -c 'trap \"echo hup > told; exit\" HUP; echo re\"\"ady; while :; do sleep 0.05; done'\n")
    t.until(rb"\nready")
    kill(agent, t.pid).ok()
    assert t.end()["status"] == "signal: killed"
    for _ in range(200):
        if (agent.root / "told").exists():
            break
        time.sleep(0.05)
    assert (agent.root / "told").exists(), "the program in the foreground got no SIGHUP"


@pytest.mark.skipif(not ROOT, reason="only root can be somebody else")
def test_a_terminal_belongs_to_its_user(agent):
    t = Terminal(agent, "/bin/sh", "-c", "stat -c %u $(tty); : < $(tty) && echo mine",
                 headers=as_user("alice"))
    t.until(rb"54321\r\n")
    t.until(rb"mine\r\n")
    assert t.end()["exited"]


def open_terminals(agent):
    links = []
    for fd in os.listdir(f"/proc/{agent.proc.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{agent.proc.pid}/fd/{fd}"))
    return [link for link in links if "pt" in os.path.basename(link) or "/pts/" in link]


def test_fifty_terminals_leave_nothing(agent):
    for i in range(50):
        t = Terminal(agent, "/bin/sh", "-c", f"echo {i}; read x")
        t.until(rb"%d\r\n" % i)
        assert len(open_terminals(agent)) == 2  # one to read and write, one to set its size
        t.type(b"\n")
        assert t.end()["exited"]
    agent.ask("GET", "/health")  # it has finished with the last one when it answers this
    assert agent.children() == []
    assert open_terminals(agent) == []
