"""hostile_images.py - a table of layers that somebody wrote to do harm: what they are, and what must become of them.

A row is a name, the layers, and either the code and message of the refusal, or a function that looks at the disk.
"""

import collections
import gzip
import io
import lzma
import os
import struct
import subprocess
import tarfile
import tempfile

Row = collections.namedtuple("Row", "name layers code message check ci disk_mib")
ROWS = []
NONE = b"\0" * 1024  # the end of an archive
MIB = 1 << 20


def elf(loader=None, machine=62):
    """The beginning of a program, with a loader or without."""
    name = (loader or "").encode() + b"\0"
    head = b"\x7fELF\2\1\1" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56,
                                                       1 if loader else 0, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(name), len(name), 1)
    return head + (segment + name if loader else b"")


def member(name, kind=tarfile.REGTYPE, data=b"", mode=0o644, target="", **more):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname, info.size = kind, mode, target, len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def file(name, data=b"x", **more):
    return member(name, data=data, **more)


def folder(name, mode=0o755, **more):
    return member(name, tarfile.DIRTYPE, mode=mode, **more)


def symlink(name, target, **more):
    return member(name, tarfile.SYMTYPE, target=target, **more)


def hard(name, target, **more):
    return member(name, tarfile.LNKTYPE, target=target, **more)


def tar(*members, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def raw(name=b"a", size=b"00000000000\0", kind=b"0", link=b"", body=b"", fields=None, sum_off=0):
    """One header by hand, and its body; not ended."""
    head = bytearray(512)
    parts = {0: name[:100], 100: b"0000644\0", 108: b"0000000\0", 116: b"0000000\0", 124: size, 136: b"00000000000\0",
             156: kind, 157: link[:100], 257: b"ustar\0" + b"00"}
    parts.update(fields or {})
    for at, value in parts.items():
        head[at:at + len(value)] = value
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % (sum(head) + sum_off)
    return bytes(head) + body + b"\0" * (-len(body) % 512)


def record(key, value):
    """A record of a pax header, which begins with its own length."""
    text = b" " + key + b"=" + value + b"\n"
    n = len(text)
    while n != len(text) + len(str(n)):
        n = len(text) + len(str(n))
    return str(n).encode() + text


def pax(*records, kind=b"x"):
    body = b"".join(record(key, value) for key, value in records)
    return raw(b"pax", b"%011o\0" % len(body), kind, body=body)


def sparse(size, pieces, data=b"x" * 512, name=b"sparse"):
    """A file of GNU's sparse format 1.0: pieces are (offset, length), whatever the data."""
    body = b"\n".join(b"%d" % n for n in [len(pieces)] + [n for piece in pieces for n in piece]) + b"\n"
    body += b"\0" * (-len(body) % 512) + data
    return pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", name),
               (b"GNU.sparse.realsize", b"%d" % size)) + raw(name, b"%011o\0" % len(body), body=body) + NONE


def tool(*words, given):
    return subprocess.run(words, input=given, stdout=subprocess.PIPE, check=True).stdout


BASH = file("bin/bash", elf(), mode=0o755)
BASE = tar(folder("bin"), BASH)


def refused(name, code, message, *layers, ci=False, base=True, disk_mib=64):
    ROWS.append(Row(name, ([BASE] if base else []) + list(layers), code, message, None, ci, disk_mib))


def harmless(name, *layers, ci=False, base=True, disk_mib=64):
    def keep(check):
        ROWS.append(Row(name, ([BASE] if base else []) + list(layers), None, None, check, ci, disk_mib))
        return check
    return keep


def is_file(disk, path, data=b"x"):
    stat = disk.stat(path)
    assert stat and stat["type"] == "regular" and disk.cat(path) == data, path


def is_gone(disk, *paths):
    for path in paths:
        assert disk.stat(path) is None, path


# paths

refused("dotdot", "invalid", r"\.\.", tar(file("../evil")), ci=True)
refused("dotdot_within", "invalid", r"\.\.", tar(file("a/../../evil")))
refused("dotdot_at_the_end", "invalid", r"\.\.", tar(folder("a/..")))
refused("dotdot_absolute", "invalid", r"\.\.", tar(file("/../../evil")))
refused("empty_name", "invalid", "empty path|name", raw(b"") + NONE)
refused("root_is_a_file", "invalid", "root", raw(b".") + NONE)
refused("root_is_a_symlink", "invalid", "root", tar(symlink("/", "/etc")), ci=True)
refused("name_of_256", "invalid", "255", tar(file("n" * 256)), ci=True)
refused("path_of_5000", "invalid", "4095", tar(file("/".join(["d" * 99] * 50))), ci=True)
refused("folders_600_deep", "exhausted", "512", tar(file("/".join("d" * 600))), ci=True)
refused("through_a_file", "invalid", "not a folder", tar(file("a"), file("a/b")), ci=True)


