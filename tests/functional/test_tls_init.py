"""test_tls_init.py - `hotcell tls`: clients believe what it makes, and believe its authority nothing else."""

import json
import os
import pathlib
import re
import stat
import subprocess
import threading
import time

import pytest

from https_site import Site, by_curl, by_node, by_python
from layout import build_dir

TOP = pathlib.Path(__file__).resolve().parents[2]
DOMAIN, OTHER = "hotcell.localhost", "bank.example"
SANDBOX = f"49983-i6rd9o4aqskq2v1x8u5e0.{DOMAIN}"
DAY = 24 * 3600
OWNER = 786000 if os.geteuid() == 0 else os.geteuid()


class Tls:
    def __init__(self, folder):
        self.dir = folder / "tls"

    def run(self, *words, owner=OWNER):
        return subprocess.run([build_dir() / "src/cli/hotcell", "tls", *words, "--tls-dir", self.dir,
                               *(["--owner", str(owner)] if owner is not None else [])],
                              capture_output=True, text=True, timeout=60)

    def __call__(self, *words):
        r = self.run(*words)
        assert r.returncode == 0, r.stderr
        return r.stdout

    def json(self, *words):
        return json.loads(self(*words, "--json"))

    @property
    def ca(self):
        return self.dir / "authority/ca.pem"

    def files(self):
        """Path, inode and content of all that is there."""
        return {p.relative_to(self.dir): (p.stat().st_ino, p.read_bytes())
                for p in sorted(self.dir.rglob("*")) if p.is_file()}


@pytest.fixture
def tls(tmp_path):
    return Tls(tmp_path)


def openssl(*words, text=None):
    r = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, input=text, timeout=60)
    assert r.returncode == 0, r.stderr
    return r.stdout


def stamp(seconds):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))


def sign(tls, folder, names, begins=-3600, ends=30 * DAY, key=("ec", "ec_paramgen_curve:P-256")):
    """A pair that the authority signs by another hand: for what `hotcell tls` does not make."""
    folder.mkdir(parents=True, exist_ok=True)
    openssl("genpkey", "-algorithm", key[0], "-pkeyopt", key[1], "-out", folder / "privkey.pem")
    openssl("req", "-new", "-key", folder / "privkey.pem", "-subj", f"/CN={names[0]}", "-out", folder / "csr")
    (folder / "index").write_text("")
    (folder / "conf").write_text(f"""
[ca]
default_ca = a
[a]
database = {folder}/index
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = p
x509_extensions = e
unique_subject = no
[p]
commonName = supplied
[e]
basicConstraints = critical,CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = {",".join("DNS:" + name for name in names)}
""")
    openssl("ca", "-batch", "-notext", "-config", folder / "conf", "-cert", tls.ca, "-keyfile",
            tls.dir / "authority/ca.key", "-startdate", stamp(begins), "-enddate", stamp(ends), "-in", folder / "csr",
            "-out", folder / "fullchain.pem")
    return folder


def mode_and_owner(path):
    st = path.stat()
    return stat.S_IMODE(st.st_mode), st.st_uid


def test_files_are_where_and_whose_they_should_be(tls):
    tls("init")
    me = os.geteuid()
    assert mode_and_owner(tls.dir / "authority/ca.pem") == (0o644, me)
    assert mode_and_owner(tls.dir / "authority/ca.key") == (0o400, me)
    assert mode_and_owner(tls.dir / DOMAIN / "fullchain.pem") == (0o644, me)
    assert mode_and_owner(tls.dir / DOMAIN / "privkey.pem") == (0o400, OWNER)
    for folder in (tls.dir, tls.dir / "authority", tls.dir / DOMAIN):
        assert mode_and_owner(folder) == (0o755, me)
    assert len(tls.files()) == 4


def test_a_strict_umask_closes_nothing(tls):
    before = os.umask(0o077)
    try:
        tls("init")
    finally:
        os.umask(before)
    assert mode_and_owner(tls.dir)[0] == mode_and_owner(tls.dir / DOMAIN)[0] == 0o755
    assert mode_and_owner(tls.dir / DOMAIN / "fullchain.pem")[0] == 0o644


