import { join } from 'node:path';
import type { LogLevel, LogOrStringHandler, RolldownLog } from 'rolldown';
import { root } from './toolchain.mjs';

/** Forms of packages that can be bundled: the form that Node loads hides its `require` from a bundler. */
export const bundledForms = {
  'jsonc-parser': join(root, 'node_modules/jsonc-parser/lib/esm/main.js'),
  // Seventy files that all run at a start, where its CommonJS form is bundled; as ES modules they are a part of ours.
  yaml: join(root, 'node_modules/yaml/browser/index.js'),
};

const evaluatesCode = /[\\/]node_modules[\\/]web-tree-sitter[\\/]/;

/**
 * Option `onLog` of a bundle: prints every warning but two. `eval` in this package is for WebAssembly modules with JavaScript of their
 * own; our grammar has none. A module that one program loads on first use may be in the first file of another.
 */
export function onLog(level: LogLevel, log: RolldownLog, print: LogOrStringHandler): void {
  if (log.code === 'INEFFECTIVE_DYNAMIC_IMPORT') return;
  if (log.code !== 'EVAL' || !evaluatesCode.test(log.id ?? '')) print(level, log);
}
