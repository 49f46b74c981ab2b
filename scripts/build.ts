/** `npm run build`: everything under `dist/`. Bundles, charts, the browser page, types. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { buildBundles } from './bundles.ts';
import { frugal } from './frugal-tsc.ts';
import { markBuilt, sourcesHash } from './stamp.mjs';
import { root, toolEnvironment } from './toolchain.mjs';

const at = (path: string): string => join(root, path);

/** The parser of shell scripts: WebAssembly, which no bundle holds. */
function copyGrammar(): void {
  mkdirSync(at('dist/grammar'), { recursive: true });
  for (const file of ['web-tree-sitter/web-tree-sitter.wasm', 'tree-sitter-bash/tree-sitter-bash.wasm']) {
    copyFileSync(at(`node_modules/${file}`), at(`dist/grammar/${basename(file)}`));
  }
}

/** Writes declarations of the package's exports. */
async function writeTypes(): Promise<void> {
  const options = {
    extends: '../tsconfig.json',
    compilerOptions: { noEmit: false, declaration: true, emitDeclarationOnly: true, rootDir: '..', outDir: 'types' },
    include: [],
    files: ['../src/client/index.ts', '../machines/index.ts'],
  };
  writeFileSync(at('dist/tsconfig.types.json'), JSON.stringify(options));
  await tool('tsc', ['-p', at('dist/tsconfig.types.json'), ...frugal.args], frugal.env);
  rmSync(at('dist/tsconfig.types.json'));
}

/** Runs an installed tool, or a script with this Node; ends the build with its exit code when it fails. */
async function tool(name: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<void> {
  const isScript = name.endsWith('.ts');
  const command = isScript ? process.execPath : name;
  const words = isScript ? ['--disable-warning=ExperimentalWarning', at(name), ...args] : args;
  const child = spawn(command, words, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...toolEnvironment(), ...env },
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) {
    console.error(`✖ ${name} ${args.join(' ')} failed`);
    process.exit(code ?? 1);
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
await step('grammar', copyGrammar);
// No step reads the output of another one.
await Promise.all([
  step('charts', () => tool('scripts/charts.ts', [])),
  step('page', async () => {
    await tool('vite', ['build', '-c', at('src/ui/vite.config.ts'), '--logLevel', 'warn']);
    await tool('scripts/page-budget.ts', []);
  }),
  step('inspector', () => tool('vite', ['build', '-c', at('src/ui/inspector/vite.config.ts'), '--logLevel', 'warn'])),
  step('types', writeTypes),
]);
markBuilt(hash);
