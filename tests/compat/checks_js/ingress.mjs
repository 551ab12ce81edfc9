// ingress.mjs - who may come to a sandbox's ports, and what its services see.

import assert from 'node:assert/strict'

import { askHost, e2b, same, until } from './kit.mjs'

const { Sandbox } = e2b
const PATIENT = { requestTimeoutMs: 180_000 } // a pause writes memory to the disk, and machines may be emulated
const MASK = 'localhost:${PORT}'
const HEADER = 'e2b-traffic-access-token'

// Answers with the Host it was told, and whether it was told a token; with a certificate in TLS.
const SERVICE = `
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
`
const CERTIFICATE =
  'openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=nobody ' +
  '-keyout key.pem -out cert.pem && cat key.pem >> cert.pem'

async function serve(box, headers = {}) {
  await box.files.write('/home/user/service.py', SERVICE)
  // without a stream to it: when that breaks off at a pause the newest SDKs look why, and resume the sandbox
  await box.commands.run('setsid nohup python3 service.py >service.log 2>&1 </dev/null &')
  const answers = async () => {
    const answer = await askHost(box.getHost(8000), '/', headers)
    return answer.status === 200 && answer
  }
  return (await until(answers, 'the service answers', 300_000)).body
}

export async function trafficToken(kit) {
  const box = await kit.create({ network: { allowPublicTraffic: false } })
  const token = box.trafficAccessToken
  assert.ok(token)
  same(await serve(box, { [HEADER]: token }), `${box.getHost(8000)} None`)
  for (const [headers, what] of [[{}, 'is missing'], [{ [HEADER]: 'wrong' }, 'is invalid']]) {
    const answer = await askHost(box.getHost(8000), '/', headers)
    const body = JSON.parse(answer.body)
    same([answer.status, body.code, body.sandboxId], [403, 403, box.sandboxId])
    assert.ok(body.message.endsWith(what), body.message)
  }
  same((await Sandbox.connect(box.sandboxId)).trafficAccessToken, token)
  assert.ok(!(await kit.box()).trafficAccessToken)
}

export async function tokenResumes(kit) {
  const lifecycle = { onTimeout: 'pause', autoResume: true }
  const box = await kit.create({ network: { allowPublicTraffic: false }, lifecycle })
  const token = { [HEADER]: box.trafficAccessToken }
  await serve(box, token)
  same(await box.pause(PATIENT), true)
  same((await askHost(box.getHost(8000))).status, 403)
  same((await Sandbox.getInfo(box.sandboxId)).state, 'paused')
  same((await askHost(box.getHost(8000), '/', token)).status, 200)
}

export async function mask(kit) {
  const box = await kit.create({ network: { maskRequestHost: MASK } })
  same(await serve(box), 'localhost:8000 None')
}

export async function httpsPort(kit) {
  const asked = { httpsPorts: [8000], maskRequestHost: MASK, allowPublicTraffic: true }
  const box = await kit.create({ network: asked })
  await box.commands.run(CERTIFICATE)
  same(await serve(box), 'localhost:8000 None')
  const { network } = await Sandbox.getInfo(box.sandboxId)
  same(Object.fromEntries(Object.keys(asked).map((name) => [name, network[name]])), asked)
}
