"""test_release.py - what is published beside packages: bills of materials, sums, a signature. Of small packages made here."""

import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import tarfile

import pytest

from engine import TOP

INSTALLED = "Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nSource: {source}\nVersion: {version}\n"
STATUS = "\n".join([INSTALLED.format(name="libc6", source="glibc (2.41-1)", version="2.41-1+b1"),
                    INSTALLED.format(name="libstdc++6", source="gcc-14", version="1:14.2-1"),
                    "Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n"])


def packed(path, files):
    """A tar of FILES: name to bytes."""
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            file = path.parent / "member"
            file.write_bytes(content)
            tar.add(file, name)
    return path


def root_tar(folder, **more):
    return packed(folder / "root.tar", {"./var/lib/dpkg/status": STATUS.encode(),
                                        "./usr/lib/os-release": b'ID=debian\nVERSION_ID="13"\n', **more})


def oci_tar(folder):
    layer = root_tar(folder, **{"./usr/share/jupyter/kernels/java/jjava.jar": b"jar"}).read_bytes()
    return packed(folder / "oci.tar", {"blobs/sha256/a": b'{"layers": []}', "blobs/sha256/b": layer, "index.json": b"{}"})


def deb(folder, name, fields="", tar=None):
    """A package with fields and, at its place, a guest's root."""
    tree = folder / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1.0~x+6.12\nArchitecture: amd64\nMaintainer: A <a@b.invalid>\n"
                                         f"{fields}Description: x\n")
    if tar:
        at = tree / "usr/lib/hotcell/guest" / ("browser.oci.tar.zst" if tar.stem == "oci" else "rootfs.tar.zst")
        at.parent.mkdir(parents=True)
        subprocess.run(["zstd", "-q", tar, "-o", at], check=True)
    out = folder / f"{name}_1.0~x+6.12_amd64.deb"
    subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, out], check=True, capture_output=True)
    return out


def bill_of(package):
    return json.loads(subprocess.run([TOP / "tools/sbom", package], check=True, capture_output=True, text=True).stdout)


def how(bill):
    return {part["name"]: (part.get("version"), *(p["value"] for p in part.get("properties", []))) for part in bill["components"]}


def test_a_bill_has_what_a_package_is_made_of(tmp_path):
    package = deb(tmp_path, "hotcell", "Depends: dpkg (>= 1.0), no-such-package | other\nBuilt-Using: linux (= 6.12.9-1), zlib (= 1:1.2-3+b1)\n")
    bill, version = bill_of(package), subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "dpkg"], check=True, capture_output=True,
                                                     text=True).stdout
    assert how(bill) == {"linux": ("6.12.9-1", "compiled in"), "zlib": ("1:1.2-3+b1", "compiled in"),
                         "dpkg": (version, "depended on"), "no-such-package": (None, "depended on")}
    assert bill["metadata"]["component"]["hashes"][0]["content"] == hashlib.sha256(package.read_bytes()).hexdigest()
    assert "pkg:deb/debian/zlib@1%3A1.2-3%2Bb1?arch=source" in bill["dependencies"][0]["dependsOn"]
    assert bill == bill_of(package)


@pytest.mark.parametrize("make, java", [(root_tar, False), (oci_tar, True)], ids=["root", "image"])
def test_a_bill_has_every_package_of_a_root(tmp_path, make, java):
    bill = bill_of(deb(tmp_path, "hotcell-guest", tar=make(tmp_path)))
    found = how(bill)
    assert found["libc6"] == ("2.41-1+b1", "in the root", "glibc") and found["libstdc++6"][0] == "1:14.2-1"
    assert found["debian"] == ("13",) and "gone" not in found and ("jjava" in found) == java
    references = {part["bom-ref"] for part in bill["components"]}
    assert len(references) == len(bill["components"])
    assert all(set(row["dependsOn"]) <= references for row in bill["dependencies"])
    assert "pkg:deb/debian/libstdc%2B%2B6@1%3A14.2-1?arch=amd64&distro=debian-13" in references


def test_a_root_that_is_cut_off_has_no_bill(tmp_path):
    whole = root_tar(tmp_path)
    whole.write_bytes(whole.read_bytes()[:300])
    done = subprocess.run([TOP / "tools/sbom", deb(tmp_path, "hotcell-guest", tar=whole)], capture_output=True, check=False)
    assert done.returncode != 0 and not done.stdout


@pytest.fixture(name="published")
def make_published(tmp_path):
    """A folder as tools/packages leaves it, and the key of who signed it."""
    key, out = tmp_path / "hotcell", tmp_path / "out"
    subprocess.run(["signify-openbsd", "-G", "-n", "-p", f"{key}.pub", "-s", f"{key}.sec"], check=True)
    out.mkdir()
    package = deb(tmp_path, "hotcell")
    package.rename(out / package.name)
    (out / f"{package.stem}.cdx.json").write_text("{}\n")
    subprocess.run([TOP / "tools/sign-packages", out], check=True, env={**os.environ, "HOTCELL_SIGN_KEY": f"{key}.sec"})
    return out, pathlib.Path(f"{key}.pub")


def checked(out, key):
    """The commands of docs/releasing.md, as somebody types them who has the packages."""
    block = re.search(r"```sh\n(signify-openbsd -V .*?)```", (TOP / "docs/releasing.md").read_text(), re.S).group(1)
    script = block.replace("hotcell.pub", shlex.quote(str(key)))
    return subprocess.run(["sh", "-ec", script], cwd=out, capture_output=True, text=True, check=False)


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_what_is_published_is_whole(published):
    out, key = published
    done = checked(out, key)
    assert done.returncode == 0 and done.stdout.count(": OK") == 2, done


@pytest.mark.parametrize("which", ["*.deb", "*.cdx.json", "SHA256SUMS", "SHA256SUMS.sig"])
def test_a_flipped_bit_is_found(published, which):
    out, key = published
    flip(next(out.glob(which)))
    assert checked(out, key).returncode != 0


def test_another_key_is_refused(published, tmp_path):
    out, _ = published
    subprocess.run(["signify-openbsd", "-G", "-n", "-p", tmp_path / "b.pub", "-s", tmp_path / "b.sec"], check=True)
    assert checked(out, tmp_path / "b.pub").returncode != 0


def test_without_a_key_no_old_signature_is_left(published):
    out, key = published
    subprocess.run([TOP / "tools/sign-packages", out], check=True, env={k: v for k, v in os.environ.items() if k != "HOTCELL_SIGN_KEY"})
    assert (out / "SHA256SUMS").exists() and not (out / "SHA256SUMS.sig").exists() and checked(out, key).returncode != 0
