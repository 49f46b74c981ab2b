import { isAscii } from 'node:buffer';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire, getCompileCacheDir } from 'node:module';
import { dirname, join } from 'node:path';
import { cachedDataVersionTag } from 'node:v8';
import { constants, Script } from 'node:vm';
import { writeFileAtomic } from './files.ts';

const digestOf = (content: Buffer): Buffer => createHash('sha256').update(content).digest();
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

/** Stores the present compiled code; a start without it is slower, and nothing else. */
function store(file: string, script: Script): void {
  try {
    const code = script.createCachedData();
    writeFileAtomic(file, Buffer.concat([digestOf(code), code]), { isFlushed: false });
  } catch {
    // A full or read-only disk.
  }
}

const head = '(function (exports, require, module, __filename, __dirname) { ';

/** The modules of one process, which are those of a program and its parts. */
class CompiledModules {
  /** Scripts of this process, by the files of their compiled code. */
  readonly #scripts = new Map<string, Script>();
  /** Whether every script has run from stored code. */
  #areStored = true;
  readonly #flags = cachedDataVersionTag();

  /** @param begin of the path of a file with compiled code */
  run(module: NodeModule, filename: string, begin: string): void {
    const content = readFileSync(filename);
    // V8 compares only lengths of sources.
    const file = `${begin}-${digestOf(content).toString('hex').slice(0, 16)}`;
    // Bundles are ASCII: so read, and hashed as bytes, the largest takes 2 ms less.
    const source = content.toString(isAscii(content) ? 'latin1' : 'utf8');
    const cachedData = readCompiled(file);
    const script = new Script(`${head}${source}\n})`, {
      filename,
      columnOffset: -head.length,
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      ...(cachedData && { cachedData }),
    });
    this.#scripts.set(file, script);
    if (cachedData === undefined || script.cachedDataRejected === true) this.#areStored = false;
    script.runInThisContext()(module.exports, createRequire(filename), module, filename, dirname(filename));
  }

  /**
   * Stores the code after an orderly end, which has a whole life behind it; a failed start would leave next to nothing. A process
   * that is the first to load a part has run more of the others, too. V8 takes no code that was made with other flags.
   */
  end(code: number): void {
    if (code !== 0 || this.#areStored || cachedDataVersionTag() !== this.#flags) return;
    for (const [file, script] of this.#scripts) store(file, script);
  }
}

/**
 * Runs a program, which is a CommonJS module (`.cjs`), and its parts from their compiled code. Node's own cache
 * (`NODE_COMPILE_CACHE`) stores the functions of a file that are compiled before it runs, so that nine tenths of the functions of a start are
 * compiled at each start. This one stores all functions that earlier processes of this kind had compiled when they ended. Without a directory for
 * Node's cache, Node runs the program.
 *
 * @param filename absolute
 * @param kind of life, for which code is stored apart: a word
 */
export function runCompiled(filename: string, kind: string): void {
  const load = createRequire(filename);
  // The directory belongs to this version of Node, with its flags.
  const directory = getCompileCacheDir();
  if (directory !== undefined) {
    const modules = new CompiledModules();
    process.once('exit', (code) => modules.end(code));
    load.extensions['.cjs'] = (module, path) =>
      modules.run(module, path, join(directory, path === filename ? kind : `${kind}-part`));
  }
  load(filename);
}
