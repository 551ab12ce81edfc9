"""place.py - one sandbox without a machine, its egress and its injector, in networks of their own.

    with Place() as place:
        place.open()                   # egress has its doors and rules, the injector its worker
        s = place.dial("93.184.216.34", 80)

Three networks. The cell is the sandbox's: whatever is dialled there is turned to its doors. The host has egress,
and the kernel's rules for its user. The internet (tests/internet) has every address there is, and writes down who
came; its cable is all that leads to or from the host.
"""

import contextlib
import ctypes
import os
import pathlib
import secrets
import socket
import ssl
import subprocess

import names
from egress import NAME, RULE, Egress, memory_file
from internet import Internet
from injector import Injector
from warden import build_dir

CLONE_NEWNET = 0x40000000
EGRESS_UID, INJECTOR_UID = 46232, 46231  # nobody's
TCP_DOOR, DNS_DOOR = 1080, 1053
HOST_ADDRESS, CABLE_END, CABLE = "94.0.0.1", "94.0.0.2", "94.0.0.0/24"
RESOLVER, SERVICE = "10.0.0.53", "10.1.2.3"
TEAM, SECRET, HOST = "team", "token", "good.test"
SECONDS = 60
REDIRECT = f"""table ip cell {{
chain out {{
type nat hook output priority -100;
meta l4proto tcp redirect to :{TCP_DOOR}
udp dport 53 redirect to :{DNS_DOOR}
}}
}}
"""
libc = ctypes.CDLL(None, use_errno=True)


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, timeout=SECONDS, **more).stdout


def enter(network):
    if libc.setns(network.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Network:
    """One that lasts as long as this object."""

    def __enter__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"],
                                       stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.run("ip", "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()

    @property
    def pid(self):
        return self.holder.pid

    @property
    def inside(self):
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net"]

    def run(self, *words, **more):
        return run(*self.inside, *words, **more)

    @contextlib.contextmanager
    def entered(self):
        """This thread makes its sockets there meanwhile."""
        with open("/proc/thread-self/ns/net", "rb") as home, open(f"/proc/{self.pid}/ns/net", "rb") as there:
            enter(there)
            try:
                yield
            finally:
                enter(home)


class Place:
    def __init__(self, told=True, **settings):
        """`told`: see tests/engine/refused_calls.py; `settings`: of egress, beside those that this place needs."""
        self.told, self.settings, self.stack = told, settings, contextlib.ExitStack()
        self.value = "value-" + secrets.token_hex(16)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.internet = stack.enter_context(Internet())
            self.host, self.cell = stack.enter_context(Network()), stack.enter_context(Network())
            self.lay_cable()
            self.cell.run("ip", "route", "add", "local", "default", "dev", "lo")
            self.cell.run("nft", "-f", "-", input=REDIRECT.encode())
            self.injector = Injector(extra_ca=self.internet.certificate, user=INJECTOR_UID, told=self.told)
            stack.callback(self.injector.end)
            self.injector.start()
            self.egress = stack.enter_context(Egress(
                user=EGRESS_UID, inside=self.host.inside, told=self.told, resolvers=f"{RESOLVER}:53",
                network="open", services=f"db={SERVICE}:5432", **self.settings))
            self.egress.start()
            self.host.run("nft", "-f", "-", input=self.nft())
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def lay_cable(self):
        far = self.internet.process.pid
        self.host.run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", far)
        self.host.run("ip", "addr", "add", f"{HOST_ADDRESS}/24", "dev", "cable")
        self.host.run("ip", "link", "set", "cable", "up")
        run(*self.internet.inside, "ip", "link", "set", "cable", "up")
        run(*self.internet.inside, "ip", "addr", "add", f"{CABLE_END}/24", "dev", "cable")
        # there everything is its own but for what hangs on the cable, and answers to names come from the resolver
        run(*self.internet.inside, "ip", "route", "add", CABLE, "dev", "cable", "table", "local", "src", RESOLVER)
        self.host.run("ip", "route", "add", "default", "via", CABLE_END)

    def nft(self):
        return run(build_dir() / "src/egress/hotcell-egress", "--nft", self.egress.base / "egress.conf")

    def seal(self, value):
        return run(build_dir() / "tests/security/seal_value", self.injector.facts()["sealKey"], f"{TEAM}/{SECRET}",
                   input=value.encode()).decode()

    def rules(self):
        return {"services": ["db"], "network": {"allowOut": ["*.wild.test", HOST, names.EVIL], "denyOut": [],
                                                "rules": {HOST: []}}}

    def open(self, slot=0):
        """As node does it: a worker with the values for the injector, hosts alone for egress."""
        with self.cell.entered():
            tcp = socket.create_server(("0.0.0.0", TCP_DOOR), backlog=64)
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind(("127.0.0.1", DNS_DOOR))
        for door in (tcp, udp):
            door.setblocking(False)
        self.egress.open(slot, (tcp, udp))
        self.egress.call(NAME, slot, b"sandbox")
        headers = {"Authorization": "Bearer ${e2b.secrets.%s}" % SECRET}
        self.sealed = self.seal(self.value)
        self.rule(self.rules(), {HOST: [{"transform": {"headers": headers}}]}, slot)
        return self

    def rule(self, rules, headers, slot=0):
        """Other rules for egress, and another worker for what is in them."""
        worker = self.injector.worker(headers, {SECRET: self.sealed}, slot, TEAM, rules.get("refusalPages", False))
        with memory_file(rules) as file:
            self.egress.call(RULE, slot, fds=[file.fileno(), worker.sock.fileno()])
        worker.sock.close()

    def dial(self, ip, port):
        with self.cell.entered():
            s = socket.create_connection((ip, port), timeout=SECONDS)
        return s

    def ask(self, name):
        """A guest's question; the addresses it is told."""
        with self.cell.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(SECONDS)
            s.sendto(names.question(name), ("127.0.0.1", 53))
            return names.read_answer(s.recv(1024))[2]

    def fetch(self, name, ip, path="/"):
        """Over TLS, from inside the sandbox; what the server answered."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.injector.facts()["ca"])
        with self.dial(ip, 443) as raw, context.wrap_socket(raw, server_hostname=name) as s:
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            return s.recv(4096)

    def worker_pid(self):
        (pid,) = self.injector.processes()[1]
        return pid

    def state(self, name):
        return (pathlib.Path(self.injector.base) / "state" / name).read_text()
