/** kill -9 in a turn: the next agent server continues with it, unasked, under its id. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { orderHandOver, readIdentity } from '../../src/supervise/index.ts';
import {
  Client,
  eventually,
  launchDocument,
  type Message,
  makeWorkspace,
  serving,
  spawnServer,
  stateOf,
  words,
} from './harness.ts';

const free = { approvalPolicy: 'autoApprove' };
interface Killed {
  readonly prompt: string;
  readonly config?: Readonly<Record<string, unknown>>;
  /** Settings of the workspace. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** A Hub has started the servers. */
  readonly isManaged?: boolean;
  /** Commands run in the sandbox. */
  readonly isSandboxed?: boolean;
  /** The first server gets an order to hand over, in place of a kill. */
  readonly isRestarted?: boolean;
  /** Hooks of the user. */
  readonly hooks?: Readonly<Record<string, unknown>>;
  /** Message, or file in the workspace, after which the server ends. */
  readonly isThere: string | ((message: Message) => boolean);
}

/** Starts a turn, kills its server at a moment, and starts the next server. */
async function killed(
  t: Test,
  { prompt, config, settings, isManaged, isSandboxed, isRestarted, hooks, isThere }: Killed,
) {
  const { path, home } = makeWorkspace(t, settings);
  // A workspace may not switch the sandbox off.
  const users = {
    ...(hooks && { Hooks: hooks }),
    ...(isManaged && !isSandboxed && { Tools: { Shell: { Sandbox: 'off' } } }),
  };
  if (isManaged) writeFileSync(join(home, 'config.json'), JSON.stringify(users));
  const start = (incarnation: string) =>
    spawnServer(t, {
      ...{ path, home },
      ...(isManaged && {
        args: ['--managed'],
        stdin: JSON.stringify({ ...launchDocument(path, join(home, 'hub.json')), incarnation }),
      }),
    });
  const first = start('incarnation-1');
  const client = await Client.ready(t, (await serving(first, path)).endpoints.appServerWebSocket);
  const { thread } = await client.call('thread/start', { ...(config && { config }) });
  const threadId: string = thread.id;
  await client.call('thread/subscribe', { threadId });
  const { turn } = await client.call('turn/start', { threadId, input: words(prompt) });
  if (typeof isThere === 'string') await eventually(() => existsSync(join(path, isThere)) || undefined, isThere);
  else await client.until(isThere, `${prompt} is there`);
  if (isRestarted) {
    orderHandOver(home, path, { incarnation: 'incarnation-1', reason: 'restart', withinMs: 600_000, endsTurns: false });
  }
  first.child.kill(isRestarted ? 'SIGTERM' : 'SIGKILL');
  await Promise.all([first.ended, client.closed]);
  const second = start('incarnation-2');
  const next = await Client.ready(t, (await serving(second, path)).endpoints.appServerWebSocket);
  return { path, threadId, turnId: turn.id as string, client, next, second };
}

/** Waits for the end of the turn. @returns the turn */
async function ended(next: Client, threadId: string, turnId: string): Promise<Message> {
  await next.call('thread/subscribe', { threadId, replayRecent: true });
  const read = async () => (await next.call('thread/read', { threadId, includeTurns: true })).thread.turns;
  const turns = await read();
  const isOver = ({ id, completedAt }: Message) => id === turnId && completedAt !== undefined;
  if (!turns.some(isOver)) {
    await next.until(
      ({ method, params }) => /^turn\/(completed|failed|cancelled)$/.test(method) && params.turn.id === turnId,
      'the end of the turn',
    );
  }
  return read();
}

const kindsOf = (turn: Message): string[] =>
  turn.items.map((item: Message) => (item.type === 'systemNotice' ? item.kind : item.type));

