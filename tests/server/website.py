"""website.py - what a user's port may serve: a page that opens a WebSocket and offers a file. For tests with a browser.

    site = Website(node.listen(8080))    # serves until its socket is closed
    site.asked                           # (path, {header: value}) of each request
"""

import base64
import contextlib
import hashlib
import http.server
import threading

FILE = bytes(range(256)) * 4096  # a mebibyte
WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PAGE = b"""<!doctype html><meta charset="utf-8"><title>waiting</title>
<style>body { font: 20px sans-serif; margin: 3em } li { margin: .5em }</style>
<h1>A website in a sandbox</h1>
<ul><li>at <b id="at"></b><li>its WebSocket says <b id="said">nothing yet</b><li><a id="file" href="/file" download>a file</a></ul>
<script>
document.getElementById('at').textContent = location.href
const socket = new WebSocket(location.href.replace(/^http/, 'ws') + 'socket')
socket.onopen = () => socket.send('hello')
socket.onmessage = (message) => {
  document.getElementById('said').textContent = message.data
  document.title = 'ready'
}
socket.onerror = () => { document.title = 'the WebSocket failed' }
</script>
"""


class Visit(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.asked.append((self.path, {name.lower(): text for name, text in self.headers.items()}))
        if self.path == "/socket":
            self.echo()
        elif self.path == "/file":
            self.send(FILE, "application/octet-stream", ("Content-Disposition", 'attachment; filename="file.bin"'))
        elif self.path == "/":
            self.send(PAGE, "text/html")
        else:
            self.send_error(404)

    def send(self, body, kind, *fields):
        self.send_response(200)
        for name, text in (("Content-Type", kind), ("Content-Length", str(len(body))), *fields):
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def echo(self):
        """One message, and what it was."""
        digest = hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + WEBSOCKET_GUID).digest()
        self.send_response(101)
        for name, text in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                           ("Sec-WebSocket-Accept", base64.b64encode(digest).decode())):
            self.send_header(name, text)
        self.end_headers()
        _, length = self.rfile.read(2)
        mask, data = self.rfile.read(4), self.rfile.read(length & 127)
        answer = b"you said " + bytes(b ^ mask[n % 4] for n, b in enumerate(data))
        self.wfile.write(bytes([0x81, len(answer)]) + answer)
        with contextlib.suppress(ConnectionError):
            self.rfile.read(1)  # until the browser has read it and closes
        self.close_connection = True


class Website(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listening):
        super().__init__(("", 0), Visit, bind_and_activate=False)
        self.socket.close()
        self.socket, self.asked = listening, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        connection, address = self.socket.accept()
        connection.settimeout(60)
        return connection, address
