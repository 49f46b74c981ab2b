/** kill -9 of the agent server in a turn of an external agent. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { orderHandOver } from '../../src/supervise/index.ts';
import { listPids, readEntry } from '../../src/supervise/procfs.ts';
import {
  Client,
  launchDocument,
  type Message,
  makeWorkspace,
  serving,
  spawnServer,
  words,
} from '../appserver/harness.ts';
import { eventually } from '../hub/harness.ts';
import { items, stubAgent, textOf } from './talk.ts';

interface Killed {
  readonly prompt: readonly string[];
  /** Flags of the stub agent, before and after the kill. */
  readonly flags?: readonly [string, string];
  readonly resumesAgents?: boolean;
  readonly config?: Readonly<Record<string, unknown>>;
  /** Whether a Hub stops the first server with a hand-over instead of a kill. */
  readonly isRestarted?: boolean;
  /** The moment of the kill. */
  readonly isThere: string | ((message: Message) => boolean);
}

const incarnation = 'incarnation-1';
const free = { approvalPolicy: 'autoApprove' };

/** Kills an agent server in a turn, starts the next one, and waits for the end of the turn. */
async function killed(
  t: Test,
  { prompt, flags = ['', ''], resumesAgents = true, config, isRestarted = false, isThere }: Killed,
) {
  const { path, home } = makeWorkspace(t);
  const start = (flags: string) => {
    const settings = { ...stubAgent(flags), Turns: { ResumeAgents: resumesAgents } };
    writeFileSync(join(home, 'config.json'), JSON.stringify(settings));
    const stdin = JSON.stringify({ ...launchDocument(path, join(home, 'hub.json')), incarnation });
    return spawnServer(t, { path, home, ...(isRestarted && { args: ['--managed'], stdin }) });
  };
  const first = start(flags[0]);
  const client = await Client.ready(t, (await serving(first, path)).endpoints.appServerWebSocket);
  const { thread } = await client.call('thread/start', { ...(config && { config }) });
  const threadId: string = thread.id;
  const { turn } = await client.call('turn/start', { threadId, input: words(prompt.join('\n')) });
  if (typeof isThere === 'string') await eventually(() => existsSync(join(path, isThere)) || undefined, isThere);
  else await client.until(isThere, 'the moment of the kill');
  const order = { incarnation, reason: 'restart', withinMs: 500, endsTurns: false } as const;
  if (isRestarted) orderHandOver(home, path, order);
  first.child.kill(isRestarted ? 'SIGTERM' : 'SIGKILL');
  await Promise.all([first.ended, client.closed]);
  const next = await Client.ready(t, (await serving(start(flags[1]), path)).endpoints.appServerWebSocket);
  await next.call('thread/subscribe', { threadId, replayRecent: true });
  const questions = (await next.call('approval/list', {})).data;
  const read = async () => (await next.call('thread/read', { threadId, includeTurns: true })).thread.turns;
  const [now] = await read();
  if (now.completedAt === undefined)
    await next.until(({ method }) => /^turn\/(completed|failed|cancelled)$/.test(method), 'the end of the turn');
  const turns = await read();
  t.match(turns, [{ id: turn.id }]);
  t.equal(turns.length, 1);
  return { path, turn: turns[0] as Message, questions: questions as Message[] };
}

const lives = (pid: number): boolean => {
  const entry = listPids().includes(pid) ? readEntry(pid) : 'gone';
  return typeof entry !== 'string' && !entry.zombie;
};
const noticesOf = (turn: Message): string[] => items(turn, 'systemNotice').map(({ kind }: Message) => kind);

for (const [how, flags] of [
  ['session/load', ''],
  ['session/resume', 'resumes'],
] as const) {
  t.test(`with Turns.ResumeAgents the turn continues by ${how}, and no call runs twice`, async (t) => {
    const { path, turn } = await killed(t, {
      prompt: ['pid', 'run echo x >> effects; echo $$ > pid; exec sleep 3013', 'say not reached'],
      flags: [flags, flags],
      config: free,
      isThere: 'pid',
    });
    t.match(turn, { status: 'completed', resumes: 1 });
    t.equal(readFileSync(join(path, 'effects'), 'utf8'), 'x\n');
    t.match(items(turn, 'toolResult'), [{ outcome: 'unknown', text: /outcome is unknown/ }]);
    t.match(items(turn, 'systemNotice').at(-1), {
      kind: 'turnResumed',
      text: /The agent stub had to start again and is asked to continue.*one command has an unknown outcome/,
    });
    const [, before] = /pid (\d+)/.exec(textOf(turn)) ?? [];
    const [, after] = /continued by (\d+)$/.exec(textOf(turn)) ?? [];
    t.ok(before && after && before !== after, textOf(turn));
    t.equal(textOf(turn).split('pid').length, 2, 'the prompt was sent once, and a replay is not shown');
    t.notOk(lives(Number(before)), 'the first process of the agent is ended');
    t.notOk(lives(Number(readFileSync(join(path, 'pid'), 'utf8'))), 'and its command');
  });
}

t.test('an open question of a killed agent is withdrawn, and its call does not run', async (t) => {
  const { path, turn, questions } = await killed(t, {
    prompt: ['run touch effect'],
    isThere: ({ method }) => method === 'item/approval/request',
  });
  t.same(questions, []);
  t.match(items(turn, 'approvalResponse'), [{ decision: 'cancel', decidedBy: 'policy' }]);
  t.match(turn, { status: 'completed', resumes: 1 });
  t.match(textOf(turn), /continued by/);
  t.notOk(existsSync(join(path, 'effect')));
});

t.test('a restart suspends the turn of an agent, which the next agent server continues', async (t) => {
  const { turn } = await killed(t, {
    prompt: ['say words', 'wait'],
    isRestarted: true,
    isThere: ({ method }) => method === 'item/agentMessage/delta',
  });
  t.match(turn, { status: 'completed', resumes: 1 });
  t.match(textOf(turn), /^words.*continued by/);
});

t.test('a prompt that was not sent is sent after the kill', async (t) => {
  const { turn } = await killed(t, {
    prompt: ['say first words'],
    flags: ['mute', ''],
    isThere: ({ method }) => method === 'turn/started',
  });
  t.match(turn, { status: 'completed', resumes: 1 });
  t.equal(textOf(turn), 'first words');
});

t.test(
  'an agent without session/load fails its turn with agentInterrupted, and does not get its prompt again',
  async (t) => {
    const { path, turn } = await killed(t, {
      prompt: ['run echo x >> effects; exec sleep 3014'],
      flags: ['forgetful', 'forgetful'],
      config: free,
      isThere: 'effects',
    });
    t.match(turn, { status: 'failed', error: { code: 'agentInterrupted', message: /lost its memory/ } });
    t.equal(readFileSync(join(path, 'effects'), 'utf8'), 'x\n');
    t.notOk(noticesOf(turn).includes('agentSessionLost'), 'no new session begins');
  },
);

t.test('without Turns.ResumeAgents the turn fails with agentInterrupted', async (t) => {
  const { turn } = await killed(t, {
    prompt: ['say words', 'wait'],
    resumesAgents: false,
    isThere: ({ method }) => method === 'item/agentMessage/delta',
  });
  t.match(turn, { status: 'failed', error: { code: 'agentInterrupted', message: /send the prompt again/ } });
  t.equal(textOf(turn), 'words', 'its items stay');
});
