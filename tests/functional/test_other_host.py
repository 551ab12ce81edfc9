"""test_other_host.py - the host's QEMU or processor is another one now: what was saved is refused with a reason, nothing
of it is lost, and its disk boots. Templates of users are frozen again.

    home --pause, snapshot--> away --refused; booted, saved again--> home --the old ones go on, the new are refused

`away` is the same host with another processor for its guests, or with another QEMU (tools/artefact other-qemu), which
warden finds after a restart.
"""

import json
import os
import re
import subprocess
import time

import pytest

from engine import artefact
from server import CALL_SECONDS, Server
from warden import build_dir, wait_for

BOOT_SECONDS = 240
OTHER_CPU = "qemu64"
COUNTER = ("setsid bash -c 'exec 3<> <(:); while :; do n=$((n+1)); echo $n 1<>/dev/shm/n; read -t 0.5 -u 3; done' "
           ">/dev/null 2>&1 </dev/null &")


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


def target_of(box, what=""):
    return f"/sandboxes/{box['sandboxID']}{what}"


def facts_of(server):
    return server.admin("GET", "/admin/status").json["node"]["qemu"]


def move(server, **changes):
    """Another warden, and the template that fits it."""
    before = server.daemons["node"].log().count("is ready: base-")
    begun = time.monotonic()
    server.restart("warden", **changes)
    wait_for(lambda: server.daemons["node"].log().count("is ready: base-") > before, "node has its template",
             BOOT_SECONDS, 0.2)
    server.wait_template()
    print(f"the template after {time.monotonic() - begun:.1f} s; {facts_of(server)}")


def home(server):
    """The first warden, wherever the test before has left it."""
    before = server.daemons["node"].log().count("warden is up")
    server.restart("warden")
    wait_for(lambda: server.daemons["node"].log().count("warden is up") > before, "node has found it", BOOT_SECONDS, 0.1)
    server.wait_template()


def make(server, **more):
    """One with a file, a process that counts in memory, and an environment of its own."""
    box = server.create(secure=True, envVars={"COLOUR": "green"}, metadata={"who": "test"}, **more)
    server.write(box, "/home/user/kept", b"of the disk")
    server.run(box, f"sync; {COUNTER}")  # what is in memory alone is lost with it
    wait_for(lambda: counts(server, box), "it counts", CALL_SECONDS, 0.1)
    return box


def counts(server, box):
    text = server.run(box, "cat /dev/shm/n 2>/dev/null || true").strip()
    return int(text) if text else 0


def pause(server, box):
    assert server.must("POST", target_of(box, "/pause")) is None


def state(server, box):
    return server.must("GET", target_of(box))["state"]


def check_refusal(answer, what):
    body = answer.json
    assert answer.status == 412 and body["code"] == 412 and body["reason"] == "saved_elsewhere", (answer.status, body)
    assert what in body["message"] and '"memory": false' in body["message"], body


def check_refused(server, box, what):
    """By every way to resume it; it stays paused."""
    check_refusal(server.api("POST", target_of(box, "/resume"), {"timeout": 60}), what)
    check_refusal(server.api("POST", target_of(box, "/connect"), {"timeout": 60}), what)
    assert state(server, box) == "paused"


def hotcell(server, *words):
    return subprocess.run([build_dir() / "src/cli/hotcell", "--socket", server.admin_socket, *words],
                          capture_output=True, text=True, timeout=BOOT_SECONDS)


def check_booted(server, box):
    """The same one, by its token, its files and its environment; nothing of its memory."""
    assert server.read(box, "/home/user/kept") == b"of the disk"
    assert server.run(box, "echo $COLOUR; hostname").split() == ["green", server.run(box, "hostname").strip()]
    assert counts(server, box) == 0
    assert server.agent({**box, "envdAccessToken": "0" * 64}, "GET", "/envs").status == 401
    assert server.must("GET", target_of(box))["metadata"] == {"who": "test"}


def resume_and_count(server, box, timeout=3600):
    """With its memory: it counts on from where it was."""
    box.update(server.must("POST", target_of(box, "/connect"), {"timeout": timeout}))
    found = counts(server, box)
    assert found > 0
    wait_for(lambda: counts(server, box) > found, "it counts on", CALL_SECONDS, 0.1)
    return found


