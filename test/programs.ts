/** Programs of this checkout that tests start as processes. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Programs that have a shipped form. */
const shipped: Readonly<Record<string, string>> = {
  'src/cli/main.ts': 'dist/cli/main.cjs',
  'src/appserver/main.ts': 'dist/appserver/main.cjs',
};

/** Matches a program that is bundled as CommonJS. */
const isCommonJs = /^test\/(?:fixtures\/(?:hub|agent-servers)\/|appserver\/turn-victim\.ts$)/;

/**
 * The file to start for a program whose source is `source`, named from the root of the repository. `npm test` has built it, or
 * bundled it (`scripts/test-programs.ts`); where a test file is run without that, it is the source itself.
 *
 * @throws Error when the bundle is missing
 */
export function program(source: string): string {
  const bundles = process.env['ORATORIO_TEST_PROGRAMS'];
  if (bundles === undefined) return at(source);
  const built = shipped[source];
  if (built !== undefined) return at(built);
  const bundle = `${bundles}/${source.replace(/\.m?[jt]s$/, isCommonJs.test(source) ? '.cjs' : '.js')}`;
  if (!existsSync(bundle)) throw new Error(`${source} is not bundled: name it in scripts/test-programs.ts.`);
  return bundle;
}

/** Variables of this process that every program of this checkout may have: its commands, and the compiled code of the run. */
export const programEnvironment: Readonly<Record<string, string>> = Object.fromEntries(
  ['PATH', 'NODE_COMPILE_CACHE'].map((name) => [name, process.env[name] ?? '']).filter(([, value]) => value !== ''),
);
