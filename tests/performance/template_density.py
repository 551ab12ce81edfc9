"""template_density.py - many idle sandboxes of one of the templates of guest/template: what each costs the host, and of what that
is made.

    charged_mb, wrote_mb = idle_sandboxes("desktop", ALIVE, idle_seconds=120)
"""

import concurrent.futures
import time

from engine import available_kib
from template_server import TemplateServer
from test_density import charged_mb, print_breakdown
from test_interpreter_density import mean, processes

AT_ONCE = 2


def guest_mb(pid):
    """What a sandbox has for itself of its guest's memory."""
    total, inside = 0, False
    with open(f"/proc/{pid}/smaps") as smaps:
        for line in smaps:
            if line[0] in "0123456789abcdef":
                inside = line.rstrip().endswith("/memory")
            elif inside and line.startswith("Private_Dirty:"):
                total += int(line.split()[1]) * 1024 / 1e6
    return total


def grown(vms, seconds):
    """What the guests wrote to in that time, in MB of each."""
    before = [guest_mb(pid) for pid in vms]
    time.sleep(seconds)
    return [after - was for after, was in zip([guest_mb(pid) for pid in vms], before)]


def idle_sandboxes(template, alive, idle_seconds, begin=None):
    """MB that the control group of each of so many sandboxes is charged with, and what each wrote to while idle. What the host has less
    is printed, too: on a machine with other work it is theirs as well. `begin`: called with a server and a box, as soon as there
    is one: for what its SDK does at first."""
    with TemplateServer(template, vms_max=alive + 16, node={"pool": 0, "pool_each_max": 0}) as server:
        def one(_):
            box = server.create(templateID=template, secure=True)
            if begin:
                begin(server, box)
            return box

        server.delete(one(0))  # what all share is in the page cache from now on
        before, there = available_kib(), set(processes(server))
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            boxes = list(pool.map(one, range(alive)))
        vms = {pid: parts for pid, parts in processes(server).items() if pid not in there}
        assert len(vms) == alive
        rest = grown(vms, 20)  # what the last of them does first
        wrote = grown(vms, idle_seconds)
        used_mb = (before - available_kib()) * 1024 / 1e6 / alive
        rows = list(processes(server)[pid] for pid in vms)
        charged = sum(charged_mb(pid) for pid in vms) / alive
        own = [guest_mb(pid) for pid in vms]
        print(f"\n{alive} alive of {template}, {charged:.1f} MB charged to each (the host has {used_mb:.1f} less for each); of a QEMU's {mean(rows, 'Rss'):.1f} MB "
              f"{mean(rows, 'Private_Dirty'):.1f} are its own, {mean(rows, 'Rss') - mean(rows, 'Private_Dirty'):.1f} are files that all share, the "
              f"template's memory among them; guest memory {min(own):.1f} to {max(own):.1f}, of which in {idle_seconds} idle seconds "
              f"{min(wrote):.2f} to {max(wrote):.2f} (in 20 s before that {max(rest):.2f})")
        print_breakdown(next(iter(vms)))
        print("  the guest says: " + server.run(boxes[-1], "free -m | sed -n 2p").strip())
        return charged, wrote
