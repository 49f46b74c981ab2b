/** Sample events of sessions, and the places of the page that show them. */
import type { Locator, Page } from 'playwright-core';
import type { Backend, EventInput } from './sessions-backend.ts';

export const minute = 60_000;
export const ago = (ms: number): number => Date.now() - ms;

export const row = (page: Page, text: string): Locator => page.locator('.vrow', { hasText: text });
/** Row of the waterfall by its label. */
export const bar = (page: Page, name: string): Locator =>
  page.locator('.vrow', { has: page.locator('b', { hasText: new RegExp(`^${name}`) }) });
export const rows = (page: Page): Locator => page.locator('.vrow');
export const selectedText = (page: Page) => page.locator('.vrow[aria-selected=true]').textContent();

/** A session in which one turn thought, asked, ran a tool that failed, and answered. */
export const turnId = 'turn_001';
export function oneTurn(start: number): EventInput[] {
  return [
    { type: 'session.started', at: start },
    { type: 'turn.started', at: start, turnId },
    { type: 'thinking', at: start + 1_000, turnId, durationMs: 900, data: { text: 'I should look first.' } },
    {
      type: 'approval.requested',
      at: start + 1_000,
      turnId,
      callId: 'c1',
      data: { kind: 'exec', summary: 'rm -rf build' },
    },
    ...[{ type: 'approval.completed', at: start + 6_000, turnId, callId: 'c1', durationMs: 5_000 }].map((event) => ({
      ...event,
      data: { decision: 'accept', decidedBy: 'user' },
    })),
    {
      type: 'tool.started',
      at: start + 6_000,
      turnId,
      callId: 'c1',
      tool: 'Exec',
      data: { arguments: '{"command":"rm -rf build"}' },
    },
    {
      ...{ type: 'tool.failed', at: start + 7_000, turnId, callId: 'c1', tool: 'Exec', durationMs: 1_000 },
      data: { result: `${'No such directory. '.repeat(20)}The needle.`, outcome: 'failed' },
    },
    {
      ...{ type: 'response', at: start + 9_000, turnId, durationMs: 1_500 },
      data: { text: `${'It could not be removed. '.repeat(20)}That is the end.` },
    },
    { type: 'turn.completed', at: start + 9_000, turnId, durationMs: 9_000, data: { status: 'completed' } },
  ];
}

export const prepareThree = (backend: Backend) => {
  backend.seed('thread_a', { displayName: 'Alpha', model: 'gpt-test' }, story(ago(60 * minute), 3, 2));
  backend.seed('thread_b', { firstInput: 'What is beta?' }, oneTurn(ago(30 * minute)));
  backend.seed('thread_c', { displayName: 'Gamma' }, [
    { type: 'session.started', at: ago(minute) },
    { type: 'turn.started', at: ago(minute), turnId },
  ]);
};

/** Events of a session of `turns` turns, each with `steps` thoughts, calls and answers, from `start` on. */
export function story(start: number, turns: number, steps: number): EventInput[] {
  const events: EventInput[] = [{ type: 'session.started', at: start, data: { displayName: 'A long story' } }];
  let at = start;
  for (let turn = 1; turn <= turns; turn += 1) {
    const turnId = `turn_${String(turn).padStart(3, '0')}`;
    const begun = at;
    events.push({ type: 'turn.started', at, turnId });
    for (let step = 1; step <= steps; step += 1) {
      const callId = `call_${turn}_${step}`;
      const isFailed = (turn * 31 + step) % 17 === 0;
      const tool = step % 3 === 0 ? 'ReadFile' : 'Exec';
      at += 400;
      events.push({ type: 'thinking', at, turnId, durationMs: 380, data: { text: `Thought ${step} of ${turnId}.` } });
      events.push({
        type: 'tool.started',
        at,
        turnId,
        callId,
        tool,
        data: { arguments: `{"command":"step ${step}"}` },
      });
      at += 250;
      const type = isFailed ? 'tool.failed' : 'tool.completed';
      events.push({
        type,
        at,
        turnId,
        callId,
        tool,
        durationMs: 250,
        data: { result: `Result ${step}`, outcome: type.slice(5) },
      });
      at += 300;
      events.push({ type: 'response', at, turnId, durationMs: 290, data: { text: `Answer ${step} of ${turnId}.` } });
      events.push({ type: 'tokens.used', at, turnId, data: { inputTokens: 100, outputTokens: 20 } });
    }
    events.push({ type: 'turn.completed', at, turnId, durationMs: at - begun, data: { status: 'completed' } });
    at += 1_000;
  }
  return events;
}
