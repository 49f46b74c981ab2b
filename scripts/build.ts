/** `npm run build`: everything under `dist/`. Bundles, charts, the browser page, types; a part that is not there is left out. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildBundles } from './bundles.ts';
import { markBuilt, sourcesHash } from './stamp.mjs';
import { root, toolEnvironment } from './toolchain.mjs';

const at = (path: string): string => join(root, path);

/** Declarations of what the package exports. */
function writeTypes(): void {
  const options = {
    extends: '../tsconfig.json',
    compilerOptions: { noEmit: false, declaration: true, emitDeclarationOnly: true, rootDir: '..', outDir: 'types' },
    include: [],
    files: ['../src/client/index.ts', '../machines/index.ts'],
  };
  writeFileSync(at('dist/tsconfig.types.json'), JSON.stringify(options));
  tool('tsc', ['-p', at('dist/tsconfig.types.json')]);
  rmSync(at('dist/tsconfig.types.json'));
}

/** Runs an installed tool, or a script with this Node; ends the build with its exit code when it fails. */
function tool(name: string, args: readonly string[]): void {
  const isScript = name.endsWith('.ts');
  const command = isScript ? process.execPath : name;
  const words = isScript ? ['--disable-warning=ExperimentalWarning', at(name), ...args] : args;
  const result = spawnSync(command, words, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: toolEnvironment(),
  });
  if (result.error) throw result.error;
  if (result.status !== 0) {
    console.error(`✖ ${name} ${args.join(' ')} failed`);
    process.exit(result.status ?? 1);
  }
}

async function step(name: string, work: () => void | Promise<void>): Promise<void> {
  const began = performance.now();
  await work();
  console.log(`${name.padEnd(9)}${Math.round(performance.now() - began)} ms`);
}

// Before the build: a source that changes while it runs makes the result stale.
const hash = sourcesHash();
mkdirSync(at('dist'), { recursive: true });
await step('bundles', buildBundles);
if (existsSync(at('scripts/charts.ts'))) await step('charts', () => tool('scripts/charts.ts', []));
if (existsSync(at('src/ui/vite.config.ts'))) {
  await step('page', () => tool('vite', ['build', '-c', at('src/ui/vite.config.ts'), '--logLevel', 'warn']));
  await step('budget', () => tool('scripts/page-budget.ts', []));
}
await step('types', writeTypes);
markBuilt(hash);
