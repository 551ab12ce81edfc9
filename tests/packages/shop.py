"""shop.py - where a host without internet gets packages from: a web server on its loopback, for apt, pip and npm.

    shop = Shop(host, repository)      # /etc/pip.conf and /etc/npmrc name it; shop.url is what README.md calls URL

For pip and npm it has the SDKs of `tools/artefact sdks`, packed again out of where they are installed. What is compiled fits
one Python alone: `compiled` names what pip fetches for that of the host.
"""

import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import zipfile

from engine import artefact

AT, PORT = "/srv/shop", 8000


def wheel_name(info):
    """All of its tags, as PEP 425 compresses them: py2.py3-none-any."""
    tags = [line.split()[1].split("-") for line in (info / "WHEEL").read_text().splitlines() if line.startswith("Tag:")]
    parts = [".".join(dict.fromkeys(part)) for part in zip(*tags)]
    return f"{info.name.removesuffix('.dist-info')}-{'-'.join(parts)}.whl"


def pack_wheels(venv, folder):
    """Of what is in it; a wheel is what is listed in its RECORD, without what the installation made."""
    site = next((venv / "lib").glob("python3*")) / "site-packages"
    folder.mkdir()
    for info in site.glob("*.dist-info"):
        if info.name.startswith(("pip-", "setuptools-")):
            continue
        with zipfile.ZipFile(folder / wheel_name(info), "w") as wheel:
            for line in (info / "RECORD").read_text().splitlines():
                name = line.rsplit(",", 2)[0].strip('"')
                if not name.startswith("../") and not name.endswith(".pyc"):
                    wheel.write(site / name, name)


def fetch_wheels(python, names, folder):
    """With all that they need, for a Python of this version."""
    subprocess.run([pathlib.Path(artefact("playwright")) / "bin/python", "-m", "pip", "download", "-q", "--only-binary=:all:",
                    "--python-version", python, "--dest", folder, *names], check=True)


def pack_npm(modules, folder, url):
    """A registry as files: each name is a JSON file, which says where its package is."""
    (folder / "-").mkdir(parents=True)
    for file in [*modules.glob("*/package.json"), *modules.glob("@*/*/package.json")]:
        about = json.loads(file.read_text())
        packed = f"{about['name'].replace('/', '-')}-{about['version']}.tgz"
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as tar:
            tar.add(file.parent, "package")
        (folder / "-" / packed).write_bytes(data.getvalue())
        page = folder / about["name"]
        page.parent.mkdir(exist_ok=True)
        page.write_text(json.dumps({"name": about["name"], "dist-tags": {"latest": about["version"]},
                                    "versions": {about["version"]: {**about, "dist": {"tarball": f"{url}/npm/-/{packed}"}}}}))


class Shop:
    def __init__(self, host, repository, compiled=()):
        self.host, self.repository = host, repository
        self.server, self.url = f"http://127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT}/apt"
        self.stock_apt()
        sdks = pathlib.Path(artefact("sdks")) / "newest"
        pack_wheels(sdks / "python", host.path(AT) / "wheels")
        if compiled:
            python = host.run("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
            fetch_wheels(python, compiled, host.path(AT) / "wheels")
        pack_npm(sdks / "js/node_modules", host.path(AT) / "npm", self.server)
        host.path("/etc/pip.conf").write_text(f"[install]\nno-index = yes\nfind-links = {AT}/wheels\n")
        host.path("/etc/npmrc").write_text(f"registry = {self.server}/npm/\naudit = false\nfund = false\nupdate-notifier = false\n")
        host.run("systemd-run", "--unit=shop", "--property=DynamicUser=yes", "python3", "-m", "http.server", "--bind", "127.0.0.1",
                 "--directory", AT, PORT)
        host.wait(lambda: host.try_run("curl", "-sfo", "/dev/null", self.url + "/hotcell.asc").returncode == 0, "the shop is open", 30)

    def stock_apt(self):
        """Also again, when the repository has something new."""
        at = self.host.path(AT) / "apt"
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(self.repository.folder, at)
