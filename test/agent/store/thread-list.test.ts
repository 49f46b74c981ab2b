import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { listThreads } from '../../../src/agent/index.ts';
import { event, opened, temporaryDirectory, thread, turn } from './helpers.ts';

const all = { limit: 10, text: '', includeArchived: false };
const at = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`;

t.test('lists threads beside a store that is open: newest first, without sub-agents and archived ones', async (t) => {
  const directory = temporaryDirectory(t);
  const { threads, traces } = opened(t, directory);
  threads.putThread(thread('thread_old', { displayName: 'Straße', lastActiveAt: at(1) }));
  threads.putThread(thread('thread_new', { lastActiveAt: at(3) }));
  threads.putThread(thread('thread_away', { status: 'archived', lastActiveAt: at(2) }));
  threads.putThread(thread('thread_child', { parentThreadId: 'thread_new', lastActiveAt: at(4) }));
  threads.putTurn(turn('thread_old', 1, { completedAt: at(1) }));
  threads.putTurn(turn('thread_new', 1, { completedAt: at(2) }));
  threads.putTurn(turn('thread_new', 2, { status: 'waitingApproval', startedAt: at(3) }));
  traces.append(event('thread_new', { type: 'turn.started', data: { text: 'the first words' } }));
  traces.flush();
  const list = (more: Partial<typeof all> = {}) => listThreads(directory, { ...all, ...more }, 0);
  const ids = (more: Partial<typeof all> = {}) => list(more).map(({ thread: { id } }) => id);
  t.match(list(), [
    { thread: { id: 'thread_new' }, lastTurn: { status: 'waitingApproval', startedAt: at(3), completedAt: null } },
    { thread: { id: 'thread_old' }, firstInput: null, lastTurn: { status: 'completed', completedAt: at(1) } },
  ]);
  t.same(ids({ includeArchived: true }), ['thread_new', 'thread_away', 'thread_old']);
  t.same(ids({ limit: 1 }), ['thread_new']);
  const config = { workspaceOverride: '/fork' };
  threads.putThread(thread('thread_fork', { forkedFromThreadId: 'thread_old', config, lastActiveAt: at(0) }));
  threads.putThread(thread('thread_copy', { forkedFromThreadId: 'thread_old', lastActiveAt: at(0) }));
  t.same(
    listThreads(directory, { ...all, forksOnly: true }, 0).map(({ thread: { id } }) => id),
    ['thread_fork'],
  );
  t.same(ids({ text: 'sTRASSE' }), ['thread_old'], 'in any case, also beyond ASCII');
  t.same(ids({ text: 'thread_o' }), ['thread_old'], 'by id');
  t.same(ids({ text: "%' OR 1 --" }), [], 'a text is no pattern and no SQL');
});

t.test('a missing and a damaged database are typed errors', (t) => {
  const directory = temporaryDirectory(t);
  t.throws(() => listThreads(directory, all, 0), { name: 'StorageError', code: 'failed' });
  writeFileSync(join(directory, 'state.db'), 'no database');
  t.throws(() => listThreads(directory, all, 0), { name: 'StorageError', code: 'corrupt' });
  t.end();
});
