/** The bundles of the product: what `npm run build` and `npm run dev` write to `dist/`. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, type OutputOptions, type Plugin } from 'rolldown';
import packageJson from '../package.json' with { type: 'json' };
import { runtimePackages } from '../src/deploy/engine/image-packages.ts';
import { asciiBundles } from './ascii-code.ts';
import { takesBuiltinsWithoutImport } from './builtin-modules.ts';
import { bundledForms, onLog } from './bundled-forms.ts';
import { root } from './toolchain.mjs';

const at = (path: string): string => join(root, path);

/** Started by users. It contains its libraries: resolving them one by one would double its start-up time. */
const program = { 'cli/main': 'src/cli/main.ts' };

/** Started by the Hub, once per workspace, while a user waits: CommonJS, because Node loads it faster. */
const agentServer = { 'appserver/program': 'src/appserver/main.ts' };

/** Runs it from its compiled code. */
const agentServerStart = { 'appserver/main': 'src/appserver/cached-main.ts' };

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

/** A chunk that is loaded later cannot have parts of an entry with a top-level await: each would wait for the other. */
const isNoEntryThatWaits = (id: string): boolean => id !== at(program['cli/main']);

/**
 * Form of a program, whose start pays for what its files have: no comments, and one file for all that is loaded at once. Node finds,
 * checks and reads each file of its own, some 0.3 ms.
 */
const programOutput: OutputOptions = {
  comments: { legal: true, annotation: false, jsdoc: false },
  codeSplitting: { groups: [{ name: 'initial', tags: ['$initial'], test: isNoEntryThatWaits }] },
};

interface BundleOptions {
  readonly entries: Readonly<Record<string, string>>;
  readonly external: readonly string[];
  readonly chunks: string;
  readonly format?: 'esm' | 'cjs';
  readonly plugins?: readonly Plugin[];
  readonly output?: OutputOptions;
}

async function bundle(options: BundleOptions): Promise<void> {
  const { entries, external, chunks, format = 'esm', plugins = [], output = {} } = options;
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
          test: /[\\/]((cli|appserver)[\\/]main|appserver[\\/]cached-main|supervise[\\/]redact-main|checkpoints[\\/]thread-main)\.ts$/,
          sideEffects: true,
        },
        { external: false, sideEffects: false },
      ],
    },
    output: {
      ...output,
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
  const common = { external: neverBundled, output: programOutput };
  const commonJs = { ...common, format: 'cjs', plugins: [asciiBundles] } as const;
  const plugins = [takesBuiltinsWithoutImport, asciiBundles];
  await bundle({ ...common, entries: program, chunks: 'chunks', plugins });
  await bundle({ ...commonJs, entries: agentServer, chunks: 'appserver/chunks' });
  await bundle({ ...commonJs, entries: agentServerStart, chunks: 'appserver/start' });
  await bundle({ ...commonJs, entries: logRedactor, chunks: 'supervise/chunks' });
  await bundle({ ...commonJs, entries: checkpointThread, chunks: 'checkpoints/chunks' });
  await bundle({ entries: libraries, external: Object.keys(packageJson.dependencies), chunks: 'shared' });
}
