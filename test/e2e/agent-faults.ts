import { existsSync } from 'node:fs';
import type { Test } from 'tap';
import type { Turn } from '../../src/protocol/index.ts';
import { delta, event, eventStream, type Reply, startMockUpstream, write } from '../fixtures/upstream/mock-upstream.ts';
import { eventually } from '../hub/harness.ts';
import { itemsOf, toolCall } from './agent-server.ts';
import { makePlace, type Place, processesUnder } from './harness.ts';

/** Settings of a chat API on any free port. */
export const api = { Enabled: true, Port: 0 };
export const user = (content: string) => ({ role: 'user', content });

/** Workspace whose upstream answers by `reply` and is asked once per request of the model. */
export async function workspaceWithUpstream(t: Test, reply: Reply, settings: Readonly<Record<string, unknown>> = {}) {
  const place = makePlace(t);
  const upstream = await startMockUpstream(t, reply);
  const workspace = place.workspace('site', {
    EndPoint: upstream.url,
    ApiKey: 'key-of-the-upstream',
    Model: 'mock-model',
    UpstreamRetries: 0,
    Quota: { Wait: 'never' },
    Api: api,
    ...settings,
  });
  return { place, upstream, workspace };
}

/** Headers and first words of an answer that a test then continues, holds or breaks. */
export const partialAnswer = [eventStream, write(event(delta({ role: 'assistant', content: 'half an ' })))];

/** Checks that an ended turn has complete items, a result for each call and a time of completion. */
export function checkCompleteTurn(t: Test, turn: Turn): void {
  t.strictSame(
    turn.items.filter(({ status }) => status !== 'completed'),
    [],
    'every item is complete',
  );
  const answeredCalls = itemsOf(turn, 'toolResult').map(({ callId }) => callId);
  t.strictSame(
    itemsOf(turn, 'toolCall').map(({ callId }) => callId),
    answeredCalls,
    'every call has a result',
  );
  t.ok(turn.completedAt);
}

/** Processes of a place that tools have started: all except those of Oratorio itself. */
const toolProcesses = ({ root }: Place) =>
  processesUnder(root)
    .filter(({ argv }) => !argv.some((word) => /oratorio\.js$|\/dist\//.test(word)))
    .map(({ pid, argv }) => `${pid} ${argv.join(' ')}`);

/** Resolves when no process of a tool runs. */
export const untilNoToolProcess = (place: Place) =>
  eventually(
    () => toolProcesses(place).length === 0 || undefined,
    () => `no process of a tool runs: ${toolProcesses(place).join('; ')}`,
  );

/** Call of a command that creates the file `name`, then runs until a signal ends it. */
export const touchThenRun = (name: string) =>
  toolCall('Exec', { command: `touch ${name}; while :; do sleep 0.1; done` });

export const untilExists = (file: string) => eventually(() => existsSync(file) || undefined, `${file} is there`);

/** Resolves when the server at this address reports no active turn. */
export const untilIdle = (url: string) =>
  eventually(async () => {
    const { activeTurns } = (await (await fetch(`${url}/v1/health`)).json()) as { activeTurns: number };
    return activeTurns === 0 || undefined;
  }, 'no turn is active');
