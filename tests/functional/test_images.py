"""test_images.py - images of a real registry and of archives become disks; each layer is fetched once."""

import base64
import os
import pathlib
import socket
import subprocess

import pytest

import certs
from engine import TOP, artefact
from lone_images import CANCEL, UID, LoneImages, Refused, new_folder, processes_of
from made_images import OCI, Image, digest, index_of, tar_of
from registry import PASSWORD, USER, Registry
from warden import build_dir, wait_for

BASE = {"etc/os-release": b"ID=test\n" * 1000}
PATIENCE = 30
REAL_UNPACK = build_dir() / "src/unpack/hotcell-unpack"


@pytest.fixture(name="base")
def make_base():
    with new_folder() as made:
        yield pathlib.Path(made)


@pytest.fixture(name="registry")
def run_registry(base):
    with Registry(base / "registry") as registry:
        yield registry


@pytest.fixture(name="images")
def run_images(base, registry):
    with LoneImages(base, insecure=registry.host) as images:
        yield images


def disk_lines(path):
    return path.read_text().splitlines()


def refused(images, *args, **kwargs):
    with pytest.raises(Refused) as found:
        images.make(*args, **kwargs)
    assert images.leftovers() == []
    return found.value


# --- what is made ------------------------------------------------------------------------------------------------------


def test_an_image_becomes_a_disk(base, registry, images):
    image = Image([BASE, {"usr/bin/x": b"x" * 5000}], env=["A=1", "B=2"], user="app", workdir="/srv", cmd=["run"])
    made = images.make(registry.push("team/app", "1", image), disk=base / "disk")
    assert made.digest == image.digest
    assert len(made.config.pop("repository")) == 64
    assert made.config == {"env": ["A=1", "B=2"], "user": "app", "workingDir": "/srv", "cmd": ["run"], "entrypoint": []}
    assert disk_lines(base / "disk") == ["agent an agent", "mib 64", *("layer " + digest(b) for b in image.blobs)]
    assert any("Resolving" in line for line in made.said) and any("2 to fetch" in line for line in made.said)
    assert any("/etc/passwd" in line for line in made.said), "what was added is told"
    assert images.leftovers() == []


def programs_with_libraries(*paths):
    """{name: bytes} of programs of this host and what they are linked with."""
    files = {}
    for path in paths:
        listed = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
        for name in (path, *(word for word in listed.split() if word.startswith("/"))):
            files[name.lstrip("/")] = pathlib.Path(name).read_bytes()
    return files


@pytest.mark.skipif(not REAL_UNPACK.exists(), reason="this build has no hotcell-unpack")
def test_a_disk_by_the_real_unpack(base, registry):
    image = Image([programs_with_libraries("/bin/bash"), {"etc/motd": b"hello"}])
    name = registry.push("x", "1", image)
    with LoneImages(base, insecure=registry.host, unpack=REAL_UNPACK) as images:
        (images.programs / "agent").write_bytes((build_dir() / "src/agent/hotcell-agent-test").read_bytes())
        made = images.make(name, disk=base / "disk", disk_mib=256)
        assert made.digest == image.digest
        subprocess.run(["e2fsck", "-fn", base / "disk"], check=True, capture_output=True)
        motd = subprocess.run(["debugfs", "-R", "cat /etc/motd", base / "disk"], check=True, capture_output=True).stdout
        assert motd == b"hello"
        why = refused(images, registry.push("y", "1", Image([{"etc/motd": b"x"}])), disk=base / "disk2", disk_mib=256)
        assert why.code == "invalid" and "bash" in why.text


def test_layers_as_they_are(base, registry, images):
    """No compression, the same layer twice, and a manifest of Docker's."""
    image = Image([BASE, {"a": b"1"}, BASE], compress=False)
    made = images.make(registry.push("plain", "1", image), disk=base / "disk")
    assert [line.split()[1] for line in disk_lines(base / "disk")[2:]] == [digest(b) for b in image.blobs]
    docker = Image.written({
        "schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": Image.entry("application/vnd.docker.container.image.v1+json", image.config),
        "layers": [Image.entry("application/vnd.docker.image.rootfs.diff.tar.gzip", b) for b in Image([BASE]).blobs]})
    registry.put_blob("plain", Image([BASE]).blobs[0])
    registry.put_manifest("plain", "docker", docker, "application/vnd.docker.distribution.manifest.v2+json")
    made = images.make(f"{registry.host}/plain:docker", disk=base / "disk2")
    assert made.digest == digest(docker)
    assert disk_lines(base / "disk2")[2:] == ["layer " + digest(Image([BASE]).blobs[0])]


