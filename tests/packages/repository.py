"""repository.py - an archive for apt of packages that were made here, by the commands of docs/releasing.md ("An archive of your
own"), signed with a key that lives as long as it does.
"""

import os
import pathlib
import re
import shutil
import subprocess

from engine import TOP

ANNOUNCED = re.search(r"## An archive of your own\n.*?```sh\n(mkdir.*?)```", (TOP / "docs/releasing.md").read_text(), re.S)[1]
MAKES_PACKAGES = "sudo tools/packages packages\n"


class Repository:
    def __init__(self, folder, packages):
        self.top = pathlib.Path(folder)
        self.folder, self.packages, self.home = self.top / "archive", self.top / "packages", self.top / "gnupg"
        self.home.mkdir(mode=0o700)
        self.packages.mkdir()
        self.gpg("--quick-generate-key", "--passphrase", "", "hotcell-archive", "ed25519", "sign", "1d")
        listed = self.gpg("--with-colons", "--list-keys").splitlines()
        self.key = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))
        self.add(packages)

    def environment(self):
        return {**os.environ, "GNUPGHOME": str(self.home)}

    def gpg(self, *words):
        return subprocess.run(["gpg", "--batch", "--pinentry-mode", "loopback", *words], check=True, capture_output=True, text=True,
                              env=self.environment()).stdout

    def add(self, packages):
        """Also later ones, of what is there."""
        assert MAKES_PACKAGES in ANNOUNCED  # they are made already
        for package in packages:
            shutil.copy(package, self.packages)
        done = subprocess.run(["sh", "-ec", ANNOUNCED.replace(MAKES_PACKAGES, "")], cwd=self.top, env={**self.environment(), "KEY": self.key},
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def close(self):
        """gpg leaves a process that knows the key."""
        subprocess.run(["gpgconf", "--kill", "all"], check=False, env=self.environment())
