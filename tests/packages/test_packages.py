"""test_packages.py - the packages of this checkout in a clean Debian: the quick start of README.md, as somebody types it who
may use sudo, up to sandboxes made by the SDKs; then an upgrade, a removal, and the purge with which the quick start ends.

HOTCELL_PACKAGES names a folder with them; without it they are made (tools/packages). HOTCELL_PACKAGES_SUITE is the
Debian (trixie). HOTCELL_PACKAGES_WITH names images (interpreter, browser, desktop): their packages, too, and what README.md has of
them: long. The host has no internet, and notes who would have used it. What is expected in the end is what was there in the beginning: by listing.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from debian_host import Client, DebianHost
from engine import TOP, artefact
from outside import Outside
from played_systemd import no_kvm
from repository import Repository
from shop import Shop

SUITE = os.environ.get("HOTCELL_PACKAGES_SUITE", "trixie")
DAEMONS = ("warden", "egress", "injector", "images", "signer", "node")
WITH = set(os.environ.get("HOTCELL_PACKAGES_WITH", "").split())
COMPILED = ("playwright", "e2b-desktop")  # of what README.md has of a browser and a desktop
PICTURE = """import struct
head = open("/tmp/screen.png", "rb").read(24)
print("PNG image data, %d x %d" % struct.unpack(">II", head[16:]) if head.startswith(b"\\x89PNG") else head)"""
START_SECONDS = 120
QUICK_SECONDS = 300  # from a bare Debian to the first sandboxes, all templates included
NODE_MIN = 20
ADMIN = "/run/hotcell-gateway/admin.sock"
# What apt, dpkg and systemd write of their own accord, and this test's own.
NOT_OURS = ("/var/cache/apt", "/var/lib/apt", "/var/lib/dpkg", "/var/log", "/var/cache/ldconfig", "/var/cache/debconf",
            "/etc/ld.so.cache", "/var/backups", "/var/lib/systemd/catalog", "/var/lib/systemd/random-seed", "/var/tmp/systemd-private", "/srv",
            "/tmp", "/home/you")  # the last two: what a reader of README.md makes there
# systemd-sysusers and userdel keep what was there before
BACKUPS = {"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock", "/etc/subuid-", "/etc/subgid-"}
GONE_WHEN_REMOVED = ("processes", "rules", "control groups", "namespaces", "links", "loaded units")


def make_packages(tmp_path_factory):
    """Of the server and the guest, and the images that are wanted."""
    given = os.environ.get("HOTCELL_PACKAGES")
    folder = pathlib.Path(given) if given else tmp_path_factory.mktemp("packages")
    if not given:
        subprocess.run([TOP / "tools/packages", folder, "hotcell", "guest", *WITH], check=True,
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
            host.shop, host.outside = Shop(host, repository, COMPILED if "browser" in WITH else ()), Outside(host)
            bring_node(host)
            host.before = facts(host)
            yield host
    finally:
        repository.close()


def bring_node(host):
    """Where Debian's is older than the SDK wants, this machine's: what README.md says of Debian 12 would fetch one."""
    if int(host.run("node", "--version").lstrip("v").partition(".")[0]) < NODE_MIN:
        shutil.copy(shutil.which("node"), host.path("/usr/local/bin/node"))


def listing(host):
    found = host.run("find", "/", "-xdev").splitlines()
    return {name for name in found if not name.startswith(NOT_OURS)} - BACKUPS


def facts(host):
    """What an installation could leave anywhere."""
    find_groups = ("find", "/sys/fs/cgroup", "-type", "d", "-path", "*hotcell.slice*")
    groups = host.run(*find_groups) + host.run(*host.grouped(*find_groups))
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


def readme(section):
    """The `sh` blocks of a section."""
    text = re.search(rf"^## {section}\n(.*?)^## ", (TOP / "README.md").read_text(), re.S | re.M)[1]
    return re.findall(r"^```sh\n(.*?)^```$", text, re.S | re.M)


def typed(host, script, seconds):
    """The whole of what was said; the time of each command is printed."""
    if no_kvm():  # as README.md says of such a host
        script = script.replace("hotcell setup --yes", "hotcell setup --yes --allow-emulation")
    said, times = host.type(f"URL={host.shop.url}\n{script}", seconds)
    print("".join(f"         {took:6.1f} s  {words[:100]}\n" for words, took in times if took >= 0.05), end="")
    return said


def the_package_starts_nothing(host):
    """Installed by itself, which is undone: the quick start begins without it."""
    host.add_repository(host.shop.repository)
    host.apt("install", "hotcell")
    assert host.units("active") == set() and host.units("failed") == set()
    assert host.try_run("systemctl", "is-enabled", "hotcell.target").stdout.strip() == "disabled"
    conf = host.path("/etc/hotcell/node.conf").read_text()
    assert "\nuser = hotcell-node\n" in conf and "\n#pool = " in conf
    kernel = host.path("/usr/lib/hotcell/guest/vmlinux").read_bytes()
    assert kernel == (artefact("kernel") / "vmlinux").read_bytes(), "the kernel is the one that is tested, to the byte"
    host.apt("purge", "hotcell", "hotcell-guest")
    host.path("/etc/apt/sources.list.d/hotcell.sources").unlink()
    as_before(host)


def the_quick_start(host):
    begun = time.monotonic()
    blocks = readme("Quick start")[:-1]
    blocks += (readme("The code interpreter") if "interpreter" in WITH else []) + (readme("A browser, a desktop") if "browser" in WITH else [])
    done = typed(host, "\n".join(blocks), (2 + len(WITH)) * QUICK_SECONDS)
    assert len(re.findall(r"^Linux \S+ 6\.12\S*-hotcell ", done.stdout, re.M)) == 2, done.stdout  # one of each SDK
    assert "\nok    server " in done.stdout and "\npass  allowed name " in done.stdout and "\nall of it works in " in done.stdout, done.stdout
    assert "\nFAIL" not in done.stdout and "\nfail" not in done.stdout, done.stdout
    if "browser" in WITH:
        assert "\nHello\n" in done.stdout, done.stdout
        assert "PNG image data, 1024 x 768" in host.run("python3", "-c", PICTURE), "a picture of the desktop"
    if "interpreter" in WITH:
        assert done.stdout.count("\n42\n") == 2 and "\npass  interpret code " in done.stdout, done.stdout
    assert time.monotonic() - begun < QUICK_SECONDS * (1 + len(WITH))
    status = host.wait(lambda: serves(host), "every daemon answers", START_SECONDS)
    assert len(set(filter(None, status["versions"].values()))) == 1 and status["mismatches"] == []
    assert host.units("failed") == set()
    disk = host.path("/var/cache/hotcell/base.raw").stat()
    assert disk.st_size == 10240 * 1024 * 1024 and disk.st_blocks * 512 < 1024 * 1024 * 1024


def nothing_went_out(host):
    """Names of package hosts are asked for by doctor and selftest; nobody connects to anything. On Debian 12 clients ask a
    resolver for *.localhost, and sudo for the host's own name, before they ask the host."""
    print(f"         names that were asked for: {sorted(host.outside.asked())}")
    assert host.outside.sent() == set()
    told = json.loads(host.run("curl", "-sf", "--unix-socket", ADMIN, "http://localhost/admin/explain"))
    asked = {name for name in host.outside.asked() if "." in name and not name.endswith(".hotcell.localhost")}
    assert asked <= set(told["packages"]), told


