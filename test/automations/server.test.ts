/** Jobs and tasks on a real agent server with the offline model and the real clock, through JSON-RPC. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { Automation, AutomationsState, rpcMethods, rpcNotifications, type Schedule } from '../../src/protocol/index.ts';
import {
  Client,
  eventually,
  type Message,
  makeWorkspace,
  serving,
  spawnServer,
  startServer,
} from '../appserver/harness.ts';

const answer = 'Demo model (offline, no AI): 1 2 3';
const prompt = 'count to 3';

/** Notifications about an automation, oldest first. */
const updatesOf = (client: Client, id: string): Message[] =>
  client.messages.flatMap(({ method, params }) => {
    const updated =
      method === 'cron/stateChanged' ? params.job : method === 'automation/task/updated' ? params.task : {};
    return updated.id === id ? [updated] : [];
  });

const completed = (client: Client, id: string): Promise<Message> =>
  eventually(
    () => updatesOf(client, id).find(({ recentRuns }) => recentRuns[0]?.status === 'completed'),
    `a run of ${id} has completed`,
  );

t.test('each kind of automation runs at its time, with its result in the history', { timeout: 240_000 }, async (t) => {
  const { server, log } = await startServer(t);
  const client = await Client.ready(t, server.webSocketUrl);
  const other = await Client.ready(t, server.webSocketUrl);
  // Far enough from the next minute for both to be made before it begins.
  await eventually(() => (Date.now() % 60_000 < 45_000 ? true : undefined), 'a minute that is not nearly over');
  const next = new Date(Math.floor(Date.now() / 60_000) * 60_000 + 60_000);
  const schedules: readonly Schedule[] = [
    { kind: 'every', everyMs: 3_600_000, initialDelayMs: 300 },
    { kind: 'at', at: new Date(Date.now() + 10_000).toISOString() },
    { kind: 'daily', time: next.toISOString().slice(11, 16), timeZone: 'UTC' },
    { kind: 'cron', expression: `${next.getUTCMinutes()} * * * *`, timeZone: 'UTC' },
  ];
  const jobs: Message[] = [];
  for (const schedule of schedules) jobs.push((await client.call('cron/add', { prompt, schedule })).job);
  const { task } = await client.call('automation/task/create', { prompt });
  for (const { id, schedule = { kind: 'task' }, nextRunAt } of [...jobs, task]) {
    // Another connection is notified without a request.
    const done = await completed(other, id);
    const [run] = done.recentRuns;
    t.match(run, { status: 'completed', trigger: 'schedule', attempt: 1, coalesced: 1, result: answer }, schedule.kind);
    if (nextRunAt !== undefined) t.equal(run.scheduledFor, nextRunAt);
    t.ok(Date.parse(run.startedAt) >= Date.parse(run.scheduledFor), 'not before its time');
    v.assert(Automation, done);
    const { thread } = await client.call('thread/read', { threadId: run.threadId, includeTurns: true });
    t.match(thread, { identity: { channelName: 'automation' }, turns: [{ id: run.turnId, status: 'completed' }] });
    const { items } = thread.turns[0];
    t.match([items[0], items.at(-1)], [{ input: [{ text: prompt }] }, { type: 'agentMessage', text: answer }]);
    const { automation } = await client.call('automation/read', { automationId: id });
    const isOnce = schedule.kind === 'at' || schedule.kind === 'task';
    t.equal(automation.state, isOnce ? 'finished' : 'waiting');
  }
  const state = await client.call('automation/state', {});
  v.assert(AutomationsState, state);
  t.match(state, { isRunning: true, countsByState: { waiting: 3, finished: 2 } });
  t.equal(log.filter((line) => /"level":(50|60)/.test(line)).length, 0, 'nothing was reported as a bug');
});

