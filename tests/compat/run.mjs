// run.mjs - runs checks with the JavaScript package; one line of JSON per result.
//
//   node run.mjs NODE_MODULES VERSION AT_ONCE CHECK...

const CHECK_MS = 420_000
const [modules, version, atOnce, ...checks] = process.argv.slice(2)
process.env.E2B_PACKAGE = `${modules}/e2b`

const { Kit, sleep } = await import('./checks_js/kit.mjs')

async function functionOf(check) {
  const [file, name] = check.split('.')
  const found = (await import(`./checks_js/${file}.mjs`))[camel(name)]
  if (!found) throw new Error(`there is no ${camel(name)} in ${file}.mjs`)
  return found
}

// kill_of_an_unknown_id is killOfAnUnknownId here
const camel = (name) => name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase())

async function late() {
  await sleep(CHECK_MS, undefined, { ref: false })
  throw new Error('took too long')
}

async function one(kit, check) {
  kit.begin(check)
  const started = performance.now()
  let error = null
  try {
    await Promise.race([(await functionOf(check))(kit), late()])
  } catch (e) {
    error = String(e?.stack ?? e).slice(0, 1500)
  }
  await kit.end(error === null)
  const seconds = Math.round((performance.now() - started) / 10) / 100
  console.log(JSON.stringify({ client: 'js', version, check, result: error ? 'fail' : 'pass', error, seconds }))
}

async function work() {
  const kit = new Kit()
  for (let check = checks.shift(); check; check = checks.shift()) await one(kit, check)
  await kit.close()
}

await Promise.all(Array.from({ length: Number(atOnce) }, work))
process.exit(0)