def snapshot_of(server, box):
    """On a busy host the guest's processes may not freeze in time; then it says so, and may be asked again."""
    answers = []

    def taken():
        answers.append(server.api("POST", target_of(box, "/snapshots"), {}))
        assert answers[-1].status in (201, 503), answers[-1].raw
        return answers[-1].status == 201

    wait_for(taken, "a snapshot", CALL_SECONDS, 1)
    return answers[-1].json


def of_snapshot(server, snapshot, **more):
    return server.api("POST", "/sandboxes", {"templateID": snapshot["snapshotID"], "timeout": 3600, **more},
                      seconds=BOOT_SECONDS)


def told_of(server, paused):
    """Operators are told how many do not fit the QEMU here, before a client comes for them."""
    wait_for(lambda: server.node_status()["savedElsewhere"] == paused, f"{paused} are saved elsewhere", CALL_SECONDS, 0.2)
    found = next(c for c in json.loads(hotcell(server, "--json", "doctor").stdout) if c["check"] == "saved")
    assert ("saved with another QEMU" in found["found"]) == (paused > 0), found


def away_and_back(server, what, **changes):
    stays, boots, visited = make(server), make(server), make(server, autoPause=True, autoResume={"enabled": True})
    old = snapshot_of(server, stays)
    for box in (stays, boots, visited):
        pause(server, box)
    home = facts_of(server)
    move(server, **changes)
    assert what != "vmm_version" or facts_of(server) != home
    running = make(server)  # what is made here runs here
    told_of(server, 3 if what == "vmm_version" else 0)

    check_refused(server, stays, what)
    check_refusal(of_snapshot(server, old), what)
    visit = server.agent(visited, "GET", "/envs")
    assert visit.status == 412 and "from its disk" in visit.json["message"], visit.raw
    said = hotcell(server, "resume", boots["sandboxID"])
    assert said.returncode == 1 and what in said.stderr and "hotcell resume --boot" in said.stderr, said
    assert state(server, boots) == "paused"

    begun = time.monotonic()
    said = hotcell(server, "--json", "resume", "--boot", boots["sandboxID"])
    assert said.returncode == 0 and json.loads(said.stdout) == {"resumed": [boots["sandboxID"]]}, said
    print(f"booted from its disk in {time.monotonic() - begun:.1f} s")
    check_booted(server, boots)
    answer = of_snapshot(server, old, memory=False)
    assert answer.status == 201, answer.raw
    copy = answer.json
    assert server.read(copy, "/home/user/kept") == b"of the disk" and counts(server, copy) == 0

    # saved again, by this QEMU: it fits here, and only here
    server.run(boots, COUNTER)
    wait_for(lambda: counts(server, boots), "it counts", CALL_SECONDS, 0.1)
    new = snapshot_of(server, boots)
    pause(server, boots)
    server.restart("node")
    server.wait_up()
    server.wait_template()
    told_of(server, 2 if what == "vmm_version" else 0)  # not of the one that was saved here
    resume_and_count(server, boots)
    answer = of_snapshot(server, new)
    assert answer.status == 201 and counts(server, answer.json) > 0
    assert server.delete(answer.json) == 204
    pause(server, boots)
    pause(server, copy)

    move(server)
    assert facts_of(server) == home
    resume_and_count(server, stays)
    check_refused(server, boots, what)
    check_refused(server, copy, what)
    check_refusal(of_snapshot(server, new), what)
    answer = of_snapshot(server, old)
    assert answer.status == 201 and counts(server, answer.json) > 0
    assert counts(server, running) > 0, "what ran while warden was replaced runs on"
    pause(server, running)  # by the QEMU that it was started with
    check_refused(server, running, what)
    assert server.agent(visited, "GET", "/envs").status == 200  # resumes it: nothing was lost
    for box in (stays, boots, visited, running, copy, answer.json):
        assert server.delete(box) == 204
    for snapshot in (old, new):
        assert server.api("DELETE", f"/templates/{snapshot['snapshotID']}").status == 204


def test_another_processor(server):
    away_and_back(server, "cpu_model", cpu_model=OTHER_CPU)


def test_another_qemu(server):
    away_and_back(server, "vmm_version", usr=artefact("other-qemu") / "usr")


