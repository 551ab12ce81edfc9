"""test_browser_template.py - sandboxes of the template `browser`: Chromium runs in the snapshot, in its own sandbox, and its network is
the guest's. Its pages are driven from inside, by guest/browser's cdp.py.
"""

import json
import time

import pytest

from certs import openssl
from template_server import TemplateServer
from warden import wait_for

SECONDS = 180  # an emulated guest is slow
FASTER = 10    # a create, than a start of the same Chromium in the same guest
VERSION = ("/usr/bin/curl", "-sf", "--max-time", "60")
URL = "http://127.0.0.1:9222/json/version"

# In the guest: a site of its own, with TLS on 8443, and a file to download.
SITE = """
import http.server, os, ssl, threading
class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        if self.path == "/file":
            self.send_header("content-disposition", "attachment; filename=saved.txt")
        self.end_headers()
        self.wfile.write(b"<title>served</title>kept as it is")
    def log_message(self, *words):
        pass
plain = http.server.ThreadingHTTPServer(("127.0.0.1", 8080), Site)
secure = http.server.ThreadingHTTPServer(("127.0.0.1", 8443), Site)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tmp/site.pem")
secure.socket = context.wrap_socket(secure.socket, server_side=True)
if os.fork():
    os._exit(0)
os.setsid()
for n in range(3):
    os.dup2(os.open("/dev/null", os.O_RDWR), n)
threading.Thread(target=plain.serve_forever).start()
secure.serve_forever()
"""


@pytest.fixture(scope="module")
def server():
    with TemplateServer("browser", node={"pool_each_max": 1}) as s:
        yield s


def drive(server, box, code):
    """What `code` leaves in `answer`; it has `cdp` and `page`, the first tab."""
    text = f"import json, sys, time\nsys.path.insert(0, '/usr/lib/hotcell/browser')\nimport cdp\npage = cdp.first_page()\n{code}\nprint(json.dumps(answer))"
    server.write(box, "/tmp/drive.py", text.encode())
    return json.loads(server.run(box, "python3 /tmp/drive.py", SECONDS))


def certificate(server, folder):
    """For the guest's own site, by the authority that guests trust."""
    keys = server.base / "injector"
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / "key", "-subj", "/CN=site",
            "-out", folder / "csr")
    (folder / "ext").write_text("subjectAltName=DNS:site.localhost\nextendedKeyUsage=serverAuth\nbasicConstraints=critical,CA:FALSE\n")
    openssl("x509", "-req", "-in", folder / "csr", "-CA", keys / "root.crt", "-CAkey", keys / "root.key", "-set_serial", "77",
            "-days", "3", "-extfile", folder / "ext", "-out", folder / "crt")
    return (folder / "crt").read_bytes() + (folder / "key").read_bytes()


@pytest.fixture(scope="module")
def box(server, tmp_path_factory):
    box = server.create(templateID="browser")
    server.write(box, "/tmp/site.pem", certificate(server, tmp_path_factory.mktemp("site")))
    server.write(box, "/tmp/site.py", SITE.encode())
    server.run(box, "python3 /tmp/site.py", SECONDS)
    return box


def first_answer(server):
    """Seconds from create to the first answer of DevTools."""
    begun = time.monotonic()
    box = server.create(templateID="browser")
    said = json.loads(server.run(box, URL, SECONDS, shell=VERSION))
    took = time.monotonic() - begun
    assert said["Browser"].startswith("Chrome/")
    assert server.delete(box) == 204
    return took