t.test('a turn killed in its answer repeats the request and ends under its id', async (t) => {
  const { next, threadId, turnId, client } = await killed(t, {
    prompt: 'count to 300',
    isThere: ({ method }) => method === 'item/agentMessage/delta',
  });
  const turns = await ended(next, threadId, turnId);
  t.equal(turns.length, 1);
  const [turn] = turns;
  t.match(turn, { id: turnId, status: 'completed', resumes: 1 });
  const isMessage = ({ type }: Message) => type === 'agentMessage';
  const broken = turn.items.find(isMessage);
  const whole = turn.items.findLast(isMessage);
  const notice = turn.items.find(({ kind }: Message) => kind === 'turnResumed');
  t.ok(kindsOf(turn).includes('requestRepeated'));
  t.equal(broken.discarded, true);
  t.match(whole.text, /300/);
  t.match(notice.text, /^The agent server ended at \d\d:\d\d and was back at \d\d:\d\d\. The answer is repeated\.$/);
  const deltas = client.messages.filter(({ method }) => method === 'item/agentMessage/delta');
  t.ok(broken.text.startsWith(deltas.map(({ params }) => params.delta).join('')), 'every word heard is stored');
});

t.test('a command killed in its run is not repeated; the model reads that its outcome is unknown', async (t) => {
  const { next, path, threadId, turnId } = await killed(t, {
    prompt: 'run: echo once >> effects; echo started; sleep 3011',
    config: free,
    isThere: ({ method, params }) => method === 'item/commandExecution/outputDelta' && /started/.test(params.delta),
  });
  const [turn] = await ended(next, threadId, turnId);
  t.match(turn, { id: turnId, status: 'completed' });
  const result = turn.items.find(({ type }: Message) => type === 'toolResult');
  t.match(result, { outcome: 'unknown', text: /^The outcome is unknown: .*Exec.*Output until then: started/s });
  t.equal(readFileSync(join(path, 'effects'), 'utf8'), 'once\n');
});

t.test('a command outside of the sandbox outlives a managed server: its result is the real one', async (t) => {
  const { next, path, threadId, turnId } = await killed(t, {
    prompt: 'run: echo once >> effects; echo started; until [ -e go ]; do sleep 0.1; done; echo finished; exit 3',
    config: free,
    isManaged: true,
    isThere: ({ method, params }) => method === 'item/commandExecution/outputDelta' && /started/.test(params.delta),
  });
  writeFileSync(join(path, 'go'), '');
  const [turn] = await ended(next, threadId, turnId);
  t.match(turn, { id: turnId, status: 'completed', resumes: 1 });
  const results = turn.items.filter(({ type }: Message) => type === 'toolResult');
  t.match(results, [{ outcome: 'failed', text: /started\nfinished\n\nExit code 3\./ }]);
  t.equal(results.length, 1);
  t.equal(readFileSync(join(path, 'effects'), 'utf8'), 'once\n');
  t.strictSame(readdirSync(join(stateOf(path), 'kept-commands')), ['owner'], 'no file of the command is left');
});

for (const isRestarted of [false, true]) {
  const how = isRestarted ? 'a restart' : 'a kill';
  t.test(`a command in the sandbox outlives ${how} of a managed server: its result is the real one`, async (t) => {
    const { next, path, threadId, turnId } = await killed(t, {
      prompt: 'run: echo once >> effects; echo started; until [ -e go ]; do sleep 0.1; done; echo finished; exit 3',
      config: free,
      ...{ isManaged: true, isSandboxed: true, isRestarted },
      isThere: ({ method, params }) => method === 'item/commandExecution/outputDelta' && /started/.test(params.delta),
    });
    writeFileSync(join(path, 'go'), '');
    const [turn] = await ended(next, threadId, turnId);
    t.match(turn, { id: turnId, status: 'completed' });
    const results = turn.items.filter(({ type }: Message) => type === 'toolResult');
    t.match(results, [{ outcome: 'failed', text: /started\nfinished\n\nExit code 3\./ }]);
    t.equal(readFileSync(join(path, 'effects'), 'utf8'), 'once\n');
    const files = () => readdirSync(join(stateOf(path), 'kept-commands')).join() === 'owner';
    await eventually(() => files() || undefined, 'no file of the command or its room');
  });
}

t.test('a restart leaves a command outside of the sandbox to the next server', async (t) => {
  const { next, path, threadId, turnId } = await killed(t, {
    prompt: 'run: echo once >> effects; echo started; until [ -e go ]; do sleep 0.1; done; echo finished',
    config: free,
    isManaged: true,
    isRestarted: true,
    isThere: ({ method, params }) => method === 'item/commandExecution/outputDelta' && /started/.test(params.delta),
  });
  writeFileSync(join(path, 'go'), '');
  const [turn] = await ended(next, threadId, turnId);
  t.match(turn, { id: turnId, status: 'completed' });
  const results = turn.items.filter(({ type }: Message) => type === 'toolResult');
  t.match(results, [{ outcome: 'completed', text: /started\nfinished/ }]);
  t.equal(readFileSync(join(path, 'effects'), 'utf8'), 'once\n');
});

