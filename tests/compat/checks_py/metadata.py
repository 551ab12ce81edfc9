"""metadata.py - what users attach to files."""

from kit import same


async def shown(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    want = {"author": "me", "purpose": "check"}
    same((await box.files.write(f"{folder}/a", "x", metadata=want)).metadata, want)
    same((await box.files.get_info(f"{folder}/a")).metadata, want)
    same([e.metadata for e in await box.files.list(folder)], [want])
    same((await box.files.rename(f"{folder}/a", f"{folder}/b")).metadata, want)


async def cleared(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}"
    await box.files.write(path, "x", metadata={"a": "1"})
    await box.files.write(path, "y")
    assert not (await box.files.get_info(path)).metadata
    await box.files.write(path, "z", metadata={"b": "2"})
    same((await box.files.get_info(path)).metadata, {"b": "2"})


async def xattrs(kit):
    box = await kit.box()
    path = f"/home/user/{kit.name}"
    await box.files.write(path, "x", metadata={"inside": "seen"})
    read = f"python3 -c 'import os; print(os.getxattr(\"{path}\", \"user.e2b.inside\").decode())'"
    same((await box.commands.run(read)).stdout, "seen\n")
    await box.commands.run(f"python3 -c 'import os; os.setxattr(\"{path}\", \"user.e2b.more\", b\"there\")'")
    same((await box.files.get_info(path)).metadata, {"inside": "seen", "more": "there"})


async def several_files(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    entries = [{"path": f"{folder}/{name}", "data": name} for name in ("a", "b")]
    written = await box.files.write_files(entries, metadata={"of": "both"})
    same([w.metadata for w in written], [{"of": "both"}] * 2)
    same([e.metadata for e in await box.files.list(folder)], [{"of": "both"}] * 2)
