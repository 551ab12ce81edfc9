"""played_dns.py - a name server on loopback with one zone, which takes dynamic updates (RFC 2136) signed with one key.

    with PlayedDns("example.test") as dns:
        dns.port, dns.key_text               # for nsupdate
        dns.records                          # {("_acme-challenge.example.test.", "TXT"): {"value", ...}}
        dns.updates                          # what was written, in order: ("add" | "delete", name, value)
"""

import base64
import os
import socket
import threading

import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.tsigkeyring
import dns.update

KEY_NAME = "hotcell-acme"
TTL = 60


class PlayedDns:
    def __init__(self, zone):
        self.zone = dns.name.from_text(zone)
        secret = base64.b64encode(os.urandom(32)).decode()
        self.keys = dns.tsigkeyring.from_text({KEY_NAME: ("hmac-sha256", secret)})
        self.key_text = f'key "{KEY_NAME}" {{ algorithm hmac-sha256; secret "{secret}"; }};\n'
        self.records, self.updates, self.refused = {}, [], 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"", ("127.0.0.1", self.port))
        self.thread.join()
        self.socket.close()

    def serve(self):
        while True:
            data, peer = self.socket.recvfrom(65536)
            if not data:
                return
            try:
                asked = dns.message.from_wire(data, keyring=self.keys)
            except Exception:  # another key, or none of ours
                self.refused += 1
                asked = dns.message.from_wire(data, keyring=False, ignore_trailing=True, continue_on_error=True)
                answer = dns.message.Message(asked.id)
                answer.flags = dns.flags.QR
                answer.set_opcode(asked.opcode())
                answer.set_rcode(dns.rcode.NOTAUTH)
                self.socket.sendto(answer.to_wire(), peer)
                continue
            self.socket.sendto(self.answer(asked).to_wire(), peer)

    def answer(self, asked):
        answer = dns.message.make_response(asked)
        if asked.opcode() == dns.opcode.UPDATE:
            if not asked.had_tsig:
                self.refused += 1
                answer.set_rcode(dns.rcode.REFUSED)
            else:
                self.update(asked)
            return answer
        answer.flags |= dns.flags.AA
        question = asked.question[0]
        name, kind = question.name, question.rdtype
        if name == self.zone and kind == dns.rdatatype.SOA:
            answer.answer.append(self.soa())
        else:
            values = self.records.get((name.to_text().lower(), dns.rdatatype.to_text(kind)), ())
            if values:
                answer.answer.append(dns.rrset.from_text(name, TTL, "IN", kind, *(f'"{v}"' for v in sorted(values))))
            else:
                answer.authority.append(self.soa())
        return answer

    def soa(self):
        zone = self.zone.to_text()
        return dns.rrset.from_text(self.zone, TTL, "IN", "SOA", f"ns.{zone} admin.{zone} 1 60 60 60 60")

    def update(self, asked):
        for rrset in asked.update:
            name, kind = rrset.name.to_text().lower(), dns.rdatatype.to_text(rrset.rdtype)
            values = self.records.setdefault((name, kind), set())
            for rdata in rrset:
                value = b"".join(rdata.strings).decode()
                if rrset.deleting == dns.rdataclass.NONE:
                    values.discard(value)
                    self.updates.append(("delete", name, value))
                else:
                    values.add(value)
                    self.updates.append(("add", name, value))
