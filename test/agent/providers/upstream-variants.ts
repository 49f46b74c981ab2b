/** Shared by the tests of deviating upstreams: building an answer, and comparing its result. */
import type { Test } from 'tap';
import type { ModelEvent, ModelRequest } from '../../../src/agent/model.ts';
import {
  type Action,
  delta,
  eventStream,
  type Script,
  startMockUpstream,
  write,
} from '../../fixtures/upstream/mock-upstream.ts';
import { answerOf, collect, hi, openAi } from './helpers.ts';

export type Expected = Partial<Record<keyof ReturnType<typeof answerOf>, unknown>>;

export async function ask(t: Test, script: Script, request: ModelRequest = hi): Promise<readonly ModelEvent[]> {
  const upstream = await startMockUpstream(t, () => script);
  const provider = openAi(upstream.url);
  t.teardown(() => provider.close());
  return collect(provider, request);
}

export async function holds(t: Test, cases: Readonly<Record<string, readonly [Script, Expected]>>): Promise<void> {
  for (const [name, [script, expected]] of Object.entries(cases)) {
    const events = await ask(t, script);
    t.match(answerOf(events), expected, name);
    t.equal(events.filter(({ type }) => type === 'usage').length, 1, `${name}: usage once`);
    t.equal(events.filter(({ type }) => type === 'finish').length, 1, `${name}: finish once`);
    t.equal(events.at(-1)?.type, 'finish', `${name}: finish last`);
  }
}

export const word = delta({ content: 'hi' });
export const stop = delta({}, 'stop');
export const bytes = (...parts: readonly (string | Action)[]): Script => [
  eventStream,
  ...parts.map((part) => (typeof part === 'string' ? write(part) : part)),
];
export const head = (headers: Readonly<Record<string, string>>): Action => ({ do: 'head', status: 200, headers });
export const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
export const counted = { type: 'usage' as const, inputTokens: 3, outputTokens: 4 };
export const isHi: Expected = { text: 'hi', finish: 'stop', calls: [] };

export const piece = (entry: object) => delta({ tool_calls: [entry] });
export const calls = (...entries: readonly (readonly [string, string, string])[]): Expected => ({
  calls: entries.map(([callId, name, args]) => ({ callId, name, arguments: args })),
  finish: 'toolCalls',
});
export const fn = (name: string | undefined, args?: unknown) => ({
  function: { ...(name && { name }), arguments: args },
});
export const finished = delta({}, 'tool_calls');
