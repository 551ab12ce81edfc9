"""watch.py - events of directories."""

from e2b import NotFoundException, SandboxException

from kit import raises, same


async def write(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    await box.files.write(f"{folder}/a", "before")
    watch = await kit.watch(box, folder)
    await box.files.write(f"{folder}/a", "after")
    await watch.until(("a", "write"))
    await watch.handle.stop()


async def every_kind(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    watch = await kit.watch(box, folder)
    await box.commands.run(f"cd {folder} && echo x > a && chmod 600 a && mv a b && rm b")
    await watch.until(("a", "create"), ("a", "write"), ("a", "chmod"), ("a", "rename"), ("b", "remove"))
    await watch.handle.stop()


async def recursive(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    await box.files.write(f"{folder}/sub/deep/a", "before")
    watch = await kit.watch(box, folder, recursive=True)
    await box.files.write(f"{folder}/sub/deep/a", "after")
    await watch.until(("sub/deep/a", "write"))
    await watch.handle.stop()


async def new_directory(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    watch = await kit.watch(box, folder, recursive=True)
    await box.files.make_dir(f"{folder}/new")
    await watch.until(("new", "create"))
    await box.files.write(f"{folder}/new/a", "x")
    await watch.until(("new/a", "write"))
    await watch.handle.stop()


async def entry(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    watch = await kit.watch(box, folder, include_entry=True)
    await box.files.write(f"{folder}/a", "x")
    await watch.until(("a", "write"))
    entries = [e.entry for e in watch.events if e.name == "a" and e.type.value == "write"]
    same((entries[-1].name, entries[-1].path, entries[-1].type.value), ("a", f"{folder}/a", "file"))
    await watch.handle.stop()


async def missing(kit):
    box = await kit.box()
    with raises(NotFoundException):
        await kit.watch(box, "/no/such/directory")


async def a_file(kit):
    box = await kit.box()
    await box.files.write(f"/tmp/{kit.name}", "x")
    with raises(SandboxException):
        await kit.watch(box, f"/tmp/{kit.name}")


async def stop(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    watch = await kit.watch(box, folder)
    await box.files.write(f"{folder}/a", "x")
    await watch.until(("a", "write"))
    await watch.handle.stop()
    seen = len(watch.events)
    await box.files.write(f"{folder}/b", "x")
    same((await box.commands.run("echo later")).stdout, "later\n")
    same(len(watch.events), seen)
