"""files.py - reading, writing, listing and moving files."""

import datetime
import hashlib
import io
import os

from e2b import FileType, InvalidArgumentException, NotFoundException

from kit import PATIENCE, raises, same

LARGE = int(os.environ.get("HOTCELL_LARGE_MIB", "50")) << 20
ALL_BYTES = bytes(range(256)) * 16


async def read_of_proc(kit):
    box = await kit.box()
    text = await box.files.read("/proc/sys/kernel/random/boot_id")
    same(len(text.strip()), 36)
    same(text, (await box.commands.run("cat /proc/sys/kernel/random/boot_id")).stdout)


async def text(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    written = await box.files.write(f"{folder}/a.txt", "Grüße, 世界\n")
    kind = getattr(written.type, "value", written.type)  # older versions have the bare word
    same((written.name, written.path, kind), ("a.txt", f"{folder}/a.txt", "file"))
    same(await box.files.read(f"{folder}/a.txt"), "Grüße, 世界\n")


async def relative_path(kit):
    box = await kit.box()
    written = await box.files.write(f"{kit.name}.txt", "at home")
    same(written.path, f"/home/user/{kit.name}.txt")
    same(await box.files.read(f"/home/user/{kit.name}.txt"), "at home")


async def parents_are_made(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}/a/b/c.txt"
    await box.files.write(path, "deep")
    same(await box.files.read(path), "deep")
    same((await box.commands.run(f"stat -c %U {path} /tmp/{kit.name}/a")).stdout, "user\nuser\n")


async def at_the_root(kit):
    box = await kit.box()
    same((await box.files.write(f"/{kit.name}/x.txt", "top", user="root")).path, f"/{kit.name}/x.txt")
    same(await box.files.read(f"/{kit.name}/x.txt"), "top")


async def overwrite(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}"
    await box.files.write(path, "a long text that was there before")
    await box.files.write(path, "short")
    same(await box.files.read(path), "short")


async def bytes(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}"
    await box.files.write(path, ALL_BYTES)
    got = await box.files.read(path, format="bytes")
    assert hashlib.sha256(got).digest() == hashlib.sha256(ALL_BYTES).digest(), len(got)


async def stream(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}"
    await box.files.write(path, io.BytesIO(ALL_BYTES * 64))
    got = await kit.drain(await box.files.read(path, format="stream"))
    assert got == ALL_BYTES * 64, len(got)


async def several(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    names = ["z", "a", "sub/m", "0"]
    entries = [{"path": f"{folder}/{name}", "data": f"this is {name}"} for name in names]
    written = await box.files.write_files(entries)
    same([w.path for w in written], [f"{folder}/{name}" for name in names])
    for name in names:
        same(await box.files.read(f"{folder}/{name}"), f"this is {name}")


async def none(kit):
    box = await kit.box()
    same(await box.files.write_files([]), [])


async def empty(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}"
    await box.files.write(path, "")
    same(await box.files.read(path), "")
    same(len(await box.files.read(path, format="bytes")), 0)
    same((await box.files.get_info(path)).size, 0)


async def gzip(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}"
    await box.files.write(path, "squeezed " * 5000, gzip=True)
    same((await box.files.get_info(path)).size, 45000)
    same(await box.files.read(path, gzip=True), "squeezed " * 5000)


async def octet_stream(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}"
    written = await box.files.write(path, ALL_BYTES, use_octet_stream=True)
    same(written.path, path)
    assert await box.files.read(path, format="bytes") == ALL_BYTES


async def large(kit):
    box = await kit.create(timeout=1800)
    data = os.urandom(1 << 20) * (LARGE >> 20)
    await box.files.write("/home/user/large", data, request_timeout=PATIENCE)
    got = await box.files.read("/home/user/large", format="bytes", request_timeout=PATIENCE)
    same(len(got), len(data))
    same(hashlib.sha256(got).hexdigest(), hashlib.sha256(data).hexdigest())


async def read_missing(kit):
    box = await kit.box()
    with raises(NotFoundException):
        await box.files.read("/no/such/file")


async def strange_names(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    names = ["with blank", "it's \"quoted\"", "Grüße-世界", "a+b&c=d%20", "#hash?", "back\\slash"]
    for name in names:
        same((await box.files.write(f"{folder}/{name}", name)).name, name)
    same(sorted(e.name for e in await box.files.list(folder)), sorted(names))
    for name in names:
        same(await box.files.read(f"{folder}/{name}"), name)


async def as_another_user(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    await box.files.write(f"{folder}/roots", "mine", user="root")
    same((await box.files.get_info(f"{folder}/roots")).owner, "root")
    same((await box.files.write(f"{kit.name}.txt", "home", user="root")).path, f"/root/{kit.name}.txt")
    same((await box.files.get_info(f"/root/{kit.name}.txt", user="root")).owner, "root")


async def info_of_a_file(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}"
    await box.files.write(path, "12345")
    info = await box.files.get_info(path)
    same((info.name, info.path, info.type, info.size), (kit.name, path, FileType.FILE, 5))
    same((info.mode, info.permissions, info.owner, info.group), (0o644, "-rw-r--r--", "user", "user"))
    same(info.symlink_target, None)
    now = datetime.datetime.fromtimestamp(float((await box.commands.run("date +%s.%N")).stdout),
                                          datetime.timezone.utc)
    modified = info.modified_time.replace(tzinfo=info.modified_time.tzinfo or datetime.timezone.utc)
    assert abs(now - modified) < datetime.timedelta(seconds=60), (now, modified)
    await box.commands.run(f"chmod 4750 {path}")
    same((await box.files.get_info(path)).mode & 0o777, 0o750)


async def info_of_a_directory(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    info = await box.files.get_info(folder)
    same((info.name, info.path, info.type), (kit.name, folder, FileType.DIR))
    same((info.mode, info.permissions, info.owner, info.group), (0o755, "drwxr-xr-x", "user", "user"))
    assert info.size > 0, info


async def info_of_a_link(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    await box.files.write(f"{folder}/target", "x")
    await box.commands.run(f"ln -s target {folder}/link")
    info = await box.files.get_info(f"{folder}/link")
    same((info.name, info.symlink_target), ("link", f"{folder}/target"))
    same([e.name for e in await box.files.list(folder)], ["link", "target"])


async def info_missing(kit):
    box = await kit.box()
    with raises(NotFoundException):
        await box.files.get_info("/no/such/file")


async def exists(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    await box.files.write(f"{folder}/a", "x")
    same([await box.files.exists(p) for p in (f"{folder}/a", folder, f"{folder}/b")], [True, True, False])


async def list_depth(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    await box.commands.run(f"cd {folder} && mkdir -p a/b/c d && touch a/b/c/x a/f d/g z")
    trees = {1: ["a", "d", "z"], 2: ["a", "a/b", "a/f", "d", "d/g", "z"],
             3: ["a", "a/b", "a/b/c", "a/f", "d", "d/g", "z"],
             4: ["a", "a/b", "a/b/c", "a/b/c/x", "a/f", "d", "d/g", "z"]}
    trees[10] = trees[4]
    for depth, want in trees.items():
        got = await box.files.list(folder, depth=depth)
        same([e.path.removeprefix(folder + "/") for e in got], want)
    kinds = {e.name: e.type for e in await box.files.list(folder)}
    same(kinds, {"a": FileType.DIR, "d": FileType.DIR, "z": FileType.FILE})


async def list_default(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    await box.commands.run(f"cd {folder} && mkdir -p a/b && touch .hidden")
    same([e.name for e in await box.files.list(folder)], [".hidden", "a"])


async def list_depth_wrong(kit):
    box = await kit.box()
    with raises(InvalidArgumentException):
        await box.files.list("/tmp", depth=-1)


async def list_missing(kit):
    box = await kit.box()
    with raises(NotFoundException):
        await box.files.list("/no/such/directory")


async def make_dir(kit):
    box = await kit.box()
    path = f"/tmp/{kit.name}/deep/er"
    same(await box.files.make_dir(path), True)
    same(await box.files.make_dir(path), False)
    same((await box.files.get_info(path)).owner, "user")


async def rename(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    await box.files.write(f"{folder}/a", "moved")
    info = await box.files.rename(f"{folder}/a", f"{folder}/b")
    same((info.name, info.path), ("b", f"{folder}/b"))
    same(await box.files.exists(f"{folder}/a"), False)
    same(await box.files.read(f"{folder}/b"), "moved")
    await box.files.make_dir(f"{folder}/dir")
    await box.files.write(f"{folder}/dir/x", "inside")
    await box.files.rename(f"{folder}/dir", f"{folder}/other")
    same(await box.files.read(f"{folder}/other/x"), "inside")


async def rename_missing(kit):
    box = await kit.box()
    with raises(NotFoundException):
        await box.files.rename("/no/such/file", "/tmp/other")


async def remove(kit):
    box = await kit.box()
    folder = await kit.folder(box)
    await box.files.write(f"{folder}/a/b", "x")
    await box.files.write(f"{folder}/c", "x")
    await box.files.remove(f"{folder}/c")
    same(await box.files.exists(f"{folder}/c"), False)
    await box.files.remove(folder)
    same(await box.files.exists(folder), False)
    await box.files.remove(folder)
