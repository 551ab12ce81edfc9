// kit.mjs - what the checks stand on.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

// the package is where the runner was told, not beside these files
export const e2b = await import(pathToFileURL(`${process.env.E2B_PACKAGE}/dist/index.mjs`))
export const PATIENCE = 300_000 // ms; machines may be emulated
export const same = assert.deepEqual
export { sleep }

const { Sandbox } = e2b

// The error of a promise that must be rejected with one of these.
export async function rejected(promise, ...kinds) {
  let value
  try {
    value = await promise
  } catch (error) {
    if (kinds.some((kind) => error instanceof kind)) return error
    throw error
  }
  throw new Error(`no ${kinds.map((k) => k.name).join(' or ')} but ${JSON.stringify(value)?.slice(0, 300)}`)
}

// Waits until `holds` gives something true; returns that.
export async function until(holds, what, ms = PATIENCE) {
  const deadline = Date.now() + ms
  for (;;) {
    const value = await holds()
    if (value) return value
    assert.ok(Date.now() < deadline, `still not: ${typeof what === 'function' ? what() : what}`)
    await sleep(50)
  }
}

export async function allOf(pages) {
  const found = []
  while (pages.hasNext) found.push(...(await pages.nextItems()))
  return found
}

// Of one worker. `box()` is a sandbox that its checks share; `create()` makes one for this check alone.
export class Kit {
  own = []

  begin(check) {
    this.name = `${check.replace('.', '-')}-${randomBytes(4).toString('hex')}`
  }

  async box() {
    this.shared ??= await Sandbox.create({
      timeoutMs: 3_600_000,
      metadata: { shared: 'yes' },
      envs: { GREETING: 'hello' },
    })
    return this.shared
  }

  async create(...args) {
    const opts = typeof args.at(-1) === 'object' ? args.pop() : {}
    const box = await Sandbox.create(...args, { timeoutMs: 600_000, ...opts })
    this.own.push(box)
    return box
  }

  // A new one in the shared sandbox; its path.
  async folder(box) {
    await box.files.makeDir(`/tmp/${this.name}`)
    return `/tmp/${this.name}`
  }

  // What was made for a check goes; the shared one too when the check failed in it.
  async end(well) {
    if (!well && this.shared) {
      this.own.push(this.shared)
      this.shared = undefined
    }
    for (const box of this.own) await box.kill().catch(() => {})
    this.own = []
  }

  async close() {
    await this.shared?.kill()
  }

  async terminal(box, opts = {}) {
    const terminal = new Terminal(box)
    const onData = (data) => terminal.hear(data)
    terminal.handle = await box.pty.create({ cols: 80, rows: 24, timeoutMs: PATIENCE, onData, ...opts })
    return terminal
  }

  async terminalAgain(box, pid) {
    const terminal = new Terminal(box)
    terminal.handle = await box.pty.connect(pid, { timeoutMs: PATIENCE, onData: (data) => terminal.hear(data) })
    return terminal
  }

  async watch(box, path, opts = {}) {
    const watch = new Watch()
    watch.handle = await box.files.watchDir(path, (event) => watch.events.push(event), { timeoutMs: PATIENCE, ...opts })
    return watch
  }
}

// A terminal whose output is kept.
class Terminal {
  text = ''

  constructor(box) {
    this.box = box
  }

  get pid() {
    return this.handle.pid
  }

  hear(data) {
    this.text += Buffer.from(data).toString('utf8')
  }

  async send(text) {
    await this.box.pty.sendInput(this.pid, new TextEncoder().encode(text))
  }

  async hearUntil(fragment) {
    await until(() => this.text.includes(fragment), () => `${fragment} in ${JSON.stringify(this.text)}`, 60_000)
  }

  // Its exit code.
  async ended() {
    try {
      return (await this.handle.wait()).exitCode
    } catch (error) {
      if (error instanceof e2b.CommandExitError) return error.exitCode
      throw error
    }
  }
}

// A watch whose events are kept.
class Watch {
  events = []

  seen() {
    return this.events.map((event) => `${event.name} ${event.type}`)
  }

  // Waits for events, each 'NAME KIND'.
  async until(...wanted) {
    const came = () => wanted.every((event) => this.seen().includes(event))
    await until(came, () => `want ${wanted.join(', ')}; came ${this.seen().join(', ')}`, 30_000)
  }
}

// --- plain HTTP, as somebody without the package ---

export function ask(method, url, { body, headers = {} } = {}) {
  return new Promise((resolve, reject) => {
    const r = (url.startsWith('https:') ? https : http).request(url, { method, headers, agent: false, timeout: 60_000 }, (answer) => {
      const pieces = []
      answer.on('data', (piece) => pieces.push(piece))
      answer.on('error', reject)
      answer.on('end', () => resolve({ status: answer.statusCode, body: Buffer.concat(pieces).toString() }))
    })
    r.on('error', reject)
    r.on('timeout', () => r.destroy(new Error('no answer')))
    r.end(body)
  })
}

// A request to a sandbox's host name, at the server's address: there is no DNS here.
export const askHost = (host, path = '/', headers = {}) =>
  ask('GET', process.env.PLAIN_URL + path, { headers: { Host: host, ...headers } })

// Says which sandbox's agent is meant where a host name would.
export const named = (box) => ({ 'E2b-Sandbox-Id': box.sandboxId, 'E2b-Sandbox-Port': '49983' })

// A request to the sandbox's agent with no token but what `headers` say.
export const askAgent = (box, path, { method = 'GET', body, headers = {} } = {}) =>
  ask(method, process.env.PLAIN_URL + path, { body, headers: { ...named(box), ...headers } })
