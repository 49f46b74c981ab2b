/**
 * Bundles the programs that many tests start: a bundle is up in a fifth of the time that its sources take, most of which goes
 * into loading some two hundred files. Shipped programs are in `dist/`, and tests start those.
 */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'rolldown';
import { asciiBundles } from './ascii-code.ts';
import { takesBuiltinsWithoutImport } from './builtin-modules.ts';
import { bundledForms, onLog } from './bundled-forms.ts';
import { root } from './toolchain.mjs';

const patterns = [
  'test/fixtures/mcp/{oauth-server,stdio-server}.mjs',
  'test/fixtures/mcp/renews-token.ts',
  'test/fixtures/process/{changes-settings,first-lock,holds-stack-lock,keeps-command,sandboxed-server,spawns-counter,takes-lock,trusts-workspaces}.mjs',
  'test/agent/store/{appender,counter,writer}.ts',
  'test/checkpoints/victim.ts',
  'test/deploy/apply/kill-child.ts',
  'test/review/store/store-worker.ts',
  'test/review/jobs/lane-worker.ts',
  'test/review/git/prepare-elsewhere.ts',
];

/** Agent servers, and stand-ins for them: as CommonJS, because Node loads and resolves modules of it in half the time. */
const agentServers = ['test/fixtures/agent-servers/*.ts', 'test/appserver/turn-victim.ts'];

/** The Hub, which tests start most, and the file that runs it from compiled code. */
const hub = {
  'test/fixtures/hub/hub': 'test/fixtures/hub/hub.ts',
};

/**
 * Packages found by name at run time, or loaded on first use: as in `build.ts`; and those that `ws` uses where they are installed. `ws`
 * itself is bundled: every stand-in for an agent server loads it, which from its files takes as long as all else together.
 */
const neverBundled = ['uWebSockets.js', 'prom-client', 'elkjs', '@vscode/ripgrep', 'bufferutil', 'utf-8-validate'];
const isExternal = (id: string) =>
  id.startsWith('node:') || neverBundled.some((name) => id === name || id.startsWith(`${name}/`));

/** Makes these modules find the program that they start beside the shipped module, not beside a bundle of the tests. */
export const findsItsProgramInDist = {
  name: 'finds its program in dist',
  transform: {
    filter: { id: /\/src\/(?:supervise\/log-redactor|checkpoints\/engine-thread)\.ts$/ },
    handler: (code: string) => ({
      code: code.replaceAll(
        'import.meta.url',
        JSON.stringify(pathToFileURL(join(root, 'dist/supervise/bundled.js')).href),
      ),
      map: null,
    }),
  },
};

const namesOf = (sources: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(sources.map((source) => [source.replace(/\.m?[jt]s$/, ''), source]));

const entriesOf = (sources: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(sources).map(([name, source]) => [name, join(root, source)]));

/**
 * Writes `NAME.js` into `directory` for each source `NAME.ts` or `NAME.mjs`, and `NAME.cjs` for the Hub and agent servers, for
 * `program` in `test/programs.ts`. The directory has to be in the checkout, where a bundle finds the packages that it does not contain.
 */
export async function bundleTestPrograms(directory: string): Promise<void> {
  const common = {
    platform: 'node',
    external: isExternal,
    resolve: { alias: bundledForms },
    logLevel: 'warn',
    onLog,
  } as const;
  const buildCommonJs = (sources: Readonly<Record<string, string>>) =>
    build({
      ...common,
      input: entriesOf(sources),
      plugins: [findsItsProgramInDist, asciiBundles],
      output: {
        dir: directory,
        format: 'cjs',
        entryFileNames: '[name].cjs',
        chunkFileNames: 'chunks/[name]-[hash].cjs',
      },
    });
  await Promise.all([
    build({
      ...common,
      input: entriesOf(namesOf(globSync(patterns, { cwd: root }))),
      plugins: [findsItsProgramInDist, takesBuiltinsWithoutImport, asciiBundles],
      output: { dir: directory, entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js' },
    }),
    buildCommonJs(hub),
    buildCommonJs(namesOf(globSync(agentServers, { cwd: root }))),
  ]);
}
