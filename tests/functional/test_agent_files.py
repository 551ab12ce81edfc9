"""/files of the guest agent: forms, gzip, ranges, signed URLs, metadata. See test_agent.py."""

import base64
import email.utils
import gzip
import hashlib
import json
import os
import pathlib
import random
import time
import urllib.parse

import pytest

from test_agent import MIB, ROOT, Agent, agent, give_identity

RAW = {"Content-Type": "application/octet-stream"}
TOKEN = "client-token"


def files(path=None, **more):
    if path is not None:
        more["path"] = str(path)
    return "/files?" + urllib.parse.urlencode(more)


def form(*parts, boundary="XbX"):
    """Parts are (name, filename or None, content)."""
    out = b""
    for name, filename, content in parts:
        out += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode()
        if filename is not None:
            out += f'; filename="{filename}"'.encode()
        out += b"\r\nContent-Type: application/octet-stream\r\n\r\n" + content + b"\r\n"
    out += f"--{boundary}--\r\n".encode()
    return out, {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def post(agent, target, body, headers):
    r = agent.ask("POST", target, body, headers)
    r.json = json.loads(r.data)
    return r


def get(agent, path, method="GET", **headers):
    return agent.ask(method, files(path), headers={k.replace("_", "-"): v
                                                   for k, v in headers.items()})


# --- forms ------------------------------------------------------------------------------------


def test_a_form_writes_one_file_to_the_path_asked_for(agent, tmp_path):
    for filename in ("whatever.txt", None):  # a plain field will do
        body, headers = form(("file", filename, b"hello"))
        r = post(agent, files("sub/x.txt"), body, headers)
        path = tmp_path / "sub/x.txt"
        assert r.json == [{"path": str(path), "name": "x.txt", "type": "file"}]
        assert path.read_bytes() == b"hello"


def test_a_form_writes_many_files_with_folders_in_their_names(agent, tmp_path):
    parts = [("file", f"d{i % 3}/e/f{i}.bin", random.randbytes(i * 100)) for i in range(50)]
    parts.append(("file", str(tmp_path / "absolute"), b"a"))
    parts.append(("file", "~/tilde", b"t"))
    parts.insert(7, ("other", "ignored", b"i"))
    parts.insert(9, ("note", None, b"ignored too"))
    body, headers = form(*parts)
    r = post(agent, files(), body, headers)
    assert r.status == 200
    parts = [p for p in parts if p[0] == "file"]
    assert [e["path"] for e in r.json] == [str(tmp_path / p[1].replace("~/", "")) for p in parts]
    for entry, (_, _, content) in zip(r.json, parts):
        assert list(entry) == ["path", "name", "type"]
        assert pathlib.Path(entry["path"]).read_bytes() == content
    assert not (tmp_path / "ignored").exists()


def test_a_form_of_thousands_of_files(agent, tmp_path):
    body, headers = form(*[("file", f"many/file-with-a-long-name-{i:05}", b"%d" % i)
                           for i in range(2000)])
    r = post(agent, files(), body, headers)
    assert len(r.json) == 2000 and len(r.data) > 192 * 1024
    assert len(list((tmp_path / "many").iterdir())) == 2000


def test_content_that_looks_like_a_boundary_stays_content(agent, tmp_path):
    content = b"\r\n--XbY\r\n\r\r\n--Xb\r\n--\r\n" * 5000 + b"\r\n--Xb"
    body, headers = form(("file", None, content))
    assert post(agent, files("x"), body, headers).status == 200
    assert (tmp_path / "x").read_bytes() == content
    # and in the smallest pieces
    content = content[:100]
    body, headers = form(("file", None, content))
    pieces = (body[i:i + 1] for i in range(len(body)))
    assert post(agent, files("x"), pieces, headers).status == 200
    assert (tmp_path / "x").read_bytes() == content


def test_forms_that_are_refused(agent, tmp_path):
    whole, headers = form(("file", "x", b"content"))
    twice, _ = form(("file", "x", b"1"), ("file", "./x", b"2"))
    nameless, _ = form(("file", None, b"content"))
    two, _ = form(("file", None, b"1"), ("file", None, b"2"))
    for target, body in [
        (files(), whole[:-4]),
        (files(), whole[:30]),
        (files(), b"preamble\r\n" + whole),
        (files(), b""),
        (files(), nameless),
        (files(), twice),
        (files("x"), two),
        (files(), whole.replace(b"form-data", b"attachment")),
        (files(), whole.replace(b"\r\n\r\n", b"\n\n")),
        (files(), whole.replace(b'filename="x"', b'filename="/"')),
    ]:
        r = post(agent, target, body, headers)
        assert r.status == 400 and r.json["code"] == 400, body
    for kind in ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data;"
                 " boundary=" + "x" * 71, "multipart/form-data; boundary=a; boundary=b"):
        assert post(agent, files(), whole, {"Content-Type": kind}).status == 400