def test_renderers_are_in_chromiums_own_sandbox(server, box):
    said = server.run(box, r"""
        pgrep -u user -f '^/usr/lib/chromium/chromium ' | while read -r pid; do
            tr '\0' ' ' </proc/$pid/cmdline | grep -o -e '--type=[a-z-]*' -e '--no-sandbox' | xargs echo "$pid" \
                $(sed -n 's/^Seccomp:\s*//p' /proc/$pid/status) $(sudo readlink /proc/$pid/ns/{user,pid,net})
        done
        echo own 0 $(readlink /proc/self/ns/{user,pid,net})""", SECONDS)
    rows = [line.split() for line in said.splitlines()]
    own, renderers = rows[-1], [row for row in rows if "--type=renderer" in row]
    assert renderers, said
    assert not any("--no-sandbox" in row for row in rows), said
    for row in renderers:
        assert row[1] == "2", said  # a filter of system calls
        assert all(theirs != ours for theirs, ours in zip(row[2:5], own[2:5])), said


def test_a_page_with_the_installations_authority(server, box):
    answer = drive(server, box, "answer = [page.go('https://site.localhost:8443/'), page.value('document.title')]")
    assert answer == [None, "served"]


def test_downloads_are_files_of_the_sandbox(server, box):
    drive(server, box, "answer = page.go('http://127.0.0.1:8080/'); page.value(\"location = '/file'\")")
    wait_for(lambda: "saved.txt" in server.run(box, "ls ~/Downloads", SECONDS).split(), "the download is there", SECONDS, 0.2)
    assert b"kept as it is" in server.read(box, "/home/user/Downloads/saved.txt")


def test_a_pause_keeps_the_page_and_its_profile(server, box):
    before = drive(server, box, """
page.go('http://127.0.0.1:8080/')
page.value("window.kept = 'in memory'; localStorage.kept = 'in the profile'; document.cookie = 'kept=cookie; max-age=9999'")
answer = page.id""")
    sandbox = box["sandboxID"]
    assert server.api("POST", f"/sandboxes/{sandbox}/pause", seconds=SECONDS).status == 204
    time.sleep(3)  # a clock that stood still would be late by that
    assert server.api("POST", f"/sandboxes/{sandbox}/connect", {"timeout": 3600}, seconds=SECONDS).status == 201
    after = drive(server, box, "answer = [page.id, page.value('[kept, localStorage.kept, document.cookie, Date.now() / 1000]'), time.time()]")
    assert after[0] == before
    assert after[1][:3] == ["in memory", "in the profile", "kept=cookie"]
    assert abs(after[1][3] - time.time()) < 2.5


CHANCE = """
page.go('http://127.0.0.1:9222/json/version')
draw = "[Math.random(), ...crypto.getRandomValues(new Uint32Array(4))]"
other = page.open()
other.go('http://127.0.0.1:9222/json/version')
answer = [page.value("Math.random()"), other.value("Math.random()"), page.value("performance.timeOrigin")]"""


def test_pages_of_two_sandboxes_draw_other_numbers(server):
    boxes = [server.create(templateID="browser") for _ in range(2)]
    one, other = [drive(server, box, CHANCE) for box in boxes]
    print(one, other)
    assert not set(one) & set(other)
    for box in boxes:
        assert server.delete(box) == 204


def test_a_create_is_ten_times_faster_than_a_start(server, box):
    """The last of this sandbox: Chromium is killed, and comes again by itself, with its profile."""
    warm = min(first_answer(server) for _ in range(3))
    cold = float(server.run(box, """
        pid=$(pgrep -o -u user chromium)
        sudo sh -c "echo 3 >/proc/sys/vm/drop_caches"
        begun=$(date +%s.%N)
        kill -9 "$pid"
        until [ "$(pgrep -o -u user chromium)" != "$pid" ] && curl -sf --max-time 60 http://127.0.0.1:9222/json/version >/dev/null; do sleep 0.1; done
        echo "$(date +%s.%N) $begun" | awk '{ print $1 - $2 }'""", SECONDS))
    print(f"create to the first answer of DevTools {warm:.2f} s, a start {cold:.2f} s: {cold / warm:.0f} x")
    kept = drive(server, box, "page.go('http://127.0.0.1:8080/'); answer = page.value('[localStorage.kept, document.cookie]')")
    assert kept == ["in the profile", "kept=cookie"]
    assert cold >= FASTER * warm
