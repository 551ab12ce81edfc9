"""test_tls_scan.py - what sslyze finds at the gateway, with an EC key and with an RSA key: nothing to complain of, and what docs/tls.md says."""

import json
import pathlib
import re
import subprocess

import pytest

from engine import artefact
from lone_gateway import DOMAIN
from tls_gateway import TlsGateway

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/tls.md"
NAMES = {"EC": f"api.{DOMAIN}", "RSA": "rsa.example"}  # the kind of the key: a name whose certificate has such a one
VERSIONS = {"SSL 2": "ssl_2_0", "SSL 3": "ssl_3_0", "TLS 1.0": "tls_1_0", "TLS 1.1": "tls_1_1", "TLS 1.2": "tls_1_2",
            "TLS 1.3": "tls_1_3"}


def scan(gateway, name, file):
    """(what it prints, what it found)."""
    done = subprocess.run([artefact("sslyze") / "bin/python", "-m", "sslyze", "--mozilla_config=intermediate", "--resum",
                           "--early_data", "--certinfo_ca_file", gateway.authority.cert, f"--json_out={file}",
                           f"{name}:{gateway.tls_port}{{127.0.0.1}}"],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    found = json.loads(file.read_text())["server_scan_results"][0]["scan_result"]
    return done.stdout, {what: part["result"] for what, part in found.items() if part["status"] == "COMPLETED"}


@pytest.fixture(scope="module", name="scans")
def fixture_scans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sslyze")
    with TlsGateway() as gateway:
        pair = gateway.authority.issue(NAMES["RSA"], kind="RSA")
        gateway.put("RSA", pair)
        gateway.wait_served("RSA", pair)
        yield {kind: scan(gateway, name, folder / kind) for kind, name in NAMES.items()}


@pytest.mark.parametrize("kind", NAMES)
def test_it_is_what_mozilla_calls_intermediate(scans, kind):
    """Versions, suites, curves, certificates, known attacks."""
    said, _found = scans[kind]
    assert "OK - Compliant" in said and "VULNERABLE" not in said


# --- the page ---

def suites(found, version):
    return [each["cipher_suite"]["name"] for each in found[f"{VERSIONS[version]}_cipher_suites"]["accepted_cipher_suites"]]


def listed(words):
    return ", ".join(sorted(words)) or "none"


def either(is_so, yes="yes", no="no"):
    return yes if is_so else no


def rows(kind, found):
    """What the page has to say of it."""
    resumed, again = found["session_resumption"], found["session_renegotiation"]
    weak = [found["heartbleed"]["is_vulnerable_to_heartbleed"], found["openssl_ccs_injection"]["is_vulnerable_to_ccs_injection"],
            not found["robot"]["robot_result"].startswith("NOT_VULNERABLE")]
    return {"versions": listed(version for version in VERSIONS if suites(found, version)),
            "suites of TLS 1.3": listed(suites(found, "TLS 1.3")),
            f"suites of TLS 1.2, {kind} key": listed(suites(found, "TLS 1.2")),
            "curves": listed(curve["name"] for curve in found["elliptic_curves"]["supported_curves"]),
            "resumption by tickets; by ids": "; ".join(either(resumed[f"{how}_resumption_result"] == "FULLY_SUPPORTED")
                                                       for how in ("tls_ticket", "session_id")),
            "renegotiation by the client": either(again["is_vulnerable_to_client_renegotiation_dos"] or
                                                  again["client_renegotiations_success_count"]),
            "compression": either(found["tls_compression"]["supports_compression"]),
            "early data (0-RTT)": either(found["tls_1_3_early_data"]["supports_early_data"]),
            "fallback signal; extended master secret": "; ".join(map(either, (
                found["tls_fallback_scsv"]["supports_fallback_scsv"],
                found["tls_extended_master_secret"]["supports_ems_extension"]))),
            "Heartbleed, CCS injection, ROBOT": either(any(weak), "VULNERABLE", "not vulnerable")}


def test_the_page_says_what_it_finds(scans):
    found = {}
    for kind, (_said, one) in scans.items():
        found |= rows(kind, one)
    wanted = [f"| {what} | {how} |" for what, how in found.items()]
    table = re.search(r"^\| What \| sslyze finds \|\n\|---\|---\|\n((?:\|.*\n)*)", PAGE.read_text(), re.M)
    assert table and sorted(table[1].splitlines()) == sorted(wanted), "\n".join(wanted)


def test_both_keys_have_the_same_but_for_their_suites(scans):
    ec, rsa = (rows("some", found) for _said, found in scans.values())
    assert {what for what in ec if ec[what] != rsa[what]} == {"suites of TLS 1.2, some key"}