def test_a_form_cut_off_leaves_only_whole_files(agent, tmp_path):
    body, headers = form(("file", "one", b"1" * 1000), ("file", "two", b"2" * 1000))
    assert post(agent, files(), body[:-500], headers).status == 400
    assert (tmp_path / "one").read_bytes() == b"1" * 1000
    assert not (tmp_path / "two").exists()


# --- gzip ---------------------------------------------------------------------------------------


def test_gzip_is_undone(agent, tmp_path):
    content = random.randbytes(100_000) + b"x" * 10 * MIB
    zipped = gzip.compress(content)
    coding = {"Content-Encoding": "gzip"}
    assert post(agent, files("x"), zipped, {**RAW, **coding}).status == 200
    assert (tmp_path / "x").read_bytes() == content
    # several members, and a form
    zipped = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")
    assert post(agent, files("y"), zipped, {**RAW, **coding}).status == 200
    assert (tmp_path / "y").read_bytes() == b"one two"
    body, headers = form(("file", "z", content))
    assert post(agent, files(), gzip.compress(body), {**headers, **coding}).status == 200
    assert (tmp_path / "z").read_bytes() == content


@pytest.mark.parametrize("harm", ["cut", "checksum", "empty", "tail", "plain", "zlib"])
def test_broken_gzip_writes_nothing(agent, tmp_path, harm):
    import zlib
    good = gzip.compress(random.randbytes(1000))
    body = {"cut": good[:-1], "checksum": good[:-8] + b"\0\0\0\0" + good[-4:], "empty": b"",
            "tail": good + b"x", "plain": b"hello", "zlib": zlib.compress(b"hello")}[harm]
    r = post(agent, files("x"), body, {**RAW, "Content-Encoding": "gzip"})
    assert r.status == 400 and "gzip" in r.json["message"]
    assert not (tmp_path / "x").exists()


def test_other_codings_are_refused(agent):
    for coding in ("br", "deflate", "gzip, gzip", "zstd"):
        r = post(agent, files("x"), b"x", {**RAW, "Content-Encoding": coding})
        assert r.status == 400
    assert post(agent, files("x"), b"x", {**RAW, "Content-Encoding": "identity"}).status == 200


def test_memory_stays_the_same_whatever_the_size(agent, tmp_path):
    piece = random.randbytes(MIB)
    post(agent, files("warm"), gzip.compress(piece), {**RAW, "Content-Encoding": "gzip"})
    agent.forget_peak()
    before = agent.peak()
    body, headers = form(("file", None, piece * 64))
    assert post(agent, files("big"), body, headers).status == 200
    zipped = gzip.compress(bytes(256 * MIB), 1)
    assert post(agent, files("zeros"), zipped, {**RAW, "Content-Encoding": "gzip"}).status == 200
    assert (tmp_path / "zeros").stat().st_size == 256 * MIB
    assert agent.peak() - before < 16 * MIB
    assert get(agent, "big").data == piece * 64
    assert agent.peak() - before < 16 * MIB


# --- ranges and conditions ----------------------------------------------------------------------


