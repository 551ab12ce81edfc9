"""test_unpack_model.py - random layers against a model that does slowly and simply what the OCI specification says.

HOTCELL_SEED says which ones, HOTCELL_IMAGES=all takes many. Whatever the layers are, e2fsck finds nothing, and the disk
has the names, kinds, hard links and contents of the model, and no others.
"""

import os
import random
import re

import hostile_images as hostile
from hostile_images import file, folder, hard, symlink, tar
from unpacked import unpack

SEED = int(os.environ.get("HOTCELL_SEED", "16"))
IMAGES = 150 if os.environ.get("HOTCELL_IMAGES") == "all" else 8
LAYERS, ENTRIES = 4, 60
NAMES = ["a", "b", "c", "d", "n" * 200]
OURS = {"bin", "dev", "etc", "lost+found", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var"}


class Thing:
    """What a name means. A hard link is another name for the same thing; `layer` belongs to the name."""

    def __init__(self, kind, data=b""):
        self.kind, self.data = kind, data


class Model:
    def __init__(self):
        self.names, self.layer = {}, 0  # path: [thing, layer that had it last]

    def below(self, path):
        return [name for name in self.names if name.startswith(path + "/")]

    def remove(self, path):
        for name in [path, *self.below(path)]:
            self.names.pop(name, None)

    def make_way(self, path):
        """False: something on the way is not a folder."""
        parts = path.split("/")[:-1]
        for i in range(1, len(parts) + 1):
            way = "/".join(parts[:i])
            if way not in self.names:
                self.names[way] = [Thing("directory"), self.layer]
            elif self.names[way][0].kind != "directory":
                return False
        return True

    def put(self, path, thing):
        if thing.kind == "directory" and path in self.names and self.names[path][0].kind == "directory":
            self.names[path][1] = self.layer
            return
        self.remove(path)
        self.names[path] = [thing, self.layer]

    def hide_below(self, path):
        """All that lower layers put below a folder, but for the way to what this one did."""
        for name in sorted(self.below(path) if path else self.names, key=lambda name: -name.count("/")):
            if self.names[name][1] != self.layer and not self.below(name):
                del self.names[name]

    def hide(self, path):
        if path in self.names:
            self.hide_below(path)
            if self.names[path][1] != self.layer and not self.below(path):
                del self.names[path]

    def ways_are_free(self, path):
        parts = path.split("/")
        return all(self.names.get("/".join(parts[:i]), [Thing("directory")])[0].kind == "directory" for i in range(1, len(parts)))


def random_path(chance):
    return "/".join(chance.choice(NAMES) for _ in range(chance.randint(1, 4)))


def random_entry(chance, model):
    """An entry that makes sense, after it was done to the model; None: try again."""
    path, kind = random_path(chance), chance.choice("fffddlphhwwo")
    if not model.ways_are_free(path):
        return None
    parent, _, last = path.rpartition("/")
    if kind == "w":
        model.hide(path)
        return file(f"{parent}/.wh.{last}" if parent else f".wh.{last}")
    if kind == "o":
        if model.names.get(path, [Thing("directory")])[0].kind != "directory":
            return None
        model.hide_below(path)
        return file(f"{path}/.wh..wh..opq")
    if kind == "h":
        return random_link(chance, model, path)
    model.make_way(path)
    data = os.urandom(chance.choice([0, 1, 5000, 70000])) if kind == "f" else b""
    model.put(path, Thing({"f": "regular", "d": "directory", "l": "symlink", "p": "FIFO"}[kind], data))
    return {"f": lambda: file(path, data), "d": lambda: folder(path), "l": lambda: symlink(path, "/nowhere/" + "t" * chance.choice([5, 300])),
            "p": lambda: hostile.member(path, hostile.tarfile.FIFOTYPE)}[kind]()


def random_link(chance, model, path):
    things = [name for name, (thing, _) in model.names.items() if thing.kind != "directory" and not name.startswith(path + "/")]
    if not things:
        return None
    target = chance.choice(things)
    if path.startswith(target + "/"):
        return None
    model.make_way(path)
    thing = model.names[target][0]
    if path in model.names and model.names[path][0] is thing:
        model.names[path][1] = model.layer
    else:
        model.put(path, thing)
    return hard(path, target)


def random_image(chance):
    model, layers = Model(), []
    for model.layer in range(1, LAYERS + 1):
        entries = [entry for entry in (random_entry(chance, model) for _ in range(ENTRIES)) if entry]
        layers.append(tar(*entries))
    return model, layers


def names_on(disk):
    """Every path of the disk that is not the guest's own."""
    found, left = [], [""]
    while left:
        lists = disk.ask(*(f'ls -p "/{path}"' for path in left))
        here = [f"{path}/{name}".lstrip("/") for path, text in zip(left, lists)
                for name in re.findall(r"^/\d+/\d+/\d+/\d+/([^/]+)/", text, re.M) if name not in (".", "..") and (path or name not in OURS)]
        found += here
        stats = disk.stats("/" + path for path in here) if here else []
        left = [path for path, stat in zip(here, stats) if stat["type"] == "directory"]
    return found


def compare(model, disk):
    assert sorted(names_on(disk)) == sorted(model.names)
    stats = dict(zip(model.names, disk.stats("/" + name for name in model.names)))
    inodes = {}
    for name, (thing, _) in model.names.items():
        assert stats[name]["type"] == thing.kind, name
        assert inodes.setdefault(stats[name]["ino"], thing) is thing, name
        if thing.kind == "regular":
            assert stats[name]["size"] == len(thing.data), name
            if thing.data:
                assert disk.cat("/" + name) == thing.data, name
    assert len(inodes) == len({id(thing) for thing, _ in model.names.values()})


def test_random_images_are_as_the_model_says(tmp_path):
    whole = 0
    for i in range(IMAGES):
        chance = random.Random(f"{SEED}/{i}")
        model, layers = random_image(chance)
        place = tmp_path / str(i)
        place.mkdir()
        outcome = unpack(place, [hostile.BASE, *layers], 64)
        assert outcome.status == 0, (SEED, i, outcome.lines[-1], outcome.said)
        assert outcome.disk.complaints() == "", (SEED, i)
        compare(model, outcome.disk)
        whole += len(model.names)
        outcome.disk.path.unlink()
    assert whole > 10 * IMAGES, "the images are nearly empty"
