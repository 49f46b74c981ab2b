/** Search over the texts of all conversations. */

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { listThreads, openHistory, openStore } from '../../../src/agent/index.ts';
import { migrate, migrations } from '../../../src/agent/store/migrations.ts';
import { matchOf } from '../../../src/agent/store/words.ts';
import { eventually } from '../../hub/harness.ts';
import { message, opened, said, temporaryDirectory, thread, turn } from './helpers.ts';

t.test('finds messages and answers by beginnings of words, newest first, until they are removed', async (t) => {
  const directory = temporaryDirectory(t);
  const { threads, traces } = opened(t, directory);
  threads.putThread(thread('thread_1', { displayName: 'Birds' }));
  threads.putThread(thread('thread_child', { parentThreadId: 'thread_1' }));
  for (const id of ['thread_1', 'thread_child']) {
    threads.putTurn(turn(id, 1));
    threads.putItem(id, said(1, 1, 'Where do pelicans nest?'));
  }
  threads.putItem('thread_1', message(1, 2, '', { status: 'streaming' }));
  threads.appendItemText('thread_1', 'item_2', 'Pelicans nest');
  t.same(traces.texts('nest', 10), [
    { threadId: 'thread_1', turnId: 'turn_001', excerpt: 'Where do pelicans nest?', displayName: 'Birds' },
  ]);
  threads.putItem('thread_1', message(1, 2, `Some words.\n\n${'Pelícans nest on islands. '.repeat(20)}`));
  const found = traces.texts('PELICAN island', 10);
  t.match(found, [{ threadId: 'thread_1', turnId: 'turn_001' }]);
  t.match(found[0]?.excerpt, /^Some words\. Pelícans nest/);
  t.ok((found[0]?.excerpt.length ?? 0) < 150);
  t.same(traces.texts('eli', 10), [], 'the middle of a word is not found');
  t.equal(traces.texts('nest', 1).length, 1);
  for (const text of ['', '"', '*', 'nest" OR "x', 'NEAR(nest)', "'); DROP TABLE texts; --"])
    t.doesNotThrow(() => traces.texts(text, 10), text);
  const list = (text: string) =>
    listThreads(directory, { limit: 10, text, includeArchived: false }, 0).map((each) => each.thread.id);
  t.same(list('islands'), ['thread_1'], 'the list of the Hub searches texts, too');
  const history = openHistory(directory);
  t.equal(history.traces.texts('islands', 10).length, 1, 'without an agent server');
  history.close();
  threads.deleteTurns('thread_1', ['turn_001']);
  t.same(traces.texts('nest', 10), []);
});

t.test('texts of ended turns are found before and after they are indexed, also by the next process', async (t) => {
  const directory = temporaryDirectory(t);
  const first = openStore(directory);
  for (const [number, status] of [[1, 'completed'] as const, [2, 'running'] as const]) {
    first.threads.putThread(thread(`thread_${number}`));
    first.threads.putTurn(turn(`thread_${number}`, 1, { status }));
    first.threads.putItem(`thread_${number}`, said(1, 1, 'Où nichent les Pélicans?'));
  }
  t.equal(first.traces.texts('pelicans ou', 10).length, 2);
  first.close();
  const { threads, traces } = opened(t, directory);
  const reader = new DatabaseSync(join(directory, 'state.db'), { readOnly: true });
  t.teardown(() => reader.close());
  const due = (): number => Number(reader.prepare('SELECT count(*) AS count FROM textsDue').get()?.['count']);
  t.equal(due(), 2);
  await eventually(() => due() === 1 || undefined, 'the ended turn is indexed');
  t.equal(traces.texts('pelicans ou', 10).length, 2);
  threads.putTurn(turn('thread_2', 1));
  await eventually(() => due() === 0 || undefined, 'the turn that ended later is indexed');
  t.equal(traces.texts('Pélic nichent', 10).length, 2);
  t.same(traces.texts('nich absent', 10), []);
});

t.test('a text is found by the same words before it is indexed and after, in every script', async (t) => {
  const found: readonly (readonly [text: string, query: string, isFound: boolean])[] = [
    ['नमस्ते दुनिया', 'नमस्ते', true],
    ['สวัสดีครับ', 'สวัสดี', true],
    ['οδοσήμανση', 'ΟΔΟΣ', true],
    ['한국어 문서', '한국', true],
    ['한국어 문서', '하', false],
    ['Tiếng Việt', 'tieng viet', true],
    ['İstanbul', 'istan', true],
    ['cafe\u0301 au lait', 'café', true],
  ];
  const directory = temporaryDirectory(t);
  const { threads, traces } = opened(t, directory);
  for (const [number, [text]] of found.entries()) {
    threads.putThread(thread(`thread_${number}`));
    threads.putTurn(turn(`thread_${number}`, 1, { status: 'running' }));
    threads.putItem(`thread_${number}`, said(1, 1, text));
  }
  const check = (when: string) => {
    for (const [number, [text, query, isFound]] of found.entries()) {
      const threads = traces.texts(query, 10).map(({ threadId }) => threadId);
      t.equal(threads.includes(`thread_${number}`), isFound, `${query} in ${text}, ${when}`);
    }
  };
  check('before');
  for (const number of found.keys()) threads.putTurn(turn(`thread_${number}`, 1));
  const reader = new DatabaseSync(join(directory, 'state.db'), { readOnly: true });
  t.teardown(() => reader.close());
  const due = () => reader.prepare('SELECT count(*) AS count FROM textsDue').get()?.['count'];
  await eventually(() => due() === 0 || undefined, 'all turns are indexed');
  check('after');
});

t.test('a message of images alone matches no word, also while its turn runs', async (t) => {
  const { threads, traces } = opened(t);
  threads.putThread(thread('thread_1'));
  threads.putTurn(turn('thread_1', 1, { status: 'running' }));
  threads.putItem('thread_1', { ...said(1, 1, ''), input: [{ type: 'image', url: 'data:image/png;base64,AAAA' }] });
  t.same(traces.texts('null', 10), []);
});

t.test('a migration indexes the texts of an earlier version', async (t) => {
  const file = join(temporaryDirectory(t), 'old.db');
  const sqlite = new DatabaseSync(file);
  t.teardown(() => sqlite.close());
  const before = migrations.slice(0, -2);
  migrate(sqlite, file, before);
  sqlite.exec("INSERT INTO threads (id, lastActiveAt, json) VALUES ('thread_1', '2026', '{}')");
  sqlite.exec("INSERT INTO turns (thread, id, number, status, json) VALUES (1, 'turn_001', 1, 'completed', '{}')");
  sqlite
    .prepare('INSERT INTO items (thread, turn, id, number, canGrow, json) VALUES (1, 1, ?, 1, 0, ?)')
    .run('item_1', JSON.stringify(said(1, 1, 'An old pelican')));
  migrate(sqlite, file);
  const rows = sqlite.prepare('SELECT rowid FROM texts WHERE texts MATCH ?').all(matchOf('peli') ?? '');
  t.equal(rows.length, 1);
});
