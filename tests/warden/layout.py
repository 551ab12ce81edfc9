"""layout.py - a protocol.h as the compiler sees it."""

import functools
import json
import os
import pathlib
import subprocess


def build_dir():
    path = os.environ.get("HOTCELL_BUILD")
    if not path:
        raise RuntimeError("HOTCELL_BUILD must name the build folder")
    return pathlib.Path(path).resolve()


@functools.cache
def layout(program):
    """What a program of the build (tests/warden/layout.c, tests/node/layout.c) says."""
    out = subprocess.run([build_dir() / program], check=True, capture_output=True)
    return json.loads(out.stdout)
