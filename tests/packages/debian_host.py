"""debian_host.py - a Debian of its own, booted with systemd, with no network but its loopback.

    with DebianHost(folder, "trixie") as host:
        host.add_repository(repository)
        host.run("apt-get", "install", "-y", "hotcell")
        host.hotcell("status", "--json")

The root is `tools/artefact debian-root SUITE`, below an overlay: what a test does to it is gone with the test. It is
process 1 of systemd-nspawn, with all capabilities, since warden needs them. VMs inside are emulated, unless /dev/kvm
works.

Where this machine has its control groups in the hierarchies of v1, a container's systemd has v2 without controllers. There
the daemons that need them, and `hotcell`, find groups of v1, which are the test's own, at /sys/fs/cgroup.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from engine import artefact
from warden import wait_for

TREES = ("memory", "cpu", "pids")
BOOT_SECONDS, RUN_SECONDS, STOP_SECONDS, CALL_SECONDS = 120, 300, 120, 180
GROUPS_AT = "/mnt/cgroup"  # in the container
LANDLOCK = "landlock_create_ruleset landlock_add_rule landlock_restrict_self"  # which nspawn does not know of
WITH_GROUPS = ("warden", "node")
TOP_V2 = next((p for p in (pathlib.Path("/sys/fs/cgroup/unified"), pathlib.Path("/sys/fs/cgroup"))
               if (p / "cgroup.procs").exists()), None)


def has_v2():
    file = pathlib.Path("/sys/fs/cgroup/cgroup.controllers")
    return file.exists() and set(TREES) <= set(file.read_text().split())


class DebianHost:
    def __init__(self, folder, suite):
        self.folder = pathlib.Path(folder)
        self.lower = pathlib.Path(artefact("debian-root", suite)) / "root"
        self.root = self.folder / "root"
        self.group = f"hotcell-packages-{os.getpid()}"
        self.binds, self.nspawn, self.leader = [], None, None

    # what is done before it boots

    def __enter__(self):
        try:
            for name in ("root", "upper", "work"):
                (self.folder / name).mkdir()
            options = f"lowerdir={self.lower},upperdir={self.folder / 'upper'},workdir={self.folder / 'work'}"
            subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, self.root], check=True)
            if not has_v2():
                self.lend_groups()
            self.boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def lend_groups(self):
        for tree in TREES:
            group = pathlib.Path("/sys/fs/cgroup", tree, self.group)
            group.mkdir()
            self.binds.append(f"--bind={group}:{GROUPS_AT}/{tree}")
        slices = " ".join(f"/sys/fs/cgroup/{tree}/hotcell.slice" for tree in TREES)  # where systemd would make them
        for name in WITH_GROUPS:
            drop_in = self.root / f"usr/lib/systemd/system/hotcell-{name}.service.d/groups.conf"  # purge removes those in /etc
            drop_in.parent.mkdir(parents=True)
            drop_in.write_text(f"[Service]\nBindPaths={GROUPS_AT}:/sys/fs/cgroup\n"
                               + (f"ExecStartPre=mkdir -p {slices}\n" if name == "warden" else ""))

    def boot(self):
        words = ["systemd-nspawn", "--quiet", "-D", self.root, f"--machine={self.group}", "--register=no", "--keep-unit", "--private-network",
                 "--capability=all", f"--system-call-filter={LANDLOCK}", "--bind=/dev/net/tun", "--console=pipe", *self.binds]
        if pathlib.Path("/dev/kvm").exists():
            words.append("--bind=/dev/kvm")
        if TOP_V2:
            (TOP_V2 / self.group).mkdir()
        self.nspawn = subprocess.Popen([*words, "--boot"], stdin=subprocess.DEVNULL,
                                       stdout=open(self.folder / "console", "w", encoding="utf-8"), stderr=subprocess.STDOUT,
                                       env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}, preexec_fn=self.enter_group)
        wait_for(self.is_up, f"the container's systemd; its console: {self.folder / 'console'}", BOOT_SECONDS)

    def enter_group(self):
        if TOP_V2:
            (TOP_V2 / self.group / "cgroup.procs").write_text("0")

    def is_up(self):
        assert self.nspawn.poll() is None, (self.folder / "console").read_text()
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()
        if not children:
            return False
        self.leader = int(children[-1])
        done = self.try_run("systemctl", "is-system-running")
        return done.stdout.strip() in ("running", "degraded")

    # what is done to it

    def try_run(self, *words, seconds=RUN_SECONDS, env=()):
        words = ["nsenter", "-t", str(self.leader), "-a", "env", "-i", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                 "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *env, *map(str, words)]
        try:
            return subprocess.run(words, capture_output=True, text=True, check=False, timeout=seconds, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as late:
            said = b"".join(part or b"" for part in (late.stdout, late.stderr)).decode(errors="replace")
            raise AssertionError(f"{words[9:]} took more than {seconds} s\n{said}") from None

    def run(self, *words, seconds=RUN_SECONDS, env=()):
        """What it said, on success."""
        done = self.try_run(*words, seconds=seconds, env=env)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def grouped(self, *words):
        """WORDS as they see the control groups that VMs are in."""
        if has_v2():
            return words
        return ("unshare", "--mount", "sh", "-c", f'mount --bind {GROUPS_AT} /sys/fs/cgroup && exec "$@"', "sh", *words)

    def hotcell(self, *words, seconds=RUN_SECONDS):
        """The operator's command, which looks at control groups."""
        return self.run(*self.grouped("hotcell", *words), seconds=seconds)

    def type(self, script, seconds):
        """What somebody types who may use sudo. Returns what was said, and (command, seconds) of each."""
        self.path("/srv/typed").write_text(f"PS4='@ $EPOCHREALTIME '\nset -ex\n{script}\n: end\n")
        done = self.try_run(*self.grouped("su", "-", "you", "-c", "bash /srv/typed"), seconds=seconds)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        found = re.findall(r"^@+ ([0-9.]+) (.*)", done.stderr, re.M)
        return done, [(words, float(after) - float(at)) for (at, words), (after, _) in zip(found, found[1:])]

    def path(self, name):
        return self.root / str(name).lstrip("/")

    def allow_emulation(self):
        """Where there is no KVM, which is what an operator has to say."""
        conf = self.path("/etc/hotcell/warden.conf")
        conf.write_text(conf.read_text().replace("#allow_emulation = no", "allow_emulation = yes"))

    def add_repository(self, repository):
        """Of Repository: apt in there finds its packages, and no others."""
        at = self.path("/srv/repository")
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(repository.folder, at)
        self.path("/etc/apt/sources.list.d/hotcell.sources").write_text(
            "Types: deb\nURIs: file:/srv/repository\nSuites: stable\nComponents: main\n"
            "Signed-By: /srv/repository/hotcell.asc\n")
        self.run("apt-get", "update")

    def apt(self, *words):
        return self.run(*self.grouped("apt-get", "-y", "-q", "--no-install-recommends", *words))

    def status(self):
        return self.hotcell("status", "--json")

    def units(self, state):
        lines = self.run("systemctl", "list-units", "--no-legend", "--plain", f"--state={state}", "hotcell*").splitlines()
        return {line.split()[0] for line in lines}

    def journal(self, unit):
        return self.try_run("journalctl", "--no-pager", "-o", "cat", "-n", "60", "-u", unit).stdout

    def wait(self, condition, what, seconds):
        return wait_for(condition, what, seconds, 0.5)

    def api(self, method, target, body=None, key=None, seconds=CALL_SECONDS):
        """Status and JSON of an answer: asked in there, as curl is not."""
        script = ("import json, sys, urllib.request as u, urllib.error\nm, t, b, k = sys.argv[1:]\n"
                  "r = u.Request('http://127.0.0.1:3000' + t, b.encode() or None, {'X-API-KEY': k, 'Content-Type': 'application/json'}, method=m)\n"
                  "try: a = u.urlopen(r)\nexcept urllib.error.HTTPError as e: a = e\nprint(a.status, a.read().decode())")
        said = self.run("python3", "-c", script, method, target, json.dumps(body) if body is not None else "", key or "", seconds=seconds)
        status, _, text = said.strip().partition(" ")
        return int(status), json.loads(text) if text else None

    def vms(self):
        """Processes of QEMU in there."""
        return self.try_run("pgrep", "-f", "^[^ ]*qemu-system").stdout.split()

    def state(self):
        """For who reads why something failed."""
        return "\n".join(self.try_run(*words, seconds=60).stdout for words in (
            ("systemctl", "list-units", "--all", "--no-legend", "--plain", "hotcell*"), ("systemctl", "list-jobs", "--no-legend"),
            ("ps", "-e", "-o", "pid,uid,etimes,args", "--cols=160"), ("journalctl", "--no-pager", "-q", "-o", "short-monotonic", "-n", "80")))

    @contextlib.contextmanager
    def step(self, what):
        """One of several that build on each other: its time is printed; what failed says how the host was."""
        begun = time.monotonic()
        try:
            yield
        except Exception as error:
            raise AssertionError(f"{what}: {error}\n--- the host\n{self.state()}") from error
        print(f"{time.monotonic() - begun:6.1f} s  {what}")

    # its end

    def __exit__(self, *_):
        if self.nspawn and self.nspawn.poll() is None:
            with contextlib.suppress(Exception):
                self.try_run("systemctl", "poweroff")
                self.nspawn.wait(timeout=STOP_SECONDS)
            if self.nspawn.poll() is None:
                if self.leader:
                    os.kill(self.leader, signal.SIGKILL)
                self.nspawn.kill()
                self.nspawn.wait()
        subprocess.run(["umount", "--lazy", self.root], check=False, stderr=subprocess.DEVNULL)
        for name in ("upper", "work"):  # gigabytes, which pytest would keep
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for top in [TOP_V2, *(pathlib.Path("/sys/fs/cgroup", tree) for tree in (*TREES, "systemd"))]:
            if top and (top / self.group).is_dir():
                wait_for(lambda at=top / self.group: removed(at), f"no process in {top / self.group}", STOP_SECONDS)


class Client:
    """What an SDK does, with what every host has: python3 and `hotcell exec`."""

    def __init__(self, host, team):
        self.host = host
        self.key = re.search(r"\be2b_\w+", host.run("hotcell", "keys", "add", team))[0]

    def must(self, method, target, body=None, seconds=CALL_SECONDS):
        status, answer = self.host.api(method, target, body, self.key, seconds)
        assert status < 300, (status, answer)
        return answer

    def create(self, seconds=CALL_SECONDS):
        return self.must("POST", "/sandboxes", {"templateID": "base", "timeout": 3600}, seconds)["sandboxID"]

    def exec(self, box, *words):
        """What it said. A sandbox that is paused is resumed by this."""
        env = (f"E2B_API_KEY={self.key}", "E2B_API_URL=http://127.0.0.1:3000", "E2B_SANDBOX_URL=http://127.0.0.1:3000")
        return self.host.run("hotcell", "exec", box, "--", *words, env=env).strip()


def removed(group):
    """A process that was just ended leaves its group a moment later."""
    subprocess.run(["find", str(group), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"], check=False,
                   stderr=subprocess.DEVNULL)
    return not group.exists()
