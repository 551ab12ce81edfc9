"""test_packages.py - the packages of this checkout in a clean Debian: installed, started, upgraded, removed, purged.

HOTCELL_PACKAGES names a folder with them; without it they are made (tools/packages). HOTCELL_PACKAGES_SUITE is the
Debian (trixie). What is expected in the end is what was there in the beginning: by listing.
"""

import json
import os
import pathlib
import subprocess

import pytest

from debian_host import DebianHost
from engine import TOP, artefact
from repository import Repository

SUITE = os.environ.get("HOTCELL_PACKAGES_SUITE", "trixie")
DAEMONS = ("warden", "egress", "injector", "images", "signer", "node")
START_SECONDS = 120
# What apt, dpkg and systemd write of their own accord, and this test's own.
NOT_OURS = ("/var/cache/apt", "/var/lib/apt", "/var/lib/dpkg", "/var/log", "/var/cache/ldconfig", "/var/cache/debconf",
            "/etc/ld.so.cache", "/var/backups", "/var/lib/systemd/catalog", "/var/lib/systemd/random-seed", "/var/tmp/systemd-private")
# systemd-sysusers and userdel keep what was there before
BACKUPS = {"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock", "/etc/subuid-", "/etc/subgid-"}


def make_packages(tmp_path_factory):
    """Of the server and the guest."""
    given = os.environ.get("HOTCELL_PACKAGES")
    folder = pathlib.Path(given) if given else tmp_path_factory.mktemp("packages")
    if not given:
        subprocess.run([TOP / "tools/packages", folder, "hotcell", "guest"], check=True,
                       env={**os.environ, "HOTCELL_PACKAGES_LEVEL": "3"})
    return sorted(folder.glob("*.deb"))


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return make_packages(tmp_path_factory)