def test_the_right_platform_is_chosen(base, registry, images):
    ours, other = Image([BASE]), Image([{"arm": b"1"}], architecture="arm64")
    for image in (ours, other):
        registry.push("many", image.platform["architecture"], image)
    registry.put_manifest("many", "both", index_of(other, ours), f"{OCI}.index.v1+json")
    registry.put_manifest("many", "foreign", index_of(other), f"{OCI}.index.v1+json")
    assert images.make(f"{registry.host}/many:both").digest == ours.digest
    why = refused(images, f"{registry.host}/many:foreign", disk=base / "disk")
    assert why.code == "mismatch" and "linux/arm64" in why.text
    assert refused(images, f"{registry.host}/many:arm64").code == "mismatch", "said by its configuration alone"


def test_a_layer_is_fetched_once(base, registry, images):
    first = Image([BASE, {"one": b"1" * 999}])
    second = Image([BASE, {"two": b"2" * 999}])
    images.make(registry.push("x", "1", first), disk=base / "disk")
    name, since = registry.push("y", "1", second), registry.mark()
    images.make(name, disk=base / "disk2")
    blobs, manifests = registry.fetched(since)
    assert digest(second.blobs[1]) in blobs
    assert digest(BASE_BLOB) not in blobs, "the layer that both have"
    assert "1" in manifests
    since = registry.mark()
    images.make(name, disk=base / "disk3")
    blobs, manifests = registry.fetched(since)
    assert blobs == [] and manifests == ["1"], "the tag is asked for again, and nothing else"
    assert (base / "disk2").read_bytes() == (base / "disk3").read_bytes()


BASE_BLOB = Image([BASE]).blobs[0]


def test_a_tag_that_moves(base, registry, images):
    name = registry.push("x", "latest", Image([BASE]))
    assert images.make(name).digest == Image([BASE]).digest
    registry.push("x", "latest", Image([{"new": b"1"}]))
    assert images.make(name).digest == Image([{"new": b"1"}]).digest
    pinned = f"{name}@{Image([BASE]).digest}"
    assert images.make(pinned).digest == Image([BASE]).digest


# --- what is refused ---------------------------------------------------------------------------------------------------


def test_reasons_are_for_people(base, registry, images):
    registry.push("x", "1", Image([BASE]))
    why = refused(images, f"{registry.host}/x:none", disk=base / "disk")
    assert why.code == "not_found" and f"{registry.host}/x:none" in why.text
    assert refused(images, f"{registry.host}/none:1").code == "not_found"
    why = refused(images, "127.0.0.1:1/x:1")
    assert why.code == "unavailable" and "127.0.0.1:1" in why.text and "networks" in why.text
    why = refused(images, "name.invalid/x:1")
    assert why.code == "unavailable" and "name.invalid" in why.text
    why = refused(images, "debian:12")
    assert why.code == "invalid" and "default_registry" in why.text
    assert refused(images, "not/An/image").code == "invalid"
    why = refused(images, registry.push("bad", "1", Image([{"x": b"REFUSE ME"}], compress=False)), disk=base / "disk")
    assert why.code == "invalid" and why.text == "it has no bash: bin/bash"


def test_plain_http_wants_a_setting(base, registry):
    with LoneImages(base) as images:
        why = refused(images, registry.push("x", "1", Image([BASE])))
        assert why.code == "unavailable" and "insecure" in why.text


def test_too_large(base, registry):
    name = registry.push("x", "1", Image([{"big": os.urandom(3 << 20)}]))
    with LoneImages(base, insecure=registry.host, image_mib=2) as images:
        since = registry.mark()
        why = refused(images, name, disk=base / "disk")
        assert why.code == "exhausted" and "3 MiB" in why.text
        assert digest(Image([BASE]).config) not in registry.fetched(since)[0]
        assert len(registry.fetched(since)[0]) <= 1, "at most its configuration"


