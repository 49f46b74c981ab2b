/** kill -9 while sub-agents work: the next agent server continues with them, and the calls of their parents wait for them. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openStore } from '../../src/agent/index.ts';
import { Client, eventually, type Message, makeWorkspace, serving, spawnServer, stateOf, words } from './harness.ts';

interface Killed {
  readonly path: string;
  readonly parent: Message;
  /** Turns of the sub-agent. */
  readonly children: readonly Message[];
  readonly result: Message;
}

interface Case {
  readonly title: string;
  readonly prompt: string;
  /** Whether the moment has come, from the turn of the sub-agent. */
  readonly isThere: (path: string, turn: Message) => boolean;
  /** The sub-agent cannot continue: its stored turn is lost while no server lives. */
  readonly isLost?: true;
  readonly judge: (t: Test, killed: Killed) => void;
}

const contentOf = (path: string, name: string): string =>
  existsSync(join(path, name)) ? readFileSync(join(path, name), 'utf8') : '';

/** In the order of their start. The answer that grows comes last: the other moments stay. */
const cases: readonly Case[] = [
  {
    title: 'a command of a sub-agent that was killed runs once',
    prompt: 'delegate: "run: printf x >> effects; sleep 600"',
    isThere: (path) => contentOf(path, 'effects') === 'x',
    judge(t, { path, children, result }) {
      t.match(children, [{ status: 'completed', resumes: 1 }]);
      t.match(
        children[0]?.items.find(({ type }: Message) => type === 'toolResult'),
        { outcome: 'unknown' },
        'the sub-agent reads that the outcome is unknown',
      );
      t.match(result, { outcome: 'completed' }, 'the sub-agent itself ended as it should');
      t.equal(contentOf(path, 'effects'), 'x');
    },
  },
  {
    title: 'a sub-agent that cannot continue gives its call an unknown outcome, and is not repeated',
    prompt: 'delegate: "run: printf x >> lost; sleep 600"',
    isThere: (path) => contentOf(path, 'lost') === 'x',
    isLost: true,
    judge(t, { path, children, result }) {
      t.match(children, [{ status: 'cancelled', interruptedBy: 'crash' }]);
      t.match(result, { outcome: 'unknown', text: /^The outcome is unknown: .*SpawnSubagent/ });
      t.equal(contentOf(path, 'lost'), 'x');
    },
  },
  {
    title: 'the changes of a killed sub-agent in a worktree come into the workspace once',
    prompt: `call SpawnSubagent with ${JSON.stringify({ task: 'run: printf hello >> made.txt; sleep 600', worktree: true })}`,
    isThere: (path) => {
      const worktrees = join(path, '.oratorio', 'worktrees');
      return (
        existsSync(worktrees) && readdirSync(worktrees).some((name) => existsSync(join(worktrees, name, 'made.txt')))
      );
    },
    judge(t, { path, children, result }) {
      t.match(children, [{ status: 'completed', resumes: 1 }]);
      t.match(result, { outcome: 'completed', text: /its changes are in the workspace now: made\.txt/ });
      t.equal(contentOf(path, 'made.txt'), 'hello');
      t.same(readdirSync(join(path, '.oratorio', 'worktrees')), []);
    },
  },
  {
    title: 'a sub-agent killed in its answer continues, and its parent gets the whole answer',
    prompt: 'delegate: "count to 400"',
    isThere: (_path, { items }) => items.some(({ type }: Message) => type === 'agentMessage'),
    judge(t, { parent, children, result }) {
      t.match(children, [{ status: 'completed', resumes: 1 }]);
      t.match(result, { outcome: 'completed', text: / 399 400$/ });
      t.equal(parent.items.filter(({ type }: Message) => type === 'toolCall').length, 1);
    },
  },
];

const turnsOf = async (client: Client, threadId: string): Promise<Message[]> =>
  (await client.call('thread/read', { threadId, includeTurns: true })).thread.turns;

/** Threads whose state a client has heard of. */
const activeThreads = ({ messages }: Client): string[] =>
  messages.flatMap(({ method, params }) => (method === 'thread/runtimeChanged' ? [params.threadId] : []));

t.test('kill -9 of a server whose sub-agents work', async (all) => {
  const { path, home } = makeWorkspace(all, { Turns: { KeepCommands: false } });
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: path, stdio: 'pipe' });
  git('init', '-q');
  git('commit', '-q', '--allow-empty', '-m', 'first');
  const connect = async (server: ReturnType<typeof spawnServer>) =>
    Client.ready(all, (await serving(server, path)).endpoints.appServerWebSocket);
  const first = spawnServer(all, { path, home });
  const client = await connect(first);
  const known: string[] = [];
  /** Starts the turn of a parent and waits for the moment of its sub-agent. */
  const begin = async ({ title, prompt, isThere }: Case) => {
    const { thread } = await client.call('thread/start', { config: { approvalPolicy: 'autoApprove' } });
    const threadId: string = thread.id;
    known.push(threadId);
    const { turn } = await client.call('turn/start', { threadId, input: words(prompt) });
    const childId = await eventually(
      () => activeThreads(client).find((id) => !known.includes(id)),
      `the sub-agent works: ${title}`,
    );
    known.push(childId);
    const childTurn = await eventually(async () => {
      const [found] = await turnsOf(client, childId);
      return found && isThere(path, found) ? found : undefined;
    }, `the moment has come: ${title}`);
    return { threadId, turnId: turn.id as string, childId, childTurnId: childTurn.id as string };
  };
  const begun: Awaited<ReturnType<typeof begin>>[] = [];
  for (const each of cases) begun.push(await begin(each));
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, client.closed]);
  const store = openStore(stateOf(path, home));
  for (const [at, { isLost }] of cases.entries()) {
    const { childId = '', childTurnId = '' } = begun[at] ?? {};
    if (isLost) store.threads.turnActors.delete(childId, childTurnId);
  }
  store.close();
  const next = await connect(spawnServer(all, { path, home }));
  const over = (id: string) =>
    eventually(async () => {
      const turns = await turnsOf(next, id);
      return turns.every(({ completedAt }) => completedAt !== undefined) ? turns : undefined;
    }, `the turns of ${id} have ended`);
  for (const [at, { title, judge }] of cases.entries()) {
    await all.test(title, async (t) => {
      const { threadId = '', turnId, childId = '' } = begun[at] ?? {};
      const [parents, children] = [await over(threadId), await over(childId)];
      t.match(parents, [{ id: turnId, status: 'completed', resumes: 1 }]);
      t.equal(parents.length, 1);
      const [parent] = parents;
      judge(t, { path, parent, children, result: parent.items.find(({ type }: Message) => type === 'toolResult') });
    });
  }
  all.same(
    activeThreads(next).filter((id) => !known.includes(id)),
    [],
    'no second sub-agent',
  );
});
