/** A workspace whose agent servers are killed in an answer of their scripted model. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import {
  answered,
  delta,
  event,
  eventStream,
  hang,
  type Reply,
  startMockUpstream,
  write,
} from '../fixtures/upstream/mock-upstream.ts';
import { makeWorkspace, serving, spawnServer } from './harness.ts';

const usage = { prompt_tokens: 10, completion_tokens: 2 };

/** Calls a command, then begins as many answers as servers are killed, and ends the next one: with a call of the caller's tool `mine`, if it has one. Each answered request has 10 + 2 tokens. */
function model(kills: number): Reply {
  let left = kills;
  return (request) => {
    const { messages, tools = [] } = request.body;
    if (messages.at(-1)?.role === 'user') {
      const call = { id: `call_${messages.length}`, name: 'Exec', arguments: { command: 'echo once >> effects' } };
      return answered(request, { toolCalls: [call], usage });
    }
    if (left === 0) {
      const isCallers = tools.some((tool: { function: { name: string } }) => tool.function.name === 'mine');
      const toolCalls = isCallers ? [{ id: 'call_mine', name: 'mine', arguments: {} }] : [];
      return answered(request, { text: 'the whole answer', toolCalls, usage });
    }
    left -= 1;
    return [eventStream, write(event(delta({ role: 'assistant', content: 'half an ' }))), hang];
  };
}

export async function killable(t: Test, kills: number, settings: Readonly<Record<string, unknown>>) {
  const upstream = await startMockUpstream(t, model(kills));
  const { path, home } = makeWorkspace(t, {
    ...{ EndPoint: upstream.url, ApiKey: 'k', Model: 'mock-model', UpstreamRetries: 0 },
    DashBoard: { Enabled: false },
    ...settings,
  });
  const start = async () => {
    const server = spawnServer(t, { path, home });
    const { endpoints } = await serving(server, path);
    const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
      server.child.kill(signal);
      await server.ended;
    };
    return { endpoints, kill };
  };
  const requests = () => upstream.requests.filter(({ method }) => method === 'POST').map(({ body }) => body);
  /** Number of requests to the model. */
  const asked = () => requests().length;
  return { asked, requests, start, path, effects: () => readFileSync(join(path, 'effects'), 'utf8') };
}
