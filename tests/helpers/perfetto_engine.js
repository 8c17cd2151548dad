// Runs Perfetto's engine (WebAssembly) in Node: requests on standard input, replies on standard output, each behind its
// length, 4 bytes little-endian. The engine is written for a web worker; what that has and Node lacks is put in place.
const fs = require('fs'), path = require('path');
const folder = process.argv[2], bundle = path.join(folder, 'engine_bundle.js');
const local = url => fs.readFileSync(path.join(folder, path.basename(String(url))));
Object.assign(globalThis, {
  self: globalThis, WorkerGlobalScope: function () {}, location: {href: 'file://' + bundle},
  fetch: async url => new Response(local(url), {headers: {'content-type': 'application/wasm'}}),
  XMLHttpRequest: class {
    open(_, url) { this.url = url; }
    send() { this.response = new Uint8Array(local(this.url)).buffer; this.status = 200; }
  },
});
for (const name of ['log', 'warn', 'error']) console[name] = () => {};
let replies = [];
const port = {postMessage: bytes => replies.push(Buffer.from(bytes))};
const empty = undefined;  // hides Node from the bundle
new Function('self', 'process', 'require', 'module', 'exports', fs.readFileSync(bundle, 'utf8'))(
  globalThis, empty, empty, empty, empty);
globalThis.onmessage({data: port});
function read(size) {
  const bytes = Buffer.alloc(size);
  for (let done = 0; done < size;) {
    const count = fs.readSync(0, bytes, done, size - done);
    if (!count) process.exit(0);
    done += count;
  }
  return bytes;
}
function write(bytes) {
  for (let done = 0; done < bytes.length;) done += fs.writeSync(1, bytes, done);
}
setTimeout(() => {  // the engine is made at once, and starts in tasks of its own
  for (;;) {
    replies = [];
    port.onmessage({data: new Uint8Array(read(read(4).readUInt32LE(0)))});
    const reply = Buffer.concat(replies), length = Buffer.alloc(4);
    length.writeUInt32LE(reply.length);
    write(length);
    write(reply);
  }
}, 200);