def test_openssl_python_node_and_curl_believe_it(tls):
    tls("init")
    chain = tls.dir / DOMAIN / "fullchain.pem"
    hosts = [DOMAIN, f"api.{DOMAIN}", SANDBOX]
    for host in hosts:
        openssl("verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", host, "-CAfile", tls.ca, chain)
    with Site(tls.dir / DOMAIN) as site:
        expected = [f"{host}:{site.port}" for host in hosts]
        assert [by_python(site.port, host, tls.ca) for host in hosts] == expected
        assert by_node(site.port, hosts, tls.ca) == expected
        assert [by_curl(site.port, host, tls.ca) for host in hosts] == expected
        # without the authority nobody does
        assert by_python(site.port, DOMAIN, None) == "unable to get local issuer certificate"
        assert by_node(site.port, [DOMAIN], "/dev/null")[0].startswith("UNABLE_TO_")
        assert by_curl(site.port, DOMAIN, "/etc/ssl/certs/ca-certificates.crt") == 60


def test_for_another_domain_nobody_believes_the_authority(tls, tmp_path):
    """Whoever steals its key cannot be a bank to those who trust it."""
    tls("init")
    names = [OTHER, f"www.{OTHER}"]
    with Site(sign(tls, tmp_path / "evil", names)) as site:
        for host in names:
            assert by_python(site.port, host, tls.ca) == "permitted subtree violation"
            assert by_curl(site.port, host, tls.ca) == 60
        assert by_node(site.port, names, tls.ca) == ["permitted subtree violation"] * 2
    # the same hand, within the domain: so it was the name
    with Site(sign(tls, tmp_path / "good", [f"x.{DOMAIN}"])) as site:
        assert by_python(site.port, f"x.{DOMAIN}", tls.ca) == f"x.{DOMAIN}:{site.port}"


def test_nor_do_firefox_and_its_kin(tls, tmp_path):
    """NSS has a verifier of its own."""
    tls("init")

    def certutil(*words):
        r = subprocess.run(["certutil", "-d", f"sql:{tmp_path}", *map(str, words)], capture_output=True, text=True, timeout=60)
        return r.returncode, r.stdout + r.stderr

    assert certutil("-N", "--empty-password")[0] == certutil("-A", "-t", "C,,", "-n", "ca", "-i", tls.ca)[0] == 0
    pairs = {"own": tls.dir / DOMAIN, "good": sign(tls, tmp_path / "good", [f"x.{DOMAIN}"]),
             "evil": sign(tls, tmp_path / "evil", [OTHER])}
    said = {}
    for name, folder in pairs.items():
        assert certutil("-A", "-t", ",,", "-n", name, "-i", folder / "fullchain.pem")[0] == 0
        said[name] = certutil("-V", "-u", "V", "-e", "-n", name)
    assert said["own"][0] == said["good"][0] == 0, said
    assert said["evil"][0] != 0 and "not permitted to issue a certificate with this name" in said["evil"][1]


def test_python_and_node_refuse_a_wildcard_below_one_label(tls, tmp_path):
    """Why one label is refused. OpenSSL's own check, which Python uses, and Node's."""
    r = tls.run("init", "localhost")
    assert r.returncode == 1
    assert "*.localhost" in r.stderr and "fix: " in r.stderr and not tls.dir.joinpath("authority").exists()
    folder = tmp_path / "one"
    folder.mkdir()
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=one",
            "-addext", "subjectAltName=DNS:*.localhost", "-days", "2", "-keyout", folder / "privkey.pem", "-out",
            folder / "fullchain.pem")
    with Site(folder) as site:
        assert "Hostname mismatch" in by_python(site.port, "api.localhost", folder / "fullchain.pem")
        assert by_node(site.port, ["api.localhost"], folder / "fullchain.pem") == ["ERR_TLS_CERT_ALTNAME_INVALID"]


def test_a_second_init_changes_nothing(tls):
    first = tls.json("init")
    before = tls.files()
    second = tls.json("init", f"{DOMAIN.upper()}.")
    assert tls.files() == before
    assert (first["madeAuthority"], first["madeCertificate"]) == (True, True)
    assert (second["madeAuthority"], second["madeCertificate"]) == (False, False)
    assert second["sha256"] == first["sha256"] and second["names"] == [DOMAIN, f"*.{DOMAIN}"]


