/** `npm run build`: everything under `dist/`. Bundles, charts, the browser page, types; a part that is not there is left out. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'rolldown';
import packageJson from '../package.json' with { type: 'json' };
import { runtimePackages } from '../src/deploy/engine/image-packages.ts';
import { markBuilt, sourcesHash } from './stamp.mjs';
import { root, toolEnvironment } from './toolchain.mjs';

const at = (path: string): string => join(root, path);

/** Started by users. It carries its libraries with it: finding them one by one would double its start-up time. */
const program = { 'cli/main': 'src/cli/main.ts' };

/** Started by the Hub, once per workspace, with somebody waiting: as CommonJS, which Node loads faster still. */
const agentServer = { 'appserver/main': 'src/appserver/main.ts' };

/** Started by the Hub beside a sidecar, whose output it copies into the log files. */
const logRedactor = { 'supervise/redact-main': 'src/supervise/redact-main.ts' };

/** What others import: their own copies of our dependencies are used. */
const libraries = { 'client/index': 'src/client/index.ts', 'machines/index': 'machines/index.ts' };

/** Not for bundling: a native binary, and CommonJS that is loaded when first needed. */
const neverBundled = [...runtimePackages, 'elkjs'];

const isOneOf = (names: readonly string[]) => (id: string) =>
  id.startsWith('node:') || names.some((name) => id === name || id.startsWith(`${name}/`));

interface BundleOptions {
  readonly entries: Readonly<Record<string, string>>;
  readonly external: readonly string[];
  readonly chunks: string;
  readonly format?: 'esm' | 'cjs';
}

async function bundle({ entries, external, chunks, format = 'esm' }: BundleOptions): Promise<void> {
  const extension = format === 'cjs' ? 'cjs' : 'js';
  await build({
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, at(file)])),
    platform: 'node',
    external: isOneOf(external),
    // Our modules only declare: one that nobody uses need not be loaded. An entry always runs.
    treeshake: {
      moduleSideEffects: [
        { test: /[\\/]((cli|appserver)[\\/]main|supervise[\\/]redact-main)\.ts$/, sideEffects: true },
        { external: false, sideEffects: false },
      ],
    },
    output: {
      dir: at('dist'),
      format,
      sourcemap: true,
      entryFileNames: `[name].${extension}`,
      // One level down, like the entries: `new URL('../…', import.meta.url)` means the same in both.
      chunkFileNames: `${chunks}/[name]-[hash].${extension}`,
    },
  });
}

async function bundles(): Promise<void> {
  for (const old of ['chunks', 'shared', 'appserver', 'supervise'])
    rmSync(at(`dist/${old}`), { recursive: true, force: true });
  await bundle({ entries: program, external: neverBundled, chunks: 'chunks' });
  await bundle({ entries: agentServer, external: neverBundled, chunks: 'appserver/chunks', format: 'cjs' });
  await bundle({ entries: logRedactor, external: neverBundled, chunks: 'supervise/chunks', format: 'cjs' });
  await bundle({ entries: libraries, external: Object.keys(packageJson.dependencies), chunks: 'shared' });
}

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
await step('bundles', bundles);
if (existsSync(at('scripts/charts.ts'))) await step('charts', () => tool('scripts/charts.ts', []));
if (existsSync(at('src/ui/vite.config.ts'))) {
  await step('page', () => tool('vite', ['build', '-c', at('src/ui/vite.config.ts'), '--logLevel', 'warn']));
  await step('budget', () => tool('scripts/page-budget.ts', []));
}
await step('types', writeTypes);
markBuilt(hash);
