"""test_engine.py - a template is booted once, sandboxes are restored from it, and each is its own."""

import os
import pathlib
import time

import pytest

from engine import TIME_LOGGER, Engine

SKEW_MAX_US = 100_000


@pytest.fixture(scope="module")
def engine():
    with Engine() as e:
        yield e


@pytest.fixture
def logging_engine():
    """Its template has a start command that writes down the time, ten times a second."""
    with Engine(start_command=TIME_LOGGER) as e:
        yield e


@pytest.fixture(scope="module")
def pair(engine):
    """Two sandboxes of one template."""
    boxes = engine.create(), engine.create()
    yield boxes
    for box in boxes:
        engine.stop(box)


def test_the_agent_answers_and_runs_a_command(engine, pair):
    engine.driver.call("health", sandbox=pair[0]["sandbox"])
    r = engine.driver.exec(pair[0]["sandbox"], "echo out; echo err >&2; exit 7")
    assert (r.stdout, r.stderr, r.exit_code) == (b"out\n", b"err\n", 7)


def test_commands_run_as_user_who_may_sudo(engine, pair):
    assert engine.run(pair[0], "id -un; id -u; pwd") == "user\n1000\n/home/user"
    assert engine.run(pair[0], "sudo id -u") == "0"
    assert engine.run(pair[0], "python --version && git --version && curl --version").count("\n") > 2


def test_files_are_written_and_read(engine, pair):
    content = os.urandom(100_000)
    engine.driver.write_file(pair[0]["sandbox"], "/home/user/deep/er/data", content)
    assert engine.driver.read_file(pair[0]["sandbox"], "/home/user/deep/er/data") == content
    assert engine.run(pair[0], "stat -c %U:%G /home/user/deep/er/data") == "user:user"


def test_the_kernel_is_the_guest_kernel(engine, pair):
    release = engine.run(pair[0], "uname -r")
    assert release == engine.template["kernel"] and "hotcell" in release
    assert release != os.uname().release


def test_two_sandboxes_share_no_file(engine, pair):
    one, two = pair
    engine.driver.write_file(one["sandbox"], "/home/user/only-here", b"1")
    assert engine.driver.error("read_file", sandbox=two["sandbox"],
                               path="/home/user/only-here").code == "not_found"


def test_two_sandboxes_share_no_process(engine, pair):
    one, two = pair
    engine.driver.call("exec", sandbox=one["sandbox"], cmd="exec -a marker sleep 60", detach=True)
    assert engine.run(one, "pgrep -cf '^marker'") == "1"
    assert engine.driver.exec(two["sandbox"], "pgrep -cf '^marker'").stdout == b"0\n"
    assert one["pid"] != two["pid"] and one["uid"] != two["uid"]
    for kind in ("pid", "mnt", "ipc", "uts", "net"):
        inodes = {os.readlink(f"/proc/{p}/ns/{kind}") for p in (one["pid"], two["pid"], "self")}
        assert len(inodes) == 3, kind


def test_two_sandboxes_share_no_network(engine, pair):
    """All have the same address: what answers there is always oneself, and nothing else answers."""
    one, two = pair
    serve = "python3 -c 'import socket; s = socket.create_server((\"0.0.0.0\", 8000)); s.accept()'"
    engine.driver.call("exec", sandbox=one["sandbox"], cmd=serve, detach=True)
    engine.run(one, "until exec 3<>/dev/tcp/169.254.77.2/8000; do sleep 0.1; done 2>/dev/null")
    # each attempt says so if it gets through; none may
    attempt = "timeout 3 bash -c 'exec 3<>/dev/tcp/{}' && echo reached {} &"
    targets = ("169.254.77.2/8000", "169.254.77.1/80", "169.254.77.1/8000", "127.0.0.1/8000",
               "10.0.0.1/80", "1.1.1.1/53")
    script = "\n".join(attempt.format(t, t) for t in targets) + "\nwait"
    assert engine.run(two, f"({script}) 2>/dev/null") == ""


def best_clock(engine, box, tries=30):
    """The reading with the least doubt in it: on a busy host the way to the guest takes its time."""
    readings = [engine.driver.call("clock", sandbox=box["sandbox"]) for _ in range(tries)]
    return min(readings, key=lambda c: c["uncertainty_us"])


def test_the_clock_is_right_after_restore(engine, pair):
    for box in pair:
        clock = best_clock(engine, box)
        assert abs(clock["skew_us"]) + clock["uncertainty_us"] < SKEW_MAX_US, clock


def test_identities_differ(engine, pair):
    def seen(box):
        return {"random": engine.run(box, "head -c 32 /dev/urandom | base64"),
                "uuid": engine.run(box, "cat /proc/sys/kernel/random/uuid"),
                "machine id": engine.run(box, "cat /etc/machine-id"),
                "boot id": engine.run(box, "cat /proc/sys/kernel/random/boot_id"),
                "hostname": engine.run(box, "hostname"),
                "access token": box["access_token"], "control token": box["control_token"]}

    one, two = map(seen, pair)
    for what in one:
        assert one[what] != two[what], what
    assert one["machine id"] == pair[0]["machine_id"]
    assert one["hostname"] == pair[0]["hostname"]
    assert one["boot id"] == pair[0]["boot_id"]


def test_no_user_process_runs_before_the_identity_is_set(logging_engine):
    """The template's start command logs the time. A line written after the snapshot and before the
    clock was set would show a time between the two."""
    built = (logging_engine.warden.state / "templates/base/manifest").stat().st_mtime
    while time.time() < built + 2:  # a gap that no line may fall into
        time.sleep(0.1)
    begun = time.time()
    box = logging_engine.create()
    times = [float(t) for t in logging_engine.run(box, "sleep 1; cat /home/user/times").split()]
    logging_engine.stop(box)
    before = [t for t in times if t < built]
    after = [t for t in times if t >= begun]
    assert before and after, "the start command ran before the snapshot and after the restore"
    assert len(before) + len(after) == len(times), [t - built for t in times]
    assert times == sorted(times)


def test_only_our_cont_starts_a_guest(engine):
    box = engine.create(hold="loaded")
    name = box["sandbox"]
    assert box["status"] == "paused"
    assert engine.driver.call("status", sandbox=name)["status"] == "paused"
    engine.driver.call("cont", sandbox=name)
    assert engine.driver.call("status", sandbox=name)["status"] == "running"
    engine.stop(box)


def test_no_vm_changes_its_template(engine, pair):
    """Guests write their disk and memory, yet every file of the template stays as it was built."""
    for box in pair:
        engine.run(box, "dd if=/dev/urandom of=/home/user/noise bs=1M count=8 && sync", user="user")
    folder = pathlib.Path(engine.warden.state) / "templates/base"
    built = (folder / "manifest").stat().st_mtime
    for path in folder.iterdir():
        status = path.stat()
        assert status.st_mode & 0o777 == 0o444 and status.st_uid == 0, path
        assert status.st_mtime <= built, path
    # a new driver knows no template and reads every checksum again
    box = engine.fresh_driver_create()
    assert box["status"] == "running"


def test_the_accelerator_is_shown(engine):
    facts = engine.driver.facts
    log = engine.warden.log()
    if facts["emulated"]:
        assert facts["accel"] == "tcg" and "NOT A SECURITY BOUNDARY" in log
    else:
        assert facts["accel"] == "kvm" and "accelerator: kvm" in log
