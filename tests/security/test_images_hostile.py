"""test_images_hostile.py - a registry that means it ill: each of its images is refused with a reason, and nothing is left of it."""

import json
import pathlib

import pytest

from evil_registry import EvilRegistry, Handler
from lone_images import LoneImages, Refused, new_folder
from made_images import OCI, Image, digest, index_of, tar_of
from registry import PASSWORD, USER, Registry

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


# --- what others have fetched ------------------------------------------------------------------------------------------

SECRET = Image([{"secret": b"s" * 5000}], env=["TOKEN=secret"], compress=False)
SECRET_LAYER = Image.entry(f"{OCI}.layer.v1.tar", SECRET.blobs[0])
OWN = Image([b"!" * len(SECRET.blobs[0])], compress=False)  # of the same length


def known_parts():
    """Name: what its registry says to who knows digests of another team's private image, and which of its texts are known."""
    yield "its digest", index_of(SECRET), []
    yield "its manifest", SECRET.manifest, []
    yield "its manifest and configuration", SECRET.manifest, [SECRET.config]
    yield "a layer's digest", Image.written({**json.loads(OWN.manifest), "layers": [SECRET_LAYER]}), [OWN.config]


PARTS = list(known_parts())


@pytest.fixture(name="fetched", scope="module")
def make_fetched():
    """Another team's image is in the store."""
    with new_folder() as made, EvilRegistry() as registry:
        base = pathlib.Path(made)
        with Registry(base / "closed", password=PASSWORD) as closed, \
                LoneImages(base, insecure=f"{registry.host} {closed.host}") as images:
            images.make(closed.push("x", "1", SECRET), disk=base / "disk", credentials=(USER, PASSWORD))
            yield base, registry, images


@pytest.mark.parametrize("name, text, known", PARTS, ids=[part[0] for part in PARTS])
def test_a_digest_is_no_key_to_what_others_fetched(fetched, name, text, known):
    base, registry, images = fetched
    registry.manifests, registry.blobs = {"x": text}, {digest(b): b for b in known}
    with pytest.raises(Refused) as why:
        images.make(f"{registry.host}/x:1", disk=base / "taken", team="another")
    assert why.value.code in ("not_found", "unavailable", "invalid"), why.value
    assert (base / "taken").stat().st_size == 0 and not list((images.data / "store/jobs").iterdir())


def test_an_archive_is_not_filled_up_with_what_others_fetched(fetched):
    base, _registry, images = fetched
    listed = Image.written([{"Config": "c", "RepoTags": [], "Layers": ["l"]}])
    (base / "archive").write_bytes(tar_of({"manifest.json": listed, "c": SECRET.config, "l": OWN.tars[0]}))
    with pytest.raises(Refused) as why:
        images.make(archive=base / "archive", disk=base / "taken", team="another")
    assert "digest" in why.value.text and (base / "taken").stat().st_size == 0


def test_nobody_has_a_layer_of_others_dropped(fetched):
    """By a manifest that says another size of it."""
    base, registry, images = fetched
    lie = Image.written({**json.loads(OWN.manifest), "layers": [{**SECRET_LAYER, "size": 17}]})
    registry.manifests, registry.blobs = {"x": lie}, {digest(OWN.config): OWN.config}
    with pytest.raises(Refused):
        images.make(f"{registry.host}/x:1", disk=base / "taken", team="another")
    assert digest(SECRET.blobs[0])[7:] in images.blobs()