@harmless("absolute", tar(file("/etc/evil")), ci=True)
def _(disk):
    is_file(disk, "/etc/evil")


@harmless("dots_and_slashes", tar(file("//etc//./x")))
def _(disk):
    is_file(disk, "/etc/x")


@harmless("name_of_255", tar(file("n" * 255)))
def _(disk):
    is_file(disk, "/" + "n" * 255)


@harmless("folders_500_deep", tar(file("/".join("d" * 500))))
def _(disk):
    is_file(disk, "/" + "/".join("d" * 500))


@harmless("name_raw_bytes", raw(b"a\xff\xfe", body=b"") + NONE)
def _(disk):
    assert "a\udcff\udcfe" in disk.names("/")


@harmless("name_not_utf8", pax((b"path", b"a\xff\xfeb")) + raw(b"a") + NONE)
def _(disk):
    assert "a\udcff\udcfeb" in disk.names("/")


@harmless("name_controls", tar(file("a\x1b[31m\tb")))
def _(disk):
    assert "a\x1b[31m\tb" in disk.names("/")


@harmless("name_ends_at_nul", pax((b"path", b"a\0/../../b")) + raw(b"a") + NONE)
def _(disk):
    is_gone(disk, "/b")


@harmless("global_header_names_nothing", pax((b"path", b"../../evil"), kind=b"g") + raw(b"fine") + NONE)
def _(disk):
    is_gone(disk, "/evil")


# symlinks

refused("circle", "invalid", "circles", tar(symlink("a", "b"), symlink("b", "a"), file("a/x")), ci=True)
refused("circle_of_one", "invalid", "circles", tar(symlink("a", "a"), file("a/x")))
refused("41_symlinks", "invalid", "circles",
        tar(folder("l41"), *(symlink(f"l{i}", f"l{i + 1}") for i in range(41)), file("l0/x")))
refused("symlinks_that_grow", "invalid", "too (far|long)|4095|circles|on the way",
        tar(symlink("a", "a/" * 2000 + "b"), file("a/x")))
refused("symlink_to_nothing", "invalid", "symlink|sound", raw(b"a", kind=b"2") + NONE)
refused("symlink_of_5000", "invalid", "too long", tar(symlink("a", "t" * 5000)))


@harmless("through_symlink_to_root", tar(symlink("out", "/"), file("out/etc/evil")), ci=True)
def _(disk):
    is_file(disk, "/etc/evil")
    assert disk.stat("/out")["type"] == "symlink"


@harmless("through_symlink_upwards", tar(symlink("out", "../../../../../tmp"), file("out/evil")), ci=True)
def _(disk):
    is_file(disk, "/tmp/evil")


@harmless("through_symlink_to_host_folder", tar(symlink("out", "/var/lib/hotcell/templates"), file("out/evil")))
def _(disk):
    is_file(disk, "/var/lib/hotcell/templates/evil")


@harmless("through_39_symlinks", tar(folder("l39"), *(symlink(f"l{i}", f"l{i + 1}") for i in range(39)), file("l0/x")))
def _(disk):
    is_file(disk, "/l39/x")


@harmless("symlink_replaced_not_followed", tar(file("real", b"kept"), symlink("a", "real")), tar(file("a", b"new")))
def _(disk):
    is_file(disk, "/real", b"kept")
    is_file(disk, "/a", b"new")


@harmless("long_symlink", tar(symlink("a", "t" * 4000)))
def _(disk):
    assert disk.stat("/a")["size"] == 4000 and disk.stat("/a")["type"] == "symlink"


# hard links

refused("hard_link_upwards", "invalid", r"\.\.", tar(hard("a", "../../etc/shadow")), ci=True)
refused("hard_link_to_host_file", "(invalid|not_found)", "not there|no etc", tar(hard("a", "/etc/shadow")), ci=True)
refused("hard_link_to_folder", "invalid", "folder", tar(folder("d"), hard("a", "d")))
refused("hard_link_over_its_folder", "invalid", "in the place", tar(file("a/b"), hard("a", "a/b")))
refused("hard_link_to_root", "invalid", "folder", tar(hard("a", "/")))


