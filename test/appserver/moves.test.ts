/** A real agent server as one end of a move, whose other end is hostile or late. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { MoveBundle, MoveStep } from '../../src/protocol/index.ts';
import { stateOf as filesOf } from '../checkpoints/tree-of-files.ts';
import { stateOf } from './harness.ts';
import { type Session, scenario } from './session.ts';

const at = '2026-01-01T00:00:00.000Z';
const threadId = 'thread_20260101_moved1';
const idOf = (number: number): string => `move_${number.toString(16).padStart(16, '0')}`;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const lines = (...rows: readonly unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

const row = (kind: string, value: Readonly<Record<string, unknown>>) => ({ kind, value });
const thread = (more = {}) =>
  row('thread', { id: threadId, workspacePath: '/there', status: 'active', createdAt: at, lastActiveAt: at, ...more });
const turn = (more = {}) =>
  row('turn', { id: 'turn_001', threadId, status: 'completed', startedAt: at, completedAt: at, ...more });
const item = (more = {}) =>
  row('item', {
    ...{ id: 'item_001', turnId: 'turn_001', status: 'completed', createdAt: at, type: 'agentMessage', text: 'hi' },
    ...more,
  });
const state = (data: unknown, itemId = 'item_001') => row('state', { itemId, owner: 'model', data });
const genuine = lines(thread(), turn(), item(), state({ a: 1 }));
const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;

const file = (path: string, content: string) =>
  `${JSON.stringify({
    ...{ path, before: null },
    after: { kind: 'file', mode: 0o644, size: content.length, hash: sha256(content), target: null },
  })}\n${content}`;
const link = (path: string, target: string) =>
  lines({ path, before: null, after: { kind: 'link', mode: 0o777, size: target.length, hash: null, target } });

function bundleOf(conversation: string, files: string): MoveBundle {
  return {
    ...{ version: 1, head: null, entries: 1 },
    bytes: { conversation: Buffer.byteLength(conversation), files: Buffer.byteLength(files) },
    sha256: { conversation: sha256(conversation), files: sha256(files) },
  };
}

/** Sends both parts. */
async function send(session: Session, moveId: string, conversation: string, files: string): Promise<void> {
  const move = { moveId, threadId };
  await session.call('thread/move', { step: 'receive', ...move, bundle: bundleOf(conversation, files) });
  for (const [part, text] of [['conversation', conversation] as const, ['files', files] as const]) {
    if (text === '') continue;
    await session.call('thread/move', {
      ...{ step: 'write', ...move, part, offset: 0, data: Buffer.from(text).toString('base64') },
    });
  }
}

/** Parts of a hostile source. */
const hostile: Readonly<Record<string, readonly [conversation: string, files: string]>> = {
  'a row of another conversation': [lines(thread({ id: 'thread_20260101_other1' })), ''],
  'a turn of another conversation': [lines(thread(), turn({ threadId: 'thread_20260101_other1' })), ''],
  'a turn that runs': [lines(thread(), turn({ status: 'running' })), ''],
  'a turn twice': [lines(thread(), turn(), turn()), ''],
  'an item of an unknown turn': [lines(thread(), turn(), item({ turnId: 'turn_002' })), ''],
  'an item twice': [lines(thread(), turn(), item(), item()), ''],
  'a state of an unknown item': [lines(thread(), turn(), item(), state(1, 'item_002')), ''],
  'a second conversation': [lines(thread(), thread()), ''],
  'a sub-agent': [lines({ kind: 'turn', value: {} }, thread()), ''],
  'a state that is nested too deeply': [genuine.replace('{"a":1}', deep), ''],
  'rows that are not JSON': ['{"kind":"thread"', ''],
  'an unknown row': [lines(thread(), row('grant', { scope: 'shell:rm' })), ''],
  'no rows': ['', ''],
  'a file above the workspace': [genuine, file('../outside', 'x')],
  'a hook of git': [genuine, file('.git/hooks/post-checkout', 'x')],
  'a link that leads out of the workspace': [genuine, link('out', '/etc')],
  'a file below a link of the workspace': [genuine, file('linked/x', 'x')],
};

