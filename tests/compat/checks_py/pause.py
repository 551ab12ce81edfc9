"""pause.py - pause, resume, auto-pause, auto-resume."""

import os

from e2b import NotFoundException, SandboxException, SandboxQuery, SandboxState

from kit import ask_agent, ask_host, raises, same

PATIENT = {"request_timeout": 180}  # a pause writes memory to the disk, and machines may be emulated
UNKNOWN = "i0000000000000000000"
RESUMES = {"on_timeout": "pause", "auto_resume": True}


async def boot_id(box):
    return (await box.files.read("/proc/sys/kernel/random/boot_id")).strip()


async def state(kit, box):
    return (await kit.Sandbox.get_info(box.sandbox_id)).state.value


async def paused(kit, box):
    async def is_paused():
        return await state(kit, box) == "paused"
    await kit.until(is_paused, "it is paused", 120)


async def serve(kit, box, text):
    """A web server in the guest, at port 8000, in a folder with one page."""
    await box.files.write("/tmp/www/page", text)
    await box.commands.run("cd /tmp/www && exec python3 -m http.server 8000", background=True, timeout=0)

    async def answers():
        return ask_host(box.get_host(8000), "/page").status == 200
    await kit.until(answers, "the server listens", 300)


async def keeps_memory(kit):
    box = await kit.create()
    sleeper = await box.commands.run("exec sleep 3600", background=True, timeout=0)
    await box.commands.run("echo $RANDOM$RANDOM > /dev/shm/kept")
    kept, boot = await box.files.read("/dev/shm/kept"), await boot_id(box)
    same(await box.pause(**PATIENT), True)
    same(await state(kit, box), "paused")
    same(await box.is_running(), False)
    again = await kit.Sandbox.connect(box.sandbox_id, **PATIENT)
    same(await state(kit, box), "running")
    same(again.sandbox_id, box.sandbox_id)
    same(await again.files.read("/dev/shm/kept"), kept)
    same(await boot_id(again), boot)
    assert sleeper.pid in [p.pid for p in await again.commands.list()]
    same(await again.commands.kill(sleeper.pid), True)


async def pauses_once(kit):
    box = await kit.create()
    same(await box.pause(**PATIENT), True)
    same(await box.pause(**PATIENT), False)
    same(await kit.Sandbox.pause(box.sandbox_id, **PATIENT), False)


async def of_an_unknown_one(kit):
    with raises(NotFoundException):
        await kit.Sandbox.pause(UNKNOWN)


async def command_goes_on(kit):
    box = await kit.create()
    await box.commands.run("sleep 2; echo late > /tmp/soon; mv /tmp/soon /tmp/late", background=True, timeout=0)
    same(await box.pause(**PATIENT), True)
    await box.connect(**PATIENT)

    async def came():
        return await box.files.exists("/tmp/late")
    await kit.until(came, "the command went on", 120)
    same(await box.files.read("/tmp/late"), "late\n")


async def server_answers_again(kit):
    box = await kit.create()
    await serve(kit, box, kit.name)
    same(await box.pause(**PATIENT), True)
    same(ask_host(box.get_host(8000), "/page").status, 502)
    await box.connect(**PATIENT)
    answer = ask_host(box.get_host(8000), "/page")
    same((answer.status, answer.body.decode()), (200, kit.name))


async def instance_goes_on(kit):
    """Who was there before the pause needs nothing new: the token is the same."""
    box = await kit.create(envs={"GREETING": "hello"})
    same(await box.pause(**PATIENT), True)
    await kit.Sandbox.connect(box.sandbox_id, **PATIENT)
    same((await box.commands.run("echo $GREETING")).stdout, "hello\n")


async def connect_gives_it_time(kit):
    box = await kit.create(timeout=300)
    same(await box.pause(**PATIENT), True)
    await kit.Sandbox.connect(box.sandbox_id, timeout=1800, **PATIENT)
    info = await box.get_info()
    assert 1500 < (info.end_at - info.started_at).total_seconds(), info


async def kill_of_a_paused_one(kit):
    box = await kit.create(metadata={"check": kit.name})
    same(await box.pause(**PATIENT), True)
    same(await kit.Sandbox.kill(box.sandbox_id), True)
    same(await kit.Sandbox.kill(box.sandbox_id), False)
    with raises(NotFoundException):
        await kit.Sandbox.connect(box.sandbox_id)
    same(await kit.all_of(kit.Sandbox.list(query=SandboxQuery(metadata={"check": kit.name}))), [])


