"""desktop_support.py - a sandbox of the template `desktop` as the published e2b-desktop has it, from a test that has another Python.

    with Desktop(server, artefact("sdks")) as desktop:    # or Desktop(..., "js"): @e2b/desktop, with JavaScript's names
        desktop.make(resolution=(1280, 800))      # Sandbox.create() of e2b-desktop
        desktop("write", "Hello")                 # any method of its class Sandbox
        desktop.picture()                         # Picture: size, and colours of points
"""

import base64
import json
import pathlib
import queue
import struct
import zlib

from sdk_process import SdkProcess, sdk_words

HERE = pathlib.Path(__file__).resolve().parent
ANSWER_SECONDS = 300  # an emulated guest is slow


class Picture:
    """A PNG of 8 bits for each of three or four colours, without interlace, as scrot writes them."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:20]
        self.data, at, packed = data, 8, b""
        while at < len(data):
            length, kind = struct.unpack(">I4s", data[at:at + 8])
            body, at = data[at + 8:at + 8 + length], at + 12 + length
            if kind == b"IHDR":
                self.width, self.height, depth, colours, *_, interlace = struct.unpack(">IIBBBBB", body)
                assert (depth, interlace) == (8, 0) and colours in (2, 6), body
                self.bytes = 3 if colours == 2 else 4
            elif kind == b"IDAT":
                packed += body
        self.rows = list(self.unpacked(zlib.decompress(packed)))

    def unpacked(self, raw):
        n, width = self.bytes, self.width * self.bytes
        above = bytearray(width)
        for y in range(self.height):
            how, row = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
            for x in range(width) if how else ():
                left, up, corner = (row[x - n] if x >= n else 0), above[x], (above[x - n] if x >= n else 0)
                row[x] = row[x] + (0, left, up, (left + up) // 2, paeth(left, up, corner))[how] & 255
            yield row
            above = row

    def colour(self, x, y):
        return tuple(self.rows[y][x * self.bytes:x * self.bytes + 3])

    def differs(self, other):
        """How many points are another colour."""
        return sum(self.colour(x, y) != other.colour(x, y) for y in range(0, self.height, 4) for x in range(0, self.width, 4)) * 16


def paeth(left, up, corner):
    guess = left + up - corner
    return min((left, up, corner), key=lambda near: abs(guess - near))


class Desktop(SdkProcess):
    def __init__(self, server, sdks, language="python"):
        super().__init__(server, sdk_words(sdks, language, HERE / "desktop_client"))
        self.said, self.id = queue.Queue(), None
        self.life = {"timeout": 3600} if language == "python" else {"timeoutMs": 3_600_000, "requestTimeoutMs": ANSWER_SECONDS * 1000}

    def read(self):
        for line in self.process.stdout:
            self.said.put(json.loads(line))
        self.said.put({"error": f"the client ended: {self.log_path.read_text()[-2000:]}"})

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process.stdin.close()

    def ask(self, **question):
        self.say(question)
        said = self.said.get(timeout=ANSWER_SECONDS)
        assert "error" not in said, (question, said["error"])
        return said["value"]

    def make(self, **named):
        self.id = self.ask(named={**self.life, **named})

    def make_by(self, code):
        """By a program that has it in `desktop`."""
        self.id = self.ask(code=code)

    def picture_of(self, variable):
        """What that program has in a variable."""
        return Picture(base64.b64decode(self.ask(variable=variable)))

    def __call__(self, method, *args, **named):
        return self.ask(call=method, args=args, named=named)

    def picture(self):
        return Picture(base64.b64decode(self("screenshot")))
