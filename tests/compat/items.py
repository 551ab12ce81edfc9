"""items.py - items.toml and versions, as Python has them."""

import dataclasses
import pathlib
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
AGES = ("newest", "oldest")
CLIENTS = {"js": "npm", "sync": "pypi", "async": "pypi"}
TITLES = {"js": "JavaScript", "sync": "Python", "async": "Python, async"}


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    title: str
    item: int
    first: bool  # of its item
    only: str | None  # newest or oldest, when only these offer it
    clients: tuple

    def is_offered(self, client, age):
        return client in self.clients and self.only in (None, age)


@dataclasses.dataclass(frozen=True)
class Item:
    number: int
    title: str
    planned: str | None
    note: str | None
    checks: tuple


def load():
    with open(HERE / "items.toml", "rb") as file:
        return [item_of(raw) for raw in tomllib.load(file)["item"]]


def item_of(raw):
    checks = [check_of(raw["number"], n == 0, name, value)
              for n, (name, value) in enumerate(raw.get("checks", {}).items())]
    assert bool(checks) != ("planned" in raw), f"item {raw['number']}: checks, or planned"
    return Item(raw["number"], raw["title"], raw.get("planned"), raw.get("note"), tuple(checks))


def check_of(item, first, name, value):
    value = {"title": value} if isinstance(value, str) else value
    assert set(value) <= {"title", "newest", "oldest", "clients"}, name
    only = next((age for age in AGES if value.get(age)), None)
    return Check(name, value["title"], item, first, only, tuple(value.get("clients", CLIENTS)))


def versions():
    """(AGE, CLIENT) -> version."""
    lines = [line.split() for line in (HERE / "versions").read_text().splitlines() if line[:1] != "#"]
    known = {(age, registry): version for age, registry, version in lines}
    return {(age, client): known[age, registry] for age in AGES for client, registry in CLIENTS.items()}


def cases(everything):
    """(AGE, CLIENT, CHECK): everything, or what is usual."""
    for age in AGES:
        for client in CLIENTS:
            for number, item in enumerate(load()):
                offered = [c for c in item.checks if c.is_offered(client, age)]
                for check in offered if everything else usual(age, client, number, offered):
                    yield age, client, check


def usual(age, client, number, offered):
    """With the newest every check by JavaScript and by one half of Python; the halves, which share their text, take turns.
    With the oldest the first check of the item, and the clients take turns."""
    if age == "oldest":
        return offered[:1] if client == list(CLIENTS)[number % len(CLIENTS)] else []
    if client == "js":
        return offered
    return [check for n, check in enumerate(offered, number) if client == ("sync", "async")[n % 2]]
