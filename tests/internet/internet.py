"""internet.py - a whole internet for a test, in a network of its own.

    with Internet() as internet:
        Popen([*internet.inside, "hotcell-egress", ...])   # where everything it dials is world.py's
        internet.heard()                                   # who came since it was last asked

Nothing of it leads out, and nothing outside leads to it.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RESOLVER = "127.0.0.1:53"


class Internet:
    def __init__(self, program="world.py"):
        """`program`: of this folder, what answers at every address."""
        self.program = program
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hotcell-internet-"))
        self.process = None

    def __enter__(self):
        self.folder.chmod(0o755)  # the certificate is for others
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=the test's internet",
                        "-addext", "subjectAltName=DNS:good.test,DNS:*.wild.test,DNS:evil.test,DNS:shared.test",
                        "-keyout", self.folder / "key.pem", "-out", self.folder / "cert.pem"],
                       check=True, capture_output=True)
        self.process = subprocess.Popen(["unshare", "--net", sys.executable, HERE / self.program, self.folder],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)
        self.ask("ready")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        shutil.rmtree(self.folder)

    @property
    def inside(self):
        """What to put before a command that shall run there: it becomes the command, with the same pid."""
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net"]

    @property
    def certificate(self):
        """All its servers' own, which nobody else signed."""
        return self.folder / "cert.pem"

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the internet ended ({self.process.wait()})"
        return json.loads(line)

    def heard(self):
        return self.ask("heard")
