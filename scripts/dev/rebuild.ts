/** Rebuilds the parts of `dist/` that a change concerns. Types and the stamp of a whole build are left out. */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vite';
import { buildBundles } from '../bundles.ts';
import { ImportGraph } from '../import-graph.ts';
import { isBuilt } from '../stamp.mjs';
import { root, toolEnvironment } from '../toolchain.mjs';

/** Result of a build: the browser page, the programs, the charts of the machines. */
export type Part = 'page' | 'programs' | 'charts';

const entries: Readonly<Record<Part, readonly string[]>> = {
  page: ['src/ui/index.html', 'src/ui/vite.config.ts'],
  programs: [
    'src/cli/main.ts',
    'src/appserver/main.ts',
    'src/appserver/cached-main.ts',
    'src/supervise/redact-main.ts',
    'src/checkpoints/thread-main.ts',
    'src/client/index.ts',
  ],
  charts: ['machines/index.ts'],
};

const outputs: Readonly<Record<Part, string>> = {
  page: 'dist/ui/index.html',
  programs: 'dist/cli/main.js',
  charts: 'dist/charts.json',
};

const parts = Object.keys(entries) as readonly Part[];

const graph = new ImportGraph();

/** Parts that are made from one of these files, relative to the root. */
export function partsOf(files: ReadonlySet<string>): readonly Part[] {
  for (const file of files) graph.forget(file);
  return parts.filter((part) => graph.affected(entries[part], files).length > 0);
}

/** Parts to build before the first start. */
export function missingParts(): readonly Part[] {
  if (isBuilt()) return [];
  // Without a stamp of these sources all may be stale. Charts take longest to draw and change least.
  return parts.filter((part) => part !== 'charts' || !existsSync(join(root, outputs.charts)));
}

/** @throws Error with the message of the bundler for sources that cannot be built; `dist/` stays usable */
export async function rebuild(part: Part): Promise<void> {
  const began = performance.now();
  // `npm test` and `npm start` must not take what is built here for a whole build.
  rmSync(join(root, 'dist', '.stamp'), { force: true });
  if (part === 'page') await build({ configFile: join(root, 'src/ui/vite.config.ts'), logLevel: 'warn' });
  else if (part === 'programs') await buildBundles();
  else drawCharts();
  console.log(`Built ${part} in ${Math.round(performance.now() - began)} ms`);
}

/** In a process of its own, which loads the machines as they are now. */
function drawCharts(): void {
  const { status } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'scripts/charts.ts'], {
    cwd: root,
    env: toolEnvironment(),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error('scripts/charts.ts failed (see above).');
}
