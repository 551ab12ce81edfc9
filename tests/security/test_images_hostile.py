"""test_images_hostile.py - a registry that means it ill: each of its images is refused with a reason, and nothing is left of it."""

import json
import pathlib

import pytest

from evil_registry import EvilRegistry, Handler
from lone_images import LoneImages, Refused, new_folder
from made_images import OCI, Image, digest, index_of

GOOD = Image([{"a": b"1" * 5000}])
FOREIGN = Image([{"a": b"1"}], architecture="s390x")
BLOB = {"mediaType": f"{OCI}.layer.v1.tar+gzip", "digest": digest(GOOD.blobs[0]), "size": len(GOOD.blobs[0])}
MOST_ON_DISK = 32 << 20


def manifest(**changes):
    return Image.written({**json.loads(GOOD.manifest), **changes})


def layer(**changes):
    return manifest(layers=[{**BLOB, **changes}])


def cases():
    """Name: the manifest, and what else the registry has."""
    config = json.loads(GOOD.manifest)["config"]
    inner = index_of(GOOD)
    outer = Image.written({"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [
        {**Image.entry(f"{OCI}.index.v1+json", inner), "platform": GOOD.platform}]})
    lies = {digest(GOOD.blobs[0]): b"!" * len(GOOD.blobs[0])}
    windows = Image.written({"os": "windows", "architecture": "amd64", "rootfs": {"diff_ids": []}})
    yield "128 layers", manifest(layers=[BLOB] * 128), {}
    yield "no layers", manifest(layers=[]), {}
    yield "layers that are none", manifest(layers=[1, None]), {}
    yield "a huge manifest", GOOD.manifest + b" " * (5 << 20), {}
    yield "deep json", b"[" * 100000, {}
    yield "no json", b"\0\xff{", {}
    yield "nothing", b"", {}
    yield "schema 1", b'{"schemaVersion":1,"fsLayers":[],"history":[]}', {}
    yield "another digest", layer(digest="sha512:" + "0" * 128), {}
    yield "a path for a digest", layer(digest="sha256:../../../../etc/passwd"), {}
    yield "a negative size", layer(size=-1), {}
    yield "a size beyond all disks", layer(size=1 << 62), {}
    yield "a size beyond the limit", layer(size=9 << 30), {}
    yield "a layer without end", GOOD.manifest, {digest(GOOD.blobs[0]): Handler.endless}
    yield "a layer of another content", GOOD.manifest, lies
    yield "a layer that is cut", GOOD.manifest, {digest(GOOD.blobs[0]): GOOD.blobs[0][:10]}
    yield "a layer that is not there", layer(digest="sha256:" + "1" * 64), {}
    yield "a layer of somebody else", GOOD.manifest, {
        digest(GOOD.blobs[0]): lambda handler: handler.elsewhere("http://127.0.0.1:1/secret")}
    yield "an index in an index", outer, {digest(inner): inner}
    yield "many platforms", Image.written({"manifests": json.loads(index_of(FOREIGN))["manifests"] * 10000}), {}
    yield "another platform", Image.written({**json.loads(GOOD.manifest), "config": Image.entry(config["mediaType"], windows)}), {
        digest(windows): windows}
    yield "another configuration", GOOD.manifest, {digest(GOOD.config): GOOD.config.replace(b"amd64", b"amd65")}
    yield "a configuration without end", GOOD.manifest, {digest(GOOD.config): Handler.endless}


CASES = list(cases())


@pytest.fixture(name="place", scope="module")
def make_place():
    with new_folder() as made, EvilRegistry() as registry, \
            LoneImages(pathlib.Path(made), insecure=registry.host) as images:
        yield pathlib.Path(made), registry, images


def bytes_below(folder):
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name, text, blobs", CASES, ids=[case[0] for case in CASES])
def test_it_is_refused_with_a_reason(place, name, text, blobs):
    base, registry, images = place
    registry.blobs = {digest(b): b for b in (GOOD.config, *GOOD.blobs)} | blobs
    registry.manifests = {"x": text}
    for path in (images.data / "store/blobs").iterdir():
        path.unlink()  # what another case has left is not asked for again
    with pytest.raises(Refused) as why:
        images.make(f"{registry.host}/x:1", disk=base / "disk")
    assert why.value.text and why.value.code != "internal", why.value
    assert images.leftovers() == []
    store = images.data / "store/blobs"
    assert all(digest(path.read_bytes())[7:] == path.name for path in store.iterdir())
    assert bytes_below(store) < MOST_ON_DISK and (base / "disk").stat().st_size == 0
    images.daemon.check_alive()


def test_and_a_good_one_is_taken(place):
    """After all of that, by the same daemon."""
    base, registry, images = place
    registry.blobs = {digest(b): b for b in (GOOD.config, *GOOD.blobs)}
    registry.manifests = {"x": GOOD.manifest}
    assert images.make(f"{registry.host}/x:1", disk=base / "disk").digest == GOOD.digest
