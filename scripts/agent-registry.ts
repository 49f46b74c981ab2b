/**
 * `npm run agents:registry [-- FILE|ADDRESS]`: renews the list of agents that `oratorio up --agent` knows beside its presets, from the
 * public registry of the Agent Client Protocol or a copy of it. Stores the facts for a start only; names each entry that it leaves out.
 */
import { join } from 'node:path';
import { registrySource } from './agents/registry-entries.ts';
import { renewList } from './agents/renew-list.ts';
import { root } from './toolchain.mjs';

const [source = registrySource, target = join(root, 'src/external/agent-registry.generated.json')] =
  process.argv.slice(2);

try {
  const { agents, leftOut } = await renewList(source, target);
  for (const { id, reason } of leftOut) console.warn(`! left out ${id}: ${reason}`);
  console.log(`${agents.length} agents. Now run: npm run docs`);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
