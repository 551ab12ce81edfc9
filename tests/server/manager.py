"""manager.py - plays the service manager: whatever is started meanwhile tells it that it is ready, and that its loop turns.

    with Manager(folder) as manager:
        ...start daemons...
        manager.wait_ready(pid)
        manager.wait_beat(pid)
"""

import contextlib
import os
import socket
import struct
import threading

from warden import wait_for

CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class Manager:
    def __init__(self, folder, watchdog_seconds=0.5):
        self.path, self.seconds = folder / "notify.sock", watchdog_seconds
        self.said = []  # (pid, text), in order

    def __enter__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.path.chmod(0o666)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        threading.Thread(target=self.listen, daemon=True).start()  # its queue is short
        os.environ.update(NOTIFY_SOCKET=str(self.path), WATCHDOG_USEC=str(int(self.seconds * 1e6)))
        return self

    def __exit__(self, *exc):
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC"):
            os.environ.pop(name, None)
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                text, said, _, _ = self.socket.recvmsg(256, socket.CMSG_SPACE(CREDENTIALS.size))
                if not text:
                    return
                self.said.append((CREDENTIALS.unpack(said[0][2])[0], text.decode()))

    def heard(self, pid, word):
        return sum(p == pid and word in text for p, text in self.said)

    def wait_ready(self, pid):
        wait_for(lambda: self.heard(pid, "READY=1"), f"{pid} says that it is ready")

    def wait_beat(self, pid):
        before = self.heard(pid, "WATCHDOG=1")
        wait_for(lambda: self.heard(pid, "WATCHDOG=1") > before, f"the loop of {pid} turns", every=0.02)
