/** An agent that speaks the Agent Client Protocol. A prompt `COUNT EVERY` is answered with COUNT texts, one each EVERY ms: the time, ns. */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

async function prompt({ sessionId, prompt: parts }) {
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
  'session/new': () => ({ sessionId: 'one' }),
  'session/prompt': prompt,
};

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) send({ id, result: await methods[method]?.(params) });
});
