"""gateway_instances.py - several gateways side by side, whose listening sockets somebody else holds: as systemd does.

    with GatewayInstances() as gateways:
        old = gateways.launch()           # ready when this returns; a first one is there already
        gateways.replace()                # the next one is started, then the one before it told to end
        gateways.running                  # instances whose process lives, oldest first

Otherwise as LoneGateway: a played node, a team, a key. TlsInstances has a third socket, and is otherwise as TlsGateway.
"""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess

import refused_calls
from lone_gateway import START_SECONDS, LoneGateway
from tls_gateway import TlsGateway
from warden import build_dir, is_sanitized, wait_for

FIRST_FD = 3  # where a service manager puts them
HIGH_FD = 200  # out of the way of these


class Instance:
    def __init__(self, gateways, number, settings):
        self.number, self.gateways = number, gateways
        self.log_path = gateways.base / f"gateway-{number}.log"
        self.said = []  # to the service manager
        config = gateways.base / f"gateway-{number}.conf"
        config.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self.manager_path = gateways.base / f"notify-{number}.sock"
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(self.manager_path))
        self.manager_path.chmod(0o666)
        self.manager.setblocking(False)
        self.start(config)

    def start(self, config):
        names, fds = zip(*((name, s.fileno()) for name, s in self.gateways.held.items()))
        env = {**(refused_calls.environment(False) or os.environ), "LISTEN_FDS": str(len(fds)),
               "LISTEN_FDNAMES": ":".join(names), "NOTIFY_SOCKET": str(self.manager_path)}

        def put_fds():
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, HIGH_FD) for fd in fds]
            for i, fd in enumerate(high):
                os.dup2(fd, FIRST_FD + i)

        with open(self.log_path, "wb") as log:
            # its own number is known to the process alone
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", 'LISTEN_PID=$$; export LISTEN_PID; exec "$0" "$@"',
                 build_dir() / "src/gateway/hotcell-gateway", config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True,
                preexec_fn=put_fds, pass_fds=range(FIRST_FD, FIRST_FD + len(fds)))

    @property
    def pid(self):
        return self.process.pid

    @property
    def alive(self):
        return self.process.poll() is None

    def log(self):
        return self.log_path.read_text(errors="replace")

    def listen(self):
        """What it has said to the service manager until now."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.said += self.manager.recv(4096).decode().split("\n")
        return self.said

    def is_ready(self):
        assert self.alive, f"gateway {self.number} ended ({self.process.returncode}): {self.log()[-3000:]}"
        return "READY=1" in self.listen()

    def tell(self, how=signal.SIGTERM):
        self.process.send_signal(how)

    def wait_end(self, seconds=START_SECONDS):
        status = self.process.wait(seconds * (3 if is_sanitized() else 1))
        assert status == 0 or is_sanitized(), f"gateway {self.number} ended with {status}: {self.log()[-3000:]}"

    def remove(self):
        if self.alive:
            self.process.kill()
        self.process.wait()
        self.manager.close()


class GatewayInstances(LoneGateway):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.settings = {**self.daemon.settings}
        for name in ("listen", "admin_socket"):
            self.settings.pop(name)
        self.instances = []
        http = socket.create_server(("127.0.0.1", self.port), backlog=4096)
        admin = socket.socket(socket.AF_UNIX)
        admin.bind(str(self.admin_socket))
        admin.listen()
        self.held = {"http": http, "admin": admin}

    @property
    def running(self):
        return [i for i in self.instances if i.alive]

    def start(self, **changes):
        self.launch(**changes)
        wait_for(self.serves, "the gateway answers", START_SECONDS)

    def serves(self):
        with contextlib.suppress(OSError):
            return self.admin("GET", "/admin/status").json["node"] is not None
        return False

    def launch(self, **changes):
        one = Instance(self, len(self.instances) + 1, {**self.settings, **changes})
        self.instances.append(one)
        wait_for(one.is_ready, f"gateway {one.number} is ready", START_SECONDS * (3 if is_sanitized() else 1), 0.01)
        return one

    def replace(self, **changes):
        """The old one, told to end; the new one accepts."""
        old = self.running[-1]
        self.launch(**changes)
        old.tell()
        return old

    def gateways(self):
        """{pid: (state, connections)}, as the operator sees them."""
        return {g["pid"]: (g["state"], g["connections"]) for g in self.admin("GET", "/admin/status").json["gateways"]}

    def __exit__(self, *exc):
        if exc[0]:
            print("".join(f"--- {i.number}\n{i.log()[-3000:]}" for i in self.instances[-4:]))
        try:
            for i in self.instances:
                for word in ("runtime error:", "ERROR: AddressSanitizer", "Assertion"):
                    assert exc[0] or word not in i.log(), i.log()[-6000:]
        finally:
            self.remove()

    def remove(self):
        for i in self.instances:
            i.remove()
        for s in self.held.values():
            s.close()
        super().remove()


class TlsInstances(GatewayInstances, TlsGateway):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.settings.pop("listen_tls")
        self.held["https"] = socket.create_server(("127.0.0.1", self.tls_port), backlog=4096)

    def start(self, **changes):
        self.signer.start()
        super().start(**changes)
        self.wait_served("own", self.pair)
