"""layout.py - a protocol.h as the compiler sees it: its values, enums and structs, in Python."""

import ctypes
import enum
import itertools
import json
import os
import pathlib
import subprocess

NUMBERS = {"uint64_t": ctypes.c_uint64, "uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32,
           "char": ctypes.c_char}


def build_dir():
    path = os.environ.get("HOTCELL_BUILD")
    if not path:
        raise RuntimeError("HOTCELL_BUILD must name the build folder")
    return pathlib.Path(path).resolve()


class Layout:
    """What a program of the build says (tests/warden/layout.c, tests/node/layout.c)."""

    def __init__(self, program):
        out = subprocess.run([build_dir() / program], check=True, capture_output=True)
        self.said = json.loads(out.stdout)
        self.errors = self.said["errors"]  # enum err_code, by number
        self.rows = self.said["rows"]
        self.structs = {}
        for name in (name for name, row in self.rows.items() if row[2] == "struct"):
            self.structs[name] = self.structure(name)

    def value(self, name):
        """Of an enumerator; the size of a struct."""
        return self.rows[name][1]

    def enum(self, name, prefix):
        """`enum name`, but for the number of its members, which comes last."""
        members = {key.removeprefix(prefix): row[1] for key, row in self.rows.items() if row[2] == name}
        return enum.IntEnum(name, {key: n for key, n in members.items() if key != "VERBS"})

    def fields(self, struct):
        """{member: (offset, size, type)}"""
        return {name.partition(".")[2]: tuple(row) for name, row in self.rows.items() if name.startswith(struct + ".")}

    def member(self, size, kind):
        one = self.structs[kind.removeprefix("struct ")] if kind.startswith("struct ") else NUMBERS[kind]
        return one if size == ctypes.sizeof(one) else one * (size // ctypes.sizeof(one))

    def structure(self, name):
        """A ctypes class. Members at the same place are a union; every offset and the size are the compiler's."""
        groups, wanted = [], self.fields(name)
        for at, group in itertools.groupby(wanted.items(), lambda field: field[1][0]):
            members = [(member, self.member(size, kind)) for member, (_, size, kind) in group]
            union = type(f"union_{at}", (ctypes.Union,), {"_fields_": members})
            groups += members if len(members) == 1 else [(f"union_{at}", union)]
        made = type(name, (ctypes.Structure,), {"_anonymous_": [field for field, _ in groups if field not in wanted],
                                                "_fields_": groups})
        offsets = {member: getattr(made, member).offset for member in wanted}
        assert offsets == {member: at for member, (at, _, _) in wanted.items()}, f"struct {name}: {offsets}"
        assert ctypes.sizeof(made) == self.value(name), f"struct {name}: {ctypes.sizeof(made)} bytes"
        return made
