// wire.js - the thread that speaks: it hears requests, publishes, and interrupts, while the other thread runs code.
'use strict';

const crypto = require('crypto');
const fs = require('fs');
const inspector = require('inspector');
const {parentPort, workerData} = require('worker_threads');
const zmtp = require('./zmtp.js');

const DELIMITER = '<IDS|MSG>';
const UNANSWERED_MS = 100; // then the other thread is in the middle of something, and that is ended
const AGAIN_MS = 50;

const connection = JSON.parse(fs.readFileSync(workerData.file, 'utf8'));
const {taken} = workerData; // shared: bytes published that nobody has taken yet
const session = crypto.createHash('sha256').update(connection.key).digest('hex').slice(0, 32);
let serial = 0;

function where(port) {
  return connection.transport === 'ipc' ? {path: `${connection.ip}-${port}`} : {host: connection.ip, port};
}

function sign(parts) {
  const mac = crypto.createHmac('sha256', connection.key);
  for (const part of parts) mac.update(part);
  return mac.digest('hex');
}

function pack(ids, type, content, parent) {
  const header = {msg_id: `${session}-${++serial}`, session, username: 'kernel', date: new Date().toISOString(),
    msg_type: type, version: '5.3'};
  const parts = [header, parent || {}, {}, content].map((part) => Buffer.from(JSON.stringify(part)));
  return [...ids, Buffer.from(DELIMITER), Buffer.from(sign(parts)), ...parts];
}

function unpack(frames) {
  const at = frames.findIndex((f) => f.toString('latin1') === DELIMITER);
  if (at < 0 || frames.length < at + 6) return null;
  const parts = frames.slice(at + 2, at + 6), signature = Buffer.from(sign(parts));
  if (signature.length !== frames[at + 1].length || !crypto.timingSafeEqual(signature, frames[at + 1])) return null;
  try {
    return {ids: frames.slice(0, at), header: JSON.parse(parts[0]), content: JSON.parse(parts[3])};
  } catch {
    return null;
  }
}

const publish = zmtp.publisher(where(connection.iopub_port));

function say(type, content, parent, size) {
  publish(pack([Buffer.from(type)], type, content, parent), () => {
    if (!size) return;
    Atomics.sub(taken, 0, size);
    Atomics.notify(taken, 0);
  });
}

const about = {status: 'ok', protocol_version: '5.3', implementation: 'hotcell', implementation_version: '1',
  language_info: {name: 'javascript', version: process.version, mimetype: 'text/javascript', file_extension: '.js'},
  banner: 'JavaScript and TypeScript', help_links: []};

const answers = {
  kernel_info_request: () => ['kernel_info_reply', about],
  is_complete_request: () => ['is_complete_reply', {status: 'unknown'}],
  comm_info_request: () => ['comm_info_reply', {status: 'ok', comms: {}}],
  history_request: () => ['history_reply', {status: 'ok', history: []}],
  complete_request: (c) => ['complete_reply',
    {status: 'ok', matches: [], metadata: {}, cursor_start: c.cursor_pos || 0, cursor_end: c.cursor_pos || 0}],
  shutdown_request: (c) => {
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), 100);
    return ['shutdown_reply', {status: 'ok', restart: !!c.restart}];
  },
  interrupt_request: () => {
    interrupt();
    return ['interrupt_reply', {status: 'ok'}];
  },
};

const waiting = new Map(); // executions: by message, who asked
let order = 0;

function hear(peer, frames) {
  const asked = unpack(frames);
  if (!asked) return;
  const type = asked.header.msg_type;
  if (type === 'execute_request') {
    waiting.set(++order, {peer, ...asked});
    return parentPort.postMessage({run: order, header: asked.header, content: asked.content});
  }
  if (!answers[type]) return;
  say('status', {execution_state: 'busy'}, asked.header);
  const [reply, content] = answers[type](asked.content);
  peer.send(pack(asked.ids, reply, content, asked.header));
  say('status', {execution_state: 'idle'}, asked.header);
}

// --- interrupts -------------------------------------------------------------------------------------------------------

let answered = true, tries = 0, timer = null, debug = null;

// The other thread is asked first: it may only be waiting for a promise. One that does not answer is in a loop.
function interrupt() {
  answered = false;
  tries = 0;
  clearTimeout(timer);
  parentPort.postMessage({interrupt: true});
  timer = setTimeout(insist, UNANSWERED_MS);
}

// To leave is to take back what was not done yet: so not before the other thread has answered, and surely then.
function leave() {
  if (debug) debug.disconnect();
  debug = null;
}

function insist() {
  leave();
  if (answered || ++tries > 100) return;
  process.kill(0, 'SIGINT'); // the programs that it waits for; we have a handler
  debug = new inspector.Session();
  debug.connectToMainThread();
  debug.post('Runtime.terminateExecution', () => {});
  parentPort.postMessage({interrupt: true}); // the first may have been lost with what was ended
  timer = setTimeout(insist, AGAIN_MS);
}

parentPort.on('message', (m) => {
  if (m.say) return say(m.say, m.content, m.parent, m.size);
  if (m.answered) {
    answered = true;
    leave();
    return clearTimeout(timer);
  }
  const asked = waiting.get(m.reply);
  waiting.delete(m.reply);
  if (asked) asked.peer.send(pack(asked.ids, 'execute_reply', m.content, asked.header));
  say('status', {execution_state: 'idle'}, asked && asked.header);
});

zmtp.router(where(connection.shell_port), hear);
zmtp.router(where(connection.control_port), hear);
zmtp.router(where(connection.stdin_port), () => {});
zmtp.echo(where(connection.hb_port));
