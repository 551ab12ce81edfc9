"""ledger.py - what a client was told of its sandboxes and snapshots, and so what a power cut may leave of them.

A sandbox that runs is gone after a cut. While a request is under way what was before it and what comes after it are
both legal; once it was answered only the latter is.
"""

import contextlib
import dataclasses
import random
import socket
import threading

from node import Gone, NodeError, run
from node_client import NodeClient, value

TEAM = "team"
GONE, PAUSED = "gone", "paused"
# what is on its disk is read from there, not from what its memory knows of it
SEE = "sync; echo 3 > /proc/sys/vm/drop_caches; md5sum < /dev/shm/m; md5sum < /root/d"
LIFETIME_S = 3600


@dataclasses.dataclass
class Box:
    sandbox: object
    may: set
    content: str = ""


@dataclasses.dataclass
class Snapshot:
    content: str
    may: set


class Ledger:
    def __init__(self):
        self.boxes, self.snapshots, self.lock = {}, {}, threading.Lock()
        self.answers = 0

    def add(self, sandbox, content=""):
        box = Box(sandbox, {GONE}, content)
        with self.lock:
            self.boxes[sandbox.id] = box
            self.answers += 1
        return box

    def add_snapshot(self, snapshot_id, content):
        with self.lock:
            self.snapshots[snapshot_id] = Snapshot(content, {"there"})
            self.answers += 1

    @contextlib.contextmanager
    def change(self, what, to):
        """A request that leads to `to`: both are legal until it is answered."""
        what.may = what.may | {to}
        yield
        what.may = {to}
        with self.lock:
            self.answers += 1


class Life:
    """One client, and the sandboxes it leads from state to state until the power is gone."""

    def __init__(self, host, ledger, seed):
        self.host, self.ledger, self.chance = host, ledger, random.Random(seed)
        self.client, self.stop, self.error = NodeClient(host.socket_path), threading.Event(), None
        self.sock = None  # to a guest, which says no word more when it is dead
        self.thread = threading.Thread(target=self.until_dark)

    def run(self, box, command):
        (self.sock,) = self.client.sockets(box.sandbox.id)
        try:
            return run(self.sock, command, token=box.sandbox.access_token)
        except Exception as e:
            if self.stop.is_set():
                raise Gone from e
            raise

    def mark(self, box):
        """New random bytes in its memory and on its disk."""
        self.run(box, f"head -c {self.chance.randint(1, 4_000_000)} /dev/urandom > /dev/shm/m; "
                      f"head -c {self.chance.randint(1, 800_000)} /dev/urandom > /root/d")
        box.content = self.run(box, SEE)

    def create(self, **more):
        box = self.ledger.add(self.client.create(TEAM, timeout_s=LIFETIME_S, **more))
        self.mark(box)
        return box

    def pause(self, box):
        with self.ledger.change(box, PAUSED):
            self.client.pause(TEAM, box.sandbox.id)

    def resume(self, box):
        with self.ledger.change(box, GONE):
            assert self.client.connect(TEAM, box.sandbox.id, LIFETIME_S).resumed == 1
        assert self.run(box, SEE) == box.content, "not what it was when it was paused"

    def kill(self, box):
        with self.ledger.change(box, GONE):
            self.client.kill(TEAM, box.sandbox.id)

    def snapshot(self, box):
        taken = self.client.snapshot(TEAM, box.sandbox.id)["snapshotID"]
        self.ledger.add_snapshot(taken, box.content)
        return taken

    def forget(self, snapshot_id):
        with self.ledger.change(self.ledger.snapshots[snapshot_id], GONE):
            self.client.snapshot_delete(TEAM, snapshot_id)

    def fork(self, box, count):
        return [self.ledger.add(s, box.content)
                for s in self.client.fork(TEAM, box.sandbox.id, count, LIFETIME_S)]

    # --- what becomes of them ---

    def paused_and_killed(self):
        box = self.create()
        for _ in range(2):
            self.pause(box)
            if self.chance.random() < 0.3:
                break
            self.resume(box)
            self.mark(box)
        if self.chance.random() < 0.5:
            self.kill(box)

    def copied(self):
        box = self.create()
        taken = self.snapshot(box)
        copies = self.fork(box, 2)
        self.pause(copies[0])
        made = self.ledger.add(self.client.create(TEAM, template=taken, timeout_s=LIFETIME_S), box.content)
        self.kill(copies[1])
        self.kill(box)
        if self.chance.random() < 0.5:
            self.pause(made)
        else:
            self.kill(made)
            self.forget(taken)
        if self.chance.random() < 0.5:
            self.kill(copies[0])

    def everything(self):
        """One of each kind, all of it answered."""
        source, paused = self.create(), self.create()
        taken, forgotten = self.snapshot(source), self.snapshot(source)
        copies = self.fork(source, 2)
        self.pause(copies[0])
        self.kill(copies[1])
        self.pause(paused)
        self.resume(paused)
        self.mark(paused)
        self.pause(paused)
        again = self.ledger.add(self.client.create(TEAM, template=taken, timeout_s=LIFETIME_S), source.content)
        self.snapshot(again)  # of two layers
        self.pause(again)
        self.forget(forgotten)
        self.pause(source)
        self.resume(source)
        self.kill(again)  # the last: nothing that is durable of itself comes after it

    def until_dark(self):
        try:
            while not self.stop.is_set():
                self.chance.choice((self.paused_and_killed, self.copied))()
        except (Gone, OSError):  # the power is gone
            pass
        except NodeError as e:
            self.error = self.error or (None if self.stop.is_set() else e)
        except BaseException as e:
            self.error = e

    def begin(self):
        self.thread.start()

    def end(self):
        self.stop.set()
        with contextlib.suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.client.close()
        if self.error:
            raise self.error


def state_of(host, sandbox_id):
    try:
        found = host.client.get(TEAM, sandbox_id).sandbox
    except NodeError as e:
        assert e.code == "not_found", e
        return GONE
    return {value("NODE_PAUSED"): PAUSED, value("NODE_RUNNING"): "running"}.get(found.state, "ending")


__all__ = ["GONE", "Ledger", "Life", "PAUSED", "SEE", "TEAM", "state_of"]
