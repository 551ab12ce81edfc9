"""filesystem.Filesystem of the guest agent: Stat, MakeDir, Move, ListDir, Remove."""

import json
import os
import socket
import threading
import time

import pytest

from test_agent import ME, ROOT, agent, as_user, give_identity
from test_agent_files import attributes


def call(agent, method, headers=None, **message):
    r = agent.ask("POST", "/filesystem.Filesystem/" + method, json.dumps(message),
                  {"Content-Type": "application/json", **(headers or {})})
    r.json = json.loads(r.data)
    assert r.headers["Content-Type"] == "application/json"
    return r


def good(agent, method, headers=None, **message):
    r = call(agent, method, headers, **message)
    assert r.status == 200, r.json
    return r.json


def refused(agent, code, text, method, headers=None, **message):
    status = {"not_found": 404, "already_exists": 409, "unauthenticated": 401, "internal": 500,
              "permission_denied": 403}.get(code, 400)
    r = call(agent, method, headers, **message)
    assert (r.status, r.json["code"]) == (status, code), r.json
    assert text in r.json["message"], r.json


def info(agent, path):
    return good(agent, "Stat", path=str(path))["entry"]


# --- Stat -----------------------------------------------------------------------------------------


def test_a_file_is_described(agent, tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"hello")
    path.chmod(0o644)
    os.utime(path, ns=(0, 1_700_000_000_123_000_000))
    assert info(agent, path) == {
        "name": "x.txt", "type": "FILE_TYPE_FILE", "path": str(path), "size": "5", "mode": 0o644,
        "permissions": "-rw-r--r--", "owner": ME, "group": str(os.getgid()),
        "modifiedTime": "2023-11-14T22:13:20.123Z",
    }
    assert info(agent, "x.txt") == info(agent, "~/x.txt") == info(agent, f"{tmp_path}//./x.txt")


def test_times_have_as_many_digits_as_they_need(agent, tmp_path):
    (tmp_path / "x").touch()
    for ns, text in [(0, "20Z"), (120_000_000, "20.120Z"), (120_000, "20.000120Z"),
                     (1, "20.000000001Z")]:
        os.utime(tmp_path / "x", ns=(0, 1_700_000_000_000_000_000 + ns))
        assert info(agent, "x")["modifiedTime"].split(":")[-1] == text


