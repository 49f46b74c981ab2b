import t from 'tap';
import { withoutBuiltinImports } from '../../scripts/builtin-modules.ts';

t.test('a bundle takes the modules of Node without import, each on its line', async (t) => {
  const bundle = [
    'import { a as b } from "./chunk.js";',
    'import { createServer, request as ask } from "node:http";',
    'import process$1 from "node:process";',
    'import * as fs from "fs";',
    'import Module, { isBuiltin } from "module";',
    'import { readFile } from "node:fs/promises";',
    'import { WebSocket } from "ws";',
    'import "./effect.js";',
    'const text = `import { x } from "node:http";`;',
  ].join('\n');
  t.same(withoutBuiltinImports(bundle).split('\n'), [
    'import { a as b } from "./chunk.js";',
    'const { createServer, request: ask } = process.getBuiltinModule("node:http");',
    'const process$1 = process.getBuiltinModule("node:process");',
    'const fs = process.getBuiltinModule("fs");',
    'const Module = process.getBuiltinModule("module"), { isBuiltin } = process.getBuiltinModule("module");',
    'const { readFile } = process.getBuiltinModule("node:fs/promises");',
    'import { WebSocket } from "ws";',
    'import "./effect.js";',
    'const text = `import { x } from "node:http";`;',
  ]);
});

t.test('a replaced import binds the same values as the import', async (t) => {
  const source = withoutBuiltinImports('import whole, { join as joined } from "node:path";');
  const bound = new Function(`${source} return [whole, joined];`)() as readonly unknown[];
  const path = await import('node:path');
  t.equal(bound[0], path.default);
  t.equal(bound[1], path.join);
});