t.test('the answer of each method fits its schema and precedes the notifications it causes', async (t) => {
  const { server } = await startServer(t);
  const client = await Client.ready(t, server.webSocketUrl);
  const call = async (method: keyof typeof rpcMethods, params: unknown): Promise<Message> => {
    const result = await client.call(method, params);
    v.assert(rpcMethods[method].result, result);
    return result;
  };
  const { job } = await call('cron/add', { prompt, schedule: { kind: 'daily', time: '00:00', timeZone: 'UTC' } });
  t.match(job, { state: 'waiting', name: prompt, version: 1, upcoming: { length: 5 } });
  t.match(await call('cron/list', {}), { jobs: [{ id: job.id }] });
  t.match(await call('cron/enable', { jobId: job.id, enabled: false }), { job: { state: 'paused' } });
  t.same(await call('cron/list', { includeDisabled: false }), { jobs: [] });
  t.match(await call('cron/run', { jobId: job.id }), { job: { state: 'running' } });
  await completed(client, job.id);
  const { task } = await call('automation/task/create', { prompt: 'repeat: hello', enabled: false, name: 'later' });
  t.match(await call('automation/task/list', {}), { tasks: [{ id: task.id, state: 'paused' }] });
  const change = { automationId: task.id, version: 1, change: { name: 'soon' } };
  t.match(await call('automation/update', change), { automation: { name: 'soon', version: 2 } });
  await call('automation/run', { automationId: task.id });
  const done = await completed(client, task.id);
  t.match(await call('automation/runs', { automationId: task.id }), { data: [done.recentRuns[0]] });
  t.match(await call('automation/read', { automationId: job.id }), { automation: { id: job.id } });
  await call('automation/state', {});
  t.same(await call('cron/remove', { jobId: job.id }), { removed: true });
  t.same(await call('cron/remove', { jobId: job.id }), { removed: false });
  t.same(await call('automation/delete', { automationId: task.id }), { removed: true });
  const gone = await client.until(({ method, params }) => method === 'cron/stateChanged' && params.removed, 'removed');
  t.equal(gone.params.job.id, job.id);
  for (const { method, params } of client.messages) {
    if (method === 'cron/stateChanged' || method === 'automation/task/updated') {
      v.assert(rpcNotifications[method as 'cron/stateChanged'], params);
    }
  }
  const firstAnswer = client.messages.findIndex(({ result }) => result?.job?.id === job.id);
  const firstNotice = client.messages.findIndex(({ method }) => method === 'cron/stateChanged');
  t.ok(firstAnswer < firstNotice);
});

t.test('each refusal has its own code and reason', async (t) => {
  const { server } = await startServer(t);
  const client = await Client.ready(t, server.webSocketUrl);
  const errorOf = async (method: string, params: unknown) => (await client.ask(method, params)).error;
  const daily = { kind: 'daily', time: '07:30' };
  t.match(await errorOf('cron/add', { prompt }), { code: -32052, data: { why: 'scheduleRequired' } });
  t.match(await errorOf('cron/add', { prompt, schedule: { kind: 'cron', expression: '0 0 31 2 *' } }), {
    code: -32052,
    data: { why: 'never' },
    message: /“0 0 31 2 \*” is never due: no year has such a day\. Correct day and month/,
  });
  t.match(await errorOf('cron/add', { prompt, schedule: { kind: 'at', at: '2020-01-01T00:00:00Z' } }), {
    code: -32052,
    message: /has passed/,
  });
  t.match(await errorOf('cron/run', { jobId: 'job_none' }), { code: -32031, data: { automationId: 'job_none' } });
  t.match(await errorOf('automation/runs', { automationId: 'x' }), { code: -32031 });
  for (const wrong of [
    { prompt: '', schedule: daily },
    { prompt, schedule: { kind: 'daily', time: '7:30' } },
    { prompt, schedule: { kind: 'daily', time: '24:00' } },
    { prompt, schedule: { ...daily, timeZone: 'Mars/Olympus' } },
    { prompt, schedule: { kind: 'every', everyMs: 59_999 } },
    { prompt, schedule: { kind: 'every', everyMs: 1e15 } },
    { prompt, schedule: { kind: 'at', at: 'tomorrow' } },
    { prompt, schedule: { kind: 'yearly' } },
    { prompt, schedule: daily, binding: { mode: 'thread' } },
    { prompt, schedule: daily, approvalPolicy: 'ask' },
  ]) {
    t.match(await errorOf('cron/add', wrong), { code: -32602 }, JSON.stringify(wrong));
  }
  t.match(await errorOf('cron/add', { prompt, schedule: daily, binding: { mode: 'thread', threadId: 'x' } }), {
    code: -32010,
  });
  const { job } = await client.call('cron/add', { prompt, schedule: daily });
  t.match(await errorOf('automation/update', { automationId: job.id, version: 7, change: {} }), {
    code: -32054,
    data: { version: 1 },
  });
  t.match(await errorOf('automation/cancel', { automationId: job.id }), { code: -32052, data: { why: 'notRunning' } });
  t.equal((await client.call('cron/list', {})).jobs.length, 1);
});