@harmless("hard_link_through_symlink", tar(symlink("s", "/"), file("x"), hard("y", "s/x")))
def _(disk):
    assert disk.stat("/x")["ino"] == disk.stat("/y")["ino"] and disk.stat("/x")["links"] == 2


@harmless("hard_link_to_symlink", tar(symlink("s", "/etc/shadow"), hard("y", "s")))
def _(disk):
    assert disk.stat("/y")["type"] == "symlink"


@harmless("hard_link_to_itself", tar(file("x", b"kept"), hard("x", "x")))
def _(disk):
    is_file(disk, "/x", b"kept")
    assert disk.stat("/x")["links"] == 1


@harmless("hard_link_outlives_its_target", tar(file("x", b"kept"), hard("y", "x")), tar(file(".wh.x")), ci=True)
def _(disk):
    is_gone(disk, "/x")
    is_file(disk, "/y", b"kept")
    assert disk.stat("/y")["links"] == 1


# kinds

@harmless("devices", tar(member("dev/sda", tarfile.BLKTYPE, devmajor=8), member("mem", tarfile.CHRTYPE, devmajor=1)), ci=True)
def _(disk):
    is_gone(disk, "/dev/sda", "/mem")


@harmless("device_hides_nothing", tar(member("bin/bash", tarfile.CHRTYPE)))
def _(disk):
    is_file(disk, "/bin/bash", elf())


@harmless("setuid_stays_in_the_guest", tar(file("su", mode=0o6755, uid=0, gid=5)))
def _(disk):
    assert (disk.stat("/su")["mode"], disk.stat("/su")["gid"]) == (0o6755, 5)


@harmless("fifo", tar(member("pipe", tarfile.FIFOTYPE)))
def _(disk):
    assert disk.stat("/pipe")["type"] == "FIFO"


@harmless("one_kind_for_another", tar(file("a"), file("b/x"), symlink("c", "a"), folder("e/f")),
          tar(folder("a"), file("b", b"now"), folder("c"), symlink("e", "b")), ci=True)
def _(disk):
    assert [disk.stat(path)["type"] for path in ("/a", "/b", "/c", "/e")] == ["directory", "regular", "directory", "symlink"]


# whiteouts

refused("whiteout_of_nothing", "invalid", "no name", tar(file(".wh.")), ci=True)
refused("whiteout_of_itself", "invalid", "no name", tar(file("d/.wh..")))
refused("whiteout_of_parent", "invalid", "no name", tar(file("d/.wh...")))
refused("whiteout_with_contents", "invalid", "something in it", tar(file(".wh.a/b")))
refused("whiteout_by_a_symlink", "invalid", "symlink to a whiteout", tar(symlink("s", ".wh.x"), file("s/y")))
refused("all_is_hidden", "not_found", "bash", tar(file(".wh..wh..opq")))


@harmless("whiteout_leaves_its_own_layer", tar(file("old"), file("d/old")),
          tar(file("a"), file(".wh.a"), file("d/new"), file(".wh.d"), file(".wh.old")))
def _(disk):
    is_file(disk, "/a")
    is_file(disk, "/d/new")
    is_gone(disk, "/d/old", "/old")


@harmless("opaque_folder", tar(file("d/old"), file("d/e/old"), file("d/e/f/old")),
          tar(file("d/before"), file("d/e/new"), file("d/.wh..wh..opq"), file("d/after")), ci=True)
def _(disk):
    assert disk.names("/d") == {"before", "after", "e"} and disk.names("/d/e") == {"new"}


@harmless("whiteout_through_symlink", tar(symlink("s", "/etc"), file("etc/secret"), file("etc/b")),
          tar(file("s/.wh.secret")))
def _(disk):
    is_gone(disk, "/etc/secret")
    is_file(disk, "/etc/b")


@harmless("removed_is_not_on_the_disk", tar(file("key", b"very secret words " * 600)), tar(file(".wh.key")), ci=True)
def _(disk):
    assert b"very secret words" not in disk.path.read_bytes()


@harmless("notes_of_a_driver", tar(file(".wh..wh.plnk/1.2"), file(".wh..wh.aufs")))
def _(disk):
    assert not any(name.startswith(".wh") for name in disk.names("/"))


