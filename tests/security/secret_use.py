"""secret_use.py - a secret of the test's team, who was sent it, and the search for traces of it.

    secret = Secret(server)                # a value nobody else knows
    heard(internet)                        # requests, with their headers, as they came
    check_memory(server, box, secret)      # nobody has it who must not
    check_files(server, box, secret)
"""

import json
import pathlib
import secrets
import time

from search import Needles

NAME = "api-key"


class Secret:
    """One of the team's, with a value nobody else knows."""

    def __init__(self, server, name=NAME):
        self.server, self.values, self.since = server, [], time.time() - 1
        made = server.must("POST", "/secrets", {"name": name, "value": self.draw()})
        assert self.values[0] not in json.dumps(made)
        self.id = made["secretID"]

    def draw(self):
        self.values.append(secrets.token_urlsafe(48))
        return self.values[-1]

    @property
    def value(self):
        return self.values[-1]

    def renew(self):
        self.server.must("POST", f"/secrets/{self.id}", {"value": self.draw()})

    def delete(self):
        assert self.server.api("DELETE", f"/secrets/{self.id}").status in (200, 204)


def heard(internet, protos=("http", "https")):
    """What was asked of the internet's servers since this was last called."""
    return [one for one in internet.heard() if one["proto"] in protos]


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def workers(server):
    [forkserver] = children(server.pids["injector"])
    return children(forkserver)


def check_memory(server, box, secret, *others):
    """No trace of any value it had, nor of the others; in the worker there is, and in the guest of what was put there."""
    mark = secrets.token_urlsafe(48)
    server.write(box, "/home/user/mark", mark.encode())
    needles = Needles(*reversed(secret.values), *others)
    [worker] = workers(server)
    vm = server.vm_pid(box)
    assert needles.in_memory(worker), "the search finds nothing at all"
    assert Needles(mark).in_memory(vm), "the search finds nothing in a guest"
    # the injector hands it to the worker and forgets it, too
    pids = {"the guest and its QEMU": vm, **server.pids, "forkserver": children(server.pids["injector"])[0]}
    found = {name: needles.in_memory(pid) for name, pid in pids.items()}
    print({name: len(hits) for name, hits in found.items()})
    assert not any(found.values()), found


def check_files(server, box, secret):
    """No trace in its memory and its disk, saved twice; in logs, databases, templates."""
    mark = secrets.token_urlsafe(48)
    server.write(box, "/home/user/mark", mark.encode())
    snapshot = server.must("POST", f"/sandboxes/{box['sandboxID']}/snapshots", {}, seconds=600)
    server.must("POST", f"/sandboxes/{box['sandboxID']}/pause")
    _, found = Needles(mark).in_folder(server.base, secret.since)
    places = {hit[1].split("/")[-2] for hit in found}
    assert len(places) >= 2, f"the search finds nothing in what was saved: {places}"
    files, found = Needles(*reversed(secret.values)).in_folder(server.base, secret.since)
    print(files, "files looked at")
    assert files > 10 and not found, found
    server.must("POST", f"/sandboxes/{box['sandboxID']}/connect", {"timeout": 3600})
    assert server.api("DELETE", f"/templates/{snapshot['snapshotID']}").status in (200, 204)