@pytest.fixture(scope="module")
def host(packages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    repository = Repository(folder, packages)
    try:
        with DebianHost(folder, SUITE) as host:
            host.add_repository(repository)
            host.before = facts(host)
            yield host
    finally:
        repository.close()


def listing(host):
    found = host.run("find", "/", "-xdev", "-path", "/srv/repository", "-prune", "-o", "-print").splitlines()
    return {name for name in found if not name.startswith(NOT_OURS)} - BACKUPS


def facts(host):
    """What an installation could leave anywhere."""
    groups = host.run("find", "/sys/fs/cgroup", "-type", "d", "-name", "hotcell*")
    return {"files": listing(host), "run": set(host.run("find", "/run", "-name", "hotcell*").split()),
            "users": host.run("getent", "passwd"), "groups": host.run("getent", "group"),
            "units": host.run("systemctl", "list-unit-files", "--no-legend", "hotcell*") if host.try_run(
                "systemctl", "list-unit-files", "--no-legend", "hotcell*").returncode == 0 else "",
            "loaded units": host.run("systemctl", "list-units", "--all", "--no-legend", "--plain", "hotcell*"),
            "namespaces": host.run("ip", "netns"), "links": host.run("ip", "-o", "link").count("\n"),
            "control groups": groups, "rules": host.run("nft", "list", "tables"),
            "processes": [line for line in host.run("ps", "-e", "-o", "args=").splitlines() if "hotcell" in line or "qemu" in line]}


def serves(host):
    done = host.try_run("hotcell", "status", "--json")
    if done.returncode != 0:
        return None
    status = json.loads(done.stdout)
    node = status.get("node") or {}
    return status if all(node.get(name) for name in ("warden", "egress", "injector", "images")) else None


def main_pids(host):
    return {name: int(host.run("systemctl", "show", "-P", "MainPID", f"hotcell-{name}")) for name in DAEMONS}


def gateways(host):
    return [n for n in range(1, 5) if host.run("systemctl", "show", "-P", "ActiveState", f"hotcell-gateway@{n}").strip() == "active"]


def installed_and_nothing_runs(host):
    host.apt("install", "hotcell")
    assert host.units("active") == set() and host.units("failed") == set()
    assert host.try_run("systemctl", "is-enabled", "hotcell.target").stdout.strip() == "disabled"
    conf = host.path("/etc/hotcell/node.conf").read_text()
    assert "\nuser = hotcell-node\n" in conf and "\n#pool = " in conf
    assert host.run("hotcell", "--version").strip()
    kernel = host.path("/usr/lib/hotcell/guest/vmlinux").read_bytes()
    assert kernel == (artefact("kernel") / "vmlinux").read_bytes(), "the kernel is the one that is tested, to the byte"


def daemons_start_and_answer(host):
    host.allow_emulation()
    host.run("systemctl", "enable", "--now", "hotcell.target")
    status = host.wait(lambda: serves(host), "every daemon answers", START_SECONDS)
    assert len(set(filter(None, status["versions"].values()))) == 1 and status["mismatches"] == []
    assert host.units("failed") == set()
    disk = host.path("/var/cache/hotcell/base.raw").stat()
    assert disk.st_size == 10240 * 1024 * 1024 and disk.st_blocks * 512 < 1024 * 1024 * 1024
    host.run("hotcell", "teams", "add", "acme")


def an_upgrade_restarts_daemons_and_replaces_the_gateway(host):
    before, gateway = main_pids(host), gateways(host)
    said = host.apt("install", "--reinstall", "hotcell")
    host.wait(lambda: serves(host), "every daemon answers", START_SECONDS)
    after = main_pids(host)
    assert all(after[name] not in (0, before[name]) for name in DAEMONS), (before, after, said)
    host.wait(lambda: len(gateways(host)) == 1 and gateways(host) != gateway, "another gateway, and one only", START_SECONDS)
    assert "acme" in host.run("hotcell", "teams")


def an_upgrade_of_qemu_is_told(host):
    """By the file that warden starts, whichever package has it."""
    host.run("dpkg-trigger", "--by-package=qemu-system-x86", "/usr/bin/qemu-system-x86_64")
    said = host.run("dpkg", "--configure", "--pending")
    assert "QEMU was upgraded" in said and "systemctl restart hotcell-warden" in said


def remove_ends_all_and_keeps_data(host):
    host.wait(host.vms, "a VM runs, in which base is frozen, or one of the pool", START_SECONDS)
    host.apt("remove", "hotcell")
    assert host.path("/var/lib/hotcell-gateway/store.db").exists() and host.path("/etc/hotcell/node.conf").exists()
    assert host.path("/var/lib/hotcell-injector/root.key").exists()
    now = facts(host)
    assert now["processes"] == [] and now["rules"] == host.before["rules"] and now["control groups"] == host.before["control groups"]
    assert now["namespaces"] == host.before["namespaces"] and now["links"] == host.before["links"]


def installed_again_data_is_there(host):
    host.apt("install", "hotcell")
    host.run("systemctl", "enable", "--now", "hotcell.target")
    host.wait(lambda: serves(host), "every daemon answers", START_SECONDS)
    assert "acme" in host.run("hotcell", "teams")


def purge_leaves_nothing(host):
    host.apt("purge", "hotcell", "hotcell-guest")
    now = facts(host)
    left = {what: sorted(now[what] ^ was) if isinstance(was, set) else (was, now[what]) for what, was in host.before.items()
            if now[what] != was}
    assert left == {}


def test_lintian_finds_nothing(packages):
    done = subprocess.run(["lintian", "--allow-root", "--fail-on=error,warning", *packages], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


def test_a_bill_of_materials_has_what_the_root_has(packages):
    """By the list that is in the package, which the build of the root wrote."""
    package = next(p for p in packages if p.name.startswith("hotcell-guest_"))
    bill = json.loads(package.with_name(package.name.removesuffix(".deb") + ".cdx.json").read_text())
    listed = subprocess.run(f"dpkg-deb --fsys-tarfile '{package}' | tar -xO ./usr/share/doc/hotcell-guest/packages", shell=True, check=True,
                            capture_output=True, text=True).stdout
    found = {part["name"]: part.get("version") for part in bill["components"]}
    assert found.items() >= {tuple(line.split("\t")) for line in listed.splitlines()} and "linux" in found


def test_from_install_to_purge(host):
    for step in (installed_and_nothing_runs, daemons_start_and_answer, an_upgrade_restarts_daemons_and_replaces_the_gateway,
                 an_upgrade_of_qemu_is_told, remove_ends_all_and_keeps_data, installed_again_data_is_there, purge_leaves_nothing):
        with host.step(step.__name__.replace("_", " ")):
            step(host)
