// interpreter_client.mjs - the half of interpreter_support.py that runs in Node.js, with the published package.
//
//   node interpreter_client.mjs NODE_MODULES
//
// Questions and answers are those of interpreter_client.py; names of options are JavaScript's.
import { createHash } from 'node:crypto'
import { createInterface } from 'node:readline'

const { Sandbox } = await import(`${process.argv[2]}/@e2b/code-interpreter/dist/index.mjs`)
const LONG = 1 << 16 // a longer text is told by its size and its sum
const NAMES = ['text', 'html', 'markdown', 'svg', 'png', 'jpeg', 'pdf', 'latex', 'json', 'javascript', 'data', 'chart']
const boxes = new Map()

const say = (what) => process.stdout.write(JSON.stringify(what) + '\n')

function told(texts) {
  const size = texts.reduce((sum, text) => sum + text.length, 0)
  if (size <= LONG) return texts.join('')
  const total = createHash('sha256')
  for (const text of texts) total.update(text)
  return { size, sha256: total.digest('hex') }
}

function toldResult(result) {
  const kept = { main: result.isMainResult, extra: result.extra }
  for (const name of NAMES) {
    const value = result[name]
    if (value) kept[name] = typeof value === 'string' ? told([value]) : value
  }
  return kept
}

function toldExecution(ran) {
  return {
    text: ran.text === undefined ? null : told([ran.text]), results: ran.results.map(toldResult),
    stdout: told(ran.logs.stdout), stderr: told(ran.logs.stderr), count: ran.executionCount,
    error: ran.error ? { name: ran.error.name, value: ran.error.value, traceback: ran.error.traceback } : null,
  }
}

async function run(box, n, { code, streamed, context, ...more }) {
  if (context) more.context = { id: context }
  if (streamed) more.onStdout = (message) => say({ n, out: message.line })
  return toldExecution(await box.runCode(code, more))
}

async function answer({ n, do: what, box, ...more }) {
  if (what === 'create' || what === 'connect') {
    const { sandbox_id: id, ...options } = more
    const made = what === 'create' ? await Sandbox.create(options) : await Sandbox.connect(id, options)
    boxes.set(made.sandboxId, made)
    return made.sandboxId
  }
  if (what === 'run') return run(boxes.get(box), n, more)
  if (what === 'command') {
    const { cmd, ...options } = more
    return (await boxes.get(box).commands.run(cmd, options)).stdout
  }
  if (what === 'call') return (await boxes.get(box)[more.method](...more.args, more.options)) ?? null
  throw new Error(what)
}

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line)
  answer(question).then((value) => say({ n: question.n, value }),
    (e) => say({ n: question.n, error: e.message, kind: e.name }))
}
process.exit(0)
