/**
 * `npm run test:stack [-- FILES…]`: the tests that need a real container engine. Files from the network are fetched first; then
 * the engine and the tests run in a network, a process and a mount namespace of their own (`inside.ts`): ports, bridges, packet
 * filters, mounts and processes end with them, and no other engine of this machine notices.
 */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { isBuilt } from '../../scripts/stamp.mjs';
import { root, run } from '../../scripts/toolchain.mjs';
import { caddy211, composeV2 } from '../deploy/tools.ts';
import { baseArchive } from './base-archive.ts';
import { inOwnNamespaces } from './own-namespaces.ts';
import { demandPrograms, usesPodman } from './prerequisites.ts';
import { notTested, variables } from './variables.ts';

/** Stands out among the lines of a long run. */
function refuse(error: unknown): never {
  const reason = error instanceof Error ? error.message : String(error);
  console.error(`\n✖ THE STACK WAS NOT TESTED.\n✖ ${reason}\n`);
  process.exit(notTested);
}

/** Everything from the network, by the variables that say where it is. */
async function fetchAll(files: readonly string[]): Promise<Record<string, string>> {
  await demandPrograms(files);
  return {
    [variables.base]: await baseArchive(),
    ORATORIO_TEST_COMPOSE_V2: await composeV2(),
    ORATORIO_TEST_CADDY_211: await caddy211(),
  };
}

const files = process.argv.length > 2 ? process.argv.slice(2) : globSync('test/stack/*.stack.ts', { cwd: root });
files.sort();
const fetched = await fetchAll(files).catch(refuse);
if (!isBuilt()) run(process.execPath, [join(root, 'scripts', 'node22.mjs'), join(root, 'scripts', 'build.ts')]);
process.exitCode = await inOwnNamespaces([join(root, 'test', 'stack', 'inside.ts'), ...files], {
  ...{ fetched, usesPodman: usesPodman(files) },
});
