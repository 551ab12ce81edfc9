// kernel.js - a Jupyter kernel for JavaScript and TypeScript in plain Node.
//
//   kernel.js CONNECTION_FILE
//
// This thread runs the user's code. Another (wire.js) speaks to the server, so that it can be asked, and code can be
// interrupted, while a loop runs here.
'use strict';

const fs = require('fs');
const {createRequire, builtinModules} = require('module');
const path = require('path');
const {pathToFileURL} = require('url');
const util = require('util');
const vm = require('vm');
const {Worker} = require('worker_threads');
const {read} = require('./cell.js');

const PIECE = 64 * 1024;         // characters of one message of output
const QUICK_MS = 20;
const WAIT_MS = 20;              // at a time: meanwhile nothing can be ended
const WAITING = 4 * 1024 * 1024; // bytes that are published before somebody has to have taken them

const taken = new Int32Array(new SharedArrayBuffer(4));
const wire = new Worker(path.join(__dirname, 'wire.js'), {workerData: {file: process.argv[2], taken}});
wire.on('error', (error) => {
  fs.writeSync(2, `${error.stack}\n`);
  process.kill(process.pid, 'SIGKILL');
});

// --- what is said -----------------------------------------------------------------------------------------------------

let current = null; // the execution that runs: {run, header, silent}
let last = null;    // or ran
let count = 0;

function say(type, content, size = 0) {
  const about = current || last;
  if (type !== 'stream') flush();
  if (about && about.silent && type !== 'status') return;
  for (let now; size && (now = Atomics.load(taken, 0)) > WAITING;) Atomics.wait(taken, 0, now, WAIT_MS);
  wire.postMessage({say: type, content, parent: about && about.header, size});
  if (size) Atomics.add(taken, 0, size); // last: what is ended before it is said must not count for ever
}

let held = '', heldFor = 'stdout', sent = 0; // output that waits for more of its kind

function flush() {
  const text = held;
  held = '';
  if (text) sent = Date.now();
  for (let at = 0; at < text.length; at += PIECE) {
    const piece = text.slice(at, at + PIECE);
    say('stream', {name: heldFor, text: piece}, 2 * piece.length + 512);
  }
}

// What is written in quick succession is one message: a message costs far more than a line.
function redirect(name) {
  process[name].write = (chunk, encoding, done) => {
    if (name !== heldFor) flush();
    heldFor = name;
    if (!held) setImmediate(flush);
    held += typeof chunk === 'string' ? chunk
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('utf8');
    if (held.length >= PIECE || Date.now() - sent > QUICK_MS) flush();
    const after = typeof encoding === 'function' ? encoding : done;
    if (typeof after === 'function') process.nextTick(after);
    return true;
  };
}

const METHODS = {'text/html': '_toHtml', 'image/svg+xml': '_toSvg', 'image/png': '_toPng', 'image/jpeg': '_toJpeg'};

function isPlain(value) {
  return Array.isArray(value) || (value && typeof value === 'object' && [Object.prototype, null].includes(Object.getPrototypeOf(value)));
}

// All that a value can be shown as.
function bundle(value) {
  const data = {'text/plain': util.inspect(value)};
  if (isPlain(value)) {
    try {
      const json = JSON.stringify(value);
      if (json !== undefined) data['application/json'] = JSON.parse(json);
    } catch {
      // it goes round in circles
    }
  }
  if (value && typeof value === 'object') {
    for (const [mime, method] of Object.entries(METHODS)) {
      if (typeof value[method] === 'function') data[mime] = String(value[method]());
    }
    if (typeof value._toMime === 'function') Object.assign(data, value._toMime());
  }
  return data;
}

function display(value) {
  const isBundle = isPlain(value) && !Array.isArray(value) && Object.keys(value).some((key) => /^[a-z0-9]+\/[-+.a-z0-9]+$/.test(key));
  const data = isBundle ? value : bundle(value);
  say('display_data', {data, metadata: {}, transient: {}}, JSON.stringify(data).length + 512);
}

// --- code --------------------------------------------------------------------------------------------------------------

// import() and import of code without a file: from the working directory.
function entryOf(folder, manifest) {
  let entry = manifest.exports === undefined ? manifest.module || manifest.main || 'index.js' : manifest.exports;
  if (typeof entry === 'object' && entry && '.' in entry) entry = entry['.'];
  for (let i = 0; i < 8 && entry && typeof entry === 'object'; i++) entry = entry.import || entry.node || entry.default;
  return typeof entry === 'string' ? path.join(folder, entry) : null;
}

function findModule(name) {
  const here = createRequire(path.join(process.cwd(), 'cell.js'));
  try {
    return here.resolve(name);
  } catch (error) {
    for (const folder of here.resolve.paths(name) || []) { // a package that cannot be required
      const file = path.join(folder, name, 'package.json');
      if (fs.existsSync(file)) return entryOf(path.dirname(file), JSON.parse(fs.readFileSync(file, 'utf8'))) || name;
    }
    throw error;
  }
}

