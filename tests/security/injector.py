"""injector.py - a hotcell-injector for a test, spoken to as node and egress do (src/injector/protocol.h)."""

import array
import collections
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

import link_hello
import refused_calls

BUILD = pathlib.Path(os.environ["HOTCELL_BUILD"])
VERSION, HAND_VERSION, REFUSED_VERSION = 4, 2, 3
START, STOP, RESET, FACTS = range(4)
REQUEST = struct.Struct("=QII64s64s")
REPLY = struct.Struct("=QII128s")
HAND = struct.Struct("=IIQQII254s2x")
OVER = struct.Struct("=QQQII128s")
USER = 46231  # nobody's
PATIENCE = 60


def send_with(sock, message, fds):
    sock.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])


def receive_with(sock, size):
    message, control, _flags, _from = sock.recvmsg(size, socket.CMSG_SPACE(16))
    fds = array.array("i")
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
    return message, list(fds)


def memory_file(text):
    fd = os.memfd_create("text")
    os.write(fd, text)
    return fd


def wait_until(done, what):
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.02)


Note = collections.namedtuple("Note", "tag out into requests goes_on why")


class Refused(Exception):
    pass


class Injector:
    """The daemon, in a folder of its own."""

    def __init__(self, extra_ca="", user=USER, told=True):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-injector-"))
        self.base.chmod(0o755)
        self.settings = {"socket": self.base / "injector.sock", "state_dir": self.base / "state", "user": user,
                         "extra_ca": extra_ca}
        self.process = self.client = None
        self.told = told  # which system calls it and its workers are refused: none
        self.tag = 0
        self.notes = []

    def start(self):
        config = self.base / "injector.conf"
        config.write_text("".join(f"{key} = {value}\n" for key, value in self.settings.items() if value != ""))
        self.log = open(self.base / "log", "ab")
        self.process = subprocess.Popen([BUILD / "src/injector/hotcell-injector", config], stderr=self.log,
                                        env=refused_calls.environment(self.told))
        self.connect()
        return self

    def connect(self):
        end = time.monotonic() + PATIENCE
        while True:
            self.client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.client.settimeout(PATIENCE)
            try:
                self.client.connect(str(self.settings["socket"]))
                link_hello.say(self.client, VERSION)
                return
            except OSError:
                self.client.close()
                assert self.process.poll() is None, self.logged()
                assert time.monotonic() < end, "the injector does not listen"
                time.sleep(0.02)

    def logged(self):
        return (self.base / "log").read_text()

    def ask(self, verb, slot=0, sandbox="sandbox", team="team", fds=()):
        self.tag += 1
        send_with(self.client, REQUEST.pack(self.tag, verb, slot, sandbox.encode(), team.encode()), fds)
        while True:
            message, got = receive_with(self.client, REPLY.size)
            tag, code, about, text = REPLY.unpack(message)
            if tag == self.tag:
                break
            self.notes.append(about)
        if code:
            raise Refused(text.rstrip(b"\0").decode())
        return got[0] if got else None

    def facts(self):
        fd = self.ask(FACTS)
        text = json.loads(os.pread(fd, 1 << 20, 0))
        os.close(fd)
        return text

    def worker(self, rules, sealed=None, slot=0, team="team", pages=False):
        """egress's end of a new worker's channel."""
        fd = memory_file(json.dumps({"rules": rules, "sealed": sealed or {}, "refusalPages": pages}).encode())
        try:
            channel = self.ask(START, slot=slot, team=team, fds=[fd])
        finally:
            os.close(fd)
        return Channel(channel)

    def processes(self):
        """The forkserver and the workers, by what they are."""
        forkserver = int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text())
        children = pathlib.Path(f"/proc/{forkserver}/task/{forkserver}/children").read_text().split()
        return forkserver, [int(pid) for pid in children]

    def end(self):
        status = 0
        if self.client:
            self.client.close()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(PATIENCE)
        log = self.logged()
        complaints = [line for line in log.splitlines() if "Sanitizer" in line or "runtime error" in line]
        shutil.rmtree(self.base)
        assert not complaints, complaints
        refused_calls.check("the injector", log)
        assert not status, f"the injector ended with {status}: {log}"


class Channel:
    """What egress has of a worker."""

    def __init__(self, fd):
        self.sock = socket.socket(fileno=fd)
        self.sock.setblocking(True)
        self.sock.settimeout(PATIENCE)
        self.tag = self.bytes_per_s = 0
        self.lock = threading.Lock()

    def hand(self, name, server, tls=True, port=443):
        """A connection of a guest, handed over: the guest's end. Its first bytes are not read before it is
        handed, so that a greeting is whatever the client library sends first."""
        guest, ours = socket.socketpair()
        guest.settimeout(PATIENCE)
        to = socket.create_connection(server)
        threading.Thread(target=self.pass_on, args=(ours, to, name, tls, port)).start()
        return guest

    def listen(self, name, server):
        """A port whose connections are handed over, for clients that are programs."""
        listener = socket.create_server(("127.0.0.1", 0))

        def accept():
            while True:
                try:
                    ours, _who = listener.accept()
                except OSError:
                    return
                self.pass_on(ours, socket.create_connection(server), name, True, 443)

        threading.Thread(target=accept, daemon=True).start()
        return listener

    def pass_on(self, ours, to, name, tls, port):
        first = ours.recv(16384)
        with self.lock:
            self.tag += 1
            send_with(self.sock, HAND.pack(HAND_VERSION, tls, self.tag, self.bytes_per_s, port, len(first), name.encode()) + first,
                      [ours.fileno(), to.fileno()])
        ours.close()
        to.close()

    def over(self):
        """What the next connection to end moved, if it was the only one, and why it ended."""
        out = into = 0
        while True:
            note = self.note()
            out, into = out + note.out, into + note.into
            if not note.goes_on:
                return out, into, note.requests, note.why.split(b"\0")[0].decode()

    def note(self):
        return Note(*OVER.unpack(self.sock.recv(OVER.size)))


class Server:
    """An HTTPS (or, without a certificate, HTTP) server that keeps the heads of requests."""

    def __init__(self, cert=None):
        self.heads = []
        self.context = None
        if cert:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(cert)
            self.context.set_alpn_protocols(["h2", "http/1.1"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _who = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            with sock, sock.makefile("rwb") as stream:
                while self.serve_one(stream):
                    pass
        except OSError:
            pass

    def serve_one(self, stream):
        head = []
        while (line := stream.readline()) not in (b"\r\n", b""):
            head.append(line.decode().strip())
        if not head:
            return False
        self.heads.append(head)
        length = next((int(line.split(":")[1]) for line in head if line.lower().startswith("content-length:")), 0)
        body = stream.read(length)
        if any(line.lower() == "upgrade: websocket" for line in head):
            stream.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
            stream.flush()
            stream.write(stream.readline())
            stream.flush()
            return False
        stream.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body) + 3, body + b"ok\n"))
        stream.flush()
        return True

    def close(self):
        self.listener.close()


def certificate(folder, name, names=None):
    """A self-signed certificate for a server: the PEM of certificate and key, and of the certificate alone. `names`,
    if it is another than the one it calls itself by, is its list of names."""
    both, alone, key = (folder / f"{name}.{end}" for end in ("pem", "crt", "key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", alone, "-days", "2", "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName={names or 'DNS:' + name}"], check=True, capture_output=True)
    both.write_text(alone.read_text() + key.read_text())
    return both, alone
