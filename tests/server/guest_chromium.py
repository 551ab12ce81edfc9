"""guest_chromium.py - a Chromium in the network of a played node's sandboxes, as the template `browser` has one: headless, its own
sandbox on, as a user without rights, DevTools on loopback alone; and an agent, through which the gateway gets there. For tests of
what is between it and a client.

    with GuestChromium(folder, gateway.node) as chromium:
        chromium.port          # of DevTools, of every sandbox
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess

from played_node import GUEST_ADDRESS
from warden import build_dir, wait_for

AGENT_PORT = 49983

UID = 64329  # nobody's
FLAGS = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-default-browser-check", "--window-size=800,600"]


class GuestChromium:
    def __init__(self, base, node, port=9222):
        self.base, self.node, self.port = pathlib.Path(base) / "guest-chromium", node, port
        self.process = self.agent = None

    def __enter__(self):
        self.base.mkdir(mode=0o700)
        os.chown(self.base, UID, UID)
        for folder in self.base.parents:  # that user has to reach it
            if folder.stat().st_mode & 0o001 == 0 and folder.owner() == "root":
                folder.chmod(folder.stat().st_mode | 0o111)
        self.start_agent()
        words = self.node.command(
            "setpriv", "--reuid", UID, "--regid", UID, "--clear-groups", "--no-new-privs", "chromium", *FLAGS,
            f"--remote-debugging-port={self.port}", f"--user-data-dir={self.base / 'profile'}", "about:blank")
        with open(self.base / "log", "wb") as log:
            self.process = subprocess.Popen(words, env={"PATH": os.environ["PATH"], "HOME": str(self.base)}, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)
        wait_for(self.listens, "DevTools listens", 60, 0.05)
        return self

    def start_agent(self):
        root = self.base / "agent"
        for folder in ("etc", "run", "var/lib"):
            (root / folder).mkdir(parents=True)
        (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
        (root / "etc/group").write_text("")
        self.agent = subprocess.Popen(
            self.node.command(build_dir() / "src/agent/hotcell-agent-test", "--dry-effects", "--serve", "--port", AGENT_PORT,
                              "--listen", GUEST_ADDRESS, "--root", root, "--user", "root"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.agent_listens, "the agent listens", 30, 0.05)

    def agent_listens(self):
        assert self.agent.poll() is None
        with contextlib.suppress(ConnectionRefusedError):
            self.node.inside(lambda: socket.create_connection((GUEST_ADDRESS, AGENT_PORT))).close()
            return True
        return False

    def listens(self):
        assert self.process.poll() is None, (self.base / "log").read_text(errors="replace")[-3000:]
        return b"DevTools listening on" in (self.base / "log").read_bytes()

    def __exit__(self, *exc):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.agent.terminate()
        self.agent.wait(20)
        shutil.rmtree(self.base, ignore_errors=True)
