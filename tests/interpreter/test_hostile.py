"""A kernel that forges, lies, floods or falls silent harms its own context, and no other."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import threading
import time

import pytest

from conftest import need
from lone_interp import KERNELS, Interp, next_event, wait_for

HOSTILE = pathlib.Path(__file__).resolve().parent / "hostile_kernel.py"


@pytest.fixture(scope="module")
def interp(tmp_path_factory):
    need("python")
    kernels = tmp_path_factory.mktemp("k")
    (kernels / "hostile").mkdir()
    (kernels / "hostile/kernel.json").write_text(json.dumps({
        "argv": ["/usr/bin/python3", str(HOSTILE), "{connection_file}"], "metadata": {"transport": "ipc"}}))
    made = Interp(tmp_path_factory.mktemp("h"), kernels=(KERNELS, kernels)).start()
    yield made
    assert made.stop() == 0


BREAKS = ["decent", "forge", "lie", "garble", "odd", "before", "after", "no reply", "no idle"]


@pytest.mark.parametrize("how", BREAKS)
def test_what_breaks_the_rules_is_left_out(interp, how):
    ran = interp.run(how, 30, language="hostile")
    assert ran.stdout.endswith("done")
    assert not any(word in ran.stdout for word in ("forged", "lied", "late"))
    assert ran.error is None
    assert interp.run("1 + 1", 10).text == "2"
    assert interp.run("decent", 30, language="hostile").stdout == "done"


def test_a_silent_kernel_is_replaced_when_its_client_has_gone(interp):
    connection, answer = interp.open("silent", language="hostile")
    assert next_event(answer)["type"] == "number_of_executions"
    assert interp.run("1 + 1", 10).text == "2"
    answer.close()
    connection.close()
    assert interp.run("decent", 30, language="hostile").stdout == "done"


def test_a_flood_of_messages_delays_nobody_else(interp):
    connection, answer = interp.open("flood", 60, language="hostile")
    assert next_event(answer)["type"] == "number_of_executions"
    for _ in range(20):
        begun = time.monotonic()
        assert interp.run("1 + 1", 10).text == "2"
        assert time.monotonic() - begun < 5
    answer.close()
    connection.close()
    interp.must_have_taken(48)


def test_a_message_that_is_too_large_is_not_taken(interp):
    """The connection is cut by libzmq; what came before and comes later is there."""
    context = interp.context(language="hostile")["id"]
    ran = interp.run("large", 60, context_id=context)
    assert len(ran.stdout) < 1024
    interp.must_have_taken(400)
    interp.get(f"/contexts/{context}", "DELETE")
    assert interp.run("1 + 1", 10).text == "2"


def test_frames_that_are_too_large_together(interp):
    assert interp.run("split", 60, language="hostile").stdout == "done"


def test_one_error_is_enough(interp):
    assert len(interp.run("twice", 30, language="hostile").errors) == 1


def slowest_other(interp, until):
    """The longest that another context had to wait for an answer, in seconds, until a thread has ended."""
    slowest = 0
    while until.is_alive():
        begun = time.monotonic()
        assert interp.run("1 + 1", 30).text == "2"
        slowest = max(slowest, time.monotonic() - begun)
    return slowest


def test_messages_that_cost_much_delay_nobody_for_long(interp):
    """One of them at a time; then it is the others' turn. Machines that run this are busy, so the bound is generous."""
    ran = []
    costly = threading.Thread(target=lambda: ran.append(interp.run("forge large", 120, language="hostile")))
    costly.start()
    slowest = slowest_other(interp, costly)
    costly.join()
    assert ran[0].stdout == "done"
    assert slowest < 15


def test_few_bytes_that_become_many_values_are_not_read(interp):
    ran = interp.run("bloat", 120, language="hostile")
    assert ran.error["name"] == "UnreadableMessage" and ran.stdout == "done"
    interp.must_have_taken(640)
    assert interp.run("1 + 1", 30).text == "2"


