"""lies.py - what a guest may say in the agent's place: a lie for every NAME, and one for every seed.

Which one is told is chosen by the path of the request, /NAME or /random/SEED, so that any number may be told at once.
It needs Python alone: it also runs inside a sandbox.
"""

import asyncio
import collections
import contextlib
import random
import socket
import struct
import urllib.parse

HEAD_SECONDS = 10
PATIENCE = 30  # seconds; how long a lie may last after the client has gone
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
JUNK = random.Random(3).randbytes(65536)
HEARD = collections.Counter()  # requests by name

# --- what is said in one go, then the connection ends ------------------------------------------------

SAID = {
    "ok": OK + b"Content-Length: 2\r\n\r\nok",
    "nothing": b"",
    "garbage": JUNK[:5000],
    "zeros": bytes(5000),
    "another protocol": b"220 mail ESMTP\r\n\r\n",
    "TLS": b"\x15\x03\x01\x00\x02\x02\x28",
    "half a head": OK + b"Content-Le",
    "status 000": b"HTTP/1.1 000 X\r\n\r\n",
    "status 99999": b"HTTP/1.1 99999 X\r\n\r\n",
    "version 3": b"HTTP/3.0 200 OK\r\n\r\n",
    "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "NUL": OK + b"X: a\0b\r\n\r\n",
    "folded": OK + b"X: a\r\n b\r\n\r\n",
    "field injection": OK + b"X: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
    "long field": OK + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
    "many fields": OK + b"X: y\r\n" * 500 + b"\r\n",
    "less than promised": OK + b"Content-Length: 1000\r\n\r\nabc",
    "more than promised": OK + b"Content-Length: 2\r\n\r\nok" + OK + b"Content-Length: 8\r\n\r\nsmuggled",
    "two lengths": OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunked": OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": OK + b"Content-Length: -1\r\n\r\n",
    "huge length": OK + b"Content-Length: 99999999999999999999\r\n\r\n",
    "largest length": OK + b"Content-Length: 18446744073709551615\r\n\r\nabc",
    "gzip, chunked": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "chunk that is none": CHUNKED + b"2\r\nok\r\nzz\r\n",
    "chunk too large": CHUNKED + b"fffffffffffffffff\r\n",
    "chunk of 2^63": CHUNKED + b"7fffffffffffffff\r\nabc",
    "chunk without end": CHUNKED + b"2\r\nok\r\n",
    "chunk extension": CHUNKED + b"2;" + b"a" * 100_000 + b"\r\nok\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"2\r\nok\r\n0\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
    "body after 204": b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello",
    "body after 304": b"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\nhello",
    "101 unasked": b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n" + JUNK[:1000],
    "101 to h2": b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n" + JUNK[:1000],
    "101 to nothing": b"HTTP/1.1 101 X\r\n\r\n",
    "continue and the end": b"HTTP/1.1 100 Continue\r\n\r\n",
    "continue, then ok": b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok",
    "a request": b"GET /admin/teams HTTP/1.1\r\nHost: a\r\n\r\n",
}

# --- what goes on for as long as somebody listens: a beginning, and what is repeated ------------------

ENDLESS = {
    "continue storm": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
    "hints storm": (b"", b"HTTP/1.1 103 Hints\r\nLink: a\r\n\r\n" * 500),
    "endless line": (b"", b"a" * 65536),
    "endless fields": (OK, b"X: y\r\n" * 8000),
    "endless body": (OK + b"\r\n", JUNK),
    "endless length": (OK + b"Content-Length: 9000000000000000000\r\n\r\n", JUNK),
    "endless chunks": (CHUNKED, b"10000\r\n" + JUNK + b"\r\n"),
    "chunk bomb": (CHUNKED, b"1\r\na\r\n" * 8000),
    "endless trailers": (CHUNKED + b"0\r\n", b"X: y\r\n" * 8000),
    "endless chunk head": (CHUNKED, b"0" * 65536),
    "envelopes": (OK + b"Content-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\n\r\n",
                  b"5\r\n\0\xff\xff\xff\xff\r\n" * 5000),
    "answers": (b"", (OK + b"Content-Length: 2\r\n\r\nok") * 1000),
}

# --- what takes its time --------------------------------------------------------------------------------


async def drip(writer, data):
    for byte in data:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.02)


async def say_nothing(reader, writer):
    await asyncio.wait_for(reader.read(-1), PATIENCE)


async def drip_head(reader, writer):
    await drip(writer, OK + b"X-Slow: " + b"a" * 2000)