def an_upgrade_restarts_daemons_and_replaces_the_gateway(host):
    before, gateway = main_pids(host), gateways(host)
    host.client = Client(host, "main")
    host.runs, host.paused = host.client.create(), host.client.create()
    started = host.client.exec(host.runs, "cat", "/proc/sys/kernel/random/boot_id")
    said = host.apt("install", "--reinstall", "hotcell")
    host.wait(lambda: serves(host), "every daemon answers", START_SECONDS)
    after = main_pids(host)
    assert all(after[name] not in (0, before[name]) for name in DAEMONS), (before, after, said)
    host.wait(lambda: len(gateways(host)) == 1 and gateways(host) != gateway, "another gateway, and one only", START_SECONDS)
    assert host.client.exec(host.runs, "cat", "/proc/sys/kernel/random/boot_id") == started, "the sandbox ran on"


def an_upgrade_of_qemu_is_told(host):
    """By apt, as a trigger of the file that warden starts, whichever package has it; and by doctor until warden is restarted."""
    qemu = host.path("/usr/bin/qemu-system-x86_64")
    kept = qemu.with_suffix(".kept")
    version = re.search(r"\((.*)\)", host.run("/usr/bin/qemu-system-x86_64", "--version"))[1]
    newer = version[:-1] + ("8" if version[-1] == "7" else "7")
    qemu.rename(kept)
    qemu.write_bytes(kept.read_bytes().replace(version.encode(), newer.encode()))
    qemu.chmod(0o755)
    host.run("dpkg-trigger", "--by-package=qemu-system-x86", "/usr/bin/qemu-system-x86_64")
    said = host.run("dpkg", "--configure", "--pending")
    assert "QEMU was upgraded" in said and "systemctl restart hotcell-warden" in said
    doctor = host.hotcell("doctor")
    assert re.search(rf"^warn  qemu .*{re.escape(newer)}.* warden uses .*{re.escape(version)}", doctor, re.M), doctor
    kept.rename(qemu)
    assert re.search(r"^ok    qemu ", host.hotcell("doctor"), re.M)