def test_a_kernel_that_is_a_pipe_stops_nobody(interp):
    """Who may write there may make a FIFO of kernel.json, whose other end nobody opens."""
    folder = pathlib.Path(interp.kernels[-1], "pipe")
    folder.mkdir()
    os.mkfifo(folder / "kernel.json")
    assert interp.get("/contexts", "POST", {"language": "pipe"}, 10)[0] == 500
    assert interp.run("1 + 1", 10).text == "2"


def test_a_list_of_contexts_with_long_paths(own_interp, tmp_path):
    """They are listed before their kernels are ready: these never are."""
    (tmp_path / "never").mkdir()
    (tmp_path / "never/kernel.json").write_text(json.dumps({"argv": ["/bin/sleep", "100"]}))
    interp = own_interp(kernels=(KERNELS, tmp_path), eager=()).start()
    path = "/" + "./" * 510
    assert interp.get("/contexts", "POST", {"cwd": "/" * 2000})[0] == 500
    assert interp.get("/contexts", "POST", {"cwd": "/tmp\n"})[0] == 500
    wide = [socket.create_connection(("127.0.0.1", interp.port)) for _ in range(70)]
    body = json.dumps({"language": "never", "cwd": path})
    for each in wide:
        each.sendall(f"POST /contexts HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    wait_for(lambda: len(json.loads(interp.get("/contexts")[1])) == 64, 30, "64 contexts")
    for each in wide:
        each.close()


GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\0NULL" + b"\0" * 48
READY = b"\x04\x26\x05READY\x0bSocket-Type\0\0\0\x06DEALER"
GARBAGE = [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 5000, GREETING + b"\x07" * 3000, GREETING + READY + b"\x02" + b"\xff" * 8,
           GREETING + READY + b"\x01\x01x" * 20_000, GREETING + READY + b"\x00\x00" * 100]


def test_garbage_at_the_sockets_of_kernels(own_interp):
    """Only root gets there: each is in a folder that nobody else may enter."""
    languages = {"python": "1 + 1", "javascript": "1 + 1", "bash": "echo 2"}
    for language in languages:
        need(language)
    interp = own_interp(eager=tuple(languages)).start()
    kernels, folders = interp.kernels_alive(), [*(interp.folder / "run").iterdir()]
    assert len(folders) == 3 and all(folder.stat().st_mode & 0o077 == 0 for folder in folders)
    for path in (path for folder in folders for path in folder.glob("k-*")):
        for garbage in GARBAGE:
            with socket.socket(socket.AF_UNIX) as sender, contextlib.suppress(OSError):
                sender.settimeout(10)
                sender.connect(str(path))
                sender.sendall(garbage)
    for language, code in languages.items():
        ran = interp.run(code, 30, language=language)
        assert (ran.text or ran.stdout.strip()) == "2"
    assert interp.kernels_alive() == kernels


def test_a_port_that_is_taken(own_interp):
    """It ends and says so. Whoever supervises it starts it again, until the port is free."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        program = own_interp().program
        ended = subprocess.run([program, "--listen", "127.0.0.1", "--port", str(other.getsockname()[1]), "--eager", "python"],
                               capture_output=True, text=True, timeout=30)
    assert ended.returncode == 1 and "Address already in use" in ended.stderr, ended.stderr


def test_no_room_for_a_connection_file(own_interp):
    """/run is full: contexts cannot be made, and the server and what runs already stay."""
    interp = own_interp()
    small = interp.folder / "run"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", small], check=True)
    try:
        interp.start()
        (small / "fill").write_bytes(b"x" * 4096)
        with contextlib.suppress(OSError), open(small / "fill", "ab", buffering=0) as fill:
            for _ in range(64):
                fill.write(b"x" * 4096)
        status, text = interp.get("/contexts", "POST", {})
        assert status == 500 and "No space left" in text
        assert interp.run("1 + 1").text == "2"
        (small / "fill").unlink()
        assert interp.context()["language"] == "python"
        assert interp.stop() == 0
        assert not [*small.iterdir()]
    finally:
        subprocess.run(["umount", "-l", small], check=True)
