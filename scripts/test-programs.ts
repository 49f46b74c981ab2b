/**
 * Bundles of the programs that tests start over and over: a bundle is up in a fifth of the time that its sources take, most
 * of which goes into loading some two hundred files. What is shipped is in `dist/` already, and is what tests start then.
 */
import { globSync, mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'rolldown';
import { root } from './toolchain.mjs';

const patterns = [
  'test/fixtures/hub/hub.ts',
  'test/fixtures/agent-servers/*.ts',
  'test/agent/store-writer.ts',
  'test/review/store/store-worker.ts',
  'test/review/jobs/lane-worker.ts',
  'test/review/git/prepare-elsewhere.ts',
];

/** Found by their names at run time, or loaded when first needed: as in `build.ts`. */
const neverBundled = ['uWebSockets.js', 'ws', 'prom-client', 'elkjs', '@vscode/ripgrep'];
const isExternal = (id: string) =>
  id.startsWith('node:') || neverBundled.some((name) => id === name || id.startsWith(`${name}/`));

/** The program that this module starts is found beside the shipped module, not beside a bundle of the tests. */
const findsItsProgramInDist = {
  name: 'finds its program in dist',
  transform: {
    filter: { id: /\/src\/supervise\/log-redactor\.ts$/ },
    handler: (code: string) =>
      code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(join(root, 'dist/supervise/bundled.js')).href)),
  },
};

/**
 * Makes them, in a new directory below `node_modules`, where a bundle still finds the libraries that it does not carry.
 * @returns the directory: in it `NAME.js` for the source `NAME.ts`, for `program` in `test/programs.ts`
 */
export async function bundleTestPrograms(): Promise<string> {
  const cache = join(root, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, 'oratorio-test-'));
  const sources = globSync(patterns, { cwd: root });
  await build({
    input: Object.fromEntries(sources.map((source) => [source.replace(/\.ts$/, ''), join(root, source)])),
    platform: 'node',
    external: isExternal,
    plugins: [findsItsProgramInDist],
    logLevel: 'warn',
    output: { dir: directory, entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js' },
  });
  return directory;
}
