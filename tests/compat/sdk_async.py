"""sdk_async.py - the published Python package, its asynchronous half. Run by test_sdks.py, in the venv of the SDKs."""

import asyncio
import hashlib
import os

import pytest
from e2b import AsyncSandbox, CommandExitException, NotFoundException, SandboxQuery

PATIENCE = 600
LARGE = int(os.environ.get("HOTCELL_LARGE_MIB", "50")) << 20
AT_ONCE = int(os.environ.get("HOTCELL_AT_ONCE", "10"))


@pytest.fixture(scope="module")
def loop():
    """One for all: connections of the SDK live in it."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def box(loop):
    sandbox = loop.run_until_complete(
        AsyncSandbox.create(timeout=1800, metadata={"who": "async"}, envs={"GREETING": "hello"}))
    yield sandbox
    loop.run_until_complete(sandbox.kill())


def test_create_gives_a_running_sandbox(loop, box):
    assert loop.run_until_complete(box.is_running())


def test_run_gives_stdout_stderr_and_exit_code(loop, box):
    async def steps():
        result = await box.commands.run("echo out; echo err >&2")
        assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)
        with pytest.raises(CommandExitException) as failed:
            await box.commands.run("echo partly; exit 7")
        assert (failed.value.exit_code, failed.value.stdout) == (7, "partly\n")
        assert (await box.commands.run("echo $GREETING")).stdout == "hello\n"

    loop.run_until_complete(steps())


def test_output_is_streamed_while_the_command_runs(loop, box):
    """The command goes on only after what it said has been heard."""
    async def steps():
        out, err = [], []

        async def heard(text):
            out.append(text)
            if "go" in text:
                await box.files.write("/tmp/async-heard", "yes")

        async def complained(text):
            err.append(text)

        await box.commands.run(
            "echo go; until [ -e /tmp/async-heard ]; do sleep 0.1; done; echo end; echo last >&2",
            on_stdout=heard, on_stderr=complained, timeout=PATIENCE)
        assert "".join(out) == "go\nend\n" and "".join(err) == "last\n"

    loop.run_until_complete(steps())


def test_files(loop, box):
    async def steps():
        await box.files.write("notes/hello.txt", "Grüße\n")
        assert await box.files.read("notes/hello.txt") == "Grüße\n"
        data = bytes(range(256))
        await box.files.write("/tmp/bytes.bin", data)
        assert bytes(await box.files.read("/tmp/bytes.bin", format="bytes")) == data
        with pytest.raises(NotFoundException):
            await box.files.read("/no/such/file")

    loop.run_until_complete(steps())


def test_large_file(loop, box):
    async def steps():
        data = os.urandom(1 << 20) * (LARGE >> 20)
        await box.files.write("/home/user/large.bin", data, request_timeout=PATIENCE)
        back = await box.files.read("/home/user/large.bin", format="bytes", request_timeout=PATIENCE)
        assert hashlib.sha256(back).digest() == hashlib.sha256(data).digest()

    loop.run_until_complete(steps())


def test_list_info_timeout_and_connect(loop, box):
    async def steps():
        pages, found = AsyncSandbox.list(query=SandboxQuery(metadata={"who": "async"})), []
        while pages.has_next:
            found += await pages.next_items()
        assert [s.sandbox_id for s in found] == [box.sandbox_id]
        before = (await box.get_info()).end_at
        await box.set_timeout(7200)
        assert (await box.get_info()).end_at > before
        again = await AsyncSandbox.connect(box.sandbox_id)
        assert (await again.commands.run("echo same")).stdout == "same\n"

    loop.run_until_complete(steps())


def test_kill_ends_it(loop):
    async def steps():
        sandbox = await AsyncSandbox.create(timeout=600)
        assert await sandbox.kill() is True
        assert await AsyncSandbox.kill(sandbox.sandbox_id) is False
        with pytest.raises(NotFoundException):
            await AsyncSandbox.connect(sandbox.sandbox_id)

    loop.run_until_complete(steps())


def test_many_at_once(loop):
    async def one_life(n):
        sandbox = await AsyncSandbox.create(timeout=1200, request_timeout=PATIENCE)
        try:
            return sandbox.sandbox_id, (await sandbox.commands.run(f"echo {n}", timeout=PATIENCE)).stdout
        finally:
            await sandbox.kill(request_timeout=PATIENCE)

    async def steps():
        lives = await asyncio.gather(*(one_life(n) for n in range(AT_ONCE)))
        assert [out for _, out in lives] == [f"{n}\n" for n in range(AT_ONCE)]
        assert len({sandbox for sandbox, _ in lives}) == AT_ONCE

    loop.run_until_complete(steps())