scenario(t, 'regression: hostile and late steps of a move change nothing', {}, async (t, { open, path }) => {
  const session = await open();
  const moves = join(stateOf(path), 'moves');
  mkdirSync(join(path, '..', 'outside-dir'), { recursive: true });
  symlinkSync('../outside-dir', join(path, 'linked'));
  const before = filesOf(path);
  const refused = (step: MoveStep['step'], moveId: string, more: Partial<MoveStep> = {}) =>
    session.refused('thread/move', { step, moveId, threadId, ...more });
  let number = 0;
  for (const [name, [conversation, files]] of Object.entries(hostile)) {
    number += 1;
    await send(session, idOf(number), conversation, files);
    const { name: code, message } = await refused('commit', idOf(number));
    t.equal(code, 'moveRefused', name);
    t.match(message, /\. \S+ .+/, `${name}: the refusal names the next step: ${message}`);
    t.ok(message.length < 2_000);
    t.same(filesOf(path), before, name);
    t.equal((await session.refused('thread/read', { threadId })).name, 'threadNotFound', name);
    await session.call('thread/move', { step: 'cancel', moveId: idOf(number), threadId });
  }
  t.same(readdirSync(moves), [], 'no parts are left');
  t.same(readdirSync(join(path, '..', 'outside-dir')), []);

  const piece = { part: 'files', offset: 0, data: 'eA==' } as const;
  const bundle = bundleOf(genuine, '');
  for (const [step, more] of [
    ['receive', { bundle }],
    ['write', piece],
    ['commit', {}],
    ['prepare', {}],
    ['finish', {}],
  ] as const)
    t.match((await refused(step, idOf(1), more)).message, /is cancelled[\s\S]*came too late/, `late ${step}`);
  t.same(readdirSync(moves), []);

  const open1 = { step: 'receive', moveId: idOf(100), threadId, bundle } as const;
  const [received, withdrawn] = await Promise.all([
    session.call('thread/move', open1),
    session.call('thread/move', { step: 'cancel', moveId: idOf(100), threadId }),
  ]);
  t.same([received.state, withdrawn.state], ['receiving', 'none'], 'steps run one after another');
  t.match((await refused('write', idOf(101), piece)).message, /does not expect its parts/);
  await session.call('thread/move', { ...open1, moveId: idOf(101) });
  for (const odd of [
    { ...piece, offset: 7 },
    { ...piece, data: 'eHg=' },
  ])
    t.match((await refused('write', idOf(101), odd)).message, /the target has 0 of 0 bytes/);
  t.match((await refused('receive', idOf(101), {})).message, /description of its parts is missing/);
  t.match((await refused('read', idOf(101), { part: 'files' })).message, /has not prepared it/);

  for (let unfinished = 102; unfinished <= 120; unfinished += 1)
    await session.call('thread/move', { ...open1, moveId: idOf(unfinished) });
  t.match((await refused('receive', idOf(121), { bundle })).message, /too many moves[\s\S]*oratorio move --list/);
  await session.call('thread/move', { step: 'cancel', moveId: idOf(120), threadId });
  t.match(await session.call('thread/move', { ...open1, moveId: idOf(121) }), { state: 'receiving' });

  const { thread: victim } = await session.call('thread/start', { displayName: 'mine' });
  await send(session, idOf(121), lines(thread({ id: victim.id })), '');
  const other = { step: 'commit', moveId: idOf(121), threadId: victim.id };
  t.match((await session.refused('thread/move', other)).message, /already has a conversation/);
  t.match((await session.call('thread/read', { threadId: victim.id })).thread, { displayName: 'mine' });

  const rights = { approvalPolicy: 'autoApprove', workspaceOverride: '/etc', readOnly: true };
  const honest = lines(thread({ config: rights, parentThreadId: 'x' }), turn(), item(), state({ a: 1 }));
  await session.call('thread/move', { step: 'cancel', moveId: idOf(119), threadId });
  await send(session, idOf(200), honest, file('new.txt', 'x'));
  t.match(await session.call('thread/move', { step: 'commit', moveId: idOf(200), threadId }), { state: 'arrived' });
  t.same((await session.call('thread/read', { threadId })).thread.config, { readOnly: true }, 'rights do not move');
  t.match(
    (await refused('receive', idOf(201), { bundle })).message,
    /already has a conversation[\s\S]*delete it first/,
  );
  mkdirSync(join(moves, idOf(200)));
  writeFileSync(join(moves, idOf(200), 'files.bin'), 'x');
  t.match(await session.call('thread/move', { step: 'state', moveId: idOf(200), threadId }), { state: 'arrived' });
  t.notOk(existsSync(join(moves, idOf(200))), 'a kill after the commit leaves no parts');
});
