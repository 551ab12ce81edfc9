// zmtp.js - the listening side of ZeroMQ's protocol (ZMTP 3.0, mechanism NULL) for what a kernel needs: ROUTER, PUB, REP.
'use strict';

const net = require('net');

const MORE = 1, LONG = 2, COMMAND = 4;
const GREETING = 64;
const FRAME_MAX = 128 * 1024 * 1024;

function greeting() {
  const all = Buffer.alloc(GREETING);
  all[0] = 0xff;
  all[8] = 1;
  all[9] = 0x7f;
  all[10] = 3; // version 3.0
  all.write('NULL', 12, 'ascii');
  return all;
}

function frame(flags, body) {
  const long = body.length > 255;
  const head = Buffer.alloc(long ? 9 : 2);
  head[0] = flags | (long ? LONG : 0);
  if (long) head.writeBigUInt64BE(BigInt(body.length), 1);
  else head[1] = body.length;
  return Buffer.concat([head, body]);
}

function ready(type) {
  const name = Buffer.from('\x05READY\x0bSocket-Type', 'latin1');
  const size = Buffer.alloc(4);
  size.writeUInt32BE(type.length);
  return frame(COMMAND, Buffer.concat([name, size, Buffer.from(type)]));
}

// One connection. on.message(peer, frames), on.gone(peer).
class Peer {
  constructor(socket, type, on) {
    this.socket = socket;
    this.on = on;
    this.input = Buffer.alloc(0);
    this.greeted = this.open = this.subscribed = false;
    this.frames = [];
    socket.write(Buffer.concat([greeting(), ready(type)]));
    socket.on('data', (data) => this.take(data));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => on.gone(this));
  }

  take(data) {
    this.input = this.input.length ? Buffer.concat([this.input, data]) : data;
    if (!this.greeted) {
      if (this.input.length < GREETING) return;
      if (this.input[0] !== 0xff || this.input[10] < 3) return void this.socket.destroy();
      this.input = this.input.subarray(GREETING);
      this.greeted = true;
    }
    for (let used; (used = this.next()) > 0;) this.input = this.input.subarray(used);
  }

  // Takes one frame off the input. How many bytes it had; 0: it is not whole.
  next() {
    const long = this.input.length > 0 && (this.input[0] & LONG);
    const head = long ? 9 : 2;
    if (this.input.length < head) return 0;
    const size = long ? Number(this.input.readBigUInt64BE(1)) : this.input[1];
    if (size > FRAME_MAX) {
      this.socket.destroy();
      return 0;
    }
    if (this.input.length < head + size) return 0;
    const flags = this.input[0];
    const body = Buffer.from(this.input.subarray(head, head + size));
    if (flags & COMMAND) this.open = true; // READY; what other commands say does not matter here
    else this.part(body, flags & MORE);
    return head + size;
  }

  part(body, more) {
    this.frames.push(body);
    if (more) return;
    const frames = this.frames;
    this.frames = [];
    this.on.message(this, frames);
  }

  // True when the connection takes more at once.
  send(frames, done) {
    const last = frames.length - 1;
    return this.socket.write(Buffer.concat(frames.map((f, i) => frame(i < last ? MORE : 0, f))), done);
  }
}

function listen(where, type, onMessage) {
  const peers = new Set();
  const on = {message: onMessage, gone: (peer) => peers.delete(peer)};
  net.createServer((socket) => peers.add(new Peer(socket, type, on))).listen(where);
  return peers;
}

// Every message goes to who asked: peer.send().
exports.router = (where, onMessage) => listen(where, 'ROUTER', onMessage);

exports.echo = (where) => listen(where, 'REP', (peer, frames) => peer.send(frames));

// publish(frames, done) sends to all who subscribed; done() when all of them have taken it.
exports.publisher = (where) => {
  const peers = listen(where, 'PUB', (peer, frames) => {
    if (frames[0].length && frames[0][0] <= 1) peer.subscribed = frames[0][0] === 1;
  });
  return (frames, done) => {
    const to = [...peers].filter((p) => p.subscribed && !p.socket.destroyed);
    let left = to.length;
    if (!left) return done();
    for (const peer of to) peer.send(frames, () => --left || done());
  };
};