async function importModule(name) {
  if (builtinModules.includes(name) || /^(node|data|file):/.test(name)) return import(name);
  const found = /^\.{0,2}\//.test(name) ? path.resolve(process.cwd(), name) : findModule(name);
  return import(pathToFileURL(found).href);
}

function compile(code, name, columns) {
  return new vm.Script(code, {filename: name, columnOffset: -columns, importModuleDynamically: importModule});
}

function makeGlobal(name) {
  const is = Object.getOwnPropertyDescriptor(globalThis, name);
  if (is && (is.get || is.set || !is.writable)) {
    Object.defineProperty(globalThis, name, {value: undefined, writable: true, configurable: true, enumerable: true});
  } else if (!is) {
    globalThis[name] = undefined;
  }
}

function start(source, name) {
  const cell = read(source);
  for (const each of cell.names) makeGlobal(each);
  if (cell.functions.length) compile(cell.hoisted(), name, 0).runInThisContext();
  return compile(cell.code(), name, '(async () => {'.length).runInThisContext();
}

const OURS = [__dirname, 'node:internal', 'node:vm', '(node:'];

function describe(error) {
  if (!(error instanceof Error) && !(error && typeof error.stack === 'string')) {
    const text = typeof error === 'string' ? error : util.inspect(error);
    return {ename: 'Error', evalue: text, traceback: [`Uncaught ${text}`]};
  }
  const lines = String(error.stack).split('\n').filter((line) => !OURS.some((our) => line.includes(our)));
  // one text: E2B's server joins several with nothing between them
  return {ename: String(error.name), evalue: String(error.message), traceback: [lines.join('\n')]};
}

function finish(run, content) {
  if (!current || current.run !== run) return; // it was interrupted
  const silent = current.silent;
  if (content.status === 'error' && !silent) {
    say('error', {ename: content.ename, evalue: content.evalue, traceback: content.traceback});
  }
  flush();
  last = current;
  current = null;
  wire.postMessage({reply: run, content: {execution_count: count, user_expressions: {}, payload: [], ...content}});
  setImmediate(next);
}

const queue = [];

function next() {
  if (current || !queue.length) return;
  current = queue.shift();
  const {run, code, silent} = current;
  if (!silent) count++;
  say('status', {execution_state: 'busy'});
  say('execute_input', {code: '', execution_count: count});
  let value;
  try {
    value = start(code, `cell ${count}`);
  } catch (error) {
    return finish(run, {status: 'error', ...describe(error)});
  }
  value.then((result) => {
    if (!current || current.run !== run) return;
    if (result !== undefined && !silent) {
      const data = bundle(result);
      say('execute_result', {data, metadata: {}, execution_count: count}, JSON.stringify(data).length + 512);
    }
    finish(run, {status: 'ok'});
  }).catch((error) => finish(run, {status: 'error', ...describe(error)}));
}

const INTERRUPTED = {status: 'error', ename: 'KeyboardInterrupt', evalue: 'The execution was interrupted', traceback: []};

wire.on('message', (m) => {
  if (m.interrupt) {
    wire.postMessage({answered: true});
    if (current) finish(current.run, INTERRUPTED);
    else setImmediate(next);
    return;
  }
  queue.push({run: m.run, header: m.header, code: String(m.content.code), silent: !!m.content.silent});
  next();
});

// --- the world of a cell ------------------------------------------------------------------------------------------------

// Chance of its own, drawn from the machine: what V8 and OpenSSL were seeded with may be in a snapshot that others are
// made of. The module draws new seeds for OpenSSL when it is loaded.
function own() {
  const seed = Buffer.alloc(16);
  const fd = fs.openSync('/dev/urandom', 'r');
  fs.readSync(fd, seed);
  fs.closeSync(fd);
  let a = seed.readUInt32LE(0), b = seed.readUInt32LE(4), c = seed.readUInt32LE(8), d = seed.readUInt32LE(12) | 1;
  const word = () => { // xorshift128, as good as what it replaces
    const t = a ^ (a << 11);
    a = b, b = c, c = d;
    d = (d ^ (d >>> 19) ^ t ^ (t >>> 8)) >>> 0;
    return d;
  };
  Math.random = {random: () => ((word() >>> 5) * 67108864 + (word() >>> 6)) / 9007199254740992}.random;
  process.dlopen({exports: {}}, process.argv[3]);
}

function report(error) {
  const {traceback} = describe(error);
  process.stderr.write(`${traceback.join('\n')}\n`);
}

redirect('stdout');
redirect('stderr');
process.on('uncaughtException', report); // of a callback: nobody waits for it
process.on('unhandledRejection', report);
process.on('SIGINT', () => {});
process.on('exit', (code) => fs.writeSync(2, `javascript kernel: exit(${code})\n`));
Object.defineProperty(globalThis, Symbol.for('hotcell'), {value: {own}});
for (const [name, value] of Object.entries({
  display, module: {exports: {}}, exports: {}, __dirname: process.cwd(), __filename: path.join(process.cwd(), 'cell.js'),
  require: createRequire(path.join(process.cwd(), 'cell.js'))})) {
  Object.defineProperty(globalThis, name, {value, writable: true, configurable: true, enumerable: false});
}
