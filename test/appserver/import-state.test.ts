/** History of a workspace that 0.1.0 stored in the workspace itself. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { openStore } from '../../src/agent/index.ts';
import { migrate, migrations } from '../../src/agent/store/migrations.ts';
import { revokeTrust, trustWorkspace } from '../../src/config/index.ts';
import { Client, makeWorkspace, startServer, stateOf } from './harness.ts';

const at = new Date().toISOString();

/** Writes a `state.db` as 0.1.0 left it in a workspace, with grants and automations. */
function fillOld(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const store = openStore(directory);
  const { threads, traces, schedules } = store;
  for (const [id, config] of [
    ['thread_1_old', { approvalPolicy: 'autoApprove', model: 'mine' }],
    ['thread_2_tree', { workspaceOverride: '/elsewhere' }],
  ] as const) {
    threads.putThread({ id, workspacePath: '/old/place', status: 'active', config, createdAt: at, lastActiveAt: at });
    threads.putTurn({ id: 'turn_001', threadId: id, status: 'completed', startedAt: at, input: [] } as never);
    threads.putItem(id, {
      id: 'item_001',
      turnId: 'turn_001',
      type: 'agentMessage',
      status: 'completed',
      text: 'What',
      at,
    } as never);
    threads.appendItemText(id, 'item_001', ' was said');
    threads.putGrant(id, 'shell:sh setup.sh');
    threads.putQueued(id, { id: 'queued_1', input: [{ type: 'text', text: 'run it' }], createdAt: at });
    threads.putCompaction(id, { throughTurnId: 'turn_001', summary: 'in short', at });
    traces.append({ sessionKey: id, type: 'turn.started', at, turnId: 'turn_001', data: { text: 'hello' } });
  }
  threads.putGrant(null, 'shell:sh setup.sh');
  schedules.put({
    id: 'job_1',
    kind: 'cron',
    name: 'nightly',
    prompt: 'touch done',
    scheduleText: 'every minute',
    schedule: { kind: 'every', everyMs: 60_000 } as never,
    enabled: true,
    binding: { mode: 'new' },
    approvalPolicy: 'autoApprove',
    deleteAfterRun: false,
    nextAt: 1,
    version: 1,
    createdAt: 1,
    updatedAt: 1,
    anchorAt: 1,
    progress: {
      failures: 0,
      lastDueAt: null,
      retry: { scheduledFor: 1, attempt: 2, trigger: 'schedule', at: 1 } as never,
      threadId: null,
    },
  });
  store.close();
}

function oldWorkspace(t: Test, isTrusted: boolean): { path: string; home: string; old: string } {
  const { path, home } = makeWorkspace(t);
  fillOld(join(path, '.oratorio'));
  if (!isTrusted) revokeTrust({ home, workspace: path });
  return { path, home, old: join(path, '.oratorio', 'state.db') };
}

const serve = (t: Test, { path, home }: { path: string; home: string }) =>
  startServer(t, undefined, { workspacePath: path, env: { ORATORIO_HOME: home } });

t.test(
  'regression: C1 the old state.db of a trusted workspace is imported as history, without grants and automations',
  async (t) => {
    const place = oldWorkspace(t, true);
    const before = readFileSync(place.old);
    const { server, log } = await serve(t, place);
    const client = await Client.ready(t, server.webSocketUrl);
    const { thread } = await client.call('thread/read', { threadId: 'thread_1_old', includeTurns: true });
    t.match(thread, { workspacePath: place.path, config: { model: 'mine' } });
    t.notOk(thread.config.approvalPolicy);
    t.match(JSON.stringify(thread.turns), /What was said/);
    t.same(thread.queuedInputs ?? [], []);
    const { thread: other } = await client.call('thread/read', { threadId: 'thread_2_tree' });
    t.match(other, { status: 'archived', config: {} });
    t.notOk(other.config.workspaceOverride);
    t.match(await client.call('automation/state', {}), { cron: [{ id: 'job_1', enabled: false, nextRunAt: null }] });
    t.match(log.join(''), /switched off.*oratorio cron enable/);
    await server.close();
    const database = new DatabaseSync(join(stateOf(place.path), 'state.db'), { readOnly: true });
    t.teardown(() => database.close());
    t.match(database.prepare('SELECT count(*) AS n FROM grants').get(), { n: 0 });
    t.notMatch(JSON.stringify(database.prepare('SELECT json FROM automations').all()), /autoApprove/);
    t.match(database.prepare('SELECT sessionCount, turnCount FROM traceTotals').get(), {
      sessionCount: 2,
      turnCount: 2,
    });
    t.ok(readFileSync(place.old).equals(before), 'the old file stays as it is');

    fillOld(join(place.path, '.oratorio', 'more'));
    writeFileSync(place.old, readFileSync(join(place.path, '.oratorio', 'more', 'state.db')));
    await client.closed;
    const again = await serve(t, place);
    const { data: threads } = await (await Client.ready(t, again.server.webSocketUrl)).call('thread/list', {
      includeArchived: true,
    });
    t.equal(threads.length, 2, 'once');
  },
);

