/**
 * First file of the built agent server: runs `program.cjs`, which the build makes of `main.ts`, and its parts from their compiled code.
 * Node's own cache (`NODE_COMPILE_CACHE`) has of a file what is compiled before it runs, so that nine tenths of the functions of a start
 * are compiled at each start. This one has what earlier servers had compiled when they ended.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire, getCompileCacheDir } from 'node:module';
import { basename, dirname, join } from 'node:path';
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

/** Scripts of this process, by the files of their compiled code. */
const scripts = new Map<string, Script>();
/** Whether every script has run from stored code. */
let areStored = true;

/** @param directory of this version of Node, with its flags: of Node's cache */
function runCompiled(module: NodeModule, filename: string, directory: string): void {
  const source = readFileSync(filename, 'utf8');
  const name = basename(filename) === 'program.cjs' ? 'agent-server' : 'agent-server-part';
  // V8 compares only lengths of sources.
  const file = join(directory, `${name}-${digestOf(source).toString('hex').slice(0, 16)}`);
  const cachedData = readCompiled(file);
  const head = '(function (exports, require, module, __filename, __dirname) { ';
  const script = new Script(`${head}${source}\n})`, {
    filename,
    columnOffset: -head.length,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(cachedData && { cachedData }),
  });
  scripts.set(file, script);
  if (cachedData === undefined || script.cachedDataRejected === true) areStored = false;
  script.runInThisContext()(module.exports, createRequire(filename), module, filename, dirname(filename));
}

function runProgram(directory: string): void {
  process.once('exit', (code) => {
    // An orderly end has a whole life behind it; a failed start would leave next to nothing. A process that is the first to load a
    // part has run more of the others, too.
    if (code === 0 && !areStored) for (const [file, script] of scripts) store(file, script);
  });
  load.extensions['.cjs'] = (module, filename) => runCompiled(module, filename, directory);
  load(filename);
}

const directory = getCompileCacheDir();
if (directory === undefined) load(filename);
else runProgram(directory);
