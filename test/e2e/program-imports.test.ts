import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { command } from './harness.ts';

t.test('no program imports node:http, which would load a client of WebSockets with it', async (t) => {
  const dist = join(dirname(command), '..', 'dist');
  const programs = globSync('{appserver,checkpoints,chunks,cli,supervise}/**/*.{js,cjs}', { cwd: dist });
  const importers = programs.filter((file) =>
    /\bimport\b[^;\n]*["']node:http["']/.test(readFileSync(join(dist, file), 'utf8')),
  );
  t.ok(programs.length > 10);
  t.same(importers, []);
});
