/** Threads, turns, items and traces to put into stores, and directories for them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { openStore, type Store } from '../../../src/agent/store/index.ts';
import type { StoredThread, StoredTurn } from '../../../src/agent/thread-store.ts';
import type { ItemOf, NewTraceEvent, QueuedInput } from '../../../src/protocol/index.ts';

const at = '2026-01-01T00:00:00.000Z';

export function temporaryDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-store-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A store that is closed with the test. Any error in the background fails the test. */
export function opened(t: Test, directory: string = temporaryDirectory(t)): Store {
  const store = openStore(directory, { onFault: (error) => t.fail('a fault in the background', { error }) });
  t.teardown(() => store.close());
  return store;
}

export const thread = (id: string, more: Partial<StoredThread> = {}): StoredThread => ({
  id,
  workspacePath: '/work',
  status: 'active',
  createdAt: at,
  lastActiveAt: at,
  ...more,
});

export const turnId = (number: number): string => `turn_${String(number).padStart(3, '0')}`;

export const turn = (threadId: string, number: number, more: Partial<StoredTurn> = {}): StoredTurn => ({
  id: turnId(number),
  threadId,
  status: 'completed',
  startedAt: at,
  ...more,
});

export const message = (
  turnNumber: number,
  number: number,
  text: string,
  more: Partial<ItemOf<'agentMessage'>> = {},
): ItemOf<'agentMessage'> => ({
  id: `item_${number}`,
  turnId: turnId(turnNumber),
  status: 'completed',
  createdAt: at,
  type: 'agentMessage',
  text,
  ...more,
});

export const command = (turnNumber: number, number: number, output: string): ItemOf<'commandExecution'> => ({
  id: `item_${number}`,
  turnId: turnId(turnNumber),
  status: 'streaming',
  createdAt: at,
  type: 'commandExecution',
  callId: `call_${number}`,
  command: 'make',
  output,
});

export const said = (turnNumber: number, number: number, text: string): ItemOf<'userMessage'> => ({
  id: `item_${number}`,
  turnId: turnId(turnNumber),
  status: 'completed',
  createdAt: at,
  type: 'userMessage',
  input: [{ type: 'text', text }],
});

export const queued = (id: string, text = id): QueuedInput => ({ id, input: [{ type: 'text', text }], createdAt: at });

export const event = (sessionKey: string, more: Partial<NewTraceEvent> = {}): NewTraceEvent => ({
  sessionKey,
  type: 'response',
  at,
  data: {},
  ...more,
});

/** Commits of `store-writer.ts` so far. `pieces`: how many of the turn's answer; `traces`: how many of the thread. */
export interface Said {
  readonly turn: number;
  readonly pieces: number;
  readonly isEnded: boolean;
  readonly traces: number;
}

/** Error of the store on a full disk, and number of turns that it could still read. */
export interface Refused {
  readonly code: string;
  readonly again: string;
  readonly turns: number;
}

export const piece = (number: number): string => `piece ${number} 😀; `;
export const pieces = (count: number): string => Array.from({ length: count }, (_, index) => piece(index)).join('');
