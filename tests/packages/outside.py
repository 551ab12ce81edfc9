"""outside.py - a host's way to the internet that leads nowhere, and notes who wanted to go where.

    outside = Outside(host)
    outside.sent()     # {"hotcell-egress to 93.184.216.34:443"}: dropped, and noted by the kernel
    outside.asked()    # {"packages.example"}: names, at a resolver on the host's loopback, which knows one address for all but *.localhost
"""

import json
import pathlib

AT = "/srv/outside"
NAMES = pathlib.Path(__file__).resolve().parent.parent / "internet/names.py"
RESOLVER = """import socket
import names

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
while True:
    data, whence = s.recvfrom(4096)
    name, kind, _ = names.read_question(data)
    with open("asked", "a") as asked:
        print(name, file=asked)
    if name.endswith(".localhost"):  # which nobody has, by RFC 6761
        s.sendto(names.answer(data, [], names.NXDOMAIN), whence)
    else:
        s.sendto(names.answer(data, [names.GOOD] if kind == names.A else []), whence)
"""
# as early as can be: rules of others come later
RULES = """table inet outside {
    set sent4 { typeof meta skuid . ip daddr . th dport; flags dynamic; size 1000; }
    set sent6 { typeof meta skuid . ip6 daddr . th dport; flags dynamic; size 1000; }
    chain output {
        type filter hook output priority -400; policy accept;
        oifname "lo" accept
        add @sent4 { meta skuid . ip daddr . th dport }
        add @sent6 { meta skuid . ip6 daddr . th dport }
        drop
    }
}
"""


class Outside:
    def __init__(self, host):
        self.host, at = host, host.path(AT)
        at.mkdir()
        (at / "names.py").write_bytes(NAMES.read_bytes())
        (at / "resolver.py").write_text(RESOLVER)
        (at / "rules").write_text(RULES)
        (at / "asked").touch()
        host.run("ip", "tuntap", "add", "outside", "mode", "tun")  # nobody reads from it
        host.run("ip", "address", "add", "203.0.113.2/24", "dev", "outside")
        host.run("ip", "link", "set", "outside", "up")
        host.run("ip", "route", "add", "default", "dev", "outside")
        host.run("ip", "-6", "route", "add", "default", "dev", "outside")
        host.run("nft", "-f", f"{AT}/rules")
        host.run("systemd-run", "--unit=resolver", f"--working-directory={AT}", "python3", "resolver.py")
        host.path("/etc/resolv.conf").unlink(missing_ok=True)
        host.path("/etc/resolv.conf").write_text("nameserver 127.0.0.1\n")
        # what is not seen here would not be seen later, either
        for address in ("198.51.100.1", "2001:db8::1"):
            host.try_run("python3", "-c", f"import socket; socket.create_connection(('{address}', 443), 0.1)")
            assert f"root to {address}:443" in self.sent(), self.sent()
        host.wait(lambda: host.try_run("getent", "hosts", "first.test").returncode == 0, "the resolver answers", 30)
        self.forget()

    def sent(self):
        found = set()
        for name in ("sent4", "sent6"):
            told = json.loads(self.host.run("nft", "-j", "list", "set", "inet", "outside", name))["nftables"]
            for element in next(row["set"] for row in told if "set" in row).get("elem", []):
                user, address, port = element["concat"]
                found.add(f"{self.name_of(user)} to {address}:{port}")
        return found

    def name_of(self, user):
        return self.host.try_run("getent", "passwd", str(user)).stdout.partition(":")[0] or str(user)

    def asked(self):
        return set(self.host.path(f"{AT}/asked").read_text().split())

    def forget(self):
        for name in ("sent4", "sent6"):
            self.host.run("nft", "flush", "set", "inet", "outside", name)
        self.host.path(f"{AT}/asked").write_text("")
