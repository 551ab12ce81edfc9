"""test_server_faults.py - any daemon dies at any instant: sandboxes run on, and nothing is left.

HOTCELL_SANDBOXES (20) is how many run meanwhile. HOTCELL_FAULTS (0) is how many random deaths are added to those at
named steps. With any, every step is taken; without, every third of a kind, because those of node alone are all in
test_node_faults.py and those of warden in test_warden_faults.py. Named steps need a build with -Dfaults=true.
"""

import concurrent.futures
import contextlib
import http.client
import itertools
import os
import random
import threading
import time

import pytest

from server import DAEMONS, Server, wait_for
from steps import steps_of
from warden import is_alive

SANDBOXES = int(os.environ.get("HOTCELL_SANDBOXES", "20"))
RANDOM_FAULTS = int(os.environ.get("HOTCELL_FAULTS", "0"))
SEED = int(os.environ.get("HOTCELL_SEED", "1"))
AT_ONCE = 4
PATIENCE = 180  # seconds, for what an emulated guest does on a busy machine
DEADLINE_LATE = 60  # seconds after its time by which a sandbox must be gone

# Counts without starting anything: `read` is a part of the shell, and its pipe stays silent. The file is never
# shortened: it may be read at any instant.
COUNT = ("setsid bash -c 'exec 3<> <(:); while :; do n=$((n + 1)); echo $n $$ 1<>/tmp/count; "
         "read -t 0.5 -u 3; done' >/dev/null 2>&1 </dev/null & echo started")


def count_of(server, box):
    """(count, pid) of its counting process; None before the file is written."""
    answer = server.agent(box, "GET", "/files?path=/tmp/count&username=user")
    assert answer.status in (200, 404), (answer.status, answer.raw)
    fields = answer.raw.split() if answer.status == 200 else []
    return (int(fields[0]), int(fields[1])) if len(fields) == 2 else None


class Herd:
    """Sandboxes that count."""

    def __init__(self, server, n):
        self.server = server
        self.workers = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self.boxes = list(self.workers.map(lambda _: self.begin(), range(n)))
        self.vms = {box["sandboxID"]: server.vm_pid(box) for box in self.boxes}
        self.counts = dict(self.workers.map(self.read, self.boxes))

    def begin(self):
        box = self.server.create(timeout=3600)
        assert self.server.run(box, COUNT) == "started"
        return box

    def read(self, box):
        return box["sandboxID"], wait_for(lambda: count_of(self.server, box), "it counts", PATIENCE, 0.2)

    def goes_on(self, box):
        """It counts on, in the same process of the same machine."""
        before, pid = self.counts[box["sandboxID"]]
        now = wait_for(lambda: (c := count_of(self.server, box)) and c[0] > before and c,
                       f"{box['sandboxID']} counts on", PATIENCE, 0.2)
        assert now[1] == pid, f"pid {now[1]}, was {pid}: it was started again"
        assert self.server.vm_pid(box) == self.vms[box["sandboxID"]]
        return box["sandboxID"], now

    def check(self):
        listed = {box["sandboxID"] for box in self.server.must("GET", "/v2/sandboxes?limit=100")}
        assert {box["sandboxID"] for box in self.boxes} <= listed
        self.counts = dict(self.workers.map(self.goes_on, self.boxes))


@pytest.fixture(scope="module")
def server():
    with Server(node={"pool_each_max": 1}) as s:
        yield s


@pytest.fixture(scope="module")
def herd(server):
    return Herd(server, SANDBOXES)


@pytest.mark.parametrize("victims", [[name] for name in reversed(DAEMONS)] + [list(DAEMONS)],
                         ids=lambda names: "all" if len(names) > 1 else names[0])
def test_sandboxes_count_on_when_a_daemon_is_killed(server, herd, victims):
    server.kill(*victims)
    assert all(is_alive(pid) for pid in herd.vms.values())
    server.start(*victims)
    server.wait_up()
    herd.check()


def test_all_die_again_and_again(server, herd):
    """Each is killed while it still looks at what the last one left."""
    for _ in range(3):
        server.kill()
        for name in DAEMONS:
            server.launch(name)
    server.kill()
    server.start()
    server.wait_up()
    herd.check()


