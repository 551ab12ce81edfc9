"""test_names.py - the names of sandboxes: what clients are told, and what of it the gateway understands.

The two functions of the SDKs that make addresses of it are here word for word in what they compute; that the SDKs themselves do
so is what tests/compat sees.
"""

import pytest

from lone_gateway import LoneGateway

OTHERS = ("e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev")  # what the SDKs fall back to, or treat in a way of its own


def api_url(e2b_domain):
    return f"https://api.{e2b_domain}"


def get_host(box, port, e2b_domain):
    """A domain that the server tells goes before the client's own; without any, it is E2B's."""
    return f"{port}-{box['sandboxID']}.{box.get('domain') or e2b_domain or 'e2b.app'}"


def create(gateway, host):
    answer = gateway.ask("POST", "/sandboxes", {"templateID": "base"}, headers={"Host": host})
    assert answer.status == 201, answer.raw
    return answer.json


def log_has(gateway, text):
    return text in gateway.daemon.log()


@pytest.fixture(scope="module")
def unset():
    with LoneGateway(domain="") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def with_port():
    with LoneGateway(domain="Hotcell.localhost:8443") as gateway:
        yield gateway


@pytest.mark.parametrize("called, domain", [
    ("127.0.0.1:3000", "localhost:3000"), ("localhost:3000", "localhost:3000"), ("[::1]:3000", "localhost:3000"),
    ("api.hotcell.localhost:8443", "hotcell.localhost:8443"), ("api.hotcell.example", "hotcell.example"),
    ("gw.corp.example", "gw.corp.example"), ("192.168.7.7:3000", "domain-is-not-set.invalid")])
def test_without_a_domain_getHost_names_nothing_foreign(unset, called, domain):
    """It did: 3000-ID.e2b.app. Whoever opened that showed a stranger the sandbox's id, and perhaps its token."""
    box = create(unset, called)
    assert box["domain"] == domain
    assert get_host(box, 3000, None) == f"3000-{box['sandboxID']}.{domain}"
    assert not any(get_host(box, 3000, None).endswith(other) for other in OTHERS)
    listed = unset.ask("GET", f"/sandboxes/{box['sandboxID']}", headers={"Host": called})
    assert listed.json["domain"] == domain


def test_without_a_domain_no_address_is_made_that_leads_nowhere(unset):
    sandbox = create(unset, "192.168.7.7:3000")["sandboxID"]
    asked = unset.ask("POST", f"/sandboxes/{sandbox}/addresses", headers={"Host": "192.168.7.7:3000"})
    assert asked.status == 412 and "set `domain` in gateway.conf" in asked.json["message"], asked
    assert unset.ask("POST", f"/sandboxes/{sandbox}/addresses", headers={"Host": "127.0.0.1:3000"}).status == 201


def test_without_a_domain_there_is_a_warning_that_says_what_to_set(unset):
    assert log_has(unset, "domain is not set") and log_has(unset, "docs/tls.md")
    assert unset.admin("GET", "/admin/status").json["gateway"]["domain"] is None


def test_what_it_tells_leads_back_to_it(unset):
    """A name below localhost, opened by a browser, is this gateway again."""
    box = create(unset, f"127.0.0.1:{unset.port}")
    host = get_host(box, 3000, None)
    assert host.endswith(f".localhost:{unset.port}")
    answer = unset.ask("GET", "/", key=None, headers={"Host": host})
    assert answer.status == 502 and "port is not open" in answer.json["message"], answer.raw
    assert answer.json["sandboxId"] == box["sandboxID"] and answer.json["port"] == 3000


def test_a_port_in_the_domain(with_port):
    """E2B_DOMAIN=hotcell.localhost:8443: the port is in every address, and in no name."""
    domain = "hotcell.localhost:8443"
    assert api_url(domain) == "https://api.hotcell.localhost:8443"
    box = create(with_port, "api.hotcell.localhost:8443")
    assert box["domain"] == domain
    for host in (get_host(box, 49983, domain), get_host(box, 49983, domain).upper(), get_host(box, 49983, "x.test"),
                 get_host(box, 49983, domain).replace(":8443", ""), get_host(box, 49983, domain).replace(":8443", ":443")):
        answer = with_port.ask("GET", "/", key=None, headers={"Host": host})
        assert answer.json["sandboxId"] == box["sandboxID"], (host, answer.raw)
    assert not log_has(with_port, "domain is not set")
    assert with_port.admin("GET", "/admin/status").json["gateway"]["domain"] == domain


def test_the_domain_and_what_is_below_it_is_the_api(with_port):
    for host in ("hotcell.localhost:8443", "hotcell.localhost", "api.hotcell.localhost:8443", "api.hotcell.localhost"):
        assert with_port.ask("GET", "/sandboxes", headers={"Host": host}).status == 200, host


@pytest.mark.parametrize("domain", ["https://hotcell.example", "*.hotcell.example", "hotcell.example:", "10.0.0.1", "a b",
                                    "hotcell.example:99999"])
def test_a_domain_that_is_none_stops_the_gateway_with_the_reason(domain, tmp_path):
    gateway = LoneGateway(domain=domain)
    try:
        gateway.node.__enter__()
        with pytest.raises(Exception):
            gateway.start()
        assert log_has(gateway, "it is NAME or NAME:PORT"), gateway.daemon.log()
    finally:
        gateway.remove()