def build(server, name, **more):
    """A template of a user with a file of a step and a process of its start command; its id."""
    made = server.must("POST", "/v3/templates", {"name": name, "cpuCount": 1, "memoryMB": 256})
    path = f"/templates/{made['templateID']}/builds/{made['buildID']}"
    step = {"type": "RUN", "args": ["echo of a step > /home/user/kept"], "force": False}
    start = {"startCmd": "echo begun >> /home/user/starts; exec sleep 4321", "readyCmd": "pgrep -x sleep", **more}
    server.must("POST", "/v2" + path, {"fromTemplate": "base", "steps": [step], "force": False, **start})
    status = wait_for(lambda: (s := server.must("GET", f"{path}/status"))["status"] in ("ready", "error") and s,
                      "the build ends", BOOT_SECONDS, 0.2)
    assert status["status"] == "ready", status
    return made["templateID"]


def builds_kept(server):
    return [s["snapshotID"] for s in server.admin("GET", "/admin/snapshots").json if s["kind"] == "build"]


def of_template(server, name):
    begun = time.monotonic()
    answer = server.api("POST", "/sandboxes", {"templateID": name, "timeout": 3600}, seconds=BOOT_SECONDS)
    assert answer.status == 201, answer.raw
    box = answer.json
    print(f"a sandbox of {name} after {time.monotonic() - begun:.1f} s")
    return box


def starts(server, box):
    """Its files are there and its start command runs; how often that was begun."""
    assert server.read(box, "/home/user/kept") == b"of a step\n"
    assert server.run(box, "pgrep -c -x sleep").strip() == "1"
    return server.run(box, "grep -c begun /home/user/starts").strip()


def refreeze_of(server, template):
    return next(t for t in server.admin("GET", "/admin/templates").json if t["templateID"] == template)["refreeze"]


def is_frozen_again(server, template):
    (build,) = server.must("GET", f"/templates/{template}")["builds"]
    log = server.must("GET", f"/templates/{template}/builds/{build['buildID']}/status?limit=100")["logEntries"]
    return [line["message"] for line in log if "Template is saved" in line["message"]]


def gone(server, template):
    assert server.api("DELETE", f"/templates/{template}").status == 204
    wait_for(lambda: not builds_kept(server), "nothing is left of it", CALL_SECONDS, 0.1)
    assert server.ids() == set() and server.leaks() == []


def test_a_template_of_a_user_is_frozen_again(server):
    """Another QEMU: it is booted from its disk and frozen by node itself, though node dies in the middle of it. Who asks
    for a sandbox meanwhile waits. What was made of the old one keeps it."""
    template = build(server, "warm")
    old = of_template(server, "warm")
    assert starts(server, old) == "1"
    (before,) = builds_kept(server)
    server.restart("node", die_at="build.ready")
    server.wait_up()
    server.wait_template()
    server.restart("warden", usr=artefact("other-qemu") / "usr")
    server.daemons["node"].wait_dead(BOOT_SECONDS)
    server.start("node")
    server.wait_up()
    wait_for(lambda: refreeze_of(server, template), "node says what it does", BOOT_SECONDS, 0.05)
    assert "vmm_version" in refreeze_of(server, template)["message"]
    listed = next(t for t in server.must("GET", "/templates") if t["templateID"] == template)
    assert listed["buildStatus"] == "ready", listed
    new = of_template(server, "warm")
    assert starts(server, new) == "2", "booted once more from the disk that the build left"
    assert refreeze_of(server, template) is None and len(is_frozen_again(server, template)) == 2
    for box in (old, new):
        assert server.must("GET", target_of(box))["templateID"] == template
    assert starts(server, old) == "1", "what ran while warden was replaced runs on"
    assert len(builds_kept(server)) == 2 and before in builds_kept(server)
    pause(server, new)
    new.update(server.must("POST", target_of(new, "/connect"), {"timeout": 600}))
    assert starts(server, new) == "2"
    assert server.delete(old) == 204
    wait_for(lambda: before not in builds_kept(server), "the old one goes with its last sandbox", CALL_SECONDS, 0.1)
    assert server.delete(new) == 204
    gone(server, template)


