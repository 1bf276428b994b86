// Gives a Node server the same random numbers and ids at every start. Node requires it before the server's own code.
const crypto = require("node:crypto");

let state = 20260302;

function draw() {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
}

function fill(bytes) {
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let place = 0; place < view.length; place += 1) view[place] = Math.floor(draw() * 256);
  return bytes;
}

function randomBytes(size, callback) {
  const bytes = fill(Buffer.alloc(size));
  if (callback) process.nextTick(callback, null, bytes);
  else return bytes;
}

function randomUUID() {
  const bytes = fill(Buffer.alloc(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const text = bytes.toString("hex");
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join("-");
}

Math.random = draw;
crypto.randomBytes = randomBytes;
crypto.randomUUID = randomUUID;
crypto.randomFillSync = fill;
crypto.getRandomValues = fill;
for (const [name, value] of [["randomUUID", randomUUID], ["getRandomValues", fill]]) {
  Object.defineProperty(globalThis.crypto, name, { value, configurable: true, writable: true });
}
require("node:module").syncBuiltinESMExports();
