/**
 * `npm run agents:registry [-- FILE]`: renews the list of agents that `oratorio up --agent` knows beside its presets, from the public
 * registry of the Agent Client Protocol or a copy of it. Stores the facts for a start only; names each entry that it leaves out.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { entriesOf, registrySource } from './agents/registry-entries.ts';
import { root } from './toolchain.mjs';

const maxBytes = 4_194_304;
const target = join(root, 'src/external/agent-registry.generated.json');

async function registryText(file: string | undefined): Promise<string> {
  if (file !== undefined) return readFileSync(file, 'utf8');
  const answer = await fetch(registrySource, { signal: AbortSignal.timeout(30_000), redirect: 'error' });
  if (!answer.ok) throw new Error(`${registrySource} answered with status ${answer.status}`);
  return answer.text();
}

const text = await registryText(process.argv[2]);
if (Buffer.byteLength(text) > maxBytes) throw new Error(`The registry is larger than ${maxBytes} bytes.`);
const { agents, leftOut } = entriesOf(JSON.parse(text));
for (const { id, reason } of leftOut) console.warn(`! left out ${id}: ${reason}`);
if (agents.length === 0) throw new Error('The registry has no usable entry: the list stays unchanged.');
const date = new Date().toISOString().slice(0, 10);
writeFileSync(target, `${JSON.stringify({ source: registrySource, date, agents }, null, 2)}\n`);
console.log(`${agents.length} agents. Now run: npm run docs`);
