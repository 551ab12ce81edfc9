"""certs.py - an authority and certificates for a test, by the openssl command, in a tls_dir as an installation has it.

    authority = Authority(base)
    put(tls_dir, "a", authority.issue("a.example", "*.a.example"))     # NAME/fullchain.pem, NAME/privkey.pem
"""

import collections
import hashlib
import itertools
import os
import pathlib
import subprocess

Pair = collections.namedtuple("Pair", "chain key")  # texts, PEM
KINDS = {"P-256": ("ec", "ec_paramgen_curve:P-256"), "P-384": ("ec", "ec_paramgen_curve:P-384"),
         "RSA": ("rsa", "rsa_keygen_bits:2048")}
NUMBERS = itertools.count(1)


def openssl(*words, **more):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, **more).stdout


class Authority:
    def __init__(self, base):
        self.base = base / "authority"
        self.base.mkdir()
        self.cert, self.key = self.base / "ca.pem", self.base / "ca.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-subj", "/CN=Test authority", "-keyout", self.key, "-out", self.cert,
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, *names, kind="P-256", days=10, use="serverAuth", key=None):
        """`key`: PEM of one that exists; `days` may be negative: it is over."""
        number = next(NUMBERS)
        request, own, cert, ext = (self.base / f"{number}.{end}" for end in ("csr", "key", "crt", "ext"))
        if key:
            own.write_text(key)
        else:
            algorithm, option = KINDS[kind]
            openssl("genpkey", "-algorithm", algorithm, "-pkeyopt", option, "-out", own)
        openssl("req", "-new", "-key", own, "-subj", f"/CN=test {number}", "-out", request)
        ext.write_text(f"subjectAltName={','.join('DNS:' + name for name in names)}\nextendedKeyUsage={use}\n"
                       "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
                       "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n")
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-set_serial", number,
                "-days", days, "-sha256", "-extfile", ext, "-out", cert)
        return Pair(cert.read_text() + self.cert.read_text(), own.read_text())


def put_file(path, text, owner=None, mode=0o644):
    """As an operator should: another file, renamed over the old one."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    draft.chmod(mode)
    if owner is not None:
        os.chown(draft, owner, owner)
    draft.rename(path)


def put(tls_dir, name, pair, owner, chain=True, key=True):
    folder = pathlib.Path(tls_dir) / name
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    if key:
        put_file(folder / "privkey.pem", pair.key, owner, 0o400)
    if chain:
        put_file(folder / "fullchain.pem", pair.chain)


def key_id(pair):
    """By which the signer knows it: SHA-256 of its public half."""
    der = openssl("pkey", "-pubout", "-outform", "DER", input=pair.key.encode())
    return hashlib.sha256(der).digest()
