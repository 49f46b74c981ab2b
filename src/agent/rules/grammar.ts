import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
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
 * Keeps V8 from optimising WebAssembly: already at the first script it spent 400 ms of processor time on the parser, whose
 * baseline code reads a script in less than a millisecond.
 */
function keepBaselineCode(): void {
  for (const flag of ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering']) setFlagsFromString(flag);
}

async function load(): Promise<ParseScript> {
  keepBaselineCode();
  const { Parser, Language } = await import('web-tree-sitter');
  // The default export of the option's type is that of Emscripten, which takes the bytes themselves, too.
  await Parser.init({ wasmBinary: await readFile(wasmFile('web-tree-sitter', 'web-tree-sitter.wasm')) });
  const language = await Language.load(await readFile(wasmFile('tree-sitter-bash', 'tree-sitter-bash.wasm')));
  const parser: Parser = new Parser();
  parser.setLanguage(language);
  return (script, read) => {
    const tree = parser.parse(script);
    if (!tree) throw new Error('the parser of shell scripts gave nothing');
    try {
      return read(tree.rootNode);
    } finally {
      tree.delete();
    }
  };
}

/** In the built product beside its bundles, in the sources where the package manager puts it. */
function wasmFile(packageName: string, name: string): string {
  const root = packageRoot();
  const built = join(root, 'dist', 'grammar', name);
  return existsSync(built) ? built : join(root, 'node_modules', packageName, name);
}