@pytest.mark.parametrize("want, status, part", [
    ("bytes=0-0", 206, slice(0, 1)),
    ("bytes=2-5", 206, slice(2, 6)),
    ("bytes=5-", 206, slice(5, None)),
    ("bytes=-3", 206, slice(-3, None)),
    ("bytes=-100", 206, slice(0, None)),
    ("bytes=8-1000", 206, slice(8, None)),
    ("bytes=0-1,3-4", 200, slice(None)),
    ("bytes=10-", 416, None),
    ("bytes=-0", 416, None),
    ("bytes=5-2", 416, None),
    ("bytes=x-", 416, None),
    ("bytes=18446744073709551616-", 416, None),
    ("lines=1-2", 416, None),
])
def test_ranges(agent, tmp_path, want, status, part):
    content = b"0123456789"
    (tmp_path / "x").write_bytes(content)
    for method in ("GET", "HEAD"):
        r = get(agent, "x", method, Range=want)
        assert r.status == status
        if status == 416:
            assert r.headers["Content-Range"] == "bytes */10"
            continue
        assert r.headers["Content-Length"] == str(len(content[part]))
        assert r.data == (content[part] if method == "GET" else b"")
        if status == 206:
            first = content.index(content[part])
            last = first + len(content[part]) - 1
            assert r.headers["Content-Range"] == f"bytes {first}-{last}/10"
        else:
            assert r.headers["Content-Range"] is None


def test_a_range_of_an_empty_file_is_the_file(agent, tmp_path):
    (tmp_path / "x").write_bytes(b"")
    r = get(agent, "x", Range="bytes=0-")
    assert (r.status, r.data, r.headers["Content-Length"]) == (200, b"", "0")


def test_conditions(agent, tmp_path):
    (tmp_path / "x").write_bytes(b"0123456789")
    os.utime(tmp_path / "x", (1_700_000_000, 1_700_000_000))
    date = email.utils.formatdate(1_700_000_000, usegmt=True)
    older = email.utils.formatdate(1_699_999_999, usegmt=True)
    r = get(agent, "x")
    assert r.headers["Last-Modified"] == date and r.headers["Accept-Ranges"] == "bytes"
    assert get(agent, "x", If_Modified_Since=date).status == 304
    assert get(agent, "x", If_Modified_Since=older).status == 200
    assert get(agent, "x", If_Modified_Since="yesterday").status == 200
    assert get(agent, "x", If_Unmodified_Since=older).status == 412
    assert get(agent, "x", If_Unmodified_Since=date).status == 200
    assert get(agent, "x", If_None_Match='"tag"', If_Modified_Since=date).status == 200
    assert get(agent, "x", If_Match='"tag"').status == 412
    assert get(agent, "x", If_Range=date, Range="bytes=1-1").data == b"1"
    assert get(agent, "x", If_Range=older, Range="bytes=1-1").data == b"0123456789"


def test_head_says_what_get_would(agent, tmp_path):
    (tmp_path / "x").write_bytes(b"0123456789")
    conn = agent.connect()
    for _ in range(2):  # the connection goes on
        r = agent.ask("HEAD", files("x"), conn=conn)
        assert (r.status, r.data, r.headers["Content-Length"]) == (200, b"", "10")
        assert r.headers["Content-Disposition"] == "inline; filename=x"
        assert r.headers["Vary"] == "Accept-Encoding"
    assert agent.ask("HEAD", files("nothing"), conn=conn).status == 404


def test_who_refuses_the_file_as_it_is(agent, tmp_path):
    (tmp_path / "x").write_bytes(b"0123456789")
    for accept, status in [("gzip, deflate", 200), ("identity;q=0", 406), ("*;q=0", 406),
                           ("*;q=0, identity", 200), ("br;q=1.0, identity; q=0.0", 406),
                           ("identity;q=0.5", 200), ("", 200)]:
        assert get(agent, "x", Accept_Encoding=accept).status == status, accept


# --- signed URLs ----------------------------------------------------------------------------------


def sign(path, operation, user="", token=TOKEN, expires=None):
    text = ":".join([path, operation, user, token] + ([str(expires)] if expires else []))
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    return {"signature": "v1_" + digest} | ({"signature_expiration": expires} if expires else {})


def test_the_known_signature():
    got = sign("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0")
    assert got["signature"] == "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"