@harmless("same_file_again", lambda: tar(*(file("a", os.urandom(MIB)) for _ in range(60)), file("a", b"last")))
def _(disk):
    is_file(disk, "/a", b"last")


# sizes and bombs

refused("says_9_gib", "exhausted", "GiB", raw(b"a", b"%011o" % (8 << 30) + b" ",) + NONE, ci=True)
refused("says_8_eib", "(exhausted|invalid)", "GiB|sound", raw(b"a", b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7) + NONE)
refused("says_less_than_nothing", "(exhausted|invalid)", "GiB|sound", raw(b"a", b"\xff" * 12) + NONE)
refused("folder_says_9_gib", "(exhausted|invalid)", "GiB|sound", raw(b"a/", b"%011o" % (8 << 30) + b" ", b"0") + NONE)
refused("gzip_bomb", "no_space", "too small", lambda: gzip.compress(tar(file("zeros", b"\0" * (200 * MIB))), 1), ci=True)
refused("zstd_bomb", "no_space", "too small", lambda: tool("zstd", "-q", "-c", given=tar(file("zeros", b"\0" * (200 * MIB)))))
refused("zstd_window_2_gib", "(invalid|exhausted)", "sound|memory|Cannot",
        lambda: tool("zstd", "-q", "-c", "--ultra", "--long=31", given=b"\0" * (200 * MIB)))
refused("gzip_in_gzip", "invalid", "more than once", gzip.compress(gzip.compress(tar(file("a")))), ci=True)
refused("disk_too_small", "no_space", "too small", lambda: tar(file("a", os.urandom(40 * MIB))), disk_mib=32)
refused("sparse_8_tib", "exhausted", "GiB", sparse(8 << 40, [(0, 512)]))
refused("sparse_backwards", "invalid", "sense|sound", sparse(1 << 20, [(8192, 512), (0, 512)], b"x" * 1024))
refused("sparse_overlapping", "invalid", "sense|sound", sparse(1 << 20, [(0, 1024), (512, 512)], b"x" * 1536))
refused("sparse_beyond_its_end", "invalid", "sense|sound", sparse(100, [(0, 512)]))
refused("more_inodes_than_the_disk", "no_space", "inodes", tar(*(file(f"f{i}", b"") for i in range(5000))))


@harmless("sparse_512_gib", sparse(512 << 30, [(0, 3), (256 << 30, 3), (512 << 30, 0)], b"onetwo"), ci=True)
def _(disk):
    stat = disk.stat("/sparse")
    assert stat["size"] == 512 << 30 and stat["blocks"] <= 5 * 8


@harmless("sparse_by_tar", lambda: sparse_by_tar())
def _(disk):
    stat = disk.stat("/hole")
    assert stat["size"] == 40 * MIB + 3 and stat["blocks"] <= 32


def sparse_by_tar():
    with tempfile.TemporaryDirectory() as place:
        with open(f"{place}/hole", "wb") as f:
            f.seek(20 * MIB)
            f.write(b"abc")
            f.seek(40 * MIB)
            f.write(b"end")
        return tool("tar", "-C", place, "--sparse", "--format=gnu", "-cf", "-", "hole", given=b"")


@harmless("folder_of_3000", tar(*(hard(f"f/{'n' * 200}{i}", "x") if i else file("x") for i in range(3000))))
def _(disk):
    assert len(disk.names("/f")) == 2999 and disk.stat("/x")["links"] == 3000


# archives that are none

refused("nothing", "invalid", "sound", b"", ci=True)
refused("noise", "invalid", "sound", os.urandom(5000))
refused("zip", "invalid", "sound", b"PK\3\4" + b"\0" * 2000)
refused("xz", "invalid", "sound", lzma.compress(tar(file("a"))))
refused("cut_in_a_file", "invalid", "sound", tar(file("a", b"x" * 100000))[:50000], ci=True)
refused("cut_gzip", "invalid", "sound", gzip.compress(tar(file("a", os.urandom(100000))))[:50000])
refused("gzip_turned_around", "invalid", "sound", (lambda z: z[:3000] + bytes(reversed(z[3000:])))(
    gzip.compress(tar(file("a", os.urandom(100000))))))