def test_two_at_once_make_one_authority(tls):
    said = []
    threads = [threading.Thread(target=lambda: said.append(tls.json("init"))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(s["madeAuthority"] for s in said) == [False, False, False, True]
    assert len({s["sha256"] for s in said}) == 1 and len(tls.files()) == 4


@pytest.mark.parametrize("lost", ["privkey.pem", "fullchain.pem"])
def test_what_is_missing_of_a_pair_is_made_again(tls, lost):
    tls("init")
    (tls.dir / DOMAIN / lost).unlink()
    assert tls.json("init")["madeCertificate"]
    with Site(tls.dir / DOMAIN) as site:
        assert by_python(site.port, DOMAIN, tls.ca) == f"{DOMAIN}:{site.port}"


def test_what_an_interrupted_one_left_is_no_obstacle(tls):
    draft = tls.dir / ".authority.new"
    draft.mkdir(parents=True)
    (draft / "ca.key").write_text("half")
    tls("init")
    assert not draft.exists() and len(tls.files()) == 4


def test_an_authority_that_is_there_is_not_replaced(tls):
    tls("init")
    before = tls.files()
    r = tls.run("init", "other.test")
    assert r.returncode == 1 and f"is for {DOMAIN} alone" in r.stderr and "remove the folder" in r.stderr
    (tls.dir / "authority/ca.key").unlink()
    r = tls.run("init")
    assert r.returncode == 1 and "ca.key" in r.stderr and "fix: " in r.stderr
    assert (tls.dir / "authority/ca.pem").read_bytes() == before[pathlib.Path("authority/ca.pem")][1]


def test_files_of_others_are_left_alone(tls, tmp_path):
    own = Tls(tmp_path / "own")
    own("init", DOMAIN)
    tls("install", DOMAIN, own.dir / DOMAIN / "fullchain.pem", own.dir / DOMAIN / "privkey.pem")
    before = tls.files()
    r = tls.run("init", DOMAIN)
    assert r.returncode == 1
    assert "was not made here" in r.stderr and "move that folder away" in r.stderr
    assert {k: v for k, v in tls.files().items() if k.parts[0] == DOMAIN} == before


def test_a_domain_below_has_the_same_authority(tls):
    tls("init")
    said = tls.json("init", f"eu.{DOMAIN}")
    assert not said["madeAuthority"] and said["madeCertificate"]
    with Site(tls.dir / f"eu.{DOMAIN}") as site:
        assert by_python(site.port, f"api.eu.{DOMAIN}", tls.ca) == f"api.eu.{DOMAIN}:{site.port}"


@pytest.mark.parametrize("word", ["", "localhost", "com", "10.1.2.3", "[::1]", "*.x.test", "a_b.test", "bücher.test",
                                  "https://x.test", "x.test:0", "x.test:http", "x.test:1:2", "../../etc", "a/b.test",
                                  "x" * 64 + ".test", "a." * 95 + "test"])
def test_what_is_no_domain_is_refused_with_the_reason(tls, word):
    r = tls.run("init", word)
    assert r.returncode == 1 and r.stderr.startswith("hotcell: tls init: ") and "fix: " in r.stderr
    assert list(tls.dir.iterdir()) == []


def test_failures_are_for_machines_too(tls):
    said = json.loads(tls.run("init", "localhost", "--json").stderr)
    assert said["error"] == "invalid" and "localhost" in said["message"] and said["fix"]


def test_who_may_not_write_is_told_so(tls):
    r = tls.run("init", owner="nobody-of-this-name")
    assert r.returncode == 1 and "no user nobody-of-this-name" in r.stderr and "--owner" in r.stderr
    assert not tls.dir.exists()


@pytest.mark.parametrize("words", [[], ["init", "a.test", "b.test"], ["renew", "x"], ["install"],
                                   ["install", "a.test", "f"], ["nonsense"]])
def test_wrong_usage(tls, words):
    assert tls.run(*words).returncode == 2


# --- renewal ------------------------------------------------------------------------------------------


def make_due(tls, name=DOMAIN, begins=-61 * DAY, ends=29 * DAY):
    """In the place of what `tls init` made one that is in its last third."""
    folder = sign(tls, tls.dir / ".due", [name, f"*.{name}"], begins, ends)
    for file in ("fullchain.pem", "privkey.pem"):
        os.replace(folder / file, tls.dir / name / file)
    subprocess.run(["rm", "-r", folder], check=True)


def test_renew_waits_for_the_last_third(tls):
    tls("init")
    make_due(tls, begins=-59 * DAY, ends=31 * DAY)
    before = tls.files()
    assert tls.json("renew") == {"renewed": []} and tls("renew") == "nothing is due\n"
    assert tls.files() == before
    make_due(tls)
    assert tls.json("renew") == {"renewed": [DOMAIN]}
    assert [row["days"] for row in tls.json("status")] in ([89], [90])
    assert tls("renew") == "nothing is due\n"


def test_renew_does_not_break_a_server_that_looks_at_any_time(tls):
    """Each file is there, and a whole one, at any instant."""
    tls("init")
    stop, bad, seen = threading.Event(), [], set()

    def look_at(file, end):
        try:
            with open(tls.dir / DOMAIN / file) as f:
                text = f.read()
        except OSError as e:
            text = str(e)
        seen.add(text)
        if not text.endswith(end):
            bad.append((file, text))

    def look():
        while not stop.is_set():
            look_at("fullchain.pem", "-----END CERTIFICATE-----\n")
            look_at("privkey.pem", "-----END PRIVATE KEY-----\n")

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(3):
            make_due(tls)
            assert tls.json("renew") == {"renewed": [DOMAIN]}
    finally:
        stop.set()
        thread.join()
    assert not bad and len(seen) > 2
    assert mode_and_owner(tls.dir / DOMAIN / "privkey.pem") == (0o400, OWNER)
    with Site(tls.dir / DOMAIN) as site:
        assert by_python(site.port, SANDBOX, tls.ca) == f"{SANDBOX}:{site.port}"


def test_a_renewed_one_has_another_key(tls):
    tls("init")
    make_due(tls)
    before = (tls.dir / DOMAIN / "privkey.pem").read_bytes()
    tls("renew")
    assert (tls.dir / DOMAIN / "privkey.pem").read_bytes() != before


def test_renew_leaves_what_is_not_its_own(tls, tmp_path):
    """Own files and ACME's have somebody else who renews them, also when they are over soon."""
    assert tls("renew") == "nothing is due\n"  # no authority at all
    tls("init")
    other = Tls(tmp_path / "other")
    other("init", "own.test")
    pair = sign(other, tmp_path / "soon", ["own.test"], -61 * DAY, DAY)
    tls("install", "own.test", pair / "fullchain.pem", pair / "privkey.pem")
    (tls.dir / "empty.test").mkdir()
    before = tls.files()
    r = tls.run("renew")
    assert r.returncode == 0 and r.stdout == "nothing is due\n" and "passed over" in r.stderr
    assert tls.files() == before


def test_renew_says_when_the_authority_itself_is_over_soon(tls):
    """One that lives for 100 days more, made in the place of the real one."""
    tls("init")
    folder = tls.dir / "authority"
    assert "ends on" not in tls.run("renew").stderr
    conf = folder / ".conf"
    conf.write_text(f"""
[req]
distinguished_name = d
[d]
[e]
basicConstraints = critical,CA:TRUE,pathlen:0
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
nameConstraints = critical,permitted;DNS:{DOMAIN}
""")
    openssl("req", "-x509", "-config", conf, "-extensions", "e", "-key", folder / "ca.key", "-subj", f"/CN=Hotcell for {DOMAIN}",
            "-days", "100", "-out", folder / "ca.pem")
    assert "ends on" in tls.run("renew").stderr


# --- own files ----------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path):
    """A pair of somebody else's authority, and that authority."""
    other = Tls(tmp_path / "other")
    other("init", "sbx.example.test")
    return other


def test_install_puts_own_files_in_their_place(tls, own):
    pair = own.dir / "sbx.example.test"
    r = tls.run("install", "*.SBX.example.test", pair / "fullchain.pem", pair / "privkey.pem")
    assert r.returncode == 0 and r.stdout.startswith("installed ") and r.stderr == ""
    to = tls.dir / "sbx.example.test"
    assert mode_and_owner(to / "privkey.pem") == (0o400, OWNER) and mode_and_owner(to / "fullchain.pem")[0] == 0o644
    with Site(to) as site:
        assert by_python(site.port, "api.sbx.example.test", own.ca) == f"api.sbx.example.test:{site.port}"
    before = tls.files()
    assert tls("install", "sbx.example.test", pair / "fullchain.pem", pair / "privkey.pem").startswith("is there already")
    assert tls.files() == before
    assert tls.json("status")[0]["renewedHere"] is False


def test_install_takes_rsa(tls, own, tmp_path):
    pair = sign(own, tmp_path / "rsa", ["sbx.example.test", "*.sbx.example.test"], key=("rsa", "rsa_keygen_bits:2048"))
    tls("install", "sbx.example.test", pair / "fullchain.pem", pair / "privkey.pem")


def test_install_says_which_names_the_sdks_will_miss(tls, own, tmp_path):
    pair = sign(own, tmp_path / "narrow", ["sbx.example.test"])
    r = tls.run("install", "sbx.example.test", pair / "fullchain.pem", pair / "privkey.pem")
    assert r.returncode == 0 and "not for *.sbx.example.test" in r.stderr


def test_install_refuses_what_would_not_work_and_changes_nothing(tls, own, tmp_path):
    good = own.dir / "sbx.example.test"
    tls("install", "sbx.example.test", good / "fullchain.pem", good / "privkey.pem")
    before = tls.files()
    over = sign(own, tmp_path / "over", ["sbx.example.test"], -9 * DAY, -DAY)
    locked = tmp_path / "locked.pem"
    openssl("pkey", "-in", good / "privkey.pem", "-aes128", "-passout", "pass:x", "-out", locked)
    rows = [
        (good / "fullchain.pem", over / "privkey.pem", "not that of the certificate"),
        (over / "fullchain.pem", over / "privkey.pem", "not valid any more"),
        (good / "fullchain.pem", locked, "read the key"),
        (good / "privkey.pem", good / "fullchain.pem", "read a certificate"),
        (own.ca, own.dir / "authority/ca.key", "names no host"),
        (tmp_path / "nothing", good / "privkey.pem", "nothing"),
        ("/dev/zero", good / "privkey.pem", "/dev/zero"),
    ]
    for chain, key, why in rows:
        r = tls.run("install", "sbx.example.test", chain, key)
        assert r.returncode == 1 and why in r.stderr and "nothing was changed" in r.stderr, r.stderr
    assert tls.run("install", "../../x", good / "fullchain.pem", good / "privkey.pem").returncode == 1
    assert tls.run("install", "authority", good / "fullchain.pem", good / "privkey.pem").returncode == 1
    assert tls.files() == before


# --- status -------------------------------------------------------------------------------------------


def test_status_lists_names_issuer_and_days(tls, own, tmp_path):
    tls("init")
    pair = own.dir / "sbx.example.test"
    tls("install", "sbx.example.test", pair / "fullchain.pem", pair / "privkey.pem")
    rows = {row["name"]: row for row in tls.json("status")}
    assert set(rows) == {DOMAIN, "sbx.example.test"}
    assert rows[DOMAIN]["issuer"] == f"Hotcell for {DOMAIN}" and rows[DOMAIN]["renewedHere"]
    assert re.search(rf"{re.escape(DOMAIN)} +{re.escape(DOMAIN)} \*\.{re.escape(DOMAIN)} +Hotcell for", tls("status"))
    sum_ = openssl("x509", "-in", tls.dir / DOMAIN / "fullchain.pem", "-noout", "-fingerprint", "-sha256")
    assert sum_.strip().split("=")[1].replace(":", "").lower() == rows[DOMAIN]["sha256"]


def test_status_fails_when_something_is_wrong(tls):
    tls("init")
    assert tls.run("status", owner=None).returncode == 0  # it needs no user of that name
    make_due(tls, begins=-90 * DAY, ends=-60)  # a minute is enough
    r = tls.run("status", "--json")
    assert r.returncode == 1 and json.loads(r.stdout)[0]["days"] == -1
    (tls.dir / DOMAIN / "fullchain.pem").write_text("rubbish")
    r = tls.run("status", "--json")
    assert r.returncode == 1 and "read a certificate" in json.loads(r.stdout)[0]["error"]


# --- what it tells people -----------------------------------------------------------------------------


def test_the_lines_are_for_this_domain_and_port(tls):
    text = tls("init", f"{DOMAIN}:8443")
    for line in (f"domain = {DOMAIN}:8443", "listen_tls = 127.0.0.1:8443,[::1]:8443", f"export E2B_DOMAIN={DOMAIN}:8443",
                 f"export NODE_EXTRA_CA_CERTS={tls.ca}", "sudo apt-get install -y libnss-myhostname"):
        assert line in text.splitlines(), line
    assert f"E2B_DOMAIN={DOMAIN}\n" in tls("init", f"{DOMAIN}:443")


def test_the_lines_of_a_lan_name_its_resolver(tls):
    text = tls("init", "hotcell.lan")
    assert "address=/hotcell.lan/ADDRESS" in text and "myhostname" not in text
    assert "listen_tls = 0.0.0.0:443" in text


def test_chromium_s_list_takes_the_authority(tls, tmp_path):
    """The line for Chromium as it is printed, in a home of its own."""
    text = tls("init")
    lines = "\n".join(line for line in text.splitlines() if "nssdb" in line)
    r = subprocess.run(["sh", "-e", "-c", lines], capture_output=True, text=True, timeout=60,
                       env={**os.environ, "HOME": str(tmp_path)})
    assert r.returncode == 0, r.stderr
    listed = subprocess.run(["certutil", "-d", f"sql:{tmp_path}/.pki/nssdb", "-L"], capture_output=True, text=True)
    assert re.search(rf"hotcell-{re.escape(DOMAIN)} +C,,", listed.stdout)


def blocks(page, section):
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"```(?:sh|ini gateway\.conf|text)?\n(.*?)```", text, re.S)


def test_the_page_says_what_the_command_says(tls):
    """docs/tls.md, One machine: each of its lines is a line that is printed, and so one that the next test types."""
    page = (TOP / "docs/tls.md").read_text()
    first, *others = blocks(page, "One machine")
    words = first.split()
    assert words[:3] == ["sudo", "hotcell", "tls"]
    printed = tls(*words[3:]).replace(str(tls.dir), "/etc/hotcell/tls").splitlines()
    typed = [line for block in others for line in block.splitlines()]
    assert len(typed) > 8 and all(line in printed for line in typed), [line for line in typed if line not in printed]


# What the lines change is changed in copies, seen in a namespace of their own alone.
APART = """
set -e
for what in /etc/ssl/certs /usr/local/share/ca-certificates; do
    mkdir -p $what "$HERE$what"
    cp -a $what/. "$HERE$what"
    mount --bind "$HERE$what" $what
done
sed 's/^hosts:.*/hosts: files myhostname/' /etc/nsswitch.conf >"$HERE/nsswitch.conf"
mount --bind "$HERE/nsswitch.conf" /etc/nsswitch.conf
"""
# Names by the system's resolver, authorities by the system's lists: nothing is told to any of these clients. But that the site
# here listens on IPv4 alone: Node 18 tries the first address and no other.
CLIENTS = """
curl -sS https://api.$DOMAIN:$PORT/
echo
python3 -c "
import urllib.request
print(urllib.request.urlopen('https://49983-i1.$DOMAIN:$PORT/').read().decode())"
NODE_OPTIONS=--dns-result-order=ipv4first node -e "
fetch('https://3000-i1.$DOMAIN:$PORT/').then((r) => r.text()).then(console.log)"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a mount namespace")
def test_who_types_the_lines_can_use_the_names(tls, tmp_path):
    """All that is printed for the system, Python and Node, typed as it is; then clients that know nothing of it."""
    text = tls("init", f"{DOMAIN}:8443").partition("# 2. ")[2].partition("# 4. ")[0]
    lines = "\n".join(line for line in text.splitlines()[1:] if "nssdb" not in line and "apt-get" not in line)
    assert "update-ca-certificates" in lines and "NODE_EXTRA_CA_CERTS" in lines
    sudo = tmp_path / "bin/sudo"
    sudo.parent.mkdir()
    sudo.write_text("#!/bin/sh\nexec \"$@\"\n")
    sudo.chmod(0o755)
    with Site(tls.dir / DOMAIN) as site:
        r = subprocess.run(["unshare", "-m", "sh", "-c", f"{APART}\n{{ {lines}\n}} >&2\n{CLIENTS}"], capture_output=True, text=True,
                           timeout=120, env={**os.environ, "PATH": f"{sudo.parent}:/usr/sbin:/usr/bin:/sbin:/bin",
                                             "HERE": str(tmp_path), "DOMAIN": DOMAIN, "PORT": str(site.port)})
        assert r.stdout.split() == [f"{name}.{DOMAIN}:{site.port}" for name in ("api", "49983-i1", "3000-i1")], r.stderr