def test_node_restarts_leave_nothing_in_warden(server, herd):
    """What a node had asked for and not used is not kept for a node that never comes back."""
    def held():
        return len(os.listdir(f"/proc/{server.pids['warden']}/fd"))

    server.restart("node")
    server.wait_up()
    before = held()
    for _ in range(6):
        server.restart("node")
        server.wait_up()
    # slots are made again in the background; twice what one node keeps ready is no growth
    assert held() <= before + 16, "warden holds more with every node that dies"


def test_create_and_kill_work_after_it(server, herd):
    box = server.create()
    assert server.run(box, "echo fresh") == "fresh"
    assert server.delete(box) == 204
    assert box["sandboxID"] not in server.ids()
    herd.check()


def test_a_deadline_that_passes_while_node_is_dead(server):
    box = server.create(timeout=3600)
    assert server.api("POST", f"/sandboxes/{box['sandboxID']}/timeout", {"timeout": 2}).status == 204
    server.kill("node")
    time.sleep(3)  # its time is over, and nobody was there
    server.start("node")
    server.wait_up()
    wait_for(lambda: box["sandboxID"] not in server.ids(), "it is gone", DEADLINE_LATE, 0.2)
    wait_for(lambda: box["sandboxID"] not in vms_on_disk(server), "its files are gone", DEADLINE_LATE, 0.2)


def test_a_deadline_that_lies_ahead_when_all_die(server):
    box = server.create(timeout=3600)
    begun = time.time()
    assert server.api("POST", f"/sandboxes/{box['sandboxID']}/timeout", {"timeout": 20}).status == 204
    server.restart()
    server.wait_up()
    listed = box["sandboxID"] in server.ids()
    assert listed or time.time() > begun + 19  # the machine may have been slower than that
    wait_for(lambda: box["sandboxID"] not in server.ids(), "it is gone", 20 + DEADLINE_LATE, 0.2)
    assert time.time() >= begun + 19


# --- death at every step ------------------------------------------------------------------------


def try_lives(server, stop):
    """Create, pause, resume and kill, until told to stop; failures are what this is about."""
    while not stop.is_set():
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = server.api("POST", "/sandboxes", {"templateID": "base", "timeout": 3600})
            if answer.status == 201:
                box = f"/sandboxes/{answer.json['sandboxID']}"
                server.api("POST", box + "/pause", {})
                server.api("POST", box + "/connect", {"timeout": 3600})
                server.api("DELETE", box)


def try_copies(server, stop):
    """The same of a life that is copied, by a snapshot and by a fork."""
    while not stop.is_set():
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = server.api("POST", "/sandboxes", {"templateID": "base", "timeout": 3600})
            if answer.status == 201:
                box = f"/sandboxes/{answer.json['sandboxID']}"
                taken = server.api("POST", box + "/snapshots", {})
                copies = server.api("POST", box + "/fork", {"count": 2, "timeout": 3600})
                for copy in copies.json if copies.status == 201 else []:
                    if "sandbox" in copy:
                        server.api("DELETE", f"/sandboxes/{copy['sandbox']['sandboxID']}")
                server.api("DELETE", box)
                if taken.status == 201:
                    server.api("DELETE", f"/templates/{taken.json['snapshotID']}")


def die_during_life(server, daemon, life=try_lives, **death):
    """Lead a daemon to its death: returns when it is dead."""
    stop = threading.Event()
    server.kill(daemon)
    server.launch(daemon, **death)
    clients = [threading.Thread(target=life, args=(server, stop)) for _ in range(2)]
    for client in clients:
        client.start()
    try:
        server.daemons[daemon].wait_dead(PATIENCE)
    finally:
        stop.set()
    return clients


def vms_on_disk(server):
    return {path.name for path in (server.warden.state / "vms").iterdir()}


def snapshots_on_disk(server):
    return {path.name for path in (server.base / "node/snapshots").iterdir()}


