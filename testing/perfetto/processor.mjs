// Loads traces in Perfetto's own trace processor, compiled to WebAssembly, and prints what it makes of each: one line of
// JSON per file with slices, flows, values of counters, and every statistic that says that data was lost or wrong.
//
// node processor.mjs FOLDER FILE...; FOLDER holds trace_processor.wasm, its glue engine_bundle.node.js, and engine.mjs,
// which speaks its protocol. The glue is made for a worker of a browser: what it expects of one stands here.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, ...files] = process.argv.slice(2);
console.warn = () => {};
const print = console.log;
console.log = () => {};
const { EngineBase } = await import(pathToFileURL(path.join(folder, 'engine.mjs')));

class Request {
  open(_method, url) { this.name = path.basename(url); }

  send() {
    const bytes = fs.readFileSync(path.join(folder, this.name));
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  }
}

// The package has the variant for 32-bit memory only; the glue asks for the other where a module whose limits of memory
// have the flag of 64 bits (byte 11 of its probe) compiles.
const Module = WebAssembly.Module;
WebAssembly.Module = new Proxy(Module, {
  construct(target, [bytes]) {
    if (bytes.byteLength < 32 && bytes[8] === 5 && bytes[11] === 4) throw new Error('no 64-bit memory');
    return new target(bytes);
  },
});
Object.assign(globalThis, {
  self: { location: { href: 'file:///worker/' } },
  WorkerGlobalScope: class {},
  XMLHttpRequest: Request,
  require: createRequire(import.meta.url),
});

/** A processor with nothing loaded. */
const start = async () => {
  vm.runInThisContext(fs.readFileSync(path.join(folder, 'engine_bundle.node.js'), 'utf8'));
  const [near, far] = [{}, {}];
  near.postMessage = (data) => queueMicrotask(() => far.onmessage({ data }));
  far.postMessage = (data) => queueMicrotask(() => near.onmessage({ data }));
  // The module is ready some turns of the event loop after it was made.
  await new Promise((resolve) => setTimeout(resolve, 500));
  globalThis.self.onmessage({ data: far });
  class Engine extends EngineBase {
    rpcSendRequestBytes(data) { near.postMessage(data); }
  }
  const engine = new Engine();
  near.onmessage = (message) => engine.onRpcResponseBytes(message.data);
  return engine;
};

const engine = await start();
const rows = async (query) => {
  const result = await engine.query(query);
  const columns = result.columns();
  const found = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    found.push(Object.fromEntries(columns.map((column) => [column, row.get(column)])));
  }
  return found;
};
for (const file of files) {
  await engine.resetTraceProcessor({
    cropTrackEvents: false, ingestFtraceInRawTable: false, analyzeTraceProtoContent: false,
    ftraceDropUntilAllCpusValid: false,
  });
  await engine.parse(new Uint8Array(fs.readFileSync(file)));
  await engine.notifyEof();
  const count = async (from) => Number((await rows(`SELECT count(*) AS n FROM ${from}`))[0].n);
  const wrong = await rows(
    "SELECT name, value FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')",
  );
  // What an event was caused by stands in its argument `cause`, one part per arrow that leads to it; the first word of
  // a part says the kind of arrow.
  const causes = await rows(
    'SELECT string_value AS words, (SELECT count(*) FROM flow WHERE slice_in = slice.id) AS arrows '
      + "FROM slice JOIN args USING (arg_set_id) WHERE key = 'debug.cause'",
  );
  const kinds = {};
  for (const { words, arrows } of causes) {
    const parts = words.split('; ');
    if (parts.length !== Number(arrows)) wrong.push({ name: words, value: `${arrows} arrows` });
    parts.forEach((part) => { kinds[part.split(' ')[0]] = (kinds[part.split(' ')[0]] ?? 0) + 1; });
  }
  print(JSON.stringify({
    ...kinds,
    processors: await count("track WHERE name GLOB 'CPU [0-9]*' AND substr(name, 5) NOT GLOB '*[^0-9]*'"),
    counters: await count("counter_track"),
    slices: await count('slice'),
    flows: await count('flow'),
    backward: await count(
      'flow JOIN slice a ON slice_out = a.id JOIN slice b ON slice_in = b.id WHERE a.ts > b.ts',
    ),
    values: await count('counter'),
    problems: wrong.map((row) => `${row.name}: ${row.value}`),
  }));
}
process.exit(0);
