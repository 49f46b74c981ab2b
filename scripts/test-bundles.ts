/**
 * Bundles test files, all in one build: a file is up in half the time, because Node strips and links up to 700 modules for one
 * that runs from its sources.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'rolldown';
import { takesBuiltinsWithoutImport } from './builtin-modules.ts';
import { bundledForms, onLog } from './bundled-forms.ts';
import { findsItsProgramInDist } from './test-programs.ts';
import { isTogether, type TestUnit } from './test-units.ts';
import { root } from './toolchain.mjs';

/** Packages that most test files load, and their dependencies. All others but tap are loaded from `node_modules`. */
const bundledPackages = [
  'xstate',
  'valibot',
  'kysely',
  'fast-check',
  'pure-rand',
  'superjson',
  'copy-anything',
  'is-what',
  'jsonc-parser',
  'yaml',
  'ws',
  'vscode-jsonrpc',
  'eventsource-parser',
  '@valibot/to-json-schema',
];

/** Packages that `ws` uses where they are installed. */
const optionalPackages = ['bufferutil', 'utf-8-validate'];

const isExternal = (id: string, importer: string | undefined): boolean =>
  optionalPackages.includes(id) ||
  (/^(?:node:|[@a-z])/i.test(id) &&
    !importer?.includes('/node_modules/') &&
    id !== 'tap' &&
    !bundledPackages.some((name) => id === name || id.startsWith(`${name}/`)));

/** True for a module of tap or of a package that only tap loads. */
const isOfTap = (id: string): boolean =>
  id.includes('/node_modules/') && !bundledPackages.some((name) => id.includes(`/node_modules/${name}/`));

/**
 * The chunk of tap: 300 modules that every test process loads. The name is that of a package of tap, because tap finds the caller
 * of an assertion by leaving out the frames of its packages. It has no source map, which every process would read.
 */
const tapChunk = 'node_modules/@tapjs/tap.mjs';

/** Modules that each test process loads first: it gathers its output, and reports its processor time. */
const loadedFirst = ['gathered-output.mjs', 'cpu-time.mjs']
  .map((name) => `import ${JSON.stringify(new URL(name, import.meta.url).href)};`)
  .join(' ');

/** Prints elements of React for tap, which loads it and React itself in every process; no test has such an element. */
const printsReactElements = {
  name: 'loads React on first use',
  transform: {
    filter: { id: /\/tcompare\/dist\/esm\/react-element-to-jsx-string\.js$/ },
    handler: (code: string) => ({
      code: code.replace(
        "= require('react-element-to-jsx-string');",
        "= { default: (...words) => require('react-element-to-jsx-string').default(...words) };",
      ),
      map: null,
    }),
  },
};

/** Replacements in the module of tap that finds the test of an uncaught error. */
const domains: readonly (readonly [from: string, to: string])[] = [
  ['import { createHook, executionAsyncId, }', 'import { AsyncLocalStorage, executionAsyncId, }'],
  ['domainHook = createHook(hookMethods);', 'domainHook = { enable() {}, disable() {} };'],
  ['const domains = new Map();', 'const domains = new Map(), running = new AsyncLocalStorage();'],
  [
    'const currentDomain = () => domains.get(executionAsyncId());',
    'const currentDomain = () => { let it = running.getStore(); while (it?.destroyed) it = it.parent; return it; };',
  ],
  ['this.parent = domains.get(eid);', 'this.parent = running.getStore(); running.enterWith(this);'],
];

/**
 * Lets the context of asynchronous work carry its test. tap has a hook called at the begin and the end of each promise, which is
 * up to a fifth of the work of a test with many.
 */
const carriesTests = {
  name: 'carries tests',
  transform: {
    filter: { id: /\/async-hook-domain\/dist\/mjs\/index\.js$/ },
    handler(code: string) {
      let changed = code;
      for (const [from, to] of domains) {
        if (!changed.includes(from)) throw new Error(`async-hook-domain has changed: it lacks ${from}`);
        changed = changed.replace(from, to);
      }
      return { code: changed, map: null };
    },
  },
};

const sharedTap = join(root, 'scripts', 'shared-tap.ts');

/** Gives the files of a test process the tap that they share. */
const sharesTap = {
  name: 'shares tap',
  resolveId: {
    filter: { id: /^tap$/ },
    handler: (_: string, importer: string | undefined) =>
      importer?.startsWith(join(root, 'test/')) ? sharedTap : null,
  },
};

/** Makes the program of each unit of several files, which is a module of the name of the unit. */
const runsTogether = (units: readonly TestUnit[]) => ({
  name: 'runs together',
  resolveId: { filter: { id: isTogether }, handler: (id: string) => id },
  load: {
    filter: { id: isTogether },
    handler(id: string) {
      const files = units.find(({ name }) => name === id)?.files ?? [];
      const loaded = files.map(
        (file) => `{ name: ${JSON.stringify(file)}, load: () => import(${JSON.stringify(join(root, file))}) },`,
      );
      return `import { runFiles } from ${JSON.stringify(sharedTap)};\nawait runFiles([\n${loaded.join('\n')}\n]);\n`;
    },
  },
});

/** Program of the unit of this name, from the directory of bundles. */
export const programOf = (unit: string): string => unit.replace(isTogether, '/together').replace(/(?:\.ts)?$/, '.js');

async function removeSourceMap(file: string): Promise<void> {
  const code = await readFile(file, 'utf8');
  await writeFile(file, code.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'));
}

/** A module finds files beside its source, not beside the bundle. The replacements keep each line where it is. */
const sourceLocations = {
  name: 'source locations',
  transform: {
    filter: {
      id: { include: /\.(?:m?[jt]s|tsx)$/, exclude: /node_modules/ },
      code: /import\.meta\.(?:url|dirname|filename)/,
    },
    handler(code: string, id: string) {
      const values = { url: pathToFileURL(id).href, dirname: dirname(id), filename: id };
      const replaced = code.replaceAll(/import\.meta\.(url|dirname|filename)\b/g, (_, name: keyof typeof values) =>
        JSON.stringify(values[name]),
      );
      return { code: replaced, map: null };
    },
  },
};

/**
 * Writes the program of each unit into `directory`, with source maps. The directory has to be in the checkout, where the bundles
 * find the packages that they do not contain.
 */
export async function bundleTests(units: readonly TestUnit[], directory: string): Promise<void> {
  await build({
    input: Object.fromEntries(
      units.map(({ name }) => [programOf(name).replace(/\.js$/, ''), isTogether.test(name) ? name : join(root, name)]),
    ),
    platform: 'node',
    external: isExternal,
    plugins: [
      runsTogether(units),
      sharesTap,
      findsItsProgramInDist,
      sourceLocations,
      printsReactElements,
      carriesTests,
      takesBuiltinsWithoutImport,
    ],
    resolve: { conditionNames: ['development', 'node', 'import'], alias: bundledForms },
    logLevel: 'warn',
    onLog,
    output: {
      dir: directory,
      entryFileNames: '[name].js',
      chunkFileNames: ({ name }) => (name === 'tap' ? tapChunk : 'chunks/[name]-[hash].js'),
      banner: ({ isEntry }) => (isEntry ? loadedFirst : ''),
      codeSplitting: { groups: [{ name: 'tap', test: isOfTap }] },
      sourcemap: true,
      sourcemapExcludeSources: true,
    },
  });
  await removeSourceMap(join(directory, tapChunk));
}
