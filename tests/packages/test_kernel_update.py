"""test_kernel_update.py - a security fix of the guest's kernel: another hotcell-guest is installed by apt.

Its kernel is the one of this checkout with another version in its text, as a fix would have. `base` is frozen again with
it by itself; who is paused meanwhile goes on with the kernel that is in its memory, and so does who runs.
"""

import json
import os
import re
import subprocess

import pytest

from debian_host import Client, DebianHost
from repository import Repository
from server import is_ready
from test_packages import START_SECONDS, SUITE, make_packages, serves

FREEZE_SECONDS = 600  # emulated, beside other work
NEWER = "+fixed1"
GUEST = "usr/lib/hotcell/guest/vmlinux"


@pytest.fixture(name="packages", scope="module")
def make_both(tmp_path_factory):
    return make_packages(tmp_path_factory)


def another_guest(folder, package):
    """The package of a later version, whose kernel says another version of itself."""
    tree, out = folder / "tree", folder / "hotcell-guest-newer.deb"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    kernel = (tree / GUEST).read_bytes()
    version = re.search(rb"Linux version (\S+)", kernel)[1]
    (tree / GUEST).write_bytes(kernel.replace(version, version[:-1] + (b"8" if version[-1:] == b"7" else b"7")))
    control = (tree / "DEBIAN/control").read_text()
    (tree / "DEBIAN/control").write_text(re.sub(r"^(Version: .*)$", rf"\g<1>{NEWER}", control, flags=re.M))
    subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, out], check=True, capture_output=True)
    return out


def base_is_ready(host):
    done = host.try_run("hotcell", "templates", "--json")
    return done.returncode == 0 and any(is_ready(template) for template in json.loads(done.stdout))


@pytest.mark.skipif("HOTCELL_FAULTS" not in os.environ, reason="HOTCELL_FAULTS is not set: minutes")
def test_a_new_kernel_of_the_guest(packages, tmp_path):
    guest = next(p for p in packages if p.name.startswith("hotcell-guest_"))
    repository = Repository(tmp_path, packages)
    try:
        with DebianHost(tmp_path, SUITE) as host:
            with host.step("installed and set up"):
                host.add_repository(repository)
                host.apt("install", "hotcell")
                host.hotcell("setup", "--yes", "--allow-emulation", "--team", "acme", seconds=FREEZE_SECONDS)
            with host.step("two sandboxes, one of them paused"):
                client = Client(host, "acme")
                paused, runs = client.create(), client.create()
                before = client.exec(paused, "uname", "-r")
                client.exec(paused, "sh", "-c", "sleep 10000 >/dev/null 2>&1 & echo $! >/home/user/pid")
                client.must("POST", f"/sandboxes/{paused}/pause")
            with host.step("apt-get upgrade: base is frozen again"):
                repository.add([another_guest(tmp_path, guest)])
                host.add_repository(repository)
                said = host.apt("upgrade")
                assert NEWER in host.run("dpkg-query", "-W", "-f", "${Version}", "hotcell-guest"), said
                host.wait(lambda: serves(host), "every daemon answers", START_SECONDS)
                host.wait(lambda: base_is_ready(host), "base is frozen again", FREEZE_SECONDS)
                new = client.create(FREEZE_SECONDS)
                after = client.exec(new, "uname", "-r")
                assert after != before, "what is made now has the new kernel"
            with host.step("what was there before goes on with its own kernel"):
                assert client.exec(runs, "uname", "-r") == before
                assert client.exec(paused, "uname", "-r") == before
                assert client.exec(paused, "sh", "-c", "kill -0 $(cat /home/user/pid) && echo goes on") == "goes on"
                for box in (paused, runs, new):
                    client.must("DELETE", f"/sandboxes/{box}")
    finally:
        repository.close()
