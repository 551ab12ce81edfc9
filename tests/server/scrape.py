"""scrape.py - what GET /metrics says, read back: {name: {labels: value}}, and what promtool thinks of it.

    before = Figures(gateway.admin("GET", "/metrics").raw)
    ...
    after = Figures(...)
    after.moved(before, "hotcell_http_requests_total", code="404")
"""

import re
import shutil
import subprocess

import pytest

from warden import build_dir

LINE = re.compile(r'^([a-z_]+)(?:\{(.*)\})? ([0-9.]+)$')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
PROMTOOL_SECONDS = 60


class Figures:
    def __init__(self, raw):
        self.text = raw.decode()
        self.families, self.values = {}, {}
        for line in self.text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name not in self.families, f"{name} is there twice"
                self.families[name] = kind
            elif not line.startswith("#"):
                name, labels, value = LINE.match(line).groups()
                key = tuple(sorted(LABEL.findall(labels or "")))
                assert (name, key) not in self.values, f"{line} is there twice"
                self.values[name, key] = float(value)

    def sum(self, name, **labels):
        """Of all series of that name with these labels; of a histogram, how many were counted."""
        name = f"{name}_count" if self.families.get(name) == "histogram" else name
        return sum(v for (n, key), v in self.values.items() if n == name and set(labels.items()) <= set(key))

    def has(self, name, **labels):
        return any(n.startswith(name) and set(labels.items()) <= set(key) for n, key in self.values)

    def moved(self, before, name, **labels):
        assert self.has(name, **labels), f"{name} {labels} is not told"
        return self.sum(name, **labels) - before.sum(name, **labels)


def table():
    """Every metric that there is, as the programs say: name -> (kind, names of its labels)."""
    rows = {}
    for name in ("gateway", "node"):
        out = subprocess.run([build_dir() / f"src/{name}/hotcell-{name}", "--metrics"], check=True,
                             capture_output=True, text=True).stdout
        for line in out.splitlines():
            metric, kind, labels, _ = line.split("\t")
            assert metric not in rows, f"{metric} is in the tables twice"
            rows[metric] = kind, tuple(filter(None, labels.split(",")))
    return rows


def check_metrics(text):
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed (tools/deps)")
    said = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                          timeout=PROMTOOL_SECONDS)
    assert said.returncode == 0 and not said.stdout and not said.stderr, (said.returncode, said.stdout, said.stderr)