async def drip_chunks(reader, writer):
    await drip(writer, CHUNKED + b"1\r\na\r\n" * 400)


async def half_close(reader, writer):
    writer.write(OK + b"Content-Length: 1000\r\n\r\nabc")
    writer.write_eof()
    await say_nothing(reader, writer)


async def half_close_silent(reader, writer):
    writer.write_eof()
    await say_nothing(reader, writer)


async def stop_reading(reader, writer):
    writer.transport.pause_reading()
    await asyncio.sleep(3)


async def answer_and_read_on(reader, writer):
    """An answer before the request's body; then it takes the body, slowly."""
    writer.write(SAID["ok"])
    for _ in range(20):
        if not await reader.read(1000):
            return
        await asyncio.sleep(0.05)


async def tunnel_flood(reader, writer):
    writer.write(b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
    await repeat(writer, JUNK)


async def reset(reader, writer):
    writer.write(CHUNKED + b"2\r\nok\r\n")
    await writer.drain()
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def reset_at_once(reader, writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


TIMED = {"silence": say_nothing, "dripping head": drip_head, "dripping chunks": drip_chunks,
         "half closed": half_close, "half closed, silent": half_close_silent, "deaf": stop_reading,
         "answer before the body": answer_and_read_on, "tunnel flood": tunnel_flood,
         "reset in the middle": reset, "reset": reset_at_once}


NAMES = [*SAID, *ENDLESS, *TIMED]


async def repeat(writer, data):
    while not writer.is_closing():
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0)  # the others lie, too


def random_lie(seed):
    """Something that was once an answer: cut, doubled, flipped, mixed; and an end of some kind."""
    chance = random.Random(seed)
    sources = [*SAID.values(), *(a + b[:2000] for a, b in ENDLESS.values())]
    data = bytearray(chance.choice(sources)[:8192])
    for _ in range(chance.randint(0, 5)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            del data[at:at + chance.randint(1, 20)]
        elif kind == 1:
            data[at:at] = chance.randbytes(chance.randint(1, 40))
        elif kind == 2 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 3:
            data[at:at] = chance.choice(sources)[:1024]
        else:
            data[at:at] = chance.choice([b"\r\n", b"\0", b"\r\n\r\n", b"0\r\n\r\n", b"HTTP/1.1 100 C\r\n\r\n"])
    return bytes(data), chance


async def tell_random(seed, reader, writer):
    data, chance = random_lie(seed)
    while data:
        n = chance.choice([1, 10, 100, 10_000])
        writer.write(data[:n])
        data = data[n:]
        if chance.random() < 0.1:
            await asyncio.sleep(chance.random() * 0.05)
    end = chance.randrange(4)
    if end == 0:
        await reset_at_once(reader, writer)
    elif end == 1:
        await asyncio.sleep(0.2)
    elif end == 2:
        writer.write_eof()
        await asyncio.wait_for(reader.read(100_000), 1)


async def lie(name, reader, writer):
    if name.startswith("random/"):
        await tell_random(int(name.removeprefix("random/")), reader, writer)
    elif name in SAID:
        writer.write(SAID[name])
        await writer.drain()
    elif name in ENDLESS:
        writer.write(ENDLESS[name][0])
        await repeat(writer, ENDLESS[name][1])
    else:
        await TIMED[name](reader, writer)


def name_of(head):
    return urllib.parse.unquote(head.split(b" ")[1].decode()).strip("/")


async def serve_tunnel(head, reader, writer):
    """The gateway wants to reach a port through the agent: one that is even is lied about, another gets its tunnel, in
    which the next request is lied to."""
    port = int(head.lower().partition(b"hotcell-tunnel-port:")[2].split(b"\r\n")[0])
    if port % 2 == 0:
        await lie(NAMES[port // 2 % len(NAMES)], reader, writer)
        return
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: hotcell-tunnel\r\n\r\n")
    await lie(name_of(await reader.readuntil(b"\r\n\r\n")), reader, writer)


async def serve(reader, writer, early):
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError):
        if early:
            writer.write(SAID["ok"] + JUNK[:100])
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
        name = name_of(head)
        HEARD[name] += 1
        await asyncio.wait_for(serve_tunnel(head, reader, writer) if name == "tunnel" else
                               lie(name, reader, writer), PATIENCE)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def serve_asked(reader, writer):
    await serve(reader, writer, False)


async def serve_early(reader, writer):
    await serve(reader, writer, True)
