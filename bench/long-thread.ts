import { openStore, type Store } from '../src/agent/index.ts';
import { passage } from './typed-text.ts';

const at = '2026-01-01T00:00:00.000Z';
const base = { status: 'completed', createdAt: at } as const;

function putTurn({ threads }: Store, threadId: string, number: number): void {
  const digits = String(number).padStart(3, '0');
  const turnId = `turn_${digits}`;
  const tokenUsage = { inputTokens: 1_200, outputTokens: 80, totalTokens: 1_280 };
  threads.putTurn({ id: turnId, threadId, startedAt: at, completedAt: at, status: 'completed', tokenUsage });
  const own = { ...base, turnId };
  const id = (place: number) => `item_${String(number * 4 + place).padStart(3, '0')}`;
  const call = { callId: `call_${digits}`, tool: 'ReadFile' };
  threads.putItem(threadId, { ...own, id: id(0), type: 'userMessage', input: [{ type: 'text', text: 'Read on.' }] });
  threads.putItem(threadId, {
    ...own,
    id: id(1),
    type: 'toolCall',
    ...call,
    source: 'builtin',
    arguments: '{"path":"a"}',
  });
  threads.putItem(threadId, {
    ...{ ...own, id: id(2), type: 'toolResult', ...call, outcome: 'completed', durationMs: 2 },
    text: 'a line of a file that somebody has read\n'.repeat(20),
  });
  threads.putItem(threadId, {
    ...own,
    id: id(3),
    type: 'agentMessage',
    text: 'There are twenty lines in it. '.repeat(8),
  });
}

/** Puts a thread of `turns` turns into a workspace in which no server runs. Gives back its id. */
export function makeLongThread(workspacePath: string, stateDirectory: string, turns: number): string {
  const threadId = 'thread_20260101_longer';
  const store = openStore(stateDirectory);
  store.threads.putThread({ id: threadId, workspacePath, status: 'active', createdAt: at, lastActiveAt: at });
  for (let from = 1; from <= turns; from += 500) {
    store.threads.transaction(() => {
      for (let number = from; number < Math.min(from + 500, turns + 1); number += 1) putTurn(store, threadId, number);
    });
  }
  store.close();
  return threadId;
}

/** Puts a conversation of `turns` questions with their answers into a workspace in which no server runs. Gives back its id. */
export function makeTalk(workspacePath: string, stateDirectory: string, turns: number): string {
  const threadId = 'thread_20260101_talked';
  const store = openStore(stateDirectory);
  const displayName = 'A long talk';
  store.threads.putThread({
    ...{ id: threadId, workspacePath, displayName },
    ...{ status: 'active', createdAt: at, lastActiveAt: at },
  });
  for (let from = 1; from <= turns; from += 500) {
    store.threads.transaction(() => {
      for (let number = from; number < Math.min(from + 500, turns + 1); number += 1) putTalk(store, threadId, number);
    });
  }
  store.close();
  return threadId;
}

function putTalk({ threads }: Store, threadId: string, number: number): void {
  const turnId = `turn_${String(number).padStart(5, '0')}`;
  const own = { ...base, turnId };
  const id = (place: number) => `item_${String(number * 2 + place).padStart(6, '0')}`;
  threads.putTurn({ id: turnId, threadId, startedAt: at, completedAt: at, status: 'completed' });
  threads.putItem(threadId, {
    ...own,
    id: id(0),
    type: 'userMessage',
    input: [{ type: 'text', text: `Question ${number}: what does this part do, and is it tested?` }],
  });
  threads.putItem(threadId, { ...own, id: id(1), type: 'agentMessage', text: passage(number) });
}
