/** The bundles of the product: what `npm run build` and `npm run dev` write to `dist/`. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import packageJson from '../package.json' with { type: 'json' };
import { runtimePackages } from '../src/deploy/engine/image-packages.ts';
import { takesBuiltinsWithoutImport } from './builtin-modules.ts';
import { bundledForms, onLog } from './bundled-forms.ts';
import { root } from './toolchain.mjs';

const at = (path: string): string => join(root, path);

/** Started by users. It contains its libraries: resolving them one by one would double its start-up time. */
const program = { 'cli/main': 'src/cli/main.ts' };

/** Started by the Hub, once per workspace, while a user waits: CommonJS, because Node loads it faster. */
const agentServer = { 'appserver/main': 'src/appserver/main.ts' };

/** Started by the Hub beside a sidecar, whose output it copies into the log files. */
const logRedactor = { 'supervise/redact-main': 'src/supervise/redact-main.ts' };

/** Thread of an agent server in which files are saved and restored; started with the first tool that may change them. */
const checkpointThread = { 'checkpoints/thread-main': 'src/checkpoints/thread-main.ts' };

/** Imported by other programs, with their own copies of our dependencies. */
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
  readonly plugins?: readonly Plugin[];
}

async function bundle({ entries, external, chunks, format = 'esm', plugins = [] }: BundleOptions): Promise<void> {
  const extension = format === 'cjs' ? 'cjs' : 'js';
  await build({
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, at(file)])),
    platform: 'node',
    external: isOneOf(external),
    resolve: { alias: bundledForms },
    plugins: [...plugins],
    onLog,
    // Our modules only declare: an unused one need not be loaded. An entry always runs.
    treeshake: {
      moduleSideEffects: [
        {
          test: /[\\/]((cli|appserver)[\\/]main|supervise[\\/]redact-main|checkpoints[\\/]thread-main)\.ts$/,
          sideEffects: true,
        },
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

/** Writes all bundles below `dist/`, in place of those of an earlier build. */
export async function buildBundles(): Promise<void> {
  for (const old of ['chunks', 'shared', 'appserver', 'supervise', 'checkpoints'])
    rmSync(at(`dist/${old}`), { recursive: true, force: true });
  await bundle({ entries: program, external: neverBundled, chunks: 'chunks', plugins: [takesBuiltinsWithoutImport] });
  await bundle({ entries: agentServer, external: neverBundled, chunks: 'appserver/chunks', format: 'cjs' });
  await bundle({ entries: logRedactor, external: neverBundled, chunks: 'supervise/chunks', format: 'cjs' });
  await bundle({ entries: checkpointThread, external: neverBundled, chunks: 'checkpoints/chunks', format: 'cjs' });
  await bundle({ entries: libraries, external: Object.keys(packageJson.dependencies), chunks: 'shared' });
}
