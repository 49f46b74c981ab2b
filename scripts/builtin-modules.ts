/**
 * Makes a bundle of ES modules take Node's own modules without `import`, which reads every export of such a module: for
 * `node:http` that loads the whole WebSocket and fetch implementation, 40 ms of a start, and some milliseconds for others.
 */
import { isBuiltin } from 'node:module';
import type { Plugin } from 'rolldown';

/** An import in rolldown's form: a default or namespace import, named ones, or both, on one line. */
const statement = /^import (?:([\w$]+|\* as [\w$]+)(?:, )?)?(?:\{ ([^{}]*) \})? ?from "([\w:/]+)";$/gm;

/** Replaces these imports, each on its line, so that a source map stays right. */
export function withoutBuiltinImports(code: string): string {
  return code.replaceAll(statement, (text, whole?: string, names?: string, module = '') => {
    if (!isBuiltin(module)) return text;
    const from = `process.getBuiltinModule("${module}")`;
    const all = whole?.replace('* as ', '');
    const parts = names?.split(', ').map((name) => name.replace(' as ', ': '));
    const constants = [...(all ? [`${all} = ${from}`] : []), ...(parts ? [`{ ${parts.join(', ')} } = ${from}`] : [])];
    return `const ${constants.join(', ')};`;
  });
}

/** For bundles that run on Node 22 only: `process.getBuiltinModule` is not in every Node 20. */
export const takesBuiltinsWithoutImport: Plugin = {
  name: 'takes built-in modules without import',
  renderChunk: (code, _, { format }) => (format === 'es' ? { code: withoutBuiltinImports(code), map: null } : null),
};