def test_a_signature_opens_one_file_for_one_thing(agent, tmp_path):
    assert give_identity(agent, accessToken=TOKEN).status == 200
    (tmp_path / "x y").write_text("hello")
    later = int(time.time()) + 100
    assert agent.ask("GET", files("x y", **sign("x y", "read"))).data == b"hello"
    assert agent.ask("GET", files("x y", **sign("x y", "read", expires=later))).data == b"hello"
    assert agent.ask("HEAD", files("x y", **sign("x y", "read"))).status == 200

    def denied(message, target, method="GET", **headers):
        body = None if method == "GET" else b"x"
        r = agent.ask(method, target, body, {**RAW, **headers})
        assert (r.status, json.loads(r.data)) == (401, {"code": 401, "message": message}), target

    denied("missing signature query parameter", files("x y"))
    denied("missing signature query parameter", files("x y"), "POST")
    for wrong in [sign("x", "read"), sign("x y", "write"), sign("x y", "read", "root"),
                  sign("x y", "read", token="other"),
                  {"signature": "v1_"}, {"signature": ""},
                  {"signature": sign("x y", "read")["signature"] + "="},
                  {**sign("x y", "read"), "signature_expiration": later},
                  {**sign("x y", "read", expires=later), "signature_expiration": later + 1}]:
        denied("invalid signature", files("x y", **wrong))
    denied("invalid signature", files("x y", **sign("x y", "read")), "POST")
    past = int(time.time()) - 10
    denied("signature is already expired", files("x y", **sign("x y", "read", expires=past)))
    # a wrong hash is not told when it would have expired
    denied("invalid signature", files("x y", **sign("x", "read", expires=past)))
    r = agent.ask("GET", files("x y", signature="v1_", signature_expiration="soon"))
    assert r.status == 400
    # a token that is given must be right
    denied("access token present in header but does not match",
           files("x y", **sign("x y", "read")), **{"X-Access-Token": "wrong"})
    good = {"X-Access-Token": TOKEN}
    assert agent.ask("GET", files("x y", signature="v1_no"), headers=good).status == 200


def test_a_signature_for_writing(agent, tmp_path):
    assert give_identity(agent, accessToken=TOKEN).status == 200
    body, headers = form(("file", None, b"new"))
    r = post(agent, files("new.txt", **sign("new.txt", "write")), body, headers)
    assert r.json == [{"path": str(tmp_path / "new.txt"), "name": "new.txt", "type": "file"}]
    # without a path the form says where
    body, headers = form(("file", "other.txt", b"new"))
    r = post(agent, files("", **sign("", "write")), body, headers)
    assert r.json[0]["path"] == str(tmp_path / "other.txt")
    if ROOT:
        r = post(agent, files("mine", username="alice", **sign("mine", "write", "alice")), b"a", RAW)
        assert r.json[0]["path"] == str(tmp_path / "home/alice/mine")
        assert (tmp_path / "home/alice/mine").stat().st_uid == 54321


# --- metadata ---------------------------------------------------------------------------------------


@pytest.fixture
def attributes(tmp_path):
    try:
        os.setxattr(tmp_path, "user.e2b.probe", b"x")
        os.removexattr(tmp_path, "user.e2b.probe")
    except OSError:
        pytest.skip("this file system has no user attributes")


def test_metadata_is_kept_with_the_file(agent, tmp_path, attributes):
    noted = {"X-Metadata-Purpose": "test run", "x-metadata-Owner-Id": "42", "X-METADATA-empty": ""}
    want = {"purpose": "test run", "owner-id": "42", "empty": ""}
    r = post(agent, files("x"), b"x", {**RAW, **noted})
    assert r.json == [{"path": str(tmp_path / "x"), "name": "x", "type": "file", "metadata": want}]
    got = {n[9:]: os.getxattr(tmp_path / "x", n).decode() for n in os.listxattr(tmp_path / "x")
           if n.startswith("user.e2b.")}
    assert got == want
    # the new set replaces the old; none clears it
    r = post(agent, files("x"), b"x", {**RAW, "X-Metadata-Only": "this"})
    assert r.json[0]["metadata"] == {"only": "this"}
    assert os.listxattr(tmp_path / "x") == ["user.e2b.only"]
    r = post(agent, files("x"), b"x", RAW)
    assert "metadata" not in r.json[0] and os.listxattr(tmp_path / "x") == []
    body, headers = form(("file", "a", b"1"), ("file", "b", b"2"))
    r = post(agent, files(), body, {**headers, "X-Metadata-Both": "yes"})
    assert [e["metadata"] for e in r.json] == [{"both": "yes"}] * 2


