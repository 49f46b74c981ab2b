/** Rebuilds the parts of `dist/` that a change concerns. Types and the stamp of a whole build are left out. */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildProduct, entriesOf, type ProductName, productNames } from '../bundles.ts';
import { ImportGraph } from '../import-graph.ts';
import { isBuilt } from '../stamp.mjs';
import { root, toolEnvironment } from '../toolchain.mjs';

/** Result of a build: the browser page, a program, the charts of the machines. */
export type Part = 'page' | ProductName | 'charts';

/** In the order in which they are built. */
const parts: readonly Part[] = ['page', ...productNames, 'charts'];

function entriesFor(part: Part): readonly string[] {
  if (part === 'page') return ['src/ui/index.html', 'src/ui/vite.config.ts'];
  return part === 'charts' ? ['machines/index.ts'] : entriesOf(part);
}

const graph = new ImportGraph();

/** Entry files of all products: a program that starts another one names its entry file, but does not include it. */
const programs = new Set(productNames.flatMap(entriesOf));

/** Parts that are made from one of these files, relative to the root. */
export function partsOf(files: ReadonlySet<string>): readonly Part[] {
  for (const file of files) graph.forget(file);
  const isMadeFrom = (entry: string): boolean =>
    [...graph.closureOf(entry, (file) => !programs.has(file))].some((file) => files.has(file));
  return parts.filter((part) => entriesFor(part).some(isMadeFrom));
}

/** Parts to build before the first start. */
export function missingParts(): readonly Part[] {
  if (isBuilt()) return [];
  // Without a stamp of these sources all may be stale. Charts take longest to draw and change least.
  return parts.filter((part) => part !== 'charts' || !existsSync(join(root, 'dist/charts.json')));
}

/** @throws Error with the message of the bundler for sources that cannot be built; `dist/` stays usable */
export async function rebuild(part: Part): Promise<void> {
  const began = performance.now();
  // `npm test` and `npm start` must not take this output for a whole build.
  rmSync(join(root, 'dist', '.stamp'), { force: true });
  if (part === 'page') await buildPage();
  else if (part === 'charts') drawCharts();
  else await buildProduct(part);
  console.log(`Built ${part} in ${Math.round(performance.now() - began)} ms`);
}

async function buildPage(): Promise<void> {
  // Loaded when it is needed: it takes longer than the build.
  const { build } = await import('vite');
  await build({ configFile: join(root, 'src/ui/vite.config.ts'), logLevel: 'warn' });
}

/** Draws the charts in a process of its own, which loads the current machines. */
function drawCharts(): void {
  const { status } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'scripts/charts.ts'], {
    cwd: root,
    env: toolEnvironment(),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error('scripts/charts.ts failed (see above).');
}
