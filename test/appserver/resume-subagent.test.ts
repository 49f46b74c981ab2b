/** kill -9 while a sub-agent works: the next agent server continues with it, and the call of its parent waits for it. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openStore } from '../../src/agent/index.ts';
import { Client, eventually, type Message, makeWorkspace, serving, spawnServer, stateOf, words } from './harness.ts';

interface Killed {
  readonly prompt: string;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly isRepository?: boolean;
  /** Whether the moment has come, from the turn of the sub-agent. */
  readonly isThere: (path: string, turn: Message) => boolean;
  /** Called while no server lives. */
  readonly meanwhile?: (
    home: string,
    path: string,
    child: { readonly threadId: string; readonly turnId: string },
  ) => void;
}

const free = { approvalPolicy: 'autoApprove' };

/** Starts a turn with a sub-agent, kills the server while the sub-agent works, and starts the next server. */
async function killed(t: Test, { prompt, settings, isRepository = false, isThere, meanwhile }: Killed) {
  const { path, home } = makeWorkspace(t, settings);
  if (isRepository) {
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: path, stdio: 'pipe' });
    git('init', '-q');
    git('commit', '-q', '--allow-empty', '-m', 'first');
  }
  const first = spawnServer(t, { path, home });
  const client = await Client.ready(t, (await serving(first, path)).endpoints.appServerWebSocket);
  const { thread } = await client.call('thread/start', { config: free });
  const threadId: string = thread.id;
  const { turn } = await client.call('turn/start', { threadId, input: words(prompt) });
  const child = await eventually(() => {
    const found = client.messages.find(
      ({ method, params }) => method === 'thread/runtimeChanged' && params.threadId !== threadId,
    );
    return found && { threadId: found.params.threadId as string };
  }, 'the sub-agent works');
  const turnOf = async (from: Client, id: string) =>
    (await from.call('thread/read', { threadId: id, includeTurns: true })).thread.turns as Message[];
  const [childTurn] = await eventually(async () => {
    const turns = await turnOf(client, child.threadId);
    return turns[0] && isThere(path, turns[0]) ? turns : undefined;
  }, 'the moment has come');
  first.child.kill('SIGKILL');
  await Promise.all([first.ended, client.closed]);
  meanwhile?.(home, path, { threadId: child.threadId, turnId: childTurn?.id });
  const second = spawnServer(t, { path, home });
  const next = await Client.ready(t, (await serving(second, path)).endpoints.appServerWebSocket);
  const over = (id: string) =>
    eventually(async () => {
      const turns = await turnOf(next, id);
      return turns.every(({ completedAt }) => completedAt !== undefined) ? turns : undefined;
    }, `the turns of ${id} have ended`);
  const [parentTurns, childTurns] = [await over(threadId), await over(child.threadId)];
  t.match(parentTurns, [{ id: turn.id, status: 'completed', resumes: 1 }]);
  t.equal(parentTurns.length, 1);
  const result = parentTurns[0]?.items.find(({ type }: Message) => type === 'toolResult');
  const others = next.messages.filter(
    ({ method, params }) => method === 'thread/runtimeChanged' && ![threadId, child.threadId].includes(params.threadId),
  );
  t.same(others, [], 'no second sub-agent');
  return { path, parent: parentTurns[0], children: childTurns, result };
}

const effectsIn = (path: string): string =>
  existsSync(join(path, 'effects')) ? readFileSync(join(path, 'effects'), 'utf8') : '';

t.test(
  'a sub-agent killed in its answer continues, and its parent gets the whole answer',
  { timeout: 240_000 },
  async (t) => {
    const { children, result, parent } = await killed(t, {
      prompt: 'delegate: "count to 400"',
      isThere: (_path, { items }) => items.some(({ type }: Message) => type === 'agentMessage'),
    });
    t.match(children, [{ status: 'completed', resumes: 1 }]);
    t.match(result, { outcome: 'completed', text: / 399 400$/ });
    const calls = parent?.items.filter(({ type }: Message) => type === 'toolCall');
    t.equal(calls.length, 1);
  },
);

t.test('a command of a sub-agent that was killed runs once', { timeout: 240_000 }, async (t) => {
  const { path, children, result } = await killed(t, {
    prompt: 'delegate: "run: printf x >> effects; sleep 600"',
    settings: { Turns: { KeepCommands: false } },
    isThere: (path) => effectsIn(path) === 'x',
  });
  t.match(children, [{ status: 'completed', resumes: 1 }]);
  t.match(
    children[0]?.items.find(({ type }: Message) => type === 'toolResult'),
    { outcome: 'unknown' },
    'the sub-agent reads that the outcome is unknown',
  );
  t.match(result, { outcome: 'completed' }, 'the sub-agent itself ended as it should');
  t.equal(effectsIn(path), 'x');
});

t.test(
  'a sub-agent that cannot continue gives its call an unknown outcome, and is not repeated',
  { timeout: 240_000 },
  async (t) => {
    const { path, children, result } = await killed(t, {
      prompt: 'delegate: "run: printf x >> effects; sleep 600"',
      settings: { Turns: { KeepCommands: false } },
      isThere: (path) => effectsIn(path) === 'x',
      meanwhile(home, path, { threadId, turnId }) {
        const store = openStore(stateOf(path, home));
        store.threads.turnActors.delete(threadId, turnId);
        store.close();
      },
    });
    t.match(children, [{ status: 'cancelled', interruptedBy: 'crash' }]);
    t.match(result, { outcome: 'unknown', text: /^The outcome is unknown: .*SpawnSubagent/ });
    t.equal(effectsIn(path), 'x');
  },
);

t.test(
  'the changes of a killed sub-agent in a worktree come into the workspace once',
  { timeout: 240_000 },
  async (t) => {
    const task = 'run: printf hello >> made.txt; sleep 600';
    const { path, children, result } = await killed(t, {
      prompt: `call SpawnSubagent with ${JSON.stringify({ task, worktree: true })}`,
      settings: { Turns: { KeepCommands: false } },
      isRepository: true,
      isThere: (path) => {
        const worktrees = join(path, '.oratorio', 'worktrees');
        return (
          existsSync(worktrees) && readdirSync(worktrees).some((name) => existsSync(join(worktrees, name, 'made.txt')))
        );
      },
    });
    t.match(children, [{ status: 'completed', resumes: 1 }]);
    t.match(result, { outcome: 'completed', text: /its changes are in the workspace now: made\.txt/ });
    t.equal(readFileSync(join(path, 'made.txt'), 'utf8'), 'hello');
    t.same(readdirSync(join(path, '.oratorio', 'worktrees')), []);
  },
);
