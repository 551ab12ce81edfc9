"""copies.py - when a copy of a sandbox ran, and what it has of its own."""

import datetime
import pathlib
import re


def ran_at(server, box):
    """When node said that it runs, in seconds since 1970."""
    said = re.search(rf"^(\S+)Z info node: {box['sandboxID']} runs", server.daemons["node"].log(), re.M)
    return datetime.datetime.fromisoformat(said[1] + "+00:00").timestamp()


def own_mib(server, box):
    """Memory of its QEMU that it shares with nobody."""
    rollup = pathlib.Path(f"/proc/{server.vm_pid(box)}/smaps_rollup").read_text()
    return sum(int(kib) for kib in re.findall(r"^Private_\w+: +(\d+) kB", rollup, re.M)) / 1024
