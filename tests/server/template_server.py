"""template_server.py - a Server (server.py) that has one of the templates of guest/template, within seconds.

    @pytest.fixture(scope="module")
    def server():
        with TemplateServer("browser", node={"pool_each_max": 1}) as s:
            yield s

    box = server.create(templateID="browser", secure=True)

The template is made once, by guest/template at a server that is there for that alone, and kept with what node, the
gateway and the injector know of it: in the folder of tools/artefact, under a name that says what it is made of. A
test's server begins with a copy. Nothing is taken on trust: node reads and compares what it finds, as after a restart,
and builds or freezes again what does not fit.

As a program, with the name of a template, it makes what is kept, if it is not there, and prints where that is. CI begins
with that early.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    import conftest  # noqa: F401  the folders that tests find modules in

from engine import TOP, artefact
from server import Server
from shared_template import SharedTemplate, copy_folder, link_or_copy
from warden import build_dir, wait_for

MAKE_SECONDS = 1500  # an import and what it starts, emulated, on a busy machine
# What is kept of a server: its folders, below its own
KNOWN = {"node": ("installation", "ca.pem", "journal.db", "journal.db-wal", "catalog", "builds", "snapshots"),
         "gateway": ("store.db", "store.db-wal"),
         "injector": ("root.crt", "root.key", "seal.key")}
SCHEMAS = ("src/node/journal/journal_db.h", "src/store/database.c")  # of the tables in it


def cache_folder():
    """As in tools/artefact."""
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("HOTCELL_CACHE") or pathlib.Path(home) / "hotcell")


def digest(*parts):
    return hashlib.sha256(b"\0".join(p if isinstance(p, bytes) else str(p).encode() for p in parts)).hexdigest()


def of_template(name, *words):
    """What guest/template says of a template."""
    said = subprocess.run([TOP / "guest/template", name, *words], check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "HOTCELL_BUILD": str(build_dir())})
    return said.stdout.strip()


def image_name(template, folder):
    """Of the image that the template is made of: the name of its artefact says what is in it."""
    layer = folder / "layer.tar"
    of_template(template, "--layer", layer)
    return artefact("oci", of_template(template, "--recipe"), layer).parent.name


def qemu_version(warden):
    words = [warden.settings.get("qemu", os.environ.get("HOTCELL_QEMU", "/usr/bin/qemu-system-x86_64")), "--version"]
    return subprocess.run(words, check=True, capture_output=True).stdout


class Kept:
    """What one server left for others. Has the methods of a SharedTemplate: it takes the place of that."""

    def __init__(self, server, template):
        self.server, self.template = server, template
        settings = server.daemons["node"].settings
        self.fits = SharedTemplate.words(server.warden, [settings["kernel"], settings["disk"]],
                                         [settings["vcpus"], settings["memory_mib"]], True)

    def path(self):
        """Where it is; made first if there is none."""
        at = cache_folder() / f"{of_template(self.template, '--recipe')}-template-{self.key()}"
        with open(at.with_name(f".{at.name}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not at.exists():
                make(self.template, at)
            os.utime(at)  # for `tools/artefact gc`: in use
            return at

    def key(self):
        folder = self.server.base / "made-of"
        folder.mkdir()
        try:
            schemas = [(TOP / name).read_bytes() for name in SCHEMAS]
            agent = (build_dir() / "src/agent/hotcell-agent").read_bytes()
            return digest(json.dumps(self.fits, sort_keys=True), image_name(self.template, folder), agent,
                          (TOP / "guest/template").read_bytes(), qemu_version(self.server.warden), *schemas)[:16]
        finally:
            shutil.rmtree(folder)

    def take(self):
        at = self.path()
        for template in (at / "templates").iterdir():
            copy_folder(template, self.server.warden.state / "templates" / template.name, link_or_copy)
        for name in KNOWN:
            subprocess.run(["cp", "-a", "--sparse=always", f"{at / name}/.", self.server.base / name], check=True)
            user = self.server.users[name]
            subprocess.run(["chown", "-R", f"{user}:{user}", self.server.base / name], check=True)

    def give(self, name):
        """It was there already."""

    def release(self):
        """Nobody waits for it."""


def store(server, at):
    """Of a server whose node and gateway have ended. Whole or not at all."""
    part = at.with_name(f".{at.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    (part / "templates").mkdir(parents=True)
    for template in (server.warden.state / "templates").iterdir():
        if not template.name.startswith("."):
            copy_folder(template, part / "templates" / template.name, link_or_copy)
    for name, members in KNOWN.items():
        (part / name).mkdir()
        there = [server.base / name / m for m in members if (server.base / name / m).exists()]
        subprocess.run(["cp", "-a", "--sparse=always", *there, part / name], check=True)
    part.rename(at)


def make(template, at):
    print(f"making {at}: minutes without KVM", file=sys.stderr)
    with Server(images={}, injector={}) as server:
        assert server.admin("DELETE", f"/admin/teams/{server.team}").status == 204  # each server makes its own
        subprocess.run([TOP / "guest/template", template], check=True, timeout=MAKE_SECONDS,
                       env={**os.environ, "HOTCELL_ADMIN_SOCKET": str(server.admin_socket), "HOTCELL_BUILD": str(build_dir())},
                       stdout=sys.stderr)
        server.end("gateway")
        server.end("node")
        store(server, at)


class TemplateServer(Server):
    def __init__(self, template, **settings):
        """Settings as those of a Server; it always has an images daemon and an injector."""
        super().__init__(**{"images": {}, "injector": {}, **settings, "own_template": True})
        self.template, self.shared = template, Kept(self, template)

    def __enter__(self):
        super().__enter__()
        with self.removed_if_it_fails():
            wait_for(self.has_built_in, f"{self.template} is ready", MAKE_SECONDS, 0.1)
        return self

    @contextlib.contextmanager
    def removed_if_it_fails(self):
        try:
            yield
        except BaseException:
            self.print_logs()
            self.remove()
            raise

    def has_built_in(self):
        """Frozen for this host: a create does not wait for that."""
        return any(t.get("name") == self.template and t["build"]["status"] == "ready" and not t.get("refreeze")
                   for t in self.admin("GET", "/admin/templates").json)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    nobody = Server(images={}, injector={}, own_template=True)
    try:
        print(Kept(nobody, sys.argv[1]).path())
    finally:
        nobody.warden.remove()
