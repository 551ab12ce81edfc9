"""shelves.py - one small package for each package manager, as files that any web server can give away.

    fill(internet.folder / "files")     # /files/simple for pip, /files/npm for npm, /files/apt for apt

Each is named `tiny`, and says `hello from afar` once it is installed.
"""

import base64
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import zipfile

GREETING = "hello from afar"
VERSION = "1.0"
CONTROL = f"""Package: tiny
Version: {VERSION}
Architecture: all
Maintainer: Nobody <nobody@wild.test>
Description: says hello
"""


def digest(kind, data):
    return hashlib.new(kind, data).hexdigest()


def wheel_files():
    at = f"tiny-{VERSION}.dist-info"
    yield "tiny.py", f"def greet():\n    print('{GREETING}')\n"
    yield f"{at}/METADATA", f"Metadata-Version: 2.1\nName: tiny\nVersion: {VERSION}\n"
    yield f"{at}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def make_wheel(path):
    rows = []
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in wheel_files():
            wheel.writestr(name, text)
            code = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            rows.append(f"{name},sha256={code},{len(text)}\n")
        record = f"tiny-{VERSION}.dist-info/RECORD"
        wheel.writestr(record, "".join(rows) + f"{record},,\n")


def put_wheel(folder, path):
    """A wheel's page in an index as of PEP 503, and the wheel beside it."""
    shelf = folder / "simple" / path.name.partition("-")[0]
    shelf.mkdir(parents=True)
    shutil.copy(path, shelf)
    mark = digest("sha256", path.read_bytes())
    (shelf / "index.html").write_text(
        f'<!DOCTYPE html><html><body><a href="{path.name}#sha256={mark}">{path.name}</a></body></html>')


def fill_pip(folder):
    with tempfile.TemporaryDirectory() as made:
        path = pathlib.Path(made) / f"tiny-{VERSION}-py3-none-any.whl"
        make_wheel(path)
        put_wheel(folder, path)


def fill_npm(folder, host):
    """A registry: what npm asks for first is a file of JSON, which says where the package is."""
    files = {"package.json": json.dumps({"name": "tiny", "version": "1.0.0", "main": "tiny.js"}),
             "tiny.js": f"console.log('{GREETING}')\n"}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode = len(text), 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    data = data.getvalue()
    (folder / "npm/-").mkdir(parents=True)
    (folder / "npm/-/tiny-1.0.0.tgz").write_bytes(data)
    code = base64.b64encode(hashlib.sha512(data).digest()).decode()
    dist = {"tarball": f"https://{host}/files/npm/-/tiny-1.0.0.tgz", "shasum": digest("sha1", data),
            "integrity": f"sha512-{code}"}
    (folder / "npm/tiny").write_text(json.dumps(
        {"name": "tiny", "dist-tags": {"latest": "1.0.0"},
         "versions": {"1.0.0": {"name": "tiny", "version": "1.0.0", "main": "tiny.js", "dist": dist}}}))


def fill_apt(folder):
    """An archive without suites, which nobody signed."""
    shelf, tree = folder / "apt", folder / "tree"
    shelf.mkdir(parents=True)
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "usr/share").mkdir(parents=True)
    (tree / "usr/share/tiny").write_text(GREETING + "\n")
    (tree / "DEBIAN/control").write_text(CONTROL)
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, shelf / "tiny.deb"], check=True, capture_output=True)
    deb = (shelf / "tiny.deb").read_bytes()
    index = f"{CONTROL}Filename: ./tiny.deb\nSize: {len(deb)}\nSHA256: {digest('sha256', deb)}\n\n"
    (shelf / "Packages").write_text(index)
    (shelf / "Release").write_text("Date: Sun, 15 Nov 2026 00:00:00 UTC\n"
                                   f"SHA256:\n {digest('sha256', index.encode())} {len(index)} Packages\n")


def fill(folder, npm_host):
    fill_pip(folder)
    fill_npm(folder, npm_host)
    fill_apt(folder)
