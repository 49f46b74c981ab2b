import { readFileSync, writeFileSync } from 'node:fs';
import { visible } from '../../src/lib/index.ts';
import { boundedFetch } from '../../src/mcp/bounded-fetch.ts';
import { type Entries, entriesOf, registrySource } from './registry-entries.ts';

const maxBytes = 4_194_304;
const timeoutMs = 30_000;

/** The registry at an address, or in a file. @throws Error without control characters */
async function registryText(source: string): Promise<string> {
  if (!/^https?:/.test(source)) {
    const bytes = readFileSync(source);
    if (bytes.length > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes`);
    return bytes.toString();
  }
  const init: RequestInit = { signal: AbortSignal.timeout(timeoutMs), redirect: 'error' };
  const answer = await boundedFetch(maxBytes)(source, init);
  if (!answer.ok) throw new Error(`it answers with HTTP ${answer.status}`);
  return answer.text();
}

function documentIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The message of the parser quotes the text.
    throw new Error('it is not JSON');
  }
}

/**
 * Writes the usable agents of a registry to the list at `target`, with the day. A failure leaves the list unchanged.
 *
 * @throws Error with the source and its problem
 */
export async function renewList(source: string, target: string): Promise<Entries> {
  try {
    const found = entriesOf(documentIn(await registryText(source)));
    if (found.agents.length === 0) throw new Error('it has no usable entry');
    const date = new Date().toISOString().slice(0, 10);
    writeFileSync(target, `${JSON.stringify({ source: registrySource, date, agents: found.agents }, null, 2)}\n`);
    return found;
  } catch (error) {
    const { message, cause } = error as Error;
    const problem = cause instanceof Error ? `${message}: ${cause.message}` : message;
    throw new Error(`The registry ${source} cannot be used, and the list stays unchanged: ${visible(problem)}.`);
  }
}
