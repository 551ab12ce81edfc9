"""engine.py - the whole engine for a test: a warden of its own, a driver, and the template `base`.

    @pytest.fixture(scope="module")
    def engine():
        with Engine() as e:
            yield e

    box = engine.create()
    engine.run(box, "uname -r")

The guest's kernel and disk come from tools/artefact (built if they are missing), or from
HOTCELL_GUEST_KERNEL and HOTCELL_GUEST_DISK. Leaving the block stops every VM and asks leaks.py whether anything
is left.
"""

import contextlib
import os
import pathlib
import subprocess

from driver import Driver
from warden import build_dir
from warden_fixtures import Watched

TOP = pathlib.Path(__file__).resolve().parents[2]
TEMPLATE = "base"
# The start command of the tests' template, and how one knows that it has begun. It writes the time ten
# times a second, for as long as anything of the user's is allowed to run.
READY = "until [ -s /home/user/times ]; do sleep 0.1; done"
TIME_LOGGER = "while :; do date +%s.%N; sleep 0.1; done >> /home/user/times"


def artefact(*words):
    tool = [TOP / "tools/artefact", *map(str, words)]
    return pathlib.Path(subprocess.run(tool, check=True, capture_output=True, text=True).stdout.strip())


def kernel_path():
    given = os.environ.get("HOTCELL_GUEST_KERNEL")
    return pathlib.Path(given) if given else artefact("kernel") / "vmlinux"


def disk_path():
    given = os.environ.get("HOTCELL_GUEST_DISK")
    if given:
        return pathlib.Path(given)
    return artefact("image", build_dir() / "src/agent/hotcell-agent")


def tools_disk_path():
    """With Node, npm and Java, too (guest/tools)."""
    return artefact("image", build_dir() / "src/agent/hotcell-agent", "tools")


def guest_settings():
    """What warden must know of the guest, and which accelerator is asked for."""
    kernel = TOP / "guest/kernel"
    return {"cmdline": (kernel / "cmdline").read_text().strip(),
            "accel": os.environ.get("HOTCELL_ACCEL", "auto")}


class Engine:
    """warden, driver and template, from nothing to nothing."""

    def __init__(self, start_command=None, vms_max=512):
        self.warden = Watched(vms_max=vms_max, **guest_settings())
        self.start_command = start_command
        self.driver = None
        self.kernel, self.disk = kernel_path(), disk_path()

    def __enter__(self):
        try:
            self.warden.start()
            self.driver = Driver(self.warden.socket_path, self.warden.state).start()
            self.template = self.build_template(TEMPLATE)
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *exc):
        if exc[0]:
            self.remove()
            return
        try:
            self.stop_all()
            self.driver.close()
            self.warden.check_clean()
        finally:
            self.remove()

    def remove(self):
        if self.driver and self.driver.process:
            self.driver.kill()
        with contextlib.suppress(Exception):
            self.warden.stop_all()
        self.warden.remove()

    def build_template(self, name, **args):
        if self.start_command:
            args.update(startCommand=self.start_command, readyCommand=READY)
        return self.driver.call("template", template=name, kernel=str(self.kernel),
                                disk=str(self.disk), vcpus=1, memoryMib=512, **args)

    def create(self, **args):
        return self.driver.call("create", template=TEMPLATE, **args)

    def create_many(self, n, at_once=8, **args):
        """n sandboxes, begun `at_once` at a time."""
        boxes = []
        while len(boxes) < n:
            waiting = [self.driver.submit("create", template=TEMPLATE, **args)
                       for _ in range(min(at_once, n - len(boxes)))]
            boxes += [w.wait() for w in waiting]
        return boxes

    def run(self, box, command, **args):
        """The standard output of a command that must succeed, as text without its last newline."""
        r = self.driver.exec(box["sandbox"], command, **args)
        assert r.exit_code == 0, f"{command}: exit {r.exit_code}: {r.stderr.decode()}"
        return r.stdout.decode().removesuffix("\n")

    def fresh_driver_create(self):
        """A sandbox made and stopped by a driver that has verified nothing yet."""
        with Driver(self.warden.socket_path, self.warden.state) as fresh:
            box = fresh.call("create", template=TEMPLATE)
            fresh.call("stop", sandbox=box["sandbox"])
            return box

    def stop(self, box):
        self.driver.call("stop", sandbox=box["sandbox"])

    def stop_all(self):
        waiting = [self.driver.submit("stop", sandbox=s["sandbox"])
                   for s in self.driver.call("list")["sandboxes"]]
        for w in waiting:
            w.wait()


def available_kib():
    """MemAvailable, after what is dirty has been written."""
    os.sync()
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    raise RuntimeError("no MemAvailable")


__all__ = ["Driver", "Engine", "TEMPLATE", "TIME_LOGGER", "available_kib"]
