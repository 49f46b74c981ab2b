/** Moves that a Hub leads between two remote Hubs, which a server of the test plays. */
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { HubClient, HubRequestError } from '../../src/client/index.ts';
import { hubError } from '../../src/hub/errors.ts';
import { Moves } from '../../src/hub/moves/index.ts';
import { createLogger } from '../../src/log/index.ts';
import type { MoveRecord, MoveStepInput } from '../../src/protocol/index.ts';
import { damagedRecords } from '../../src/supervise/index.ts';
import { eventually, temporaryDirectory } from './harness.ts';

const threadId = 'thread_20260101_moved1';
const places = {
  from: { host: 'home', workspacePath: '/home/site' },
  to: { host: 'away', workspacePath: '/away/site' },
};
const sha256 = { conversation: 'a'.repeat(64), files: 'b'.repeat(64) };
const bundle = { version: 1, head: null, entries: 1, bytes: { conversation: 2, files: 0 }, sha256 };
/** Answers of two honest places. */
const honest: Readonly<Record<string, unknown>> = {
  'home state': { state: 'none' },
  'home prepare': { state: 'leaving', bundle },
  'home read': { state: 'leaving', data: 'e30=' },
  'home finish': { state: 'left' },
  'home cancel': { state: 'none' },
  'away state': { state: 'none' },
  'away receive': { state: 'receiving', received: { conversation: 0, files: 0 } },
  'away write': { state: 'receiving', received: { conversation: 2, files: 0 } },
  'away commit': { state: 'arrived' },
  'away cancel': { state: 'none' },
};