def remove_ends_all_and_keeps_data(host):
    host.client.exec(host.paused, "sh", "-c", "echo kept >/home/user/note; sleep 1000 >/dev/null 2>&1 &")
    host.client.must("POST", f"/sandboxes/{host.paused}/pause")
    host.wait(lambda: len(host.vms()) == 1, "one VM runs", START_SECONDS)
    host.apt("remove", "hotcell")
    assert host.path("/var/lib/hotcell-gateway/store.db").exists() and host.path("/etc/hotcell/node.conf").exists()
    assert host.path("/var/lib/hotcell-injector/root.key").exists()
    now = facts(host)
    assert {name: now[name] for name in GONE_WHEN_REMOVED} == {name: host.before[name] for name in GONE_WHEN_REMOVED}


def installed_again_data_is_there(host):
    """As after a reboot: who was paused goes on; the disk of who ran is kept."""
    host.apt("install", "hotcell")
    host.hotcell("setup", "--yes", "--allow-emulation")
    assert host.client.exec(host.paused, "sh", "-c", "cat /home/user/note; pgrep -x sleep").startswith("kept\n")
    assert host.api("GET", f"/sandboxes/{host.runs}", key=host.client.key)[1]["reason"] == "node_lost"
    assert host.runs in host.hotcell("lost")


def purge_leaves_nothing(host):
    """With a VM that runs, and a drop-in of the operator's, as it would be."""
    host.path("/etc/systemd/system/hotcell-node.service.d").mkdir(parents=True)
    host.path("/etc/systemd/system/hotcell-node.service.d/own.conf").write_text("[Service]\nNice=1\n")
    host.run("systemctl", "daemon-reload")
    host.wait(lambda: len(host.vms()) == 1, "one VM runs", START_SECONDS)
    typed(host, readme("Quick start")[-1], START_SECONDS)
    as_before(host)


def as_before(host):
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
    listed = subprocess.run(f"dpkg-deb --fsys-tarfile '{package}' | tar -xO ./usr/share/doc/hotcell-guest/packages.gz | gunzip", shell=True, check=True,
                            capture_output=True, text=True).stdout
    found = {part["name"]: part.get("version") for part in bill["components"]}
    assert found.items() >= {tuple(line.replace(":amd64\t", "\t").split("\t")) for line in listed.splitlines()} and "linux" in found


def test_from_install_to_purge(host):
    for step in (the_package_starts_nothing, the_quick_start, nothing_went_out,
                 an_upgrade_restarts_daemons_and_replaces_the_gateway, an_upgrade_of_qemu_is_told, remove_ends_all_and_keeps_data,
                 installed_again_data_is_there, purge_leaves_nothing):
        with host.step(step.__name__.replace("_", " ")):
            step(host)