def test_a_registry_that_lies(base, registry, images):
    """What is stored at the registry is changed behind its back: the digests are looked at here."""
    image = Image([BASE, {"x": b"y" * 4000}])
    name = registry.push("x", "1", image)
    hexes = digest(image.blobs[1])[7:]
    blob = registry.base / f"data/docker/registry/v2/blobs/sha256/{hexes[:2]}/{hexes}/data"
    blob.write_bytes(blob.read_bytes()[:-1] + b"!")
    why = refused(images, name, disk=base / "disk")
    assert why.code == "invalid" and "digest" in why.text
    assert hexes not in images.blobs()


# --- credentials -------------------------------------------------------------------------------------------------------


@pytest.fixture(name="closed")
def run_closed_registry(base):
    with Registry(base / "closed", password=PASSWORD) as registry:
        yield registry


def test_credentials_are_asked_for_each_time(base, closed):
    with LoneImages(base, insecure=closed.host) as images:
        name = closed.push("x", "1", Image([BASE]))
        for wrong in (None, (USER, "wrong"), ("nobody", PASSWORD)):
            why = refused(images, name, disk=base / "disk", credentials=wrong)
            assert why.code == "denied" and closed.host in why.text
        assert images.make(name, disk=base / "disk", credentials=(USER, PASSWORD)).digest == Image([BASE]).digest
        why = refused(images, name, disk=base / "disk")
        assert why.code == "denied", "though all of it is in the store"
        assert PASSWORD not in images.daemon.log()


def test_sealed_for_one_team(base, closed):
    with LoneImages(base, insecure=closed.host) as images:
        name = closed.push("x", "1", Image([BASE]))
        sealed = images.seal('{"username":"%s","password":"%s"}' % (USER, PASSWORD))
        assert images.make(name, sealed=sealed).digest == Image([BASE]).digest
        assert refused(images, name, sealed=sealed, team="another").code == "invalid"
        assert refused(images, name, sealed="bm90aGluZw==").code == "invalid"
        assert refused(images, name, sealed=images.seal('{"username":""}')).code == "invalid"


