"""small_root.py - a small root of Debian, for images that are booted: bash, the tools of coreutils, what they need.

    Image([small_root()])        # of made_images.py
"""

import io
import re
import tarfile

from engine import artefact

LIBRARIES = ("ld-linux-x86-64", "libc", "libtinfo", "libacl", "libcap", "libattr", "libgmp", "libcrypto", "libselinux", "libpcre2-8")
PICKED = re.compile(r"\./(usr/?|usr/(bin|sbin|lib|lib64)/?|bin|sbin|lib|lib64|tmp/?|etc/?|proc/?|sys/?|dev/?|run/?|root/?|home/?|"
                    r"etc/(passwd|group|debian_version)|usr/lib/x86_64-linux-gnu/?|"
                    r"usr/bin/(bash|sh|dash|cat|chmod|chown|cp|cut|date|echo|env|find|grep|head|id|ln|ls|mkdir|mv|nproc|printf|rm|seq|sha256sum|sed|sort|tail|tee|tr|"
                    r"sleep|stat|sync|test|touch|true|uname|wc|whoami)|"
                    rf"usr/(lib|lib64)/.*({'|'.join(map(re.escape, LIBRARIES))})\.so[.0-9]*)")


def small_root():
    """A layer, as bytes of a tar file."""
    out = io.BytesIO()
    with tarfile.open(artefact("rootfs")) as whole, tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as small:
        for entry in whole:
            if PICKED.fullmatch(entry.name):
                small.addfile(entry, whole.extractfile(entry) if entry.isreg() else None)
    return out.getvalue()