def test_a_directory_is_described(agent, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(0o1777)
    (tmp_path / "d/x").touch()
    got = info(agent, "d/")
    assert got["type"] == "FILE_TYPE_DIRECTORY" and got["name"] == "d"
    assert got["path"] == str(tmp_path / "d")
    assert got["permissions"] == "dtrwxrwxrwx" and got["mode"] == 0o777
    assert int(got["size"]) > 0
    assert "symlinkTarget" not in got
    assert info(agent, "/")["name"] == "/"


def test_links_are_described(agent, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/f").write_text("12345")
    (tmp_path / "real/f").chmod(0o600)
    (tmp_path / "one").symlink_to("real/f")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    (tmp_path / "dir").symlink_to("real")
    (tmp_path / "lost").symlink_to("nowhere")
    for name in ("one", "two"):
        got = info(agent, name)
        assert got["type"] == "FILE_TYPE_FILE" and got["mode"] == 0o600
        assert got["permissions"] == "Lrwxrwxrwx" and got["path"] == str(tmp_path / name)
        assert got["symlinkTarget"] == str(tmp_path / "real/f")
    got = info(agent, "dir")
    assert got["type"] == "FILE_TYPE_DIRECTORY"
    assert got["symlinkTarget"] == str(tmp_path / "real")
    got = info(agent, "lost")
    assert "type" not in got and got["permissions"] == "Lrwxrwxrwx"


def test_other_kinds_are_described(agent, tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o640)
    os.chmod(tmp_path / "pipe", 0o640)
    s = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(tmp_path)
    s.bind("sock")
    os.chdir(here)
    (tmp_path / "tool").touch()
    (tmp_path / "tool").chmod(0o6755)
    assert info(agent, "pipe")["permissions"] == "prw-r-----" and "type" not in info(agent, "pipe")
    assert info(agent, "sock")["permissions"].startswith("S")
    assert info(agent, "tool")["permissions"] == "ugrwxr-xr-x"
    assert info(agent, "tool")["mode"] == 0o755 and "size" not in info(agent, "tool")
    assert info(agent, "/dev/null")["permissions"] == "Dcrw-rw-rw-"


def test_metadata_is_shown(agent, tmp_path, attributes):
    (tmp_path / "x").touch()
    os.setxattr(tmp_path / "x", "user.e2b.by", "program ü".encode())
    os.setxattr(tmp_path / "x", "user.e2b.bad", b"\xff\xfe")
    os.setxattr(tmp_path / "x", "user.e2b.nul", b"a\0b")
    os.setxattr(tmp_path / "x", "user.other", b"not ours")
    for i in range(40):
        os.setxattr(tmp_path / "x", f"user.e2b.with-a-long-name-{i}", b"1")
    got = info(agent, "x")["metadata"]
    assert got["by"] == "program ü" and len(got) == 41
    (tmp_path / "d").mkdir()
    os.rename(tmp_path / "x", tmp_path / "d/x")
    (entry,) = good(agent, "ListDir", path="d")["entries"]
    assert entry["metadata"] == got
    assert good(agent, "Move", source="d/x", destination="y")["entry"]["metadata"] == got
    assert "metadata" not in info(agent, "d")


def test_what_cannot_be_described(agent, tmp_path):
    (tmp_path / "x").touch()
    refused(agent, "not_found", f"file not found: {tmp_path}/no", "Stat", path="no")
    refused(agent, "not_found", "file not found", "Stat", path="x/y")
    refused(agent, "invalid_argument", "home", "Stat", path="~other/x")
    refused(agent, "invalid_argument", "path must be a string", "Stat", path=1)
    refused(agent, "unauthenticated", "invalid username: 'eve'", "Stat", as_user("eve"), path="x")
    r = agent.ask("POST", "/filesystem.Filesystem/Stat", b"[", {"Content-Type": "application/json"})
    assert r.status == 400 and json.loads(r.data)["code"] == "invalid_argument"
    r = agent.ask("POST", "/filesystem.Filesystem/Stat", b"{}", {"Content-Type": "text/plain"})
    assert r.status == 415


def test_an_empty_path_is_home(agent, tmp_path):
    assert info(agent, "")["path"] == str(tmp_path)


def test_a_token_is_asked_for(agent, tmp_path):
    assert give_identity(agent).status == 200
    r = agent.ask("POST", "/filesystem.Filesystem/Stat", b'{"path":"/"}',
                  {"Content-Type": "application/json"})
    assert r.status == 401 and json.loads(r.data)["code"] == 401
    assert call(agent, "Stat", {"X-Access-Token": "client-token"}, path="/").status == 200


# --- MakeDir, Move, Remove ------------------------------------------------------------------------


def test_directories_are_made_with_their_parents(agent, tmp_path):
    got = good(agent, "MakeDir", path="a/b//c/")["entry"]
    assert got["path"] == str(tmp_path / "a/b/c") and got["permissions"] == "drwxr-xr-x"
    refused(agent, "already_exists", "directory already exists", "MakeDir", path="a/b")
    (tmp_path / "f").touch()
    refused(agent, "invalid_argument", "not a directory", "MakeDir", path="f")
    refused(agent, "invalid_argument", "", "MakeDir", path="f/x")
    refused(agent, "invalid_argument", "", "MakeDir", path="n" * 256)


@pytest.mark.skipif(not ROOT, reason="only root can be somebody else")
def test_what_is_made_belongs_to_the_user(agent, tmp_path):
    got = good(agent, "MakeDir", as_user("alice"), path="a/b")["entry"]
    assert (got["owner"], got["group"]) == ("alice", "alice")
    (tmp_path / "x").touch()
    good(agent, "Move", as_user("alice"), source=str(tmp_path / "x"), destination="new/x")
    home = tmp_path / "home/alice"
    for path in (home / "a", home / "a/b", home / "new"):
        assert (path.stat().st_uid, path.stat().st_gid) == (54321, 54322)
    assert (home / "new/x").stat().st_uid == 0  # what was there stays whose it was
    os.chown(tmp_path / "new" if (tmp_path / "new").exists() else home / "new", 12345, 12346)
    got = good(agent, "Stat", path=str(home / "new"))["entry"]
    assert (got["owner"], got["group"]) == ("12345", "12346")


def test_moving(agent, tmp_path):
    (tmp_path / "x").write_text("x")
    (tmp_path / "old").write_text("old")
    got = good(agent, "Move", source="x", destination="deep/er/y")["entry"]
    assert got["path"] == str(tmp_path / "deep/er/y") and got["name"] == "y"
    assert (tmp_path / "deep/er/y").read_text() == "x" and not (tmp_path / "x").exists()
    good(agent, "Move", source="deep/er/y", destination="old")
    assert (tmp_path / "old").read_text() == "x"
    refused(agent, "not_found", "source file not found", "Move", source="no", destination="a/b")
    assert not (tmp_path / "a").exists()
    good(agent, "Move", source="deep", destination="dir/deep")
    refused(agent, "invalid_argument", "", "Move", source="dir", destination="dir/deep/x")
    refused(agent, "internal", "", "Move", source="old", destination="dir")


def test_removing(agent, tmp_path):
    (tmp_path / "d/e/f").mkdir(parents=True)
    for i in range(1500):
        (tmp_path / f"d/e/{i}").touch()
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep/x").touch()
    (tmp_path / "d/link").symlink_to("../keep")
    (tmp_path / "link").symlink_to("keep")
    os.mkfifo(tmp_path / "d/pipe")
    for path in ("d", "d", "nothing/at/all", "link", "keep/x/y"):
        assert good(agent, "Remove", path=path) == {}
    assert not (tmp_path / "d").exists() and not (tmp_path / "link").is_symlink()
    assert (tmp_path / "keep/x").exists()
    assert good(agent, "Remove", path="keep/x") == {}
    for path in ("/", "//", "/..", "keep/../..", "/tmp/.."):
        if path != "keep/../..":  # that one is resolved below home
            refused(agent, "invalid_argument", "cannot be removed", "Remove", path=path)


def test_no_depth_stops_a_removal(agent, tmp_path):
    (tmp_path / "deep").mkdir()
    here = os.getcwd()
    os.chdir(tmp_path / "deep")
    for i in range(3000):
        os.mkdir("d")
        os.chdir("d")
        open("f", "w").close()
    os.chdir(here)
    assert good(agent, "Remove", path="deep") == {}
    assert not (tmp_path / "deep").exists()


def test_others_are_served_while_a_large_tree_goes(agent, tmp_path):
    for i in range(100):
        (tmp_path / f"big/{i}").mkdir(parents=True)
        for j in range(100):
            (tmp_path / f"big/{i}/{j}").touch()
    done = []
    t = threading.Thread(target=lambda: done.append(good(agent, "Remove", path="big")))
    t.start()
    while t.is_alive():
        assert agent.ask("GET", "/health").status == 204
    t.join()
    assert done == [{}] and not (tmp_path / "big").exists()


# --- ListDir --------------------------------------------------------------------------------------


def names(agent, tmp_path, **message):
    entries = good(agent, "ListDir", **message)["entries"]
    return [os.path.relpath(e["path"], tmp_path / "t") for e in entries]


def make_tree(tmp_path):
    for path in ("t/b/y", "t/b/x", "t/a", "t/B", "t/b.txt", "t/ü", "t/c/d/e/f"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "t/l").symlink_to("b")


def test_the_order_of_a_list(agent, tmp_path):
    make_tree(tmp_path)
    top = ["B", "a", "b", "b.txt", "c", "l", "ü"]
    for depth in ({}, {"depth": 0}, {"depth": 1}):
        assert names(agent, tmp_path, path="t", **depth) == top
    two = ["B", "a", "b", "b/x", "b/y", "b.txt", "c", "c/d", "l", "ü"]
    assert names(agent, tmp_path, path="t", depth=2) == two
    everything = two[:8] + ["c/d/e", "c/d/e/f"] + two[8:]
    assert names(agent, tmp_path, path="t", depth=100) == everything
    assert names(agent, tmp_path, path="t", depth=2**32 - 1) == everything


def test_entries_of_a_list_are_those_of_stat(agent, tmp_path):
    make_tree(tmp_path)
    for entry in good(agent, "ListDir", path="t", depth=9)["entries"]:
        assert entry == info(agent, entry["path"])


def test_a_link_to_a_directory_is_listed_under_its_name(agent, tmp_path):
    make_tree(tmp_path)
    entries = good(agent, "ListDir", path="t/l")["entries"]
    assert [e["path"] for e in entries] == [f"{tmp_path}/t/l/x", f"{tmp_path}/t/l/y"]


def test_the_root_is_listed(agent):
    entries = good(agent, "ListDir", path="/")["entries"]
    assert "/etc" in [e["path"] for e in entries]


def test_names_of_any_bytes_are_listed(agent, tmp_path):
    (tmp_path / "t").mkdir()
    for name in (b"new\nline", b'quote"', b"back\\slash", b"latin\xe9"):
        open(os.fsencode(tmp_path / "t") + b"/" + name, "w").close()
    got = [e["name"] for e in good(agent, "ListDir", path="t")["entries"]]
    assert got == ["back\\slash", "latin?", "new\nline", 'quote"']


def test_what_cannot_be_listed(agent, tmp_path):
    (tmp_path / "f").touch()
    (tmp_path / "loop").symlink_to("loop")
    refused(agent, "not_found", "path not found", "ListDir", path="no")
    refused(agent, "invalid_argument", "path is not a directory", "ListDir", path="f")
    refused(agent, "failed_precondition", "", "ListDir", path="loop")
    refused(agent, "invalid_argument", "depth", "ListDir", path="/", depth=-1)
    assert good(agent, "ListDir", path=".")["entries"] != []
    (tmp_path / "empty").mkdir()
    assert good(agent, "ListDir", path="empty") == {"entries": []}


def test_ten_thousand_files_are_listed(agent, tmp_path):
    (tmp_path / "t").mkdir()
    for i in range(10_000):
        (tmp_path / f"t/file-{i:05}").touch()
    before, conn = time.monotonic(), agent.connect()
    r = agent.ask("POST", "/filesystem.Filesystem/ListDir", b'{"path":"t"}',
                  {"Content-Type": "application/json"}, conn)
    assert time.monotonic() - before < 20
    entries = json.loads(r.data)["entries"]
    assert [e["name"] for e in entries] == [f"file-{i:05}" for i in range(10_000)]
    assert r.headers["Content-Length"] == str(len(r.data))
    assert agent.ask("GET", "/health", conn=conn).status == 204


def test_a_lister_that_leaves_takes_nothing_with_it(agent, tmp_path):
    (tmp_path / "t").mkdir()
    for i in range(5000):
        (tmp_path / f"t/{i}").touch()
    for _ in range(20):
        s = socket.create_connection(("127.0.0.1", agent.port))
        s.sendall(b"POST /filesystem.Filesystem/ListDir HTTP/1.1\r\nHost: x\r\nContent-Type: "
                  b'application/json\r\nContent-Length: 12\r\n\r\n{"path":"t"}')
        s.close()
    assert len(good(agent, "ListDir", path="t")["entries"]) == 5000