t.test('with automations disabled changes are refused and reads succeed', async (t) => {
  const { server } = await startServer(t, undefined, { config: { Automations: { Enabled: false } } });
  const client = await Client.ready(t, server.webSocketUrl);
  t.match((await client.ask('automation/task/create', { prompt })).error, { code: -32056 });
  t.match(await client.call('automation/state', {}), { isRunning: false, tasks: [] });
  t.same(await client.call('cron/list', {}), { jobs: [] });
});

/** Starts a task on a server, kills that server at a moment, and starts the next one. */
async function killed(t: Test, { settings, isThere, signal = 'SIGKILL', ...task }: Killed) {
  const { path, home } = makeWorkspace(t, settings);
  const before = spawnServer(t, { path, home });
  const first = await Client.ready(t, (await serving(before, path)).endpoints.appServerWebSocket);
  const { id } = (await first.call('automation/task/create', task)).task;
  await eventually(
    () => updatesOf(first, id).some(({ recentRuns }) => recentRuns[0]?.turnId) || undefined,
    'its turn runs',
  );
  await eventually(() => isThere(path, first, id), 'the moment has come');
  const [run] = (await first.call('automation/read', { automationId: id })).automation.recentRuns;
  before.child.kill(signal);
  await before.ended;
  const after = spawnServer(t, { path, home });
  const client = await Client.ready(t, (await serving(after, path)).endpoints.appServerWebSocket);
  const rested = () =>
    eventually(async () => {
      const { automation } = await client.call('automation/read', { automationId: id });
      const { isRunning } = await client.call('automation/state', {});
      return isRunning && automation.state === 'finished' ? (automation as Message) : undefined;
    }, 'the run has ended');
  const turns = async () =>
    (await client.call('thread/read', { threadId: run.threadId, includeTurns: true })).thread.turns as Message[];
  return { path, home, client, id, run, rested, turns };
}

interface Killed {
  readonly prompt: string;
  readonly approvalPolicy?: string;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly signal?: NodeJS.Signals;
  readonly isThere: (path: string, client: Client, id: string) => true | undefined | Promise<true | undefined>;
}

const effectsIn = (path: string): string =>
  existsSync(join(path, 'effects')) ? readFileSync(join(path, 'effects'), 'utf8') : '';

t.test('a run killed in its turn continues as the same attempt of the same turn', { timeout: 240_000 }, async (t) => {
  const { rested, turns, run } = await killed(t, { prompt: 'count to 400', isThere: () => true });
  t.match(await rested(), {
    failures: 0,
    recentRuns: [{ status: 'completed', attempt: 1, turnId: run.turnId, startedAt: run.startedAt, result: / 1 2 3 / }],
  });
  const [turn] = await turns();
  t.match(turn, { id: run.turnId, status: 'completed', resumes: 1 });
  t.match(turn?.items.at(-1).text, / 399 400$/);
});

