import { isAscii } from 'node:buffer';
import { createHash } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { constants as access, accessSync, readFileSync } from 'node:fs';
import { createRequire, getCompileCacheDir } from 'node:module';
import { dirname, join } from 'node:path';
import { constants, Script } from 'node:vm';
import { writeFileAtomic } from '../lib/index.ts';

/** Notifies the file that loaded the program, which is another bundle, that the agent server is prepared for turns. */
export const prepared = channel('oratorio.prepared');

const digestOf = (content: Buffer | string): Buffer => createHash('sha256').update(content).digest();
const digestBytes = 32;

/** Compiled code after the digests of its source and of itself: V8 finds neither another source of this length nor a damaged byte. */
function readCode(file: string, source: Buffer): Buffer | undefined {
  try {
    const content = readFileSync(file);
    const code = content.subarray(2 * digestBytes);
    return content.subarray(0, 2 * digestBytes).equals(Buffer.concat([source, digestOf(code)])) ? code : undefined;
  } catch {
    // Not stored yet, or unreadable: V8 compiles the program.
    return undefined;
  }
}

/** Stores the functions that V8 has compiled by now. Without them, a start is slower, and nothing else. */
function storeCode(file: string, source: Buffer, script: Script): void {
  try {
    accessSync(dirname(file), access.W_OK);
    const code = script.createCachedData();
    writeFileAtomic(file, Buffer.concat([source, digestOf(code), code]), { isFlushed: false });
  } catch {
    // A full or read-only disk.
  }
}

/** Frees the memory of a read file now, because an idle server collects no garbage for hours. Small files share the memory of a pool. */
function release({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize) buffer.transfer(0);
}

/** Begin of the function that Node makes of a module. */
const head = '(function (exports, require, module, __filename, __dirname) { ';

type Program = (exports: unknown, require: NodeJS.Require, module: NodeModule, file: string, directory: string) => void;

/**
 * Runs a module in place of Node, from the code that an earlier process stored.
 *
 * @returns a function that stores the code once, unless the module ran from stored code
 */
function run(module: NodeModule, filename: string, cache: string): () => void {
  const content = readFileSync(filename);
  const source = digestOf(content);
  const file = join(cache, `agent-server-${digestOf(filename).toString('hex', 0, 8)}`);
  const cachedData = readCode(file, source);
  const script = new Script(`${head}${content.toString(isAscii(content) ? 'latin1' : 'utf8')}\n})`, {
    filename,
    columnOffset: -head.length,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(cachedData && { cachedData }),
  });
  let isStored = script.cachedDataRejected === false;
  for (const bytes of [content, cachedData]) if (bytes) release(bytes);
  const program = script.runInThisContext() as Program;
  program.call(module.exports, module.exports, createRequire(filename), module, filename, dirname(filename));
  return () => {
    if (!isStored) storeCode(file, source, script);
    isStored = true;
  };
}

/**
 * Runs the agent server, which is a CommonJS module (`.cjs`), from the code that V8 had compiled in an earlier life of it. Node's own cache
 * has the functions that are compiled before a file runs, so nine tenths of the functions of a start are compiled at each start. Where
 * Node has no directory for its cache, it runs the program by itself.
 *
 * @param filename absolute
 * @param cache directory for compiled code of this version of Node
 */
export function runCompiled(filename: string, cache = getCompileCacheDir()): void {
  const load = createRequire(filename);
  if (cache !== undefined) {
    load.extensions['.cjs'] = (module, path) => {
      // Node loads the parts of the program.
      delete load.extensions['.cjs'];
      const store = run(module, path, cache);
      // In a later turn of the event loop: a client may wait for an answer.
      prepared.subscribe(() => setImmediate(store));
    };
  }
  load(filename);
}
