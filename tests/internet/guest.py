"""guest.py - probes in a sandbox of a server, and whether they went as they must."""

import json
import pathlib

import matrix
import neighbour
from warden import wait_for

HERE = pathlib.Path(__file__).resolve().parent
PROBE_SECONDS = 900
TRIES = 3  # of what must pass: a guest, emulated among others, may take longer than anybody waits
KNOWN = {title: matrix.MUST_PASS[title] for title in ("HTTP by name", "HTTP below a wildcard")}


def prepare(server, box):
    for name in ("probes.py", "frames.py", "names.py", "neighbour.py"):
        server.write(box, f"/home/user/{name}", (HERE / name).read_bytes())


def probe(server, box, probes, rounds=1):
    """{title: what became of it} of {title: (kind, arguments)}."""
    server.write(box, "/home/user/probes.json", json.dumps(probes).encode())
    # as a module it is compiled once, not each time
    out = server.run(box, f"cd /home/user && python3 -SE -c 'import probes; probes.main()' probes.json {rounds}",
                     PROBE_SECONDS, "root")
    return json.loads(out)


def one(server, box, kind, args):
    return probe(server, box, {"it": (kind, args)})["it"]


def show(title, results, wanted=None):
    print(f"\n{title}")
    for name, got in results.items():
        good = got == wanted[name] if wanted else matrix.is_refusal(got)
        print(f"  {'ok ' if good else 'BAD'} {name}: {got.splitlines()[0]}")


def check_passes(server, box, probes):
    wanted = {title: want for title, (want, *_) in probes.items()}
    results, left = {}, {title: how for title, (_, *how) in probes.items()}
    for _ in range(TRIES):
        results.update(probe(server, box, left))
        left = {title: how for title, how in left.items() if results[title] != wanted[title]}
        if not left:
            break
    show("must pass", results, wanted)
    assert not left, {title: (results[title], wanted[title]) for title in left}


def check_fails(server, box, probes, rounds=1):
    results = probe(server, box, probes, rounds)
    show("must fail", results)
    passed = {title: got for title, got in results.items() if not matrix.is_refusal(got)}
    assert not passed, passed


class Neighbour:
    """A sandbox of its own that listens, see neighbour.py."""

    def __init__(self, server, box):
        self.server, self.box, self.seen = server, box, 0
        prepare(server, box)
        server.run(box, "cd /home/user; setsid nohup python3 neighbour.py heard >neighbour.log 2>&1 </dev/null & exit 0",
                   user="root")
        wait_for(lambda: "yes" in server.run(box, "cd /home/user && test -e heard && echo yes || cat neighbour.log"),
                 "the neighbour listens", PROBE_SECONDS / 10, 0.2)

    def heard(self):
        """Who came since it was last asked."""
        lines = self.server.read(self.box, "/home/user/heard").splitlines()
        self.seen, new = len(lines), lines[self.seen:]
        return [json.loads(line) for line in new]

    def check_hears(self):
        """Each of its ears works: its owner comes through the gateway, and a datagram from nearby."""
        answer = self.server.api("GET", "/", key=None, headers={"E2b-Sandbox-Id": self.box["sandboxID"],
                                                               "E2b-Sandbox-Port": str(neighbour.PORT)})
        assert neighbour.ANSWER in answer.raw, answer.raw
        assert one(self.server, self.box, "udp", {"to": neighbour.NEAR, "port": neighbour.PORT}) == "77.77.77.77:7070"
        assert {h["what"] for h in self.heard()} == {"tcp", "udp", "frame"}


def check_heard(internet, services=()):
    """Who came that no rule explains?"""
    heard = internet.heard()
    assert not matrix.strangers(heard, services), matrix.strangers(heard, services)
    return heard
