/** The bundles of the product: the output of `npm run build` and `npm run dev` in `dist/`. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, type OutputOptions, type Plugin } from 'rolldown';
import packageJson from '../package.json' with { type: 'json' };
import { runtimePackages } from '../src/deploy/engine/image-packages.ts';
import { asciiBundles } from './ascii-code.ts';
import { bundledForms, onLog } from './bundled-forms.ts';
import { root } from './toolchain.mjs';

const at = (path: string): string => join(root, path);

/**
 * Started by users, and by the Hub once per workspace, while a user waits. They contain their libraries: resolving them one by
 * one would double the time of a start. CommonJS, because Node loads it faster.
 */
const commandLine = { 'cli/main': 'src/cli/main.ts' };
const agentServer = { 'appserver/program': 'src/appserver/main.ts' };

/** Runs it from its compiled code. */
const agentServerStart = { 'appserver/main': 'src/appserver/compiled-main.ts' };

/** Started by the Hub beside a sidecar, whose output it copies into the log files. */
const logRedactor = { 'supervise/redact-main': 'src/supervise/redact-main.ts' };

/** Thread of an agent server in which files are saved and restored; started with the first tool that may change them. */
const checkpointThread = { 'checkpoints/thread-main': 'src/checkpoints/thread-main.ts' };

/** Imported by other programs, with their own copies of our dependencies. */
const libraries = { 'client/index': 'src/client/index.ts', 'machines/index': 'machines/index.ts' };

/** Not for bundling: a native binary, and CommonJS that is loaded when first needed. */
const neverBundled = [...runtimePackages, 'elkjs'];

/** The inspector package for Node and browsers. It uses the XState of the program. */
const inspector = [
  { entries: { 'inspector/node': 'src/inspector/index.ts' } },
  { entries: { 'inspector/browser': 'src/inspector/browser.ts' }, platform: 'browser' },
] as const;

const isOneOf = (names: readonly string[]) => (id: string) =>
  id.startsWith('node:') || names.some((name) => id === name || id.startsWith(`${name}/`));

/** Commands that need a module of the file that all of them load: half of some fifty. */
const halfOfCommands = 26;

/** Machines, their library, and servers: several commands run some of them. */
const ofServers = /[\\/](?:src[\\/](?:http|events|inspect)|machines|node_modules[\\/]xstate)[\\/]/;

/**
 * Form of a program, whose files cost time at its start: no comments, short names of variables, and one file for all modules of one
 * load. To compile an agent server is a quarter of the work of its start, and grows with its text; functions and classes keep the names
 * that stack traces show. Node finds, checks and reads each file of its own, some 0.3 ms: modules of half of the commands share a file,
 * and those of servers another.
 */
const programOutput: OutputOptions = {
  comments: { legal: true, annotation: false, jsdoc: false },
  minify: { compress: { keepNames: { function: true, class: true } }, mangle: { keepNames: true } },
  codeSplitting: {
    groups: [
      { name: 'initial', tags: ['$initial'], priority: 3 },
      { name: 'common', minShareCount: halfOfCommands, priority: 2 },
      { name: 'servers', minShareCount: 6, test: ofServers, priority: 1 },
    ],
  },
};

interface BundleOptions {
  readonly entries: Readonly<Record<string, string>>;
  readonly external: readonly string[];
  readonly chunks: string;
  readonly format?: 'esm' | 'cjs';
  readonly platform?: 'node' | 'browser';
  readonly plugins?: readonly Plugin[];
  readonly output?: OutputOptions;
}

async function bundle(options: BundleOptions): Promise<void> {
  const { entries, external, chunks, format = 'esm', platform = 'node', plugins = [], output = {} } = options;
  const extension = format === 'cjs' ? 'cjs' : 'js';
  await build({
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, at(file)])),
    platform,
    external: isOneOf(external),
    resolve: { alias: bundledForms },
    plugins: [...plugins],
    onLog,
    // Our modules only declare: an unused one need not be loaded. An entry always runs.
    treeshake: {
      moduleSideEffects: [
        {
          test: /[\\/](cli[\\/]main|appserver[\\/](compiled-)?main|supervise[\\/]redact-main|checkpoints[\\/]thread-main)\.ts$/,
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

const common = { external: neverBundled, output: programOutput };
const commonJs = { ...common, format: 'cjs', plugins: [asciiBundles] } as const;

interface Product {
  /** Directory below `dist/` for this product alone: the files of an earlier build there are removed. */
  readonly directory: string;
  readonly bundles: readonly BundleOptions[];
}

/** Products that can be built alone. */
const products = {
  cli: {
    directory: 'chunks',
    bundles: [{ ...commonJs, entries: commandLine, chunks: 'chunks' }],
  },
  appserver: {
    directory: 'appserver',
    bundles: [
      { ...commonJs, entries: agentServer, chunks: 'appserver/chunks' },
      { ...commonJs, entries: agentServerStart, chunks: 'appserver/start' },
    ],
  },
  supervise: { directory: 'supervise', bundles: [{ ...commonJs, entries: logRedactor, chunks: 'supervise/chunks' }] },
  checkpoints: {
    directory: 'checkpoints',
    bundles: [{ ...commonJs, entries: checkpointThread, chunks: 'checkpoints/chunks' }],
  },
  libraries: {
    directory: 'shared',
    bundles: [{ entries: libraries, external: Object.keys(packageJson.dependencies), chunks: 'shared' }],
  },
  inspector: {
    directory: 'inspector/chunks',
    bundles: inspector.map((bundle) => ({ ...bundle, external: ['xstate'], chunks: 'inspector/chunks' })),
  },
} as const satisfies Readonly<Record<string, Product>>;

export type ProductName = keyof typeof products;

export const productNames = Object.keys(products) as readonly ProductName[];

/** Sources that a product begins with. */
export const entriesOf = (name: ProductName): readonly string[] =>
  products[name].bundles.flatMap(({ entries }) => Object.values(entries));

/** Writes the bundles of a product below `dist/`, in place of those of an earlier build. */
export async function buildProduct(name: ProductName): Promise<void> {
  const { directory, bundles }: Product = products[name];
  rmSync(at(`dist/${directory}`), { recursive: true, force: true });
  for (const options of bundles) await bundle(options);
}

/** Writes all bundles. */
export async function buildBundles(): Promise<void> {
  for (const name of productNames) await buildProduct(name);
}
