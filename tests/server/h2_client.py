"""h2_client.py - a client of HTTP/2 for tests: one connection, many streams, and as rude as a test wants.

    with H2Client(port) as c:
        c.get("/health").status
        ws = c.ask("CONNECT", "/x", {":protocol": "websocket"}, end=False)
        c.until(lambda: ws.status)

The rules are kept by the library h2, unless bytes are sent by raw().
"""

import socket
import time

import h2.config
import h2.connection
import h2.events
import h2.settings

ANSWER_SECONDS = 30
NOTHING = (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged, h2.events.SettingsAcknowledged)


class Stream:
    def __init__(self, number):
        self.number, self.status, self.headers = number, None, {}
        self.body, self.ended, self.reset = bytearray(), False, None

    @property
    def over(self):
        return self.ended or self.reset is not None


class H2Client:
    def __init__(self, port, host="127.0.0.1", settings=None, takes=True, sock=None):
        self.sock = sock or socket.create_connection((host, port), ANSWER_SECONDS)
        self.authority = f"{host}:{port}"
        self.takes = takes  # gives back what it read of its windows
        self.streams, self.goaway, self.closed, self.settings = {}, None, False, {}
        config = h2.config.H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False,
                                           header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(config)
        self.h2.initiate_connection()
        if settings:
            self.h2.update_settings(settings)
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def flush(self):
        self.raw(self.h2.data_to_send())

    def raw(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            self.closed = True

    def ask(self, method, path, headers=(), body=b"", end=True, authority=None):
        stream = Stream(self.h2.get_next_available_stream_id())
        self.streams[stream.number] = stream
        extra = dict(headers)
        pseudo = {":method": method, ":scheme": "http", ":authority": authority or self.authority, ":path": path}
        pseudo.update({name: extra.pop(name) for name in list(extra) if name.startswith(":")})
        self.h2.send_headers(stream.number, [*pseudo.items(), *extra.items()], end_stream=end and not body)
        self.flush()
        if body:
            self.send(stream, body, end)
        return stream

    def send(self, stream, body, end=False):
        """As the windows let it."""
        until = time.monotonic() + ANSWER_SECONDS
        while body:
            room = min(self.h2.local_flow_control_window(stream.number), self.h2.max_outbound_frame_size, len(body))
            if room == 0:
                assert time.monotonic() < until, "no window"
                self.turn()
                continue
            self.h2.send_data(stream.number, body[:room], end_stream=end and room == len(body))
            body = body[room:]
            self.flush()

    def end(self, stream):
        self.h2.end_stream(stream.number)
        self.flush()

    def turn(self, seconds=ANSWER_SECONDS):
        """What comes next; False: nothing did, in that time."""
        self.sock.settimeout(seconds)
        try:
            data = self.sock.recv(65536)
        except TimeoutError:
            return False
        except ConnectionResetError:
            data = b""
        if not data:
            self.closed = True
            return False
        for event in self.h2.receive_data(data):
            self.note(event)
        self.flush()
        return True

    def note(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = event.error_code
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            self.settings.update({code: s.new_value for code, s in event.changed_settings.items()})
        elif not stream:
            return
        elif isinstance(event, h2.events.ResponseReceived):
            stream.headers = dict(event.headers)
            stream.status = int(stream.headers[":status"])
        elif isinstance(event, h2.events.DataReceived):
            stream.body += event.data
            if self.takes and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            stream.ended = True
        elif isinstance(event, h2.events.StreamReset):
            stream.reset = event.error_code

    def until(self, so, seconds=ANSWER_SECONDS):
        end = time.monotonic() + seconds
        while not so():
            left = end - time.monotonic()
            assert left > 0 and not self.closed, f"never: closed {self.closed}, goaway {self.goaway}"
            self.turn(left)

    def get(self, path, headers=(), method="GET", body=b"", authority=None):
        stream = self.ask(method, path, headers, body, authority=authority)
        self.until(lambda: stream.over)
        return stream

    def until_closed(self, seconds=ANSWER_SECONDS):
        """Reads on until the server has had enough; whether it had."""
        end = time.monotonic() + seconds
        while not self.closed and time.monotonic() < end:
            try:
                self.turn(max(end - time.monotonic(), 0.01))
            except h2.exceptions.ProtocolError:
                continue
        return self.closed
