/** The stream of approvals and of the server's health, without sockets. */
import t from 'tap';
import { Inbox } from '../../src/appserver/inbox.ts';
import { defaults, type HealthReport } from '../../src/protocol/index.ts';
import { says, service } from '../agent/helpers.ts';

t.test('regression: a server that cannot examine itself stays silent, and reports once it can', async (t) => {
  const { runtime } = service(says('Hello.'));
  let isBroken = true;
  const inbox = new Inbox(runtime, {
    async examine() {
      if (isBroken) throw new Error('cannot examine');
      return { status: 'ready', incarnation: 'i-1', idleMs: 0 };
    },
  });
  t.teardown(() => inbox.close());
  const read = (heard: string[]) =>
    inbox.subscribe(
      (bytes) => heard.push(Buffer.from(bytes).toString()),
      () => {},
    );

  const first: string[] = [];
  const leave = read(first);
  await new Promise((resolve) => setImmediate(resolve));
  t.same(first, []);
  leave();
  isBroken = false;

  const second: string[] = [];
  read(second);
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(second.length, 1);
  t.match(second[0], /event: health\n.*"incarnation":"i-1"/s);
});

t.test('an idle server announces a later report, and reports at once when it is in use again', async (t) => {
  const { runtime } = service(says('Hello.'));
  let idleMs = 60_000;
  const inbox = new Inbox(runtime, { examine: async () => ({ status: 'ok', incarnation: 'i-1', idleMs }) });
  t.teardown(() => inbox.close());
  const announced: number[] = [];
  const next = () => new Promise((resolve) => setImmediate(resolve));
  inbox.subscribe(
    (bytes) => announced.push(Number(/"nextMs":(\d+)/.exec(Buffer.from(bytes).toString())?.[1])),
    () => {},
  );
  await next();
  idleMs = 0;
  inbox.hasten();
  await next();
  inbox.hasten();
  await next();
  const { healthEventMs, idleHealthEventMs } = defaults.supervise;
  t.same(announced, [idleHealthEventMs, healthEventMs], 'a server in use is not hastened again');
});

t.test('a reader gets the report when the feed opens, and each different one', (t) => {
  const { runtime } = service(says('Hello.'));
  let health: HealthReport['health'] = 'unknown';
  const report = (): HealthReport => ({
    ...{ incarnation: 'i-1', health, lastTurn: null, failure: null, failuresInARow: 0, model: null, agent: null },
    ...{ mcpServers: { total: 0, down: [], toolProblems: [] }, pendingApprovals: 0, costUsd: 0, sandbox: null },
  });
  const inbox = new Inbox(runtime, { report });
  t.teardown(() => inbox.close());
  const heard: string[] = [];
  const hear = (bytes: Uint8Array) => heard.push(Buffer.from(bytes).toString());
  health = 'degraded';
  inbox.reportChange();
  for (const bytes of inbox.replay()) hear(bytes);
  inbox.subscribe(hear, () => {});
  inbox.reportChange();
  health = 'healthy';
  inbox.reportChange();
  inbox.reportChange();
  inbox.notify({ title: 'A turn is complete' });
  const events = heard.map((text) => /^event: (\w+)/.exec(text)?.[1]);
  t.same(events, ['state', 'report', 'report', 'notification']);
  t.match(heard[1], '"health":"degraded"');
  t.match(heard[2], '"health":"healthy"');
  t.match(heard[3], 'A turn is complete');
  t.end();
});
