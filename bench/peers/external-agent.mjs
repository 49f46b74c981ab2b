/**
 * An agent that speaks the Agent Client Protocol. A prompt `COUNT EVERY` is answered with COUNT texts, one each EVERY ms: the time, ns. A
 * prompt `flood KIND` is answered with 50,000 messages, 40 MB, without a pause.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

const text = 'x'.repeat(800);
const floods = {
  text: () => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }),
  calls: (index) => ({
    ...{ sessionUpdate: 'tool_call', toolCallId: `call_${index}`, title: 'read', kind: 'read', status: 'completed' },
    ...{ rawInput: { path: 'notes.txt' }, content: [{ type: 'content', content: { type: 'text', text } }] },
  }),
  output: () => ({
    ...{
      sessionUpdate: 'tool_call_update',
      toolCallId: 'one',
      title: 'run',
      kind: 'execute',
      rawInput: { command: 'yes' },
    },
    _meta: { terminal_output_delta: { data: text } },
  }),
  other: () => ({ sessionUpdate: 'new_kind', text }),
};

const cancelled = new Set();

async function flood(sessionId, kind) {
  for (let index = 0; index < 50_000 && !cancelled.has(sessionId); index += 1) {
    const update = floods[kind](index);
    const line = JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId, update } });
    if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain');
  }
  return { stopReason: cancelled.has(sessionId) ? 'cancelled' : 'end_turn' };
}

async function prompt({ sessionId, prompt: parts }) {
  const [word, kind] = parts[0].text.split(' ');
  if (word === 'flood') return flood(sessionId, kind);
  const [count, every] = parts[0].text.split(' ').map(Number);
  for (let index = 0; index < count; index += 1) {
    const content = { type: 'text', text: `${process.hrtime.bigint()} ` };
    send({
      method: 'session/update',
      params: { sessionId, update: { sessionUpdate: 'agent_message_chunk', content } },
    });
    await sleep(every);
  }
  return { stopReason: 'end_turn' };
}

const methods = {
  initialize: () => ({ protocolVersion: 1, agentInfo: { name: 'bench', version: '1' }, agentCapabilities: {} }),
  'session/new': () => ({ sessionId: randomUUID() }),
  'session/prompt': prompt,
  'session/cancel': ({ sessionId }) => cancelled.add(sessionId),
};

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  const result = await methods[method]?.(params);
  if (id !== undefined) send({ id, result });
});
