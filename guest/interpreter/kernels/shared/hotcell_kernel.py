"""What our kernels on ipykernel share: they wait for who reads, and whatever they say can be written."""
import json

import zmq
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.jsonutil import json_default

PIECE = 64 * 1024  # of a message at most
WAITING = 1024 * 1024  # that is printed before somebody has to have taken it
QUEUE = 16  # messages that wait in the socket


def speakable(pack):
    def pack_any(value):
        """Half of a surrogate pair has no UTF-8. As an escape it can be said."""
        try:
            return pack(value)
        except UnicodeEncodeError:
            return json.dumps(value, default=json_default).encode()

    return pack_any


class WaitingApp(IPKernelApp):
    def init_iopub(self, context):
        self.session.pack = speakable(self.session.pack)
        # A full queue makes the kernel wait. The usual socket would throw messages away.
        context.sockopts[zmq.SNDHWM] = QUEUE
        super().init_iopub(context)
        del context.sockopts[zmq.SNDHWM]
        self.iopub_thread.socket.setsockopt(zmq.XPUB_NODROP, 1)

    def log_connection_info(self):
        """Nobody connects by hand."""