@pytest.mark.skipif("HOTCELL_FAULTS" not in os.environ, reason="HOTCELL_FAULTS is not set: minutes")
def test_a_template_that_cannot_be_frozen_again(server):
    """Its start command works once. Creates say why; nothing of it is lost, and home it works."""
    once = {"startCmd": "test ! -e /home/user/starts || exit 4; echo begun > /home/user/starts; exec sleep 4321"}
    home(server)
    template = build(server, "once", **once)
    move(server, cpu_model=OTHER_CPU)
    answer = server.api("POST", "/sandboxes", {"templateID": "once"}, seconds=BOOT_SECONDS)
    check_refusal(answer, "exit status 4")
    wait_for(lambda: refreeze_of(server, template)["state"] == "not frozen again", "it gives up", BOOT_SECONDS * 2, 1)
    check_refusal(server.api("POST", "/sandboxes", {"templateID": "once"}), "exit status 4")
    box = server.must("POST", "/sandboxes", {"templateID": "once", "timeout": 600, "memory": False})
    assert server.read(box, "/home/user/kept") == b"of a step\n"
    assert server.delete(box) == 204
    assert len(builds_kept(server)) == 1
    move(server)
    box = of_template(server, "once")
    assert starts(server, box) == "1"
    assert server.delete(box) == 204
    gone(server, template)


@pytest.mark.skipif("HOTCELL_FAULTS" not in os.environ, reason="HOTCELL_FAULTS is not set: minutes")
def test_deaths_while_templates_are_frozen_again(server):
    """Of node at each step of it, there and back; of warden once. Afterwards there is one snapshot, and it works."""
    steps = ["build.booted", "build.started", "snapshot.copied", "snapshot.row", "build.snapshot", "forget.row"]
    home(server)
    template = build(server, "mortal")
    for n, step in enumerate(steps):
        server.restart("node", die_at=step)
        server.wait_up()
        server.wait_template()
        server.restart("warden", **({} if n % 2 else {"cpu_model": OTHER_CPU}))
        server.daemons["node"].wait_dead(BOOT_SECONDS)
        server.start("node")
        server.wait_up()
        box = of_template(server, "mortal")
        assert int(starts(server, box)) >= n + 2, step
        assert server.delete(box) == 204
        wait_for(lambda: len(builds_kept(server)) == 1, f"one is left after {step}", CALL_SECONDS, 0.1)
        assert server.ids() == set() and server.leaks() == []
    server.restart("warden", cpu_model=OTHER_CPU)
    wait_for(lambda: refreeze_of(server, template), "it begins", BOOT_SECONDS, 0.05)
    server.restart("warden", cpu_model=OTHER_CPU)
    box = of_template(server, "mortal")
    starts(server, box)
    assert server.delete(box) == 204
    gone(server, template)


@pytest.mark.skipif("HOTCELL_FAULTS" not in os.environ, reason="HOTCELL_FAULTS is not set: minutes")
def test_templates_are_frozen_again_with_another_kernel(server, tmp_path):
    """Whose version is another: a text in it is changed. The old one serves until then; what is paused and was of it
    goes on with the kernel in its memory, and what boots has the new one."""
    kernel = (artefact("kernel") / "vmlinux").read_bytes()
    version = re.search(rb"Linux version (\S+)", kernel)[1]
    other = tmp_path / "vmlinux"
    other.write_bytes(kernel.replace(version, version[:-1] + (b"8" if version[-1:] == b"7" else b"7")))
    os.chmod(tmp_path, 0o755)
    home(server)
    template = build(server, "kernel")
    old = of_template(server, "kernel")
    before = server.run(old, "uname -r").strip()
    server.restart("node", kernel=other)
    server.wait_up()
    server.wait_template()
    wait_for(lambda: refreeze_of(server, template), "it is due", BOOT_SECONDS, 0.02)
    assert refreeze_of(server, template)["message"].startswith("kernel: ")
    meanwhile = of_template(server, "kernel")
    assert starts(server, meanwhile) == "1" and server.run(meanwhile, "uname -r").strip() == before
    wait_for(lambda: refreeze_of(server, template) is None, "it is frozen again", BOOT_SECONDS, 0.1)
    new = of_template(server, "kernel")
    assert starts(server, new) == "2" and server.run(new, "uname -r").strip() != before
    for box in (old, meanwhile, new):
        release = server.run(box, "uname -r")
        pause(server, box)
        box.update(server.must("POST", target_of(box, "/connect"), {"timeout": 600}))
        assert server.run(box, "uname -r") == release and starts(server, box) in ("1", "2")
        assert server.delete(box) == 204
    gone(server, template)
    server.restart("node")
    server.wait_up()
    server.wait_template()
