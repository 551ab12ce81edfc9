"""measured_server.py - a server of one build, which takes one measurement for each line that it is sent.

    HOTCELL_BUILD=BUILD python3 measured_server.py TESTS

TESTS is the folder tests/ of the checkout that was built: its own helpers start the daemons. Lines: "restore" (a create
that finds no pool), "warm" (one from a full pool), "resume" (of one that was paused), "relay" (a file from a guest,
through the gateway). The answer to each is one number, in milliseconds; at the end of the input all is removed.
"""

import pathlib
import sys
import time

sys.path.insert(0, sys.argv[1])
import conftest  # noqa: E402,F401  where the modules are

from server import Server, wait_for  # noqa: E402

POOL = 3
FILE_MIB = 8
PATIENCE = 600


class Restore:
    def __init__(self):
        self.server = Server(node={"slots": 4})

    def ready(self):
        wait_for(lambda: self.server.node_status()["slotsReady"] >= 1, "a slot is ready", PATIENCE, 0.02)

    def once(self):
        self.ready()
        begun = time.monotonic()
        box = self.server.create()
        took = time.monotonic() - begun
        assert self.server.delete(box) == 204
        self.ready()
        return took


class Warm(Restore):
    def __init__(self):
        self.server = Server(node={"slots": 4, "pool": POOL})

    def ready(self):
        wait_for(lambda: self.server.node_status()["pooled"] >= POOL, "the pool is full", PATIENCE, 0.05)


class Resume:
    """By a sandbox of the server that has no pool."""

    def __init__(self, restore):
        self.server, self.box = restore.server, None

    def once(self):
        self.box = self.box or self.server.create()
        at = f"/sandboxes/{self.box['sandboxID']}"
        assert self.server.must("POST", f"{at}/pause") is None
        begun = time.monotonic()
        self.server.must("POST", f"{at}/connect", {"timeout": 3600})
        return time.monotonic() - begun


class Relay:
    """By another sandbox of the same server."""

    def __init__(self, restore):
        self.server, self.box = restore.server, None

    def once(self):
        if not self.box:
            self.box = self.server.create()
            self.server.run(self.box, f"head -c {FILE_MIB << 20} /dev/urandom > /dev/shm/file")
        begun = time.monotonic()
        assert len(self.server.read(self.box, "/dev/shm/file")) == FILE_MIB << 20
        return time.monotonic() - begun


def main():
    restore, warm = Restore(), Warm()
    kinds = {"restore": restore, "warm": warm, "resume": Resume(restore), "relay": Relay(restore)}
    with restore.server, warm.server:
        print("ready", flush=True)
        for line in sys.stdin:
            print(kinds[line.strip()].once() * 1000, flush=True)


if __name__ == "__main__":
    assert pathlib.Path(sys.argv[1], "conftest.py").is_file()
    main()
