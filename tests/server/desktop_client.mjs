// desktop_client.mjs - the published @e2b/desktop: the half of desktop_support.py that runs in Node.js.
//
//   node desktop_client.mjs NODE_MODULES
//
// Questions and answers are those of desktop_client.py; names are JavaScript's.
import { createInterface } from 'node:readline'

const { Sandbox } = await import(`${process.argv[2]}/@e2b/desktop/dist/index.mjs`)
let box = null

function plain(value) {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  return value?.stdout ?? value ?? null
}

async function call(question) {
  const names = question.call.split('.')
  const last = names.pop()
  const of = names.reduce((at, name) => at[name], box)
  const named = Object.keys(question.named ?? {}).length ? [question.named] : []
  return plain(await of[last](...(question.args ?? []), ...named))
}

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line)
  let said
  try {
    if (box) {
      said = { value: await call(question) }
    } else {
      box = await Sandbox.create(question.named)
      said = { value: box.sandboxId }
    }
  } catch (error) {
    said = { error: `${error.name}: ${error.message}` }
  }
  process.stdout.write(JSON.stringify(said) + '\n')
}