type Answer = (request: IncomingMessage, response: ServerResponse) => void;
const json =
  (value: unknown, status = 200): Answer =>
  (_, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

/** Both remote Hubs, and the Hub that leads. @param odd answers by place and step */
async function world(t: Test, odd: Readonly<Record<string, Answer>> = {}, statePath = temporaryDirectory(t)) {
  const steps: string[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const step = JSON.parse(Buffer.concat(parts).toString()) as MoveStepInput;
      const key = `${step.workspacePath.split('/')[1]} ${step.step}`;
      steps.push(key);
      (odd[key] ?? json(honest[key]))(request, response);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const apiBaseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const hub = new HubClient({ apiBaseUrl, token: 'none' }, { prove: async () => undefined });
  const log: string[] = [];
  const line: { isUp: boolean; removed?: string; refusal?: Error | undefined } = { isUp: true };
  const moves = new Moves({
    statePath,
    registry: { find: () => undefined, ensure: () => Promise.reject(new Error('no workspace is here')) },
    fleet: {
      connected: (host) => {
        if (line.removed === host) throw hubError('hostUnknown', `There is no host ${host}.`);
        if (!line.isUp) throw hubError('hostUnreachable', 'The host is connecting.');
        const ensure = ({ workspacePath }: { readonly workspacePath: string }) =>
          line.refusal && workspacePath === places.from.workspacePath
            ? Promise.reject(line.refusal)
            : Promise.resolve();
        return { hub: { ensure, moveStep: hub.moveStep.bind(hub) } };
      },
    },
    logger: createLogger({ name: 'test', level: 'debug', pretty: false, stream: { write: (line) => log.push(line) } }),
    seed: () => 1,
    observe: () => undefined,
  });
  t.teardown(() => moves.close());
  const when = (moveId: string, ...states: string[]): Promise<MoveRecord> =>
    eventually(
      () => {
        const found = moves.list().find((each) => each.moveId === moveId);
        return found && states.includes(found.state) ? found : undefined;
      },
      `${states.join(' or ')}: ${JSON.stringify(moves.list())}`,
    );
  return { moves, steps, when, log, line, statePath, file: join(statePath, 'moves.json') };
}

t.test('honest places move a conversation', async (t) => {
  const { moves, when, steps } = await world(t);
  const { moveId } = await moves.start({ threadId, ...places });
  t.match(await when(moveId, 'moved'), { reason: null, sentBytes: 2, totalBytes: 2, entries: 1 });
  t.same(steps.slice(-2), ['away commit', 'home finish']);
});

t.test('regression: a move whose first save fails is refused, and changes nothing', async (t) => {
  const { moves, steps, statePath, when } = await world(t);
  rmSync(statePath, { recursive: true });
  await t.rejects(moves.start({ threadId, ...places }), {
    code: 'moveRefused',
    message: /cannot save[\s\S]*try again/,
  });
  t.same([moves.list(), steps], [[], []]);
  mkdirSync(statePath);
  const { moveId } = await moves.start({ threadId, ...places });
  await when(moveId, 'moved');
  t.equal(moves.list().length, 1, 'the same conversation can move later');
});

t.test(
  'regression: one invalid row leaves the other moves, which wait for their hosts, and stays in a copy that doctor reports',
  async (t) => {
    const home = temporaryDirectory(t);
    const statePath = join(home, 'hub');
    mkdirSync(statePath);
    const row = (number: number, state: string, more = {}) => ({
      ...{
        moveId: `move_${String(number).padStart(16, '0')}`,
        threadId: `thread_${number}`,
        ...places,
        state,
        reason: null,
      },
      ...{ startedAt: '2026-01-01T00:00:00.000Z', isOffered: false, isCancelled: false, ...more },
    });
    const file = join(statePath, 'moves.json');
    const damaged = JSON.stringify({
      version: 1,
      moves: [row(1, 'moved'), row(2, 'sending', { threadId: '../x' }), row(3, 'sending')],
    });
    writeFileSync(file, damaged);
    const { moves, when, log, line } = await world(t, {}, statePath);
    t.match(moves.list(), [{ threadId: 'thread_1', state: 'moved' }, { threadId: 'thread_3' }]);
    t.match(log.join(''), /the record of moves is damaged[\s\S]*row 2, threadId/);
    const [problem] = damagedRecords(home);
    t.match(problem, { code: 'movesDamaged', where: file, what: /stays locked: stop the Hub/ });
    const copies = readdirSync(statePath).filter((name) => name.includes('.damaged-'));
    t.equal(copies.length, 1);
    line.isUp = false;
    moves.open();
    await when(row(3, '').moveId, 'waiting');
    line.isUp = true;
    await when(row(3, '').moveId, 'moved');
    await moves.close();
    t.equal(readFileSync(join(statePath, copies[0] ?? ''), 'utf8'), damaged, 'no save changes the copy');
    t.same(
      JSON.parse(readFileSync(file, 'utf8')).moves.map((each: MoveRecord) => each.threadId),
      ['thread_1', 'thread_3'],
    );
    const next = await world(t, {}, statePath);
    t.equal(next.moves.list().length, 2);
    t.equal(readdirSync(statePath).filter((name) => name.includes('.damaged-')).length, 1, 'one copy for one damage');
  },
);

const long = `\u001b[31m\u202e${'x'.repeat(100_000)}`;
const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
const raw =
  (text: string): Answer =>
  (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
/** Answers of a hostile remote Hub, with the state in which the move stops. */
const hostile: Readonly<Record<string, readonly [key: string, answer: Answer, state: 'cancelled' | 'waiting']>> = {
  'a reason without end': ['away receive', json({ error: { code: 'moveRefused', message: long } }, 409), 'cancelled'],
  'a reason of the source': ['home prepare', json({ error: { code: 'moveRefused', message: long } }, 409), 'cancelled'],
  'an unknown code': ['away receive', json({ error: { code: 'x', message: long, details: long } }, 500), 'waiting'],
  'an unknown state': ['away receive', json({ state: 'owned' }), 'waiting'],
  'parts beyond the limit': [
    'home prepare',
    json({ state: 'leaving', bundle: { ...bundle, bytes: { conversation: 2 ** 40, files: 0 } } }),
    'waiting',
  ],
  'a commit that is an option of git': [
    'home prepare',
    json({ state: 'leaving', bundle: { ...bundle, head: '--exec=x' } }),
    'waiting',
  ],
  'a piece that is not base64': ['home read', json({ state: 'leaving', data: '<>' }), 'waiting'],
  'a piece without end': ['home read', json({ state: 'leaving', data: 'A'.repeat(2_000_000) }), 'waiting'],
  'a target that takes nothing': [
    'away write',
    json({ state: 'receiving', received: { conversation: 0, files: 0 } }),
    'waiting',
  ],
  'a commit without arrival': ['away commit', json({ state: 'receiving' }), 'waiting'],
  'a deep answer': ['away commit', raw(`{"state":"receiving","x":${deep}}`), 'waiting'],
  'an answer that is not JSON': ['away commit', raw('<html>'), 'waiting'],
  'an answer that is cut off': [
    'away commit',
    (_, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('{');
      response.destroy();
    },
    'waiting',
  ],
};

t.test('regression: hostile answers never end a move at the source, and their texts are bounded', async (t) => {
  for (const [name, [key, answer, state]] of Object.entries(hostile)) {
    const { moves, steps, when, file } = await world(t, { [key]: answer });
    const { moveId } = await moves.start({ threadId, ...places });
    const { reason } = await when(moveId, state);
    t.ok(reason !== null && reason.length <= 2_000, `${name}: ${reason?.slice(0, 200)}`);
    t.notOk(reason?.includes('\u001b') || reason?.includes('\u202e'), name);
    t.notOk(steps.includes('home finish'), `${name}: the source is not marked as left`);
    t.equal(steps.includes('home cancel'), state === 'cancelled', `${name}: it is released only after a refusal`);
    await moves.close();
    t.ok(readFileSync(file).length < 10_000, name);
  }
});

t.test('regression: a cancelled step has no effect, even if its answer arrives late', async (t) => {
  let answerLate: (() => void) | undefined;
  const { moves, steps, when } = await world(t, {
    'away write': (request, response) => {
      answerLate = () => json(honest['away write'])(request, response);
    },
  });
  const { moveId } = await moves.start({ threadId, ...places });
  await eventually(() => answerLate, 'a piece is on its way');
  await moves.cancel(moveId);
  await when(moveId, 'cancelled');
  answerLate?.();
  t.match(moves.list(), [{ state: 'cancelled', reason: 'The user cancelled the move.', sentBytes: 0 }]);
  t.same(steps.slice(-3), ['away write', 'away cancel', 'home cancel'], 'nothing is sent after the cancellation');
});

t.test(
  'regression: a move that goes back still does so after the end of its Hub; it releases no source whose target may have the conversation',
  async (t) => {
    const gone = json({ error: { code: 'notFound', message: 'no workspace' } }, 404);
    const { moves, steps, when, file } = await world(t, { 'away commit': gone, 'away cancel': gone });
    const { moveId } = await moves.start({ threadId, ...places });
    t.match(await when(moveId, 'waiting'), { reason: /no workspace/ });
    await moves.close();
    t.notOk(steps.includes('home cancel'));
    t.match(JSON.parse(readFileSync(file, 'utf8')).moves, [{ isCommitting: true, isCancelled: true }]);
  },
);

t.test(
  'regression: a source that cannot start now is released later, because it has locked the conversation',
  async (t) => {
    const sent = Promise.withResolvers<void>();
    const { moves, when, steps, line } = await world(t, { 'away write': () => sent.resolve() });
    const { moveId } = await moves.start({ threadId, ...places });
    await sent.promise;
    const refusal = new HubRequestError(500, {
      ...{ code: 'invalidConfig', message: 'The settings are invalid.', details: null },
    });
    line.refusal = refusal;
    await moves.cancel(moveId);
    await when(moveId, 'waiting', 'asking');
    t.notOk(steps.includes('home cancel'));
    line.refusal = undefined;
    t.match(await when(moveId, 'cancelled'), { reason: /user cancelled/ });
    t.equal(steps.at(-1), 'home cancel');
    line.refusal = refusal;
    const second = await moves.start({ threadId, ...places });
    t.match(await when(second.moveId, 'cancelled'), { reason: /settings are invalid/ }, 'nothing was locked');
  },
);

t.test(
  'a move to a host that was removed after a lost commit waits, until the user takes the conversation back',
  async (t) => {
    const lost = Promise.withResolvers<void>();
    const { moves, when, steps, line } = await world(t, {
      'away commit': (_, response) => {
        lost.resolve();
        response.destroy();
      },
    });
    const { moveId } = await moves.start({ threadId, ...places });
    await lost.promise;
    line.removed = places.to.host;
    t.match(await when(moveId, 'waiting'), { reason: /.+/ });
    await eventually(
      async () => /no host away/.test(moves.list()[0]?.reason ?? '') || undefined,
      'the reason is known',
    );
    await when(moveId, 'waiting');
    t.notOk(steps.includes('home cancel'), 'the source stays locked');
    await moves.cancel(moveId);
    t.match(await when(moveId, 'unconfirmed'), { reason: /user cancelled/ });
    t.equal(steps.at(-1), 'home cancel');
  },
);

t.test('an eleventh active move is refused', async (t) => {
  const { moves } = await world(t, { 'home state': () => undefined });
  for (let number = 0; number < 10; number += 1) await moves.start({ threadId: `thread_${number}`, ...places });
  await t.rejects(moves.start({ threadId, ...places }), { code: 'moveRefused', message: /10 moves are active/ });
  await t.rejects(moves.start({ threadId: 'thread_0', ...places }), { message: /already active/ });
});
