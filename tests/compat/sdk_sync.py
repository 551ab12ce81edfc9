"""sdk_sync.py - the published Python package, its blocking half. Run by test_sdks.py, in the venv of the SDKs.

The address and the key come from E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY, as they would for a user.
"""

import concurrent.futures
import datetime
import hashlib
import os

import httpx
import pytest
from e2b import CommandExitException, NotFoundException, Sandbox, SandboxQuery

PATIENCE = 600  # seconds, for what moves 50 MiB through an emulated network card
LARGE = int(os.environ.get("HOTCELL_LARGE_MIB", "50")) << 20
AT_ONCE = int(os.environ.get("HOTCELL_AT_ONCE", "10"))


@pytest.fixture(scope="module")
def box():
    sandbox = Sandbox.create(timeout=1800, metadata={"who": "sync"}, envs={"GREETING": "hello"})
    yield sandbox
    sandbox.kill()


def test_create_gives_a_running_sandbox(box):
    assert box.sandbox_id and box.is_running()


def test_run_gives_stdout_stderr_and_exit_code(box):
    result = box.commands.run("echo out; echo err >&2; true")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)


def test_a_failed_command_is_an_exception_with_its_output(box):
    with pytest.raises(CommandExitException) as failed:
        box.commands.run("echo partly; echo why >&2; exit 7")
    assert (failed.value.exit_code, failed.value.stdout, failed.value.stderr) == (7, "partly\n", "why\n")


def test_output_is_streamed_while_the_command_runs(box):
    """The command goes on only after what it said has been heard."""
    out, err = [], []

    def heard(text):
        out.append(text)
        if "go" in text:
            box.files.write("/tmp/sync-heard", "yes")

    result = box.commands.run(
        "echo go; until [ -e /tmp/sync-heard ]; do sleep 0.1; done; echo end; echo last >&2",
        on_stdout=heard, on_stderr=err.append, timeout=PATIENCE)
    assert "".join(out) == "go\nend\n" == result.stdout
    assert "".join(err) == "last\n"


def test_background_command_is_listed_and_killed(box):
    handle = box.commands.run("sleep 600", background=True)
    assert handle.pid in [p.pid for p in box.commands.list()]
    assert handle.kill()
    with pytest.raises(CommandExitException):
        handle.wait()
    assert handle.pid not in [p.pid for p in box.commands.list()]


def test_environment_user_and_folder(box):
    assert box.commands.run("echo $GREETING $MORE", envs={"MORE": "there"}).stdout == "hello there\n"
    assert box.commands.run("whoami; pwd").stdout == "user\n/home/user\n"
    assert box.commands.run("whoami; pwd", user="root", cwd="/tmp").stdout == "root\n/tmp\n"


def test_text_file(box):
    text = "Grüße, 世界\nline two\n"
    box.files.write("notes/hello.txt", text)
    assert box.files.read("notes/hello.txt") == text
    assert box.commands.run("cat /home/user/notes/hello.txt").stdout == text


def test_binary_file(box):
    data = bytes(range(256)) * 16
    box.files.write("/tmp/bytes.bin", data)
    assert bytes(box.files.read("/tmp/bytes.bin", format="bytes")) == data


def test_large_file(box):
    data = os.urandom(1 << 20) * (LARGE >> 20)
    box.files.write("/home/user/large.bin", data, request_timeout=PATIENCE)
    digest = box.commands.run("sha256sum < large.bin", timeout=PATIENCE).stdout.split()[0]
    assert digest == hashlib.sha256(data).hexdigest()
    back = box.files.read("/home/user/large.bin", format="bytes", request_timeout=PATIENCE)
    assert hashlib.sha256(back).hexdigest() == digest


@pytest.mark.parametrize("expires", [None, 600])
def test_signed_urls(box, expires):
    """Plain HTTP, by whoever has the URL: it says nothing of the sandbox, nor does the request."""
    up = box.upload_url("signed dir/ü.txt", use_signature_expiration=expires)
    assert "signature=v1_" in up and box.sandbox_id not in up
    assert httpx.post(up, files={"file": b"signed"}, timeout=PATIENCE).status_code == 200
    assert box.files.read("signed dir/ü.txt") == "signed"
    down = box.download_url("signed dir/ü.txt", use_signature_expiration=expires)
    assert httpx.get(down, timeout=PATIENCE).content == b"signed"
    assert httpx.get(down + "x", timeout=PATIENCE).status_code in (400, 401)


def test_a_missing_file_is_not_found(box):
    with pytest.raises(NotFoundException):
        box.files.read("/no/such/file")


def everything(paginator):
    found = []
    while paginator.has_next:
        found += paginator.next_items()
    return found


def test_list_has_it_and_filters_by_metadata(box):
    assert box.sandbox_id in [s.sandbox_id for s in everything(Sandbox.list())]
    mine = everything(Sandbox.list(query=SandboxQuery(metadata={"who": "sync"})))
    assert [s.sandbox_id for s in mine] == [box.sandbox_id]
    assert everything(Sandbox.list(query=SandboxQuery(metadata={"who": "nobody"}))) == []


def test_info_and_timeout(box):
    info = box.get_info()
    assert info.sandbox_id == box.sandbox_id and info.metadata == {"who": "sync"}
    now = datetime.datetime.now(datetime.timezone.utc)
    assert abs((info.started_at - now).total_seconds()) < 3600
    box.set_timeout(7200)
    left = (box.get_info().end_at - now).total_seconds()
    assert 7100 < left < 7600
    box.set_timeout(1800)
    assert box.get_info().end_at < info.started_at + datetime.timedelta(seconds=7000)


def test_connect_reaches_the_same_sandbox(box):
    box.files.write("/tmp/mark", "the same")
    again = Sandbox.connect(box.sandbox_id)
    assert again.files.read("/tmp/mark") == "the same"
    assert again.commands.run("echo $GREETING").stdout == "hello\n"


def test_kill_ends_it():
    sandbox = Sandbox.create(timeout=600)
    assert sandbox.kill() is True
    assert not sandbox.is_running()
    assert Sandbox.kill(sandbox.sandbox_id) is False
    with pytest.raises(NotFoundException):
        Sandbox.connect(sandbox.sandbox_id)


def one_life(n):
    sandbox = Sandbox.create(timeout=1200, request_timeout=PATIENCE)
    try:
        return sandbox.sandbox_id, sandbox.commands.run(f"echo {n}", timeout=PATIENCE).stdout
    finally:
        sandbox.kill(request_timeout=PATIENCE)


def test_many_at_once():
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        lives = list(pool.map(one_life, range(AT_ONCE)))
    assert [out for _, out in lives] == [f"{n}\n" for n in range(AT_ONCE)]
    assert len({sandbox for sandbox, _ in lives}) == AT_ONCE
