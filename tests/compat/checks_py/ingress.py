"""ingress.py - who may come to a sandbox's ports, and what its services see."""

from kit import ask_host, same

PATIENT = {"request_timeout": 180}  # a pause writes memory to the disk, and machines may be emulated
MASK = "localhost:${PORT}"
HEADER = "e2b-traffic-access-token"

# Answers with the Host it was told, and whether it was told a token; with a certificate in TLS.
SERVICE = """
import http.server, os, ssl

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{self.headers['host']} {self.headers['e2b-traffic-access-token']}".encode())

server = http.server.HTTPServer(("", 8000), Handler)
if os.path.exists("cert.pem"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
CERTIFICATE = ("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=nobody "
               "-keyout key.pem -out cert.pem && cat key.pem >> cert.pem")


async def serve(kit, box, headers=()):
    await box.files.write("/home/user/service.py", SERVICE)
    # without a stream to it: when that breaks off at a pause the newest SDKs look why, and resume the sandbox
    await box.commands.run("setsid nohup python3 service.py >service.log 2>&1 </dev/null &")

    async def answers():
        answer = ask_host(box.get_host(8000), headers=headers)
        return answer if answer.status == 200 else None
    return (await kit.until(answers, "the service answers", 300)).body.decode()


async def traffic_token(kit):
    box = await kit.create(network={"allow_public_traffic": False})
    token = box.traffic_access_token
    assert token, token
    same(await serve(kit, box, {HEADER: token}), f"{box.get_host(8000)} None")
    for headers, what in (({}, "is missing"), ({HEADER: "wrong"}, "is invalid")):
        answer = ask_host(box.get_host(8000), headers=headers)
        same((answer.status, answer.json["code"], answer.json["sandboxId"]), (403, 403, box.sandbox_id))
        assert answer.json["message"].endswith(what), answer.json
    same((await kit.Sandbox.connect(box.sandbox_id)).traffic_access_token, token)
    same((await kit.box()).traffic_access_token, None)


async def token_resumes(kit):
    box = await kit.create(network={"allow_public_traffic": False},
                           lifecycle={"on_timeout": "pause", "auto_resume": True})
    token = {HEADER: box.traffic_access_token}
    await serve(kit, box, token)
    same(await box.pause(**PATIENT), True)
    same(ask_host(box.get_host(8000)).status, 403)
    same((await kit.Sandbox.get_info(box.sandbox_id)).state.value, "paused")
    same(ask_host(box.get_host(8000), headers=token).status, 200)


async def mask(kit):
    box = await kit.create(network={"mask_request_host": MASK})
    same(await serve(kit, box), "localhost:8000 None")


async def https_port(kit):
    asked = {"https_ports": [8000], "mask_request_host": MASK, "allow_public_traffic": True}
    box = await kit.create(network=asked)
    await box.commands.run(CERTIFICATE)
    same(await serve(kit, box), "localhost:8000 None")
    network = (await kit.Sandbox.get_info(box.sandbox_id)).network
    same({name: network[name] for name in asked}, asked)