t.test('a run killed in a command continues, and its command is not repeated', { timeout: 240_000 }, async (t) => {
  const { path, rested, turns, run, id, client } = await killed(t, {
    prompt: 'run: printf x >> effects; sleep 600',
    approvalPolicy: 'autoApprove',
    settings: { Turns: { KeepCommands: false } },
    isThere: (path) => effectsIn(path) === 'x' || undefined,
  });
  t.match(await rested(), { recentRuns: [{ status: 'completed', attempt: 1, turnId: run.turnId }] });
  t.equal((await turns()).length, 1);
  t.equal(effectsIn(path), 'x');
  // Positive control: the same command counts again in a run by hand.
  await client.call('automation/run', { automationId: id });
  await eventually(() => effectsIn(path) === 'xx' || undefined, 'a run by hand repeats it');
  await client.call('automation/cancel', { automationId: id });
  await eventually(() => updatesOf(client, id).find(({ state }) => state === 'finished'), 'it is cancelled');
});

t.test('a run whose server was stopped continues as the same attempt', { timeout: 240_000 }, async (t) => {
  const { path, rested, turns, run } = await killed(t, {
    prompt: 'run: printf x >> effects; sleep 2; printf y >> effects',
    approvalPolicy: 'autoApprove',
    signal: 'SIGTERM',
    isThere: (path) => effectsIn(path) === 'x' || undefined,
  });
  t.match(await rested(), { recentRuns: [{ status: 'completed', attempt: 1, turnId: run.turnId }] });
  t.match(await turns(), [{ id: run.turnId, status: 'completed', resumes: 1 }]);
  t.equal(effectsIn(path), 'xy');
});

t.test('a run that continues can be cancelled', { timeout: 240_000 }, async (t) => {
  const { client, id, rested } = await killed(t, { prompt: 'count to 100000', isThere: () => true });
  await eventually(async () => {
    const { automation } = await client.call('automation/read', { automationId: id });
    return automation.state === 'running' || undefined;
  }, 'it runs');
  await client.call('automation/cancel', { automationId: id });
  t.match(await rested(), { recentRuns: [{ status: 'cancelled', attempt: 1 }] });
});

t.test('with Turns.Resume "never" a killed run is repeated before its effects', { timeout: 240_000 }, async (t) => {
  const { client, id } = await killed(t, {
    prompt: 'count to 100000',
    settings: { Turns: { Resume: 'never' } },
    isThere: () => true,
  });
  const again = await eventually(async () => {
    const { automation } = await client.call('automation/read', { automationId: id });
    return automation.recentRuns[0]?.attempt === 2 && automation.state === 'running' ? automation : undefined;
  }, 'it is tried again');
  t.equal(again.recentRuns.length, 1, 'the same run');
  t.match(await client.call('automation/cancel', { automationId: id }), { automation: { id } });
  await eventually(() => updatesOf(client, id).find(({ state }) => state === 'finished'), 'and can be cancelled');
});

t.test('with Turns.Resume "never" a killed run is not repeated after its effects', { timeout: 240_000 }, async (t) => {
  const { path, rested } = await killed(t, {
    prompt: 'run: printf x >> effects; sleep 600',
    approvalPolicy: 'autoApprove',
    settings: { Turns: { Resume: 'never' } },
    isThere: (path) => effectsIn(path) === 'x' || undefined,
  });
  t.match(await rested(), {
    recentRuns: [{ status: 'failed', attempt: 1, error: { code: 'crashed', message: /because Exec had begun/ } }],
  });
  t.equal(effectsIn(path), 'x');
});

t.test('a server with an enabled schedule is not idle', async (t) => {
  const { server } = await startServer(t);
  const health = async () => (await fetch(`${server.baseUrl}/healthz`)).json() as Promise<Message>;
  // A connected client keeps a server busy too.
  const alone = async (method: string, params: Message) => {
    const client = await Client.ready(t, server.webSocketUrl);
    const result = await client.call(method, params);
    client.close();
    await eventually(async () => ((await health()).connections === 0 ? true : undefined), 'the client has left');
    return result;
  };
  await eventually(async () => ((await health()).idleMs > 0 ? true : undefined), 'idle without automations');
  const { job } = await alone('cron/add', { prompt, schedule: { kind: 'daily', time: '00:00' } });
  t.equal((await health()).idleMs, 0);
  await alone('cron/enable', { jobId: job.id, enabled: false });
  await eventually(async () => ((await health()).idleMs > 0 ? true : undefined), 'idle again');
});
