"""copies.py - snapshots and forks."""

from e2b import NotFoundException, SandboxException

from kit import dress, raises, same

PATIENT = {"request_timeout": 180}  # memory is written to the disk, and machines may be emulated
UNKNOWN = "i0000000000000000000"


async def listed(kit, **query):
    return [s.snapshot_id for s in await kit.all_of(kit.Sandbox.list_snapshots(**query))]


async def snapshot_is_a_template(kit):
    box = await kit.create()
    await box.files.write("/home/user/kept", kit.name)
    sleeper = await box.commands.run("exec sleep 3600", background=True, timeout=0)
    taken = await box.create_snapshot(**PATIENT)
    assert taken.snapshot_id
    await box.files.write("/home/user/kept", "later")
    first = await kit.create(taken.snapshot_id, **PATIENT)
    second = await kit.create(taken.snapshot_id, **PATIENT)
    same(len({box.sandbox_id, first.sandbox_id, second.sandbox_id}), 3)
    await first.files.write("/home/user/own", "of the first")
    same(await second.files.exists("/home/user/own"), False)
    for copy in (first, second):
        same(await copy.files.read("/home/user/kept"), kit.name)
        assert sleeper.pid in [p.pid for p in await copy.commands.list()]
    same(await box.files.read("/home/user/kept"), "later")
    for copy in (first, second):
        same(await copy.kill(), True)
    same(await kit.Sandbox.delete_snapshot(taken.snapshot_id), True)


async def snapshot_goes_once(kit):
    box = await kit.create()
    taken = await kit.Sandbox.create_snapshot(box.sandbox_id, **PATIENT)
    copy = await kit.create(taken.snapshot_id, **PATIENT)
    with raises(SandboxException):
        await kit.Sandbox.delete_snapshot(taken.snapshot_id)
    same(await copy.kill(), True)
    same(await box.kill(), True)
    same(await kit.Sandbox.delete_snapshot(taken.snapshot_id), True)
    same(await kit.Sandbox.delete_snapshot(taken.snapshot_id), False)
    with raises(NotFoundException):
        await kit.Sandbox.create_snapshot(UNKNOWN)


async def snapshots_are_listed(kit):
    box = await kit.create()
    first = (await box.create_snapshot(**PATIENT)).snapshot_id
    second = (await box.create_snapshot(**PATIENT)).snapshot_id
    assert {first, second} <= set(await listed(kit))
    same(await listed(kit, sandbox_id=box.sandbox_id), [second, first])
    same(await listed(kit, sandbox_id=box.sandbox_id, limit=1), [second, first])
    same(await listed(kit, sandbox_id=UNKNOWN), [])
    for snapshot in (first, second):
        same(await kit.Sandbox.delete_snapshot(snapshot), True)
    same(await listed(kit, sandbox_id=box.sandbox_id), [])


async def snapshots_have_names(kit):
    box = await kit.create()
    taken = await box.create_snapshot(name=kit.name, **PATIENT)
    assert any(kit.name in name for name in taken.names), taken
    tagged = await box.create_snapshot(name=f"{kit.name}:v1", **PATIENT)
    same(await listed(kit, name=f"{kit.name}:v1"), [tagged.snapshot_id])
    assert taken.snapshot_id in await listed(kit, name=kit.name)
    same(await listed(kit, name="nobody-has-this"), [])
    for name in (kit.name, taken.snapshot_id, tagged.snapshot_id):
        copy = await kit.create(name, **PATIENT)
        same(await copy.kill(), True)
    for snapshot in (taken, tagged):
        same(await kit.Sandbox.delete_snapshot(snapshot.snapshot_id), True)


async def forks_are_independent(kit):
    box = await kit.create(metadata={"check": kit.name}, envs={"GREETING": "hello"})
    await box.files.write("/home/user/kept", kit.name)
    end = (await box.get_info()).end_at
    copies = [dress(c) for c in await box.fork(count=2, timeout=600, **PATIENT)]
    kit.own += copies
    same(len({box.sandbox_id, *(c.sandbox_id for c in copies)}), 3)
    await box.files.write("/home/user/kept", "later")
    for copy in copies:
        same(await copy.files.read("/home/user/kept"), kit.name)
        same((await copy.commands.run("echo $GREETING")).stdout, "hello\n")
        same((await copy.get_info()).metadata, {"check": kit.name})
    await copies[0].files.write("/home/user/own", "of the first")
    same(await copies[1].files.exists("/home/user/own"), False)
    same(await box.files.exists("/home/user/own"), False)
    same((await box.get_info()).end_at, end)
    same(await box.is_running(), True)


async def fork_by_id(kit):
    box = await kit.create()
    await box.files.write("/home/user/kept", kit.name)
    [copy] = [dress(c) for c in await kit.Sandbox.fork(box.sandbox_id, **PATIENT)]
    kit.own.append(copy)
    same(await copy.files.read("/home/user/kept"), kit.name)


async def fork_of_a_killed_one(kit):
    box = await kit.create()
    same(await box.kill(), True)
    with raises(NotFoundException):
        await box.fork()


async def fork_of_a_paused_one(kit):
    box = await kit.create()
    same(await box.pause(**PATIENT), True)
    with raises(SandboxException):
        await box.fork()
