"""probe.py - runs jail_probe in QEMU's place and reads what it said."""

import json

from protocol import State
from warden import sizes, wait_for

SMALL = sizes(memory_mib=64, overhead_mib=16)


class Said:
    """The probe's lines, by kind."""

    def __init__(self, text):
        whole = text[:text.rfind("\n") + 1]  # the last line may still be written
        self.lines = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
        self.facts = {line["fact"]: line["value"] for line in self.lines if "fact" in line}
        self.files = {line["file"]: line for line in self.lines if "file" in line}
        self.fds = {line["fd"]: line for line in self.lines if "fd" in line}
        self.calls = {line["call"]: line["errno"] for line in self.lines if "call" in line}
        self.tried = [(line["path"], line["tried"], line["errno"]) for line in self.lines
                      if "tried" in line]
        self.ended = any("end" in line for line in self.lines)


def run(warden, vm, text, build=False, size=SMALL):
    """Run one scenario until its end, or the VM's; returns what it said. The VM stays."""
    template = f"t-{vm}"
    warden.open_template(template, kernel=text.encode())
    if build:
        warden.build(vm, template, warden.slot_make(), size)
    else:
        warden.template_publish(template)
        warden.restore(vm, template, warden.slot_make(), size)
    wait_for(lambda: Said(warden.vm_log(vm)).ended or
             warden.list()[vm].state == State.EXITED, f"the end of `{text}`")
    return Said(warden.vm_log(vm))