async def a_paused_one_is_not_reached(kit):
    box = await kit.create()
    same(await box.pause(**PATIENT), True)
    answer = ask_agent(box, "/health")
    same(answer.status, 502)
    same(answer.json, {"sandboxId": box.sandbox_id, "message": "The sandbox was not found", "code": 502})
    with raises(SandboxException):
        await kit.Sandbox.set_timeout(box.sandbox_id, 60)
    same(await state(kit, box), "paused")


async def among_the_others(kit):
    """Lists have running and paused ones in one order of their start."""
    first = (await kit.create(metadata={"check": kit.name})).sandbox_id
    second = (await kit.create(metadata={"check": kit.name})).sandbox_id
    same(await kit.Sandbox.pause(first, **PATIENT), True)

    async def listed(**more):
        query = SandboxQuery(metadata={"check": kit.name}, **more)
        return [(b.sandbox_id, b.state.value) for b in await kit.all_of(kit.Sandbox.list(query=query))]
    same(await listed(), [(second, "running"), (first, "paused")])
    same(await listed(state=[SandboxState.RUNNING, SandboxState.PAUSED]), [(second, "running"), (first, "paused")])
    same(await listed(state=[SandboxState.PAUSED]), [(first, "paused")])
    same(await listed(state=[SandboxState.RUNNING]), [(second, "running")])


async def disk_alone(kit):
    box = await kit.create(envs={"GREETING": "hello"})
    await box.files.write("/home/user/kept", kit.name)
    boot = await boot_id(box)
    same(await box.pause(keep_memory=False, **PATIENT), True)
    await box.connect(**PATIENT)
    same(await box.files.read("/home/user/kept"), kit.name)
    assert await boot_id(box) != boot
    same((await box.commands.run("echo $GREETING")).stdout, "hello\n")


async def reboot(kit):
    """The memory is there and not wanted."""
    box = await kit.create()
    await box.files.write("/home/user/kept", kit.name)
    await box.commands.run("sync")
    boot = await boot_id(box)
    same(await box.pause(**PATIENT), True)
    again = await kit.Sandbox.connect(box.sandbox_id, on_resume="reboot", **PATIENT)
    same(await again.files.read("/home/user/kept"), kit.name)
    assert await boot_id(again) != boot


async def at_the_end_of_its_time(kit):
    box = await kit.create(lifecycle={"on_timeout": "pause"})
    boot = await boot_id(box)
    await box.set_timeout(1)
    await paused(kit, box)
    info = await kit.Sandbox.get_info(box.sandbox_id)
    same((info.lifecycle["on_timeout"], info.lifecycle["auto_resume"]), ("pause", False))
    await box.connect(**PATIENT)
    same(await state(kit, box), "running")
    same(await boot_id(box), boot)


async def at_the_end_the_disk_alone(kit):
    box = await kit.create(lifecycle={"on_timeout": {"action": "pause", "keep_memory": False}})
    await box.files.write("/home/user/kept", kit.name)
    boot = await boot_id(box)
    await box.set_timeout(1)
    await paused(kit, box)
    await box.connect(**PATIENT)
    same(await box.files.read("/home/user/kept"), kit.name)
    assert await boot_id(box) != boot


async def traffic_resumes(kit):
    box = await kit.create(lifecycle=RESUMES)
    boot = await boot_id(box)
    same(await box.pause(**PATIENT), True)
    same((await box.commands.run("echo awake", **PATIENT)).stdout, "awake\n")
    same(await state(kit, box), "running")
    same(await boot_id(box), boot)


async def traffic_of_a_port_resumes(kit):
    box = await kit.create(lifecycle=RESUMES)
    await serve(kit, box, kit.name)
    same(await box.pause(**PATIENT), True)
    answer = ask_host(box.get_host(8000), "/page")
    same((answer.status, answer.body.decode()), (200, kit.name))
    same(await state(kit, box), "running")


async def traffic_without_the_token(kit):
    """At the agent's port only who has the token resumes it."""
    box = await kit.create(lifecycle=RESUMES)
    same(await box.pause(**PATIENT), True)
    for headers in ({}, {"X-Access-Token": os.urandom(16).hex()}):
        answer = ask_agent(box, "/health", headers=headers)
        same((answer.status, answer.json["code"], answer.json["sandboxId"]), (403, 403, box.sandbox_id))
    same(await state(kit, box), "paused")