def test_the_password_is_nowhere_to_be_seen(base, closed):
    """Not in arguments, environments or files on the disk, while skopeo waits for a registry that says nothing."""
    with socket.socket() as silent, LoneImages(base) as images:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        name = "127.0.0.1:%d/x:1" % silent.getsockname()[1]
        images.begin(name, credentials=(USER, PASSWORD))
        silent.accept()
        running = [pid for pid in processes_of(UID) if "skopeo" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
        assert running, "skopeo runs"
        for pid in processes_of(UID):
            for file in ("cmdline", "environ"):
                assert PASSWORD.encode() not in pathlib.Path(f"/proc/{pid}/{file}").read_bytes()
        needles = (PASSWORD.encode(), base64.b64encode(f"{USER}:{PASSWORD}".encode()))
        for path in images.data.rglob("*"):
            if path.is_file():
                assert not any(needle in path.read_bytes() for needle in needles), path
        inside = pathlib.Path(f"/proc/{running[0]}/root{images.data}/auth")
        assert needles[1] in b"".join(p.read_bytes() for p in inside.iterdir()), "the search would find it"
        images.hang_up()
        wait_for(lambda: images.leftovers() == [] and not list(pathlib.Path(
            f"/proc/{processes_of(UID)[-1]}/root{images.data}/auth").iterdir()), "all of it is gone", PATIENCE, 0.02)


# --- where from --------------------------------------------------------------------------------------------------------


def test_a_map_and_a_default(base, registry):
    registry.push("hub/library/debian", "12", Image([BASE]))
    with LoneImages(base, insecure=registry.host, default_registry="public.example",
                    map=f"public.example={registry.host}/hub") as images:
        assert images.make("debian:12", disk=base / "disk").digest == Image([BASE]).digest
        assert images.make("public.example/library/debian:12").digest == Image([BASE]).digest
        why = refused(images, "debian:13")
        assert why.code == "not_found" and "public.example/library/debian:13" in why.text


def test_a_mirror_is_asked_first(base, registry):
    with Registry(base / "mirror") as mirror, \
            LoneImages(base, insecure=f"{registry.host} {mirror.host}", mirrors=f"{registry.host}={mirror.host}/copy") as images:
        registry.push("x", "1", Image([BASE]))
        registry.push("y", "1", Image([{"y": b"1"}]))
        mirror.push("copy/x", "1", Image([BASE]))
        since = registry.mark()
        assert images.make(f"{registry.host}/x:1", disk=base / "disk").digest == Image([BASE]).digest
        assert registry.fetched(since) == ([], []), "the mirror had it"
        assert images.make(f"{registry.host}/y:1", disk=base / "disk").digest == Image([{"y": b"1"}]).digest


def test_a_certificate_of_the_companys_own(base):
    authority = certs.Authority(base)
    with Registry(base / "registry", password=PASSWORD, authority=authority) as registry:
        name = registry.push("x", "1", Image([BASE]))
        with LoneImages(base) as images:
            why = refused(images, name, credentials=(USER, PASSWORD))
            assert why.code == "unavailable" and "extra_ca" in why.text and registry.host in why.text
        with LoneImages(base, extra_ca=authority.cert) as images:
            made = images.make(name, disk=base / "disk", credentials=(USER, PASSWORD))
            assert made.digest == Image([BASE]).digest


# --- archives ----------------------------------------------------------------------------------------------------------


def test_archives(base, offline):
    image = Image([BASE, {"x": b"1"}], env=["A=1"])
    made = offline.make(archive=image.layout_archive(base / "layout.tar"), disk=base / "disk")
    assert made.digest == image.digest and made.config["env"] == ["A=1"]
    assert disk_lines(base / "disk")[2:] == ["layer " + digest(b) for b in image.blobs]
    made = offline.make(archive=image.docker_archive(base / "docker.tar"), disk=base / "disk2")
    assert made.digest == digest(image.config)
    assert disk_lines(base / "disk2")[2:] == ["layer " + digest(t) for t in image.tars]
    assert offline.leftovers() == []


def test_layers_that_nobody_vouches_for_are_part_of_the_name(base, offline):
    """Of a compressed layer `docker save` says no digest: what another put there is another image."""
    image, other = Image([BASE, {"x": b"1"}]), Image([BASE, {"x": b"2"}])

    def named(layers):
        file = image.docker_archive(base / "docker.tar", layers)
        looked_up = offline.make(archive=file).digest
        assert offline.make(archive=file, disk=base / "disk").digest == looked_up, "looked up, and made"
        return looked_up
    own = named(image.blobs)
    assert own == named(image.blobs) != digest(image.config)
    assert len({own, named(other.blobs), named([image.tars[0], image.blobs[1]]), named(image.tars)}) == 4
    unknown = Image([BASE, {"x": b"3"}]).docker_archive(base / "docker.tar", other.tars)
    assert "is not what its digest says" in refused(offline, archive=unknown, disk=base / "disk").text


def test_an_archive_of_skopeo(base, offline):
    """Written by others: what skopeo calls docker-archive and oci-archive."""
    image = Image([BASE, {"x": b"1"}])
    image.layout(base / "layout")
    for kind in ("docker-archive", "oci-archive"):
        file = base / f"{kind}.tar"
        subprocess.run(["skopeo", "--insecure-policy", "copy", f"oci:{base}/layout:x", f"{kind}:{file}:y:1"], check=True,
                       capture_output=True)
        assert len(disk_lines(base / "disk")[2:] if offline.make(archive=file, disk=base / "disk") else []) == 2


@pytest.mark.skipif(not REAL_UNPACK.exists(), reason="this build has no hotcell-unpack")
def test_our_own_image_is_made_as_all_others_are(base):
    """The archive of `base` by the daemon, and its disk without one: the same to the byte."""
    agent, own = build_dir() / "src/agent/hotcell-agent-test", base / "own"  # the other is not in a build with sanitizers
    with LoneImages(base, unpack=REAL_UNPACK) as images:
        (images.programs / "agent").write_bytes(agent.read_bytes())
        made = images.make(archive=artefact("oci"), disk=base / "disk", disk_mib=1024)
    assert (made.config["user"], made.config["workingDir"]) == ("user", "/home/user")
    subprocess.run([TOP / "guest/base/image", artefact("rootfs"), agent, REAL_UNPACK, own], check=True,
                   env={**os.environ, "HOTCELL_DISK_MIB": "1024"}, stdout=subprocess.DEVNULL)
    subprocess.run(["cmp", base / "disk", own], check=True)
    assert own.stat().st_blocks * 512 < 400 << 20, "what is empty is a hole"
    subprocess.run(["e2fsck", "-fn", own], check=True, capture_output=True)


def hostile_archives():
    image = Image([BASE])
    good = image.members()
    blob = "blobs/sha256/" + digest(image.blobs[0])[7:]
    whole = tar_of(good)
    yield "empty", b""
    yield "no tar", os.urandom(4096)
    yield "cut", tar_of(Image([{"x": os.urandom(50000)}]).members())[:40000]
    yield "no image", tar_of({"x": b"1"})
    yield "compressed", b"\x1f\x8b" + bytes(2000)
    yield "another layer", tar_of({**good, blob: b"x" * len(image.blobs[0])})
    yield "a shorter layer", tar_of({**good, blob: b"x"})
    yield "no layer", tar_of({k: v for k, v in good.items() if k != blob})
    yield "no json", tar_of({**good, "index.json": b"{"})
    yield "many", tar_of({f"f{n}": b"" for n in range(5000)})
    yield "path", tar_of({"manifest.json": b'[{"Config":"../../etc/passwd","Layers":["/etc/passwd"]}]'})
    yield "two images", tar_of({"manifest.json": b'[{},{}]'})
    yield "128 layers", tar_of({"manifest.json": Image.written([{"Config": "c", "Layers": ["l"] * 128}]), "c": b"{}"})
    yield "other diff ids", tar_of({"manifest.json": Image.written([{"Config": "c", "Layers": ["l"]}]), "l": image.tars[0],
                                    "c": image.config.replace(digest(image.tars[0])[7:].encode(), b"0" * 64)})


@pytest.fixture(name="offline")
def run_without_a_registry(base):
    with LoneImages(base) as images:
        yield images


HOSTILE = list(hostile_archives())


@pytest.mark.parametrize("data", [case[1] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
def test_a_hostile_archive_is_refused(base, offline, data):
    images = offline
    (base / "archive.tar").write_bytes(data)
    why = refused(images, archive=base / "archive.tar", disk=base / "disk")
    assert why.code in ("invalid", "exhausted") and why.text
    assert not any(b"root:" in p.read_bytes() for p in (images.data / "store/blobs").iterdir())
    images.daemon.check_alive()


def test_a_job_that_ends_at_once_says_why(base, offline):
    """However quickly: its parent may not have looked at it yet."""
    (base / "archive.tar").write_bytes(b"\x1f\x8b compressed")
    assert {refused(offline, archive=base / "archive.tar").text.split(":")[0] for _ in range(300)} == {"the archive is compressed"}


# --- its end -----------------------------------------------------------------------------------------------------------


SLOW = [{"x": b"TAKE LONG"}]


def begin_slow(base, registry, images):
    """A job that is in its last step, and its tag."""
    tag = images.begin(registry.push("slow", "1", Image(SLOW, compress=False)), disk=base / "disk")
    while "Layer 1 of 1" not in images.receive()[4]:
        pass
    assert len(images.leftovers()) > 1
    return tag


def test_a_cancelled_job_leaves_nothing(base, registry, images):
    tag = begin_slow(base, registry, images)
    images.send(CANCEL, of=tag)
    answers = {got[0]: got[1] for got in (images.receive(), images.receive())}
    assert answers == {tag: 8, tag + 1: 0}
    assert images.leftovers() == []


def test_a_client_that_goes_takes_its_jobs_along(base, registry, images):
    begin_slow(base, registry, images)
    images.hang_up()
    wait_for(lambda: images.leftovers() == [], "its job is gone", PATIENCE, 0.02)


def test_a_job_that_takes_too_long(base, registry):
    with LoneImages(base, insecure=registry.host, job_s=1) as images:
        tag = begin_slow(base, registry, images)
        with pytest.raises(Refused) as why:
            images.result(tag)
        assert why.value.code == "timeout" and images.leftovers() == []


def test_after_a_death_nothing_is_left(base, registry, images):
    begin_slow(base, registry, images)
    images.daemon.kill()
    images.hang_up()
    wait_for(lambda: processes_of(UID) == [], "all its processes died with it", PATIENCE, 0.02)
    (images.data / "store/jobs/left").mkdir()
    images.start()
    assert images.leftovers() == []
    name = registry.push("x", "1", Image([BASE]))
    assert images.make(name, disk=base / "disk").digest == Image([BASE]).digest


def test_a_death_at_any_word_of_a_job(base, registry, images):
    """Killed after its first, second, ... word: nothing runs on, nothing is left, and what is in the store is whole."""
    image = Image([BASE, {"a": os.urandom(200000)}, {"b": os.urandom(200000)}])
    name, words = registry.push("x", "1", image), 0
    while True:
        images.begin(name, disk=base / "disk")
        if not all(images.receive()[2] for _ in range(words + 1)):
            break
        images.daemon.kill()
        images.hang_up()
        wait_for(lambda: processes_of(UID) == [], "all its processes died with it", PATIENCE, 0.01)
        images.start()
        assert images.leftovers() == []
        blobs = (images.data / "store/blobs")
        assert all(digest(path.read_bytes())[7:] == path.name for path in blobs.iterdir())
        for path in list(blobs.iterdir())[words % 2::2]:
            path.unlink()  # so that there is something to fetch
        words += 1
    assert words > 5
    assert images.make(name, disk=base / "disk").digest == image.digest


def test_two_jobs_for_one_image(base, registry, images):
    image = Image([BASE, {"x": os.urandom(1 << 20)}])
    name = registry.push("x", "1", image)
    tags = [images.begin(name, disk=base / f"disk{n}") for n in range(4)]
    ends = {}
    while len(ends) < len(tags):
        tag, code, more, found, _text, fds = images.receive()
        for fd in fds:
            os.close(fd)
        if not more:
            ends[tag] = (code, found)
    assert ends == {tag: (0, image.digest) for tag in tags}
    assert len({(base / f"disk{n}").read_bytes() for n in range(4)}) == 1
    assert images.leftovers() == []


def test_without_root(base, registry):
    """As somebody who has no user to become: fewer walls, the same work."""
    base.chmod(0o777)
    with LoneImages(base, insecure=registry.host, user="") as images:
        images.end()
        images.daemon.where = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--"]
        subprocess.run(["rm", "-rf", images.data], check=True)
        images.start()
        assert "not started as root" in images.daemon.log()
        image = Image([BASE])
        assert images.make(registry.push("x", "1", image), disk=base / "disk").digest == image.digest
        assert images.leftovers() == []


def test_only_so_many_at_a_time(base, registry):
    with LoneImages(base, insecure=registry.host, jobs_max=1) as images:
        tag = begin_slow(base, registry, images)
        with pytest.raises(Refused) as why:
            images.make(registry.push("x", "1", Image([BASE])))
        assert why.value.code == "exhausted"
        images.send(CANCEL, of=tag)


# --- the store ---------------------------------------------------------------------------------------------------------


def test_what_was_used_longest_ago_goes_first(base, registry):
    """Three images of 3 MiB in a store of 7 MiB: it never holds more, and what was used last is there."""
    big = [Image([{"big": os.urandom(3 << 20)}], compress=False) for _ in range(3)]
    names = [registry.push("big", str(n), image) for n, image in enumerate(big)]
    with LoneImages(base, insecure=registry.host, store_mib=7) as images:
        for n in (0, 1, 0, 2):
            images.make(names[n], disk=base / "disk")
            assert sum(p.stat().st_size for p in (images.data / "store/blobs").iterdir()) <= 7 << 20
        there = [digest(image.blobs[0])[7:] in images.blobs() for image in big]
        assert there == [True, False, True]


def test_a_store_that_is_too_small(base, registry):
    name = registry.push("big", "1", Image([{"big": os.urandom(8 << 20)}], compress=False))
    with LoneImages(base, insecure=registry.host, store_mib=7) as images:
        assert refused(images, name, disk=base / "disk").code == "no_space"
    with LoneImages(base, insecure=registry.host, reserve_mib=1 << 25) as images:
        assert refused(images, name, disk=base / "disk").code == "no_space"


def test_a_blob_in_use_is_not_evicted(base, registry):
    """A job in its last step holds its layers, however old they are."""
    slow = Image([{"x": b"TAKE LONG" + os.urandom(3 << 20)}], compress=False)
    other = Image([{"y": os.urandom(5 << 20)}], compress=False)
    names = registry.push("slow", "1", slow), registry.push("other", "1", other)
    with LoneImages(base, insecure=registry.host, store_mib=7) as images:
        tag = images.begin(names[0], disk=base / "disk")
        while "Layer 1 of 1" not in images.receive()[4]:
            pass
        with pytest.raises(Refused) as why:
            images.make(names[1], disk=base / "disk2")
        assert why.value.code == "no_space" and digest(slow.blobs[0])[7:] in images.blobs()
        images.send(CANCEL, of=tag)
        while images.receive()[0] != tag:
            pass
        assert images.make(names[1], disk=base / "disk2").digest == other.digest
        assert digest(slow.blobs[0])[7:] not in images.blobs()