t.test('a kill between the end of a command and the commit of its result leaves the real result', async (t) => {
  const { next, path, threadId, turnId } = await killed(t, {
    prompt: 'run: echo once >> effects; echo finished; exit 3',
    config: free,
    isManaged: true,
    hooks: { PostToolUse: [{ Command: 'touch hooked; until [ -e go ]; do sleep 0.1; done' }] },
    isThere: 'hooked',
  });
  writeFileSync(join(path, 'go'), '');
  const [turn] = await ended(next, threadId, turnId);
  t.match(turn, { id: turnId, status: 'completed', resumes: 1 });
  const results = turn.items.filter(({ type }: Message) => type === 'toolResult');
  t.match(results, [{ outcome: 'failed', text: /^finished\n\nExit code 3\./ }]);
  t.equal(readFileSync(join(path, 'effects'), 'utf8'), 'once\n');
  t.strictSame(readdirSync(join(stateOf(path), 'kept-commands')), ['owner'], 'no file of the command is left');
});

for (const { end, resume, isRestarted } of [
  { end: 'turn/interrupt', resume: 'auto', isRestarted: false },
  { end: 'turn/interrupt', resume: 'ask', isRestarted: true },
  { end: 'thread/delete', resume: 'ask', isRestarted: false },
] as const) {
  const before = isRestarted ? 'a restart' : 'a kill';
  t.test(`${end} after ${before} with Turns.Resume "${resume}" ends the command of the turn`, async (t) => {
    const { next, path, threadId, turnId } = await killed(t, {
      prompt: 'run: echo $$ > pid; echo started; exec sleep 3014',
      config: free,
      settings: { Turns: { Resume: resume } },
      isManaged: true,
      isRestarted,
      isThere: ({ method, params }) => method === 'item/commandExecution/outputDelta' && /started/.test(params.delta),
    });
    const pid = Number(readFileSync(join(path, 'pid'), 'utf8'));
    t.not(readIdentity(pid), 'gone', 'the command has outlived its server');
    await next.call(end, { threadId, ...(end === 'turn/interrupt' && { turnId }) });
    await eventually(() => readIdentity(pid) === 'gone' || undefined, 'the end of the command');
    const files = () => readdirSync(join(stateOf(path), 'kept-commands')).join() === 'owner';
    await eventually(() => files() || undefined, 'no file of the command');
  });
}

t.test('with Turns.KeepCommands false a command ends with its managed server', async (t) => {
  const { next, path, threadId, turnId } = await killed(t, {
    prompt: 'run: echo started; sleep 3012',
    config: free,
    settings: { Turns: { KeepCommands: false } },
    isManaged: true,
    isThere: ({ method, params }) => method === 'item/commandExecution/outputDelta' && /started/.test(params.delta),
  });
  const [turn] = await ended(next, threadId, turnId);
  t.match(
    turn.items.find(({ type }: Message) => type === 'toolResult'),
    { outcome: 'unknown' },
  );
  t.notOk(existsSync(join(stateOf(path), 'kept-commands')));
});

t.test('an open approval keeps its id, is answerable at once, and its call runs once', async (t) => {
  const { next, path, threadId, turnId, client } = await killed(t, {
    prompt: 'run: echo once >> effects',
    isThere: ({ method }) => method === 'item/approval/request',
  });
  const asked = client.messages.find(({ method }) => method === 'item/approval/request')?.params;
  const { data } = await next.call('approval/list', {});
  t.match(data, [{ requestId: asked.requestId, createdAt: asked.createdAt, itemId: asked.itemId }]);
  await next.call('approval/respond', { requestId: asked.requestId, decision: 'accept' });
  const [turn] = await ended(next, threadId, turnId);
  t.match(turn, { status: 'completed' });
  const asks = turn.items.filter(({ type }: Message) => type === 'approvalRequest');
  t.equal(asks.length, 1, 'it is asked once');
  t.equal(readFileSync(join(path, 'effects'), 'utf8'), 'once\n');
  t.ok(existsSync(join(path, 'effects')));
});