refused("wrong_sum_of_a_header", "invalid", "sound", raw(b"a") + raw(b"b", sum_off=1) + NONE)
refused("pax_of_9_mib", "invalid", "sound", lambda: pax((b"comment", b"c" * (9 * MIB))) + raw(b"a") + NONE)
refused("1000_pax_headers", "invalid", "sound|known kind", pax((b"comment", b"c")) * 1000)


@harmless("only_the_end", NONE)
def _(disk):
    is_file(disk, "/bin/bash", elf())


# attributes

refused("owner_is_no_number", "invalid", "owner|sound", pax((b"uid", b"4294967295")) + raw(b"a") + NONE)
refused("attribute_too_large", "exhausted", "attributes", tar(file("a", pax_headers={"SCHILY.xattr.user.a": "v" * 5000})), ci=True)
refused("100_attributes", "exhausted", "attributes", tar(file("a", pax_headers={f"SCHILY.xattr.user.{i}": "v" for i in range(100)})))


@harmless("attributes_of_the_host", tar(file("a", pax_headers={
    "SCHILY.xattr.trusted.overlay.redirect": "/etc", "SCHILY.xattr.security.selinux": "s", "SCHILY.xattr.user.fine": "v",
    "SCHILY.xattr.system.posix_acl_access": "nonsense", "SCHILY.xattr.security.capability": "short",
    "SCHILY.xattr.user.": "no name"})))
def _(disk):
    assert disk.stat("/a")["xattrs"] == {"user.fine": b"v"}


@harmless("times_out_of_range", tar(file("a", mtime=1 << 40), file("b", mtime=-(1 << 40))))
def _(disk):
    assert disk.stat("/a")["mtime"] == 0x37fffffff and disk.stat("/b")["mtime"] == -(1 << 31)


# what guests need

refused("no_bash", "not_found", "no bash", tar(file("a")), base=False, ci=True)
refused("bash_without_loader", "not_found", "/lib/ld-musl-x86_64.so.1",
        tar(file("bin/bash", elf("/lib/ld-musl-x86_64.so.1"), mode=0o755)), base=False)
refused("bash_of_another_processor", "invalid", "another processor", tar(file("bin/bash", elf(machine=183), mode=0o755)), base=False)
refused("bash_is_a_script", "invalid", "not a program", tar(file("bin/bash", b"#!/bin/sh\n", mode=0o755)), base=False)
refused("bash_in_circles", "not_found", "no bash", tar(symlink("bin/bash", "bash")), base=False)
refused("bash_for_nobody", "not_found", "no bash", tar(file("bin/bash", elf())), base=False)
refused("sbin_is_a_file", "invalid", "not a folder", tar(file("sbin")))


@harmless("folders_that_are_none", tar(file("dev"), symlink("proc", "proc"), symlink("tmp", "/nowhere"), file("lost+found"),
                                       symlink("etc/resolv.conf", "/proc/1/environ"), folder("etc/passwd")), ci=True)
def _(disk):
    assert [disk.stat(path)["type"] for path in ("/dev", "/proc", "/tmp", "/lost+found")] == ["directory"] * 4
    is_file(disk, "/etc/resolv.conf", b"nameserver 169.254.77.1\n")
    assert disk.cat("/etc/passwd").startswith(b"root:x:0:0:")


@harmless("agent_is_not_followed", tar(file("etc/passwd", b"root:"), symlink("usr/lib/hotcell/agent", "/etc/passwd"),
                                       symlink("sbin", "usr/sbin"), symlink("usr/sbin/init", "/bin/bash"),
                                       symlink("usr/bin/hotcell-why", "/etc/passwd")))
def _(disk):
    is_file(disk, "/usr/lib/hotcell/agent", b"agent")
    is_file(disk, "/etc/passwd", b"root:")
    is_file(disk, "/bin/bash", elf())
    assert disk.stat("/usr/sbin/init")["target"] == "/usr/lib/hotcell/agent"
    assert disk.stat("/usr/bin/hotcell-why")["target"] == "/usr/lib/hotcell/agent"


@harmless("bash_elsewhere", tar(file("usr/local/bin/bash", elf("/lib/ld-musl-x86_64.so.1"), mode=0o755),
                                symlink("lib/ld-musl-x86_64.so.1", "libc.musl"), file("lib/libc.musl", mode=0o755)), base=False)
def _(disk):
    assert disk.stat("/bin/bash")["target"] == "/usr/local/bin/bash"
