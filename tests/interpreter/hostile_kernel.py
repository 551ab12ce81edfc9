"""A kernel that breaks the rules: what a user's code can make of one.

    hostile_kernel.py CONNECTION_FILE

The code of an execution says which rule: see BREAKS. Until then it is a decent kernel.
"""
import hashlib
import hmac
import json
import sys
import time
import uuid

import zmq

connection = json.load(open(sys.argv[1], encoding="utf-8"))
context = zmq.Context()


def bind(kind, port):
    socket = context.socket(kind)
    socket.setsockopt(zmq.SNDHWM, 100_000)
    socket.bind(f"ipc://{connection['ip']}-{port}")
    return socket


shell = bind(zmq.ROUTER, connection["shell_port"])
control = bind(zmq.ROUTER, connection["control_port"])
iopub = bind(zmq.PUB, connection["iopub_port"])


def frames(ids, kind, content, parent, key=connection["key"]):
    header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": "s", "username": "u", "version": "5.3",
              "date": "2026-01-02T03:04:05.000000Z"}
    parts = [json.dumps(part).encode() for part in (header, parent, {}, content)]
    mac = hmac.new(key.encode(), b"".join(parts), hashlib.sha256).hexdigest().encode()
    return [*ids, b"<IDS|MSG>", mac, *parts]


def say(kind, content, parent, **how):
    iopub.send_multipart(frames([kind.encode()], kind, content, parent, **how))


def text(words):
    return {"name": "stdout", "text": words}


def forge(parent):
    say("stream", text("forged"), parent, key="another")


def lie(parent):
    say("stream", text("lied"), {**parent, "msg_id": "somebody-else-1"})


def garble(parent):
    for garbage in ([b""], [b"<IDS|MSG>"], [b"x"] * 40, [b"<IDS|MSG>", b"", b"{", b"{", b"{", b"{"], [b"\xff" * 100_000]):
        iopub.send_multipart(garbage)
    signed = frames([], "stream", text("x"), parent)
    for at in range(2, len(signed)):
        iopub.send_multipart([*signed[:at], b"[1, 2", *signed[at + 1:]])


def odd(parent):
    """Signed and well-formed, with contents of the wrong kind."""
    for kind in ("stream", "error", "display_data", "execute_result", "execute_input", "status", "no_such_type" * 9):
        for content in ({}, {"name": 1, "text": 2}, {"data": []}, {"data": {"text/plain": 5, "image/png": None}},
                        {"execution_count": "x"}, {"traceback": {"a": 1}, "ename": [], "evalue": None}, {"execution_state": 1}):
            if kind != "error":
                say(kind, content, parent)


def flood(parent):
    for _ in range(200_000):
        say("stream", text("x" * 200), parent)


def large(parent):
    say("stream", text("x" * (130 * 1024 * 1024)), parent)


def forge_large(parent):
    """Each of them costs who looks at it a good deal of time."""
    for _ in range(16):
        say("stream", text("forged" * 1024 * 1024), parent, key="another")


def bloat(parent):
    """Few bytes that are many values: as many as fit into a frame."""
    header, _, _, _ = frames([], "stream", {}, parent)[2:]
    parts = [header, json.dumps(parent).encode(), b"{}", b'{"data":{"application/json":[' + b"[]," * (40 * 1024 * 1024) + b"0]}}"]
    mac = hmac.new(connection["key"].encode(), b"".join(parts), hashlib.sha256).hexdigest().encode()
    iopub.send_multipart([b"<IDS|MSG>", mac, *parts])


def split(parent):
    """No frame is too large, but all of them together are."""
    iopub.send_multipart([*frames([], "stream", text("split"), parent), *[b"x" * (40 * 1024 * 1024)] * 4])


def twice(parent):
    """What is over is over, whatever comes behind it."""
    for _ in range(3):
        say("error", {"ename": "E", "evalue": "v", "traceback": []}, parent)


BREAKS = {"forge large": forge_large, "bloat": bloat, "split": split, "twice": twice,
          "forge": forge, "lie": lie, "garble": garble, "odd": odd, "flood": flood, "large": large, "decent": lambda parent: None}


def execute(ids, parent, code):
    say("status", {"execution_state": "busy"}, parent)
    say("execute_input", {"code": "", "execution_count": 1}, parent)
    if code == "silent":
        return  # neither a reply nor idle, ever
    if code in BREAKS:
        BREAKS[code](parent)
    say("stream", text("done"), parent)
    if code == "before":  # what is late comes between the two ends of the execution
        say("status", {"execution_state": "idle"}, parent)
        say("stream", text("late"), parent)
        time.sleep(0.3)
    if code != "no reply":
        shell.send_multipart(frames(ids, "execute_reply", {"status": "ok", "execution_count": 1}, parent))
    if code != "no idle":
        say("status", {"execution_state": "idle"}, parent)
    if code == "after":
        for kind, content in (("stream", text("late")), ("error", {"ename": "Late"}), ("status", {"execution_state": "idle"})):
            say(kind, content, parent)
        shell.send_multipart(frames(ids, "execute_reply", {"status": "error", "ename": "Late"}, parent))


def main():
    while True:
        message = shell.recv_multipart()
        at = message.index(b"<IDS|MSG>")
        parent, content = json.loads(message[at + 2]), json.loads(message[at + 5])
        if parent["msg_type"] == "kernel_info_request":
            say("status", {"execution_state": "busy"}, parent)
            shell.send_multipart(frames(message[:at], "kernel_info_reply", {"status": "ok"}, parent))
        elif parent["msg_type"] == "execute_request":
            execute(message[:at], parent, content["code"])


main()
