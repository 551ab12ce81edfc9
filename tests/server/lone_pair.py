"""lone_pair.py - a real gateway before a real node, both confined as in production; no VM, no template of the host.

    with LonePair() as pair:
        pair.ask("POST", "/v3/templates", {"name": "web"})
        pair.node.kill(); pair.restart_node()
"""

import refused_calls
from lone_gateway import GATEWAY_UID, LoneGateway
from lone_node import LoneNode


class PairedNode(LoneNode):
    def __enter__(self):
        super().__enter__()
        self.begin()
        return self

    def begin(self, **settings):
        self.start(gateway_uid=GATEWAY_UID, gateway_gid=GATEWAY_UID, **settings)


class LonePair(LoneGateway):
    def __init__(self, **settings):
        node = PairedNode()
        super().__init__(node_socket=node.base / "node.sock", **settings)
        self.node = node

    def __exit__(self, *exc):
        try:
            if not exc[0]:
                refused_calls.check("node", self.node.log())
                refused_calls.check("gateway", self.daemon.log())
        finally:
            super().__exit__(*exc)

    def restart_node(self, **settings):
        self.node.kill()
        self.node.begin(**settings)
