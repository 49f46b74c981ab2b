/** Files that an external agent has us read and write: inside our bounds, with a grant, while its turn runs. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { WriteGrants } from '../../src/external/file-service.ts';
import { defaults } from '../../src/protocol/index.ts';
import { items, Talk, textOf } from './talk.ts';

const config = {
  Permissions: {
    BlockedPaths: ['blocked.txt'],
    Rules: [
      { Tool: 'WriteFile', Pattern: 'ruled.txt', Decision: 'deny' },
      { Tool: 'ReadFile', Pattern: 'ruled.txt', Decision: 'deny' },
    ],
  },
};
const byClient = 'written by the client\n';

t.test('permitted files of the workspace are read unchanged, and no others', async (t) => {
  const { talk, path } = await Talk.begin(t, '', config);
  writeFileSync(join(path, 'in.txt'), '\uFEFFone\r\ntwo\nthree');
  for (const name of ['blocked.txt', 'ruled.txt']) writeFileSync(join(path, name), 'hidden');
  writeFileSync(join(path, 'bytes'), Buffer.from([0xff, 0xfe, 0x41, 0x00]));
  mkdirSync(join(path, '.oratorio'), { recursive: true });
  writeFileSync(join(path, '.oratorio', 'secret'), 'hidden');
  symlinkSync('/etc/passwd', join(path, 'out'));
  symlinkSync('.oratorio/secret', join(path, 'state'));
  const reads: readonly (readonly [string, RegExp])[] = [
    ['in.txt', /^\uFEFFone\r\ntwo\nthree$/],
    ['in.txt 2 1', /^two\n$/],
    ['in.txt 2', /^two\nthree$/],
    ['in.txt 1 2', /^\uFEFFone\r\ntwo\n$/],
    ['in.txt 9', /^$/],
    ['in.txt -1', /^-32602 /],
    ['missing.txt', /^-32002 Resource not found: /],
    ['no/such/directory', /^-32002 Resource not found: /],
    ['.', /^-32602 .*not a regular file/],
    ['bytes', /^-32602 .*not a text in UTF-8/],
    ['@in.txt', /^-32602 .*absolute/],
    ['@/etc/passwd', /^-32602 .*outside the workspace/],
    ['../missing.txt', /^-32602 .*is refused/],
    ['out', /^-32602 .*is refused/],
    ['@/proc/self/environ', /^-32602 .*kernel/],
    ['.oratorio/secret', /^-32602 .*own state/],
    ['state', /^-32602 .*own state/],
    ['blocked.txt', /^-32602 .*BlockedPaths/],
    ['ruled.txt', /^-32602 .*must not be read/],
  ];
  for (const [words, answer] of reads) t.match(textOf(await talk.say(`readfile ${words}`)), answer, words);
});

t.test('a file is written where a user has allowed it', async (t) => {
  const { talk, path } = await Talk.begin(t, '', config);
  const asked = await talk.start('writefile sub/new.txt');
  const question = await talk.decide(asked, 'accept');
  t.match(question, { approvalType: 'file', target: join(path, 'sub/new.txt'), diff: /\+written by the client/ });
  const turn = await talk.end(asked);
  t.equal(textOf(turn), 'written');
  t.equal(readFileSync(join(path, 'sub/new.txt'), 'utf8'), byClient);
  t.match(items(turn, 'toolCall'), [{ tool: 'WriteFile', source: 'agent' }]);
  t.match(items(turn, 'toolResult'), [{ outcome: 'completed' }]);
  const refused = await talk.start('writefile declined.txt');
  await talk.decide(refused, 'decline');
  t.match(textOf(await talk.end(refused)), /^-32602 .*must not be written/);
  t.notOk(existsSync(join(path, 'declined.txt')));

  const granted = await talk.start('askwrite granted.txt', 'writefile granted.txt');
  t.match(await talk.decide(granted, 'accept'), { target: join(path, 'granted.txt') });
  const once = await talk.end(granted);
  t.equal(textOf(once), 'writtenwritten');
  t.equal(items(once, 'approvalRequest').length, 1, 'one question');
  t.equal(readFileSync(join(path, 'granted.txt'), 'utf8'), byClient);
  const turned = await talk.start('askwrite shown.txt shown.txt.other');
  await talk.decide(turned, 'accept');
  const other = await talk.client.until(
    ({ method, params }) => method === 'item/approval/request' && params.target === join(path, 'shown.txt.other'),
    'a second question',
  );
  await talk.client.call('approval/respond', { requestId: other.params.requestId, decision: 'decline' });
  t.match(textOf(await talk.end(turned)), /^-32602 /, 'a call that changes while people think grants nothing');
  t.notOk(existsSync(join(path, 'shown.txt.other')));
  const ruled = await talk.start('askwrite ruled.txt');
  await talk.decide(ruled, 'accept');
  t.match(textOf(await talk.end(ruled)), /^-32602 .*must not be written/, 'a rule that denies is above a grant');
  t.notOk(existsSync(join(path, 'ruled.txt')));
});

t.test('no question is asked about a file out of bounds, and nothing is written after the turn', async (t) => {
  const { talk, path } = await Talk.begin(t, '', config);
  const outside = join(path, '..', 'written-outside.txt');
  symlinkSync(outside, join(path, 'out'));
  writeFileSync(join(path, 'in.txt'), 'one');
  const places = ['out', '../written-outside.txt', '.oratorio/config.json', '.oratorio/new', 'blocked.txt', '@in.txt'];
  for (const place of places) {
    const turn = await talk.say(`writefile ${place}`);
    t.match(textOf(turn), /^-32602 .*refused/, place);
    t.strictSame(items(turn, 'approvalRequest'), [], place);
  }
  t.notOk(existsSync(outside));
  t.notOk(existsSync(join(path, '.oratorio/new')));
  const first = await talk.start('askwrite in.txt', 'afterwards in.txt');
  await talk.decide(first, 'accept');
  await talk.end(first);
  writeFileSync(join(path, 'in.txt'), 'mine again');
  t.match(textOf(await talk.say('late')), /^-32602 .*turn.*; -32602 .*turn/);
  t.equal(readFileSync(join(path, 'in.txt'), 'utf8'), 'mine again', 'a grant is of no use after the turn');
  const pending = await talk.start('writefile pending.txt');
  await talk.client.until(
    ({ method, params }) => method === 'item/approval/request' && params.turnId === pending,
    'it',
  );
  await talk.client.call('turn/interrupt', { threadId: talk.threadId, turnId: pending });
  t.match(await talk.end(pending), { status: 'cancelled' });
  t.equal(textOf(await talk.say('say after')), 'after');
  t.notOk(existsSync(join(path, 'pending.txt')));
});

t.test('a grant ends after a minute', (t) => {
  let now = 0;
  const grants = new WriteGrants(() => now);
  grants.add('/ws/a');
  t.ok(grants.covers('/ws/a'));
  t.notOk(grants.covers('/ws/b'));
  now = defaults.externalAgent.grantMs;
  t.notOk(grants.covers('/ws/a'));
  t.end();
});
