"""sandbox.py - create, connect, timeouts, kill."""

import datetime
import os

from e2b import NotFoundException, SandboxException, SandboxQuery

from kit import ask_agent, raises, same

AT_ONCE = int(os.environ.get("HOTCELL_AT_ONCE", "10"))
UNKNOWN = "i0000000000000000000"


async def kill_of_an_unknown_id(kit):
    same(await kit.Sandbox.kill(UNKNOWN), False)


async def killed_leaves_the_list(kit):
    box = await kit.create(metadata={"check": kit.name})
    query = SandboxQuery(metadata={"check": kit.name})
    same([b.sandbox_id for b in await kit.all_of(kit.Sandbox.list(query=query))], [box.sandbox_id])
    same(await kit.Sandbox.kill(box.sandbox_id), True)
    same(await kit.all_of(kit.Sandbox.list(query=query)), [])
    same(await box.is_running(), False)
    same(await kit.Sandbox.kill(box.sandbox_id), False)


async def connect_reaches_the_same(kit):
    box = await kit.box()
    await box.files.write(f"/tmp/{kit.name}", "the same")
    again = await kit.Sandbox.connect(box.sandbox_id)
    same(again.sandbox_id, box.sandbox_id)
    same(await again.files.read(f"/tmp/{kit.name}"), "the same")
    same((await again.commands.run("echo $GREETING")).stdout, "hello\n")


async def connect_shorter_keeps_the_end(kit):
    box = await kit.create(timeout=900)
    before = (await box.get_info()).end_at
    await kit.Sandbox.connect(box.sandbox_id, timeout=60)
    same((await box.get_info()).end_at, before)


async def connect_longer_moves_the_end(kit):
    box = await kit.create(timeout=300)
    before = (await box.get_info()).end_at
    await kit.Sandbox.connect(box.sandbox_id, timeout=900)
    after = (await box.get_info()).end_at
    assert after - before > datetime.timedelta(seconds=300), (before, after)


async def connect_to_a_killed_one(kit):
    box = await kit.create()
    await box.kill()
    with raises(NotFoundException):
        await kit.Sandbox.connect(box.sandbox_id)


async def connect_of_an_instance(kit):
    box = await kit.box()
    again = await box.connect(timeout=60)
    same(again.sandbox_id, box.sandbox_id)
    same((await again.commands.run("echo $GREETING")).stdout, "hello\n")


async def timeout_ends_it(kit):
    box = await kit.create()
    await box.set_timeout(1)

    async def gone():
        return not await box.is_running()
    await kit.until(gone, "it ended", 30)


async def timeout_lengthens(kit):
    box = await kit.create(timeout=300)
    first = (await box.get_info()).end_at
    await box.set_timeout(3000)
    second = (await box.get_info()).end_at
    assert second - first > datetime.timedelta(seconds=2000), (first, second)
    await box.set_timeout(600)
    third = (await box.get_info()).end_at
    assert second - third > datetime.timedelta(seconds=2000), (second, third)
    same(await box.is_running(), True)


async def timeout_by_id(kit):
    box = await kit.create(timeout=300)
    first = (await box.get_info()).end_at
    await kit.Sandbox.set_timeout(box.sandbox_id, 3000)
    second = (await box.get_info()).end_at
    assert second - first > datetime.timedelta(seconds=2000), (first, second)


async def timeout_of_an_unknown_one(kit):
    with raises(NotFoundException):
        await kit.Sandbox.set_timeout(UNKNOWN, 60)


async def timeout_is_capped(kit):
    box = await kit.create(timeout=300)
    await box.set_timeout(10 * 24 * 3600)
    info = await box.get_info()
    length = info.end_at - info.started_at  # of a wall clock, which may be moved a little meanwhile
    assert datetime.timedelta(hours=23) < length <= datetime.timedelta(hours=24, seconds=1), length


async def timeout_too_long(kit):
    with raises(SandboxException) as caught:
        await kit.create(timeout=10 * 24 * 3600)
    assert "Timeout cannot be greater than 24 hours" in str(caught.value), caught.value


async def timeout_zero(kit):
    box = await kit.create()
    await box.set_timeout(0)

    async def gone():
        return not await box.is_running()
    await kit.until(gone, "it ended", 30)


async def mcp_without_a_gateway(kit):
    with raises(Exception):
        await kit.create(metadata={"check": kit.name}, template="base", mcp={"exa": {"apiKey": "none"}})
    query = SandboxQuery(metadata={"check": kit.name})
    same(await kit.all_of(kit.Sandbox.list(query=query)), [])


async def create(kit):
    box = await kit.create()
    assert box.sandbox_id
    same(await box.is_running(), True)
    same((await box.commands.run("echo I am")).stdout, "I am\n")


async def info(kit):
    before = datetime.datetime.now(datetime.timezone.utc)
    box = await kit.create(timeout=600, metadata={"check": kit.name})
    info = await box.get_info()
    same((info.sandbox_id, info.metadata, info.state.value), (box.sandbox_id, {"check": kit.name}, "running"))
    assert info.template_id and info.envd_version and info.cpu_count >= 1 and info.memory_mb >= 128, info
    slack = datetime.timedelta(seconds=30)
    assert before - slack < info.started_at < before + 2 * slack, info
    length = info.end_at - info.started_at
    assert abs(length - datetime.timedelta(seconds=600)) < slack, info
    by_id = await kit.Sandbox.get_info(box.sandbox_id)
    same(by_id.started_at, info.started_at)


async def create_from_a_named_template(kit):
    box = await kit.create("base")
    same((await box.get_info()).name, "base")


async def create_from_an_unknown_template(kit):
    with raises(SandboxException):
        await kit.create("no-such-template")


async def without_access_token(kit):
    box = await kit.create(secure=False)
    await box.files.write("/tmp/open", "open")
    same(await box.files.read("/tmp/open"), "open")
    answer = ask_agent(box, "/files?path=/tmp/open&username=user")
    same((answer.status, answer.body), (200, b"open"))


async def at_once(kit):
    async def life(n):
        box = await kit.Sandbox.create(timeout=900, request_timeout=300)
        try:
            return box.sandbox_id, (await box.commands.run(f"echo {n}", timeout=300)).stdout
        finally:
            await box.kill()
    lives = await kit.together([lambda n=n: life(n) for n in range(AT_ONCE)])
    same([out for _, out in lives], [f"{n}\n" for n in range(AT_ONCE)])
    same(len({sandbox for sandbox, _ in lives}), AT_ONCE)


async def internet_off(kit):
    box = await kit.create(allow_internet_access=False)
    same((await box.get_info()).sandbox_id, box.sandbox_id)
    same((await box.commands.run("echo alive")).stdout, "alive\n")
