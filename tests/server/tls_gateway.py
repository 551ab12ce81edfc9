"""tls_gateway.py - a real gateway that speaks TLS, with a real signer, both confined, before a played node.

    with TlsGateway() as gateway:
        with gateway.connect("api.hotcell.test") as sock: ...     # an ssl.SSLSocket
        gateway.get(sock, "/health")
"""

import http.client
import socket
import ssl
import subprocess

import certs
from daemon import free_port
from layout import build_dir
from lone_gateway import DOMAIN, GATEWAY_UID, LoneGateway
from lone_signer import SIGNER_UID, LoneSigner
from warden import wait_for

PATIENCE = 30


class TlsGateway(LoneGateway):
    def __init__(self, kind="P-256", **settings):
        self.tls_port = free_port()
        super().__init__(listen_tls=f"127.0.0.1:{self.tls_port}", **settings)
        self.tls_dir = self.base / "tls"
        self.tls_dir.mkdir()
        self.tls_dir.chmod(0o755)
        self.authority = certs.Authority(self.base)
        self.pair = self.authority.issue(DOMAIN, f"*.{DOMAIN}", kind=kind)
        certs.put(self.tls_dir, "own", self.pair, SIGNER_UID)
        self.signer = LoneSigner(self.base, self.tls_dir, gateway_uid=GATEWAY_UID)
        self.daemon.settings |= {"tls_dir": self.tls_dir, "signer_socket": self.signer.socket}

    def start(self, **changes):
        if not self.signer.daemon.process:
            self.signer.start()
        super().start(**changes)
        self.wait_served("own", self.pair)

    def remove(self):
        self.signer.hang_up()
        self.signer.daemon.kill()
        super().remove()

    def put(self, name, pair, **how):
        certs.put(self.tls_dir, name, pair, SIGNER_UID, **how)

    def tls_init(self, domain):
        """A certificate as an operator without one has it."""
        subprocess.run([build_dir() / "src/cli/hotcell", "tls", "init", domain, "--tls-dir", self.tls_dir, "--owner",
                        str(SIGNER_UID)], check=True)
        wait_for(lambda: (now := self.certificate(domain)) and now["served"], "the certificate is served")

    # --- the status ---

    def tls(self):
        return self.admin("GET", "/admin/status").json["tls"]

    def certificate(self, name):
        """None: it is not known yet, or no more."""
        return next((c for c in self.tls()["certificates"] if c["name"] == name), None)

    def wait_served(self, name, pair):
        """That very one."""
        key = certs.key_id(pair).hex()[:16]
        wait_for(lambda: (now := self.certificate(name)) and now["key"] == key and now["refused"] is None,
                 f"{name} is served", PATIENCE, 0.02)

    # --- clients ---

    def context(self, lowest=None, highest=None, alpn=("http/1.1",), verify=True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if verify:
            context.load_verify_locations(self.authority.cert)
        else:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if lowest:
            context.minimum_version = lowest
        if highest:
            context.maximum_version = highest
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.tls_port), PATIENCE)

    def connect(self, name=f"api.{DOMAIN}", context=None, **how):
        """`name` None: none is said."""
        session = how.pop("session", None)
        context = context or self.context(verify=name is not None, **how)
        sock = self.raw()
        try:
            return context.wrap_socket(sock, server_hostname=name, session=session)
        except BaseException:
            sock.close()
            raise

    def get(self, sock, target="/health", method="GET", headers=()):
        """Over a connection that is there: (status, headers, body)."""
        connection = http.client.HTTPConnection(f"api.{DOMAIN}")
        connection.sock = sock
        connection.request(method, target, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def ask_tls(self, target="/health", name=f"api.{DOMAIN}", **how):
        with self.connect(name, **how) as sock:
            return self.get(sock, target)


def shown(sock):
    """The names in the certificate that the server showed."""
    return {value for _kind, value in sock.getpeercert()["subjectAltName"]}
