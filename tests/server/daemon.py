"""daemon.py - one of the programs of a server, with its configuration; warden has a class of its own."""

import signal
import socket
import subprocess

import refused_calls
from warden import build_dir

CALL_SECONDS = 120
WATCHED = ("egress", "images", "injector", "signer")  # whose system calls are looked at


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Daemon:
    def __init__(self, name, base, settings, where=(), told=None):
        """`where`: words before the command that put it into another network, say. `told`: are the system calls that it
        is refused written to its log?"""
        self.name, self.base, self.settings, self.where = name, base, settings, list(where)
        self.told = name in WATCHED if told is None else told
        self.log_path = base / f"{name}.log"
        self.process = None

    def launch(self, **changes):
        assert self.process is None, f"{self.name} runs already"
        config = self.base / f"{self.name}.conf"
        config.write_text("".join(f"{key} = {value}\n"
                                  for key, value in {**self.settings, **changes}.items()))
        program = build_dir() / f"src/{self.name}/hotcell-{self.name}"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([*self.where, program, config], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True,
                                            env=refused_calls.environment(self.told))

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def check_alive(self):
        assert self.process and self.process.poll() is None, \
            f"{self.name} ended ({self.process and self.process.returncode}): {self.log()[-3000:]}"

    def kill(self, how=signal.SIGKILL):
        if self.process:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def wait_dead(self, seconds=CALL_SECONDS):
        """It was told to die by `die_at`: returns when it did."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} lives: was that step ever taken?") from None
        self.process = None
        assert status == -signal.SIGKILL, f"{self.name} ended ({status}): {self.log()[-3000:]}"
