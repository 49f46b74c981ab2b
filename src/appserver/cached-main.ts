/**
 * First file of the built agent server: runs `program.cjs`, which the build makes of `main.ts`, from its compiled code. Node's own
 * cache (`NODE_COMPILE_CACHE`) has of a file what is compiled before it runs, so that nine tenths of the functions of a start are
 * compiled at each start. This one has what an earlier server had compiled when it ended.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire, getCompileCacheDir, Module } from 'node:module';
import { join } from 'node:path';
import { constants, Script } from 'node:vm';
import { writeFileAtomic } from '../lib/index.ts';

const filename = join(import.meta.dirname, 'program.cjs');
const load = createRequire(filename);

const digestOf = (content: string | Buffer): Buffer => createHash('sha256').update(content).digest();
const digestBytes = 32;

/** Compiled code with its digest before it: V8 does not find a damaged byte. */
function readCompiled(file: string): Buffer | undefined {
  try {
    const content = readFileSync(file);
    const code = content.subarray(digestBytes);
    return digestOf(code).equals(content.subarray(0, digestBytes)) ? code : undefined;
  } catch {
    // Not there yet, or not to be read: then it is compiled.
    return undefined;
  }
}

/** Keeps what is compiled now; a start without it is slower, and nothing else. */
function store(file: string, script: Script): void {
  try {
    const code = script.createCachedData();
    writeFileAtomic(file, Buffer.concat([digestOf(code), code]), { isFlushed: false });
  } catch {
    // A full or read-only disk.
  }
}

/** @param directory of this version of Node, with its flags: of Node's cache */
function runCompiled(directory: string): void {
  const source = readFileSync(filename, 'utf8');
  // V8 compares only lengths of sources.
  const file = join(directory, `agent-server-${digestOf(source).toString('hex').slice(0, 16)}`);
  const cachedData = readCompiled(file);
  const head = '(function (exports, require, module, __filename, __dirname) { ';
  const script = new Script(`${head}${source}\n})`, {
    filename,
    columnOffset: -head.length,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(cachedData && { cachedData }),
  });
  if (cachedData === undefined || script.cachedDataRejected === true) {
    // An orderly end has a whole life behind it; a failed start would leave next to nothing.
    process.once('exit', (code) => {
      if (code === 0) store(file, script);
    });
  }
  const program = new Module(filename);
  program.filename = filename;
  // Parts that are loaded later ask for this one.
  load.cache[filename] = program;
  script.runInThisContext()(program.exports, load, program, filename, import.meta.dirname);
  program.loaded = true;
}

const directory = getCompileCacheDir();
if (directory === undefined) load(filename);
else runCompiled(directory);
