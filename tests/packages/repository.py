"""repository.py - an archive for apt of packages that were made here, signed with a key that lives as long as it does."""

import os
import pathlib
import subprocess

DISTRIBUTIONS = "Codename: stable\nArchitectures: amd64\nComponents: main\nSignWith: {key}\n"


class Repository:
    def __init__(self, folder, packages):
        self.folder, self.home = pathlib.Path(folder) / "repository", pathlib.Path(folder) / "gnupg"
        (self.folder / "conf").mkdir(parents=True)
        self.home.mkdir(mode=0o700)
        self.gpg("--quick-generate-key", "--passphrase", "", "hotcell-test", "ed25519", "sign", "1d")
        listed = self.gpg("--with-colons", "--list-keys").splitlines()
        key = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))
        (self.folder / "conf/distributions").write_text(DISTRIBUTIONS.format(key=key))
        (self.folder / "key.asc").write_text(self.gpg("--armor", "--export", key))
        self.add(packages)

    def gpg(self, *words):
        return subprocess.run(["gpg", "--batch", "--pinentry-mode", "loopback", *words], check=True, capture_output=True, text=True,
                              env={**os.environ, "GNUPGHOME": str(self.home)}).stdout

    def add(self, packages):
        subprocess.run(["reprepro", "--silent", "--ignore=extension", "-b", self.folder, "includedeb", "stable", *packages], check=True,
                       env={**os.environ, "GNUPGHOME": str(self.home)})

    def close(self):
        """gpg leaves a process that knows the key."""
        subprocess.run(["gpgconf", "--kill", "all"], check=False, env={**os.environ, "GNUPGHOME": str(self.home)})
