import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Node, Parser } from 'web-tree-sitter';
import { packageRoot } from '../../lib/index.ts';

/** Calls `read` with the root of a parsed script. The tree is gone afterwards. */
export type ParseScript = <T>(script: string, read: (root: Node) => T) => T;

let loading: Promise<ParseScript> | undefined;

/** Parser of shell scripts, loaded with its first use: a hundred milliseconds and four megabytes. */
export function bashParser(): Promise<ParseScript> {
  loading ??= load();
  return loading;
}

/**
 * Lets V8 optimise WebAssembly or not: already at the first script it spent 400 ms of processor time on the parser, whose
 * baseline code reads a script in less than a millisecond. V8 decides when it compiles a module, and again at the first call of
 * each function. At all other times the flags have their defaults: V8 rejects code stored under other flags, and the next agent
 * server would compile all of its own again.
 */
const setOptimising = (isOn: boolean, ...flags: readonly ('tier-up' | 'dynamic-tiering')[]): void => {
  // Only here: with it, Node loads eight modules of its own.
  const { setFlagsFromString } = process.getBuiltinModule('node:v8');
  for (const flag of flags) setFlagsFromString(`--${isOn ? '' : 'no-'}wasm-${flag}`);
};

async function load(): Promise<ParseScript> {
  const [{ Parser, Language }, ...modules] = await Promise.all([
    import('web-tree-sitter'),
    readFile(wasmFile('web-tree-sitter', 'web-tree-sitter.wasm')),
    readFile(wasmFile('tree-sitter-bash', 'tree-sitter-bash.wasm')),
  ]);
  const parser = await compile(Parser, Language, ...modules);
  return (script, read) => {
    setOptimising(false, 'tier-up');
    try {
      const tree = parser.parse(script);
      if (!tree) throw new Error('the parser of shell scripts gave nothing');
      try {
        return read(tree.rootNode);
      } finally {
        tree.delete();
      }
    } finally {
      setOptimising(true, 'tier-up');
    }
  };
}

type TreeSitter = typeof import('web-tree-sitter');

async function compile(
  parsers: TreeSitter['Parser'],
  languages: TreeSitter['Language'],
  wasmBinary: Buffer,
  grammar: Buffer,
): Promise<Parser> {
  setOptimising(false, 'tier-up', 'dynamic-tiering');
  try {
    // The option's type is Emscripten's, which also accepts the bytes themselves.
    await parsers.init({ wasmBinary });
    const parser = new parsers();
    return parser.setLanguage(await languages.load(grammar));
  } finally {
    setOptimising(true, 'tier-up', 'dynamic-tiering');
  }
}

/** Path of a WebAssembly file: beside the bundles of the built product; in the sources, where the package manager puts it. */
function wasmFile(packageName: string, name: string): string {
  const root = packageRoot();
  const built = join(root, 'dist', 'grammar', name);
  return existsSync(built) ? built : join(root, 'node_modules', packageName, name);
}
