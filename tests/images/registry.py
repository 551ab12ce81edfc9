"""registry.py - a real registry on loopback, with or without a password, with or without TLS, and what was asked of it."""

import base64
import re
import ssl
import subprocess
import urllib.error
import urllib.request

from daemon import free_port
from made_images import OCI, digest
from warden import wait_for

USER, PASSWORD = "builder", "right horse"
START_SECONDS, PUSH_SECONDS = 30, 120


class Registry:
    def __init__(self, base, password=None, authority=None):
        """`authority`: of certs.py; then it speaks TLS, as localhost."""
        self.base, self.password, self.port, self.authority = base, password, free_port(), authority
        self.base.mkdir()
        self.log_path = base / "log"
        self.process = None

    @property
    def host(self):
        return f"{'localhost' if self.authority else '127.0.0.1'}:{self.port}"

    def __enter__(self):
        auth = ""
        if self.password:
            made = subprocess.run(["htpasswd", "-Bbn", USER, self.password], check=True, capture_output=True).stdout
            (self.base / "htpasswd").write_bytes(made)
            auth = f"auth: {{htpasswd: {{realm: test, path: {self.base}/htpasswd}}}}\n"
        tls = ""
        if self.authority:
            pair = self.authority.issue("localhost")
            (self.base / "chain").write_text(pair.chain)
            (self.base / "key").write_text(pair.key)
            tls = f", tls: {{certificate: {self.base}/chain, key: {self.base}/key}}"
        (self.base / "config.yml").write_text(
            f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {self.base}/data}}}}\n"
            f"http: {{addr: '127.0.0.1:{self.port}'{tls}}}\nlog: {{accesslog: {{disabled: false}}, level: warn}}\n{auth}")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", self.base / "config.yml"], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        wait_for(self.answers, "the registry answers", START_SECONDS, 0.05)
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        self.process.wait(START_SECONDS)

    def answers(self):
        assert self.process.poll() is None, self.log_path.read_text()
        try:
            self.ask("GET", "")
            return True
        except OSError:
            return False

    def ask(self, method, path, data=None, kind=None):
        scheme = "https" if self.authority else "http"
        request = urllib.request.Request(path if path.startswith("http") else f"{scheme}://{self.host}/v2/{path}", data,
                                         method=method)
        if self.password:
            request.add_header("Authorization", "Basic " + base64.b64encode(f"{USER}:{self.password}".encode()).decode())
        if kind:
            request.add_header("Content-Type", kind)
        trust = ssl.create_default_context(cafile=self.authority.cert) if self.authority else None
        return urllib.request.urlopen(request, timeout=START_SECONDS, context=trust)

    def put_blob(self, name, data):
        at = self.ask("POST", f"{name}/blobs/uploads/", b"").headers["Location"]
        self.ask("PUT", f"{at}{'&' if '?' in at else '?'}digest={digest(data)}", data, "application/octet-stream")

    def put_manifest(self, name, tag, data, kind=f"{OCI}.manifest.v1+json"):
        self.ask("PUT", f"{name}/manifests/{tag}", data, kind)

    def push(self, name, tag, image):
        for blob in (image.config, *image.blobs):
            self.put_blob(name, blob)
        self.put_manifest(name, tag, image.manifest)
        return f"{self.host}/{name}:{tag}"

    def push_archive(self, name, tag, file):
        """The tar file of an OCI layout, as it is."""
        subprocess.run(["skopeo", "--insecure-policy", "copy", "--quiet", "--preserve-digests", "--dest-tls-verify=false",
                        f"oci-archive:{file}", f"docker://{self.host}/{name}:{tag}"], check=True, timeout=PUSH_SECONDS)

    def fetched(self, since=0):
        """Digests of the blobs that were given to somebody, and the manifests that were asked for."""
        text = self.log_path.read_text(errors="replace")[since:]
        blobs = re.findall(r'"GET /v2/\S+/blobs/(sha256:\w+) HTTP/1.1" 200', text)
        manifests = re.findall(r'"GET /v2/\S+/manifests/(\S+) HTTP/1.1" 200', text)
        return blobs, manifests

    def mark(self):
        return self.log_path.stat().st_size
