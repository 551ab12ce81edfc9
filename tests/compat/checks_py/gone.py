"""gone.py - what clients see of a sandbox that is no more."""

from e2b import NotFoundException, SandboxException, TimeoutException

from kit import ask_host, raises, same


async def killed_during_a_command(kit):
    box = await kit.create()
    handle = await box.commands.run("sleep 600", background=True, timeout=0)
    await box.kill()
    with raises(Exception):
        await handle.wait()


async def killed_is_told(kit):
    box = await kit.create()
    handle = await box.commands.run("sleep 600", background=True, timeout=0)
    await box.kill()
    with raises(SandboxException, TimeoutException) as caught:
        await handle.wait()
    text = str(caught.value).lower()
    assert "sandbox" in text and ("killed" in text or "timeout" in text or "running" in text), caught.value


async def request_to_its_host(kit):
    box = await kit.create()
    host = box.get_host(3000)
    await box.kill()
    answer = ask_host(host)
    same((answer.status, answer.json),
         (502, {"sandboxId": box.sandbox_id, "message": "The sandbox was not found", "code": 502}))


async def command(kit):
    box = await kit.create()
    await box.kill()
    with raises(SandboxException):
        await box.commands.run("echo hello")


async def files(kit):
    box = await kit.create()
    await box.kill()
    with raises(SandboxException):
        await box.files.read("/etc/hostname")


async def info(kit):
    box = await kit.create()
    await box.kill()
    with raises(NotFoundException):
        await box.get_info()