def test_metadata_that_does_not_fit(agent, tmp_path):
    for name, value in [("X-Metadata-", "x"), ("X-Metadata-" + "k" * 247, "x"),
                        ("X-Metadata-k", "v" * 4090), ("X-Metadata-k", b"caf\xc3\xa9"),
                        ("X-Metadata-k", "a\tb")]:
        if len(name) > 256:
            continue  # no field has such a name
        r = post(agent, files("x"), b"x", {**RAW, name: value})
        assert r.status == 400, (name, value)
    assert not (tmp_path / "x").exists()


# --- a full disk --------------------------------------------------------------------------------------


@pytest.mark.skipif(not ROOT, reason="mounts a small file system")
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if os.system(f"mount -t tmpfs -o size=1m tmpfs {small}") != 0:
        pytest.skip("no mounting here")
    agent = Agent(tmp_path)
    try:
        for body, headers in [(bytes(2 * MIB), RAW), form(("file", None, bytes(2 * MIB))),
                              (gzip.compress(bytes(2 * MIB)), {**RAW, "Content-Encoding": "gzip"})]:
            r = post(agent, files(small / "x"), body, headers)
            assert r.status == 507
            assert r.json == {"code": 507, "message": "not enough disk space available"}
            assert list(small.iterdir()) == []
        assert post(agent, files(small / "y"), b"fits", RAW).status == 200
    finally:
        agent.stop()
        os.system(f"umount {small}")


# --- compose ------------------------------------------------------------------------------------------


def compose(agent, **message):
    return post(agent, "/files/compose", json.dumps(message), {"Content-Type": "application/json"})


def test_parts_become_one_file(agent, tmp_path):
    parts = [random.randbytes(n) for n in (3 * MIB, 0, 100, 9 * MIB + 1)]
    for i, content in enumerate(parts):
        (tmp_path / f"part{i}").write_bytes(content)
    names = [f"part{i}" for i in range(len(parts))]
    r = compose(agent, source_paths=names, destination="deep/whole")
    path = tmp_path / "deep/whole"
    assert (r.status, r.json) == (200, {"path": str(path), "name": "whole", "type": "file"})
    assert path.read_bytes() == b"".join(parts)
    assert not any((tmp_path / n).exists() for n in names)
    # onto one of its own sources
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    assert compose(agent, source_paths=["a", "b", "a"], destination="a").status == 200
    assert (tmp_path / "a").read_text() == "aba" and not (tmp_path / "b").exists()
    # from another file system
    assert compose(agent, source_paths=["/proc/version"], destination="v").status == 200
    assert (tmp_path / "v").read_text() == open("/proc/version").read()


def test_what_cannot_be_composed_changes_nothing(agent, tmp_path):
    (tmp_path / "a").write_text("a")
    for status, message in [
        (404, {"source_paths": ["a", "no"], "destination": "x"}),
        (400, {"source_paths": ["a", "."], "destination": "x"}),
        (400, {"source_paths": [], "destination": "x"}),
        (400, {"source_paths": "a", "destination": "x"}),
        (400, {"source_paths": [1], "destination": "x"}),
        (400, {"source_paths": ["a"]}),
        (400, {"source_paths": ["a"], "destination": "."}),
        (401, {"source_paths": ["a"], "destination": "x", "username": "eve"}),
    ]:
        r = compose(agent, **message)
        assert (r.status, r.json["code"]) == (status, status), r.json
        assert (tmp_path / "a").read_text() == "a" and not (tmp_path / "x").exists()
    assert post(agent, "/files/compose", b"{", {}).status == 400