t.test(
  'regression: C1 the old state.db of a restricted workspace is not read, and its history is imported after trust',
  async (t) => {
    const place = oldWorkspace(t, false);
    const first = await serve(t, place);
    const client = await Client.ready(t, first.server.webSocketUrl);
    t.same((await client.call('thread/list', {})).data, []);
    await client.call('thread/start', {});
    t.match(first.log.join(''), /not trusted.*oratorio trust/);
    await first.server.close();
    trustWorkspace({ home: place.home, workspace: place.path });
    const { server } = await serve(t, place);
    const { data: threads } = await (await Client.ready(t, server.webSocketUrl)).call('thread/list', {
      includeArchived: true,
    });
    t.equal(threads.length, 3);
  },
);

t.test('an import interrupted before its marker is repeated without duplicates', async (t) => {
  const place = oldWorkspace(t, true);
  const imported = await serve(t, place);
  await imported.server.close();
  const marker = join(stateOf(place.path), 'imported.json');
  t.ok(existsSync(marker));
  const { unlinkSync } = await import('node:fs');
  unlinkSync(marker);
  const { server } = await serve(t, place);
  const { data: threads } = await (await Client.ready(t, server.webSocketUrl)).call('thread/list', {
    includeArchived: true,
  });
  t.equal(threads.length, 2);
  t.ok(existsSync(marker));
});

t.test('a database of an older version is imported through a copy', async (t) => {
  const { path, home } = makeWorkspace(t);
  const old = join(path, '.oratorio', 'state.db');
  const sqlite = new DatabaseSync(old);
  migrate(sqlite, old, migrations.slice(0, 1));
  const thread = { id: 'thread_9_v1', workspacePath: path, status: 'active', createdAt: at, lastActiveAt: at };
  sqlite
    .prepare('INSERT INTO threads (id, lastActiveAt, json) VALUES (?, ?, ?)')
    .run(thread.id, at, JSON.stringify(thread));
  sqlite.close();
  trustWorkspace({ home, workspace: path });
  const { server } = await serve(t, { path, home });
  const { data: threads } = await (await Client.ready(t, server.webSocketUrl)).call('thread/list', {});
  t.match(threads, [{ id: thread.id }]);
  t.notOk(existsSync(join(stateOf(path), 'import.db')));
});

t.test(
  'an old state.db that is not a database of Oratorio is reported and not read, and the server starts',
  async (t) => {
    const cases: [string, (file: string) => void, RegExp][] = [
      ['a symlink', (file) => symlinkSync('/etc/passwd', file), /symbolic link/],
      ['not a database', (file) => writeFileSync(file, 'diary '.repeat(500)), /damaged or is not a database/],
      [
        'a view in the place of a table',
        (file) => {
          fillOld(join(file, '..'));
          const sqlite = new DatabaseSync(file);
          sqlite.exec(
            'PRAGMA foreign_keys = OFF; DROP TABLE traceTotals; CREATE VIEW traceTotals AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c',
          );
          sqlite.close();
        },
        /not a database that Oratorio has made/,
      ],
    ];
    for (const [name, make, reason] of cases) {
      const { path, home } = makeWorkspace(t);
      make(join(path, '.oratorio', 'state.db'));
      trustWorkspace({ home, workspace: path });
      const { server, log } = await serve(t, { path, home });
      t.match(log.join(''), reason, name);
      t.same((await (await Client.ready(t, server.webSocketUrl)).call('thread/list', {})).data, []);
      await server.close();
    }
  },
);