def snapshots_known(server):
    return {snapshot["snapshotID"] for snapshot in server.admin("GET", "/admin/snapshots").json}


def check_whole_or_gone(server):
    """What is listed answers; what is not listed leaves no folder, group or process."""
    server.wait_up(PATIENCE)
    wait_for(lambda: vms_on_disk(server) <= server.ids(), "what is not listed is gone", 90, 0.2)
    wait_for(lambda: snapshots_on_disk(server) == snapshots_known(server), "every snapshot is whole or gone", 90, 0.2)
    for box in server.all_sandboxes():
        if box["state"] == "paused":
            answer = server.api("POST", f"/sandboxes/{box['sandboxID']}/connect", {"timeout": 3600}, seconds=PATIENCE)
            assert answer.status == 201, (answer.status, answer.raw)
        answer = server.agent(box, "GET", "/health")
        assert answer.status == 204, f"{box['sandboxID']}: {answer.status} {answer.raw}"
    found = server.leaks()
    assert not found, "left behind:\n" + "\n".join(map(str, found))


def end_all(server, but=()):
    for sandbox in server.ids() - set(but):
        assert server.admin("DELETE", f"/admin/sandboxes/{sandbox}").status in (204, 404)
    for snapshot in server.must("GET", "/snapshots"):
        assert server.api("DELETE", f"/templates/{snapshot['snapshotID']}").status == 204
    wait_for(lambda: not snapshots_on_disk(server), "what nobody keeps is gone", 90, 0.2)


def faults():
    """Each step, when it is first reached; some of node's also in the middle of other work."""
    often = ("create.", "kill.")
    every = ([("warden", step) for step in steps_of("warden")] +
             [("node", f"{step}:{n}") for step in steps_of("node") for n in ((1, 3) if step.startswith(often) else (1,))])
    if RANDOM_FAULTS:
        return every
    kinds = itertools.groupby(every, key=lambda fault: fault[1].partition(".")[0])
    return [fault for _, of_a_kind in kinds for fault in list(of_a_kind)[::3]]


@pytest.fixture(scope="module")
def quiet_server(server, herd):
    """The same server, with one sandbox that must not notice anything."""
    end_all(server, but=[herd.boxes[0]["sandboxID"]])
    herd.boxes = herd.boxes[:1]
    return server


def test_steps_are_known():
    assert {step.partition(".")[0] for step in steps_of("node")} == {"create", "kill", "pool", "pause", "resume",
                                                                   "snapshot", "fork", "forget"}
    assert {step.partition(".")[0] for step in steps_of("warden")} == {"copy", "slot", "start", "stop"}
    assert len(faults()) >= (40 if RANDOM_FAULTS else 25)


@pytest.mark.parametrize("daemon,step", faults(), ids=lambda v: v)
def test_death_at(quiet_server, herd, daemon, step):
    server = quiet_server
    life = try_copies if step.startswith(("snapshot.", "fork.", "forget.")) else try_lives
    clients = die_during_life(server, daemon, life, die_at=step, **({"pool": 2} if "pool." in step else {}))
    server.start(daemon)
    for client in clients:
        client.join()
    check_whole_or_gone(server)
    herd.check()
    end_all(server, but=[herd.boxes[0]["sandboxID"]])


@pytest.mark.skipif(not RANDOM_FAULTS, reason="HOTCELL_FAULTS is not set")
def test_death_at_random(quiet_server, herd):
    server, chance = quiet_server, random.Random(SEED)
    for n in range(RANDOM_FAULTS):
        stop = threading.Event()
        clients = [threading.Thread(target=life, args=(server, stop)) for life in (try_lives, try_copies)]
        for client in clients:
            client.start()
        time.sleep(chance.uniform(0, 2.5))
        victims = chance.sample(DAEMONS, chance.choice((1, 1, 1, 2, 4)))
        server.kill(*victims)
        server.start(*victims)
        stop.set()
        for client in clients:
            client.join()
        check_whole_or_gone(server)
        end_all(server, but=[herd.boxes[0]["sandboxID"]])
        print(f"fault {n}: {' '.join(victims)}")
    herd.check()
