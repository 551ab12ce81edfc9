"""lone_images.py - a real images daemon, confined as in production, and a client that asks it as node does.

    with LoneImages(base, insecure=registry.host) as images:
        made = images.make(f"{registry.host}/x:1", disk=path)     # made.digest, made.config, made.said
"""

import array
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile

import link_hello
import refused_calls
from daemon import Daemon
from warden import build_dir, is_sanitized, wait_for

VERSION = 1
MAKE, CANCEL, FACTS = range(3)
DISK, ARCHIVE = 1, 2
REQUEST = struct.Struct("=QIIQII")  # src/images/protocol.h
REPLY = struct.Struct("=QII72s512s")
CODES = ["none", "invalid", "not_found", "exists", "denied", "exhausted", "mismatch", "timeout", "unavailable", "internal",
         "no_space", "no_files", "base_lost", "version"]
UID = 65600 + os.getpid() % 100000  # nobody's, and of no test beside this one
START_SECONDS, PATIENCE = 30, 60
TEAM = "team-1"
STAND_IN = pathlib.Path(__file__).resolve().parent / "unpack_stand_in"


class Refused(Exception):
    def __init__(self, code, text, said):
        super().__init__(f"{CODES[code]}: {text}")
        self.code, self.text, self.said = CODES[code], text, said


class Made:
    def __init__(self, digest, config, said):
        self.digest, self.config, self.said = digest, config, said


def memory_file(data):
    fd = os.memfd_create("test")
    os.write(fd, data)
    return fd


class LoneImages:
    def __init__(self, base, unpack=STAND_IN, **settings):
        self.base, self.data = base, base / "images"
        self.socket = base / "images.sock"
        self.programs = base / "programs"
        self.programs.mkdir(exist_ok=True)
        (self.programs / "unpack").write_bytes(pathlib.Path(unpack).read_bytes())
        (self.programs / "agent").write_bytes(b"an agent")
        for path in self.programs.iterdir():
            path.chmod(0o755)
        self.daemon = Daemon("images", base, {"socket": self.socket, "user": UID, "data_dir": self.data,
                                              "unpack": self.programs / "unpack", "agent": self.programs / "agent",
                                              "reserve_mib": 0, **settings})
        self.client, self.tag, self.known = None, 0, 0

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        if exc[0]:
            print(self.daemon.log()[-6000:])
        self.end()
        if not exc[0]:
            refused_calls.check("the images daemon", self.daemon.log())

    def end(self):
        self.hang_up()
        if self.daemon.process and self.daemon.process.poll() is None:
            self.daemon.process.send_signal(signal.SIGTERM)
            assert self.daemon.process.wait(PATIENCE) == 0, self.daemon.log()[-3000:]
        self.daemon.process = None

    def start(self, **changes):
        self.known = len(self.daemon.log())
        self.daemon.launch(**changes)
        wait_for(self.serves, "the images daemon serves", START_SECONDS * (3 if is_sanitized() else 1), 0.02)
        return self

    def serves(self):
        self.daemon.check_alive()
        return "serving on" in self.daemon.log()[self.known:]

    def hang_up(self):
        if self.client:
            self.client.close()
        self.client = None

    def connect(self):
        self.client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.client.settimeout(PATIENCE)
        self.client.connect(os.fspath(self.socket))
        link_hello.say(self.client, VERSION)

    def send(self, verb, flags=0, of=0, disk_mib=0, fds=()):
        if not self.client:
            self.connect()
        self.tag += 1
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.client.sendmsg([REQUEST.pack(self.tag, verb, flags, of, disk_mib, 0)], passed)
        return self.tag

    def receive(self):
        data, fds, _flags, _from = socket.recv_fds(self.client, REPLY.size, 1)
        assert data, "the daemon hung up"
        tag, code, more, digest, text = REPLY.unpack(data)
        return tag, code, more, digest.rstrip(b"\0").decode(), text.split(b"\0")[0].decode(), fds

    def result(self, tag):
        said = []
        while True:
            got, code, more, digest, text, fds = self.receive()
            if got != tag:
                continue
            if more:
                said.append(text)
                continue
            if code:
                raise Refused(code, text, said)
            with os.fdopen(fds[0], "rb") as file:
                file.seek(0)
                return Made(digest, json.load(file), said)

    def begin(self, reference=None, disk=None, archive=None, credentials=None, disk_mib=64, team=TEAM, sealed=None):
        ask = {"team": team}
        if reference:
            ask["reference"] = reference
        if credentials:
            sealed = self.seal(json.dumps(dict(zip(("username", "password"), credentials))), team)
        if sealed:
            ask["sealed"] = sealed
        flags, fds = 0, [memory_file(json.dumps(ask).encode())]
        if disk:
            flags |= DISK
            fds.append(os.open(disk, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
        if archive:
            flags |= ARCHIVE
            fds.append(os.open(archive, os.O_RDONLY))
        try:
            return self.send(MAKE, flags, disk_mib=disk_mib if disk else 0, fds=fds)
        finally:
            for fd in fds:
                os.close(fd)

    def make(self, *args, **kwargs):
        return self.result(self.begin(*args, **kwargs))

    def facts(self):
        self.send(FACTS)
        fds = self.receive()[5]
        with os.fdopen(fds[0], "rb") as file:
            file.seek(0)
            return json.load(file)

    def seal(self, value, team=TEAM):
        program = build_dir() / "tests/security/seal_value"
        return subprocess.run([program, self.facts()["sealKey"], f"{team}/registry"], check=True, input=value,
                              capture_output=True, text=True).stdout

    # --- what is there

    def blobs(self):
        return {path.name for path in (self.data / "store/blobs").iterdir()}

    def leftovers(self):
        """What jobs have left: files, and processes of its user but the daemon and its forkserver."""
        files = [path for folder in ("store/jobs", "auth") for path in (self.data / folder).iterdir()]
        return files + [pid for pid in processes_of(UID) if pid not in self.own()]

    def own(self):
        """The daemon and its forkserver."""
        if not self.daemon.process:
            return set()
        pid = self.daemon.pid
        return {pid, *map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())}


def processes_of(uid):
    """Those that run: what is dead and was not waited for yet does not count."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = pathlib.Path(f"/proc/{entry}/status").read_text()
        except OSError:
            continue
        if f"Uid:\t{uid}\t" in status and "State:\tZ" not in status:
            found.append(int(entry))
    return found


def new_folder():
    """Not pytest's: the daemon's user has to get there."""
    made = tempfile.TemporaryDirectory(prefix="hotcell-", dir=os.environ.get("HOTCELL_TEST_DIR"))
    pathlib.Path(made.name).chmod(0o755)
    return made
