"""https_site.py - a small HTTPS server that shows a pair of files, and clients that believe it or not.

What a client resolves a name to is the test's affair: all of them go to 127.0.0.1.
"""

import http.server
import json
import os
import socket
import ssl
import subprocess
import threading

SECONDS = 30

NODE = """
const https = require('https')
const [port, ...hosts] = process.argv.slice(1)
const lookup = (name, options, done) => options.all ? done(null, [{ address: '127.0.0.1', family: 4 }])
  : done(null, '127.0.0.1', 4)
const ask = (host) => new Promise((resolve) => {
  https.get({ host, port, lookup, path: '/' }, (r) => {
    let text = ''
    r.on('data', (d) => { text += d })
    r.on('end', () => resolve(text))
  }).on('error', (e) => resolve(e.code === 'UNSPECIFIED' ? e.message : e.code))
})
Promise.all(hosts.map(ask)).then((all) => console.log(JSON.stringify(all)))
"""


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        text = self.headers["host"].encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Site:
    """Shows fullchain.pem and privkey.pem of a folder; answers with the Host that it was asked for."""

    def __init__(self, folder):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.load(folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = self.context.wrap_socket(self.server.socket, server_side=True,
                                                      do_handshake_on_connect=False)
        self.server.handle_error = lambda *_: None  # clients that do not believe it hang up
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def load(self, folder):
        """What is there now is shown from the next connection on."""
        self.context.load_cert_chain(folder / "fullchain.pem", folder / "privkey.pem")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def by_python(port, host, ca):
    """The body, or why Python does not believe it."""
    context = ssl.create_default_context(cafile=ca)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=host) as s:
                s.sendall(f"GET / HTTP/1.0\r\nhost: {host}:{port}\r\n\r\n".encode())
                data = b"".join(iter(lambda: s.recv(65536), b""))
        except ssl.SSLCertVerificationError as e:
            return e.verify_message
    return data.partition(b"\r\n\r\n")[2].decode()


def by_node(port, hosts, ca):
    """Of each host the body, or the code of the error."""
    r = subprocess.run(["node", "-e", NODE, str(port), *hosts], capture_output=True, text=True, timeout=SECONDS,
                       env={**os.environ, "NODE_EXTRA_CA_CERTS": str(ca)})
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


def by_curl(port, host, ca):
    """The body, or curl's exit status: 60 is that it does not believe it."""
    r = subprocess.run(["curl", "-sS", "--cacert", ca, "--resolve", f"{host}:{port}:127.0.0.1",
                        f"https://{host}:{port}/"], capture_output=True, text=True, timeout=SECONDS)
    return r.stdout if r.returncode == 0 else r.returncode
