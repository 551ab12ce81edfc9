"""stdin.py - what commands are told."""

import hashlib

from e2b import NotFoundException

from kit import raises, same

ALL_BYTES = "".join(map(chr, range(256))).encode("latin-1")


async def echo(kit):
    box = await kit.box()
    handle = await box.commands.run("cat", background=True, stdin=True)
    await box.commands.send_stdin(handle.pid, "Hello, ")
    await box.commands.send_stdin(handle.pid, "世界")
    await box.commands.close_stdin(handle.pid)
    same((await handle.wait()).stdout, "Hello, 世界")


async def empty(kit):
    box = await kit.box()
    handle = await box.commands.run("cat", background=True, stdin=True)
    await box.commands.send_stdin(handle.pid, "")
    await box.commands.send_stdin(handle.pid, "x")
    await box.commands.close_stdin(handle.pid)
    same((await handle.wait()).stdout, "x")


async def close(kit):
    box = await kit.box()
    handle = await box.commands.run("cat; echo end", background=True, stdin=True)
    await box.commands.close_stdin(handle.pid)
    result = await handle.wait()
    same((result.stdout, result.exit_code), ("end\n", 0))


async def bytes(kit):
    box = await kit.box()
    handle = await box.commands.run("sha256sum | cut -c1-16; echo end", background=True, stdin=True)
    data = ALL_BYTES * 300
    await box.commands.send_stdin(handle.pid, data)
    await box.commands.close_stdin(handle.pid)
    same((await handle.wait()).stdout, hashlib.sha256(data).hexdigest()[:16] + "\nend\n")


async def off(kit):
    box = await kit.box()
    same((await box.commands.run("cat; echo end")).stdout, "end\n")


async def unknown_pid(kit):
    box = await kit.box()
    with raises(NotFoundException):
        await box.commands.send_stdin(999999, "x")
