/** Conversations that move between two machines with their own Hubs, joined by a real `ssh`, and back. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { AnyStateNode } from 'xstate';
import { moveMachine } from '../../machines/index.ts';
import { hasMoveEnded, type MoveRecord } from '../../src/protocol/index.ts';
import { stateOf as filesOf } from '../checkpoints/tree-of-files.ts';
import { eventually, killIfThere } from '../hub/harness.ts';
import { agentServersUnder, command, oratorio, oratorioJson, runningHub } from './harness.ts';
import { makeMachines } from './ssh-machine.ts';

t.setTimeout(600_000);

const machines = await makeMachines(t);
const { here, there, program } = machines;
const [mine, theirs] = [here.workspace('site'), there.workspace('site')];
const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=me', '-c', 'user.email=me@example.org', ...args], {
    ...{ cwd, env: { ...here.env, PATH: process.env['PATH'] }, encoding: 'utf8' },
  });

/** Commits the same files in both workspaces. */
function commitBoth(): void {
  writeFileSync(join(mine, '.gitignore'), 'build/\n*.log\n.oratorio/\n');
  for (const name of ['tracked.txt', 'removed.txt', 'program.sh']) writeFileSync(join(mine, name), `${name}\n`);
  git(mine, 'init', '-q', '-b', 'main');
  git(mine, 'add', '.');
  git(mine, 'commit', '-q', '-m', 'first');
  git(theirs, 'init', '-q', '-b', 'main');
  git(theirs, 'fetch', '-q', mine, 'main');
  git(theirs, 'reset', '-q', '--hard', 'FETCH_HEAD');
}

/** Commands of a turn that changes 200 files: new, changed, removed, ignored, empty, linked, and with odd names. */
const changes = [
  'for i in $(seq 1 140); do echo "new $i" > "new-$i.txt"; done',
  'mkdir -p build/deep "a b/ü" empty && for i in $(seq 1 50); do echo "built $i" > build/deep/$i.o; done',
  'echo changed > tracked.txt; rm removed.txt; chmod 755 program.sh; : > nothing; echo x > "a b/ü/-q.txt"',
  'head -c 700000 /dev/zero > big.bin; ln -s ../tracked.txt build/link; chmod 600 new-1.txt; echo l > run.log',
].join('; ');

async function chat(place: typeof here, workspace: string, words: string, ...more: string[]): Promise<string> {
  const { code, stdout, stderr } = await oratorio(place, ['chat', '--yes', '--workspace', workspace, ...more, words]);
  t.equal(code, 0, stdout + stderr);
  return stdout;
}

const threadOf = async (place: typeof here, threadId: string) =>
  (await runningHub(place).client.threads({ archived: true })).threads.find((each) => each.threadId === threadId);

let threadId = '';

t.test('a conversation moves with 200 changed files, ignored ones included, and back', async (t) => {
  commitBoth();
  await oratorioJson(here, 'hosts', 'add', 'ssh://box', '--name', 'build', '--program', program);
  await chat(here, mine, `run: ${changes}`);
  const [first] = (await runningHub(here).client.threads()).threads;
  threadId = first?.threadId ?? '';
  const before = filesOf(mine);
  const moved = await oratorio(here, ['move', threadId, `build:${theirs}`]);
  t.equal(moved.code, 0, moved.stdout + moved.stderr);
  t.match(moved.stdout, `${threadId} is at build:${theirs} now`);
  t.same(filesOf(theirs), before, 'every file is there, byte for byte');
  t.match(await threadOf(there, threadId), { status: 'active' });
  t.match(await threadOf(here, threadId), { status: 'archived' });

  const refused = await oratorio(here, ['chat', '--yes', '--workspace', mine, '--thread', threadId, 'hello']);
  t.not(refused.code, 0);
  t.match(refused.stdout + refused.stderr, `moved to build:${theirs}`);

  await chat(
    there,
    theirs,
    'run: echo more >> tracked.txt; rm new-2.txt; echo o > build/deep/51.o',
    '--thread',
    threadId,
  );
  const changed = filesOf(theirs);
  const back = await oratorio(here, ['move', threadId, mine]);
  t.equal(back.code, 0, back.stdout + back.stderr);
  t.same(filesOf(mine), changed, 'every file is back, with the changes made there');
  t.equal(readFileSync(join(mine, 'tracked.txt'), 'utf8'), 'changed\nmore\n');
  const thread = await oratorioJson(here, 'threads', 'export', '--workspace', mine, '--thread', threadId);
  t.equal(thread.turns.length, 2, 'the turn of the other machine is in the conversation');
  t.match(await threadOf(there, threadId), { status: 'archived' });
  await chat(here, mine, 'hello again', '--thread', threadId);
});

/** Resolves with a move once it is saved in one of the states: the record is on disk before the work of a state begins. */
function untilSaved(t: Test, isThis: (move: MoveRecord) => boolean, states: readonly string[]): Promise<MoveRecord> {
  const directory = join(here.home, 'hub');
  const file = join(directory, 'moves.json');
  return new Promise((resolve) => {
    const changes = watch(directory);
    t.teardown(() => changes.close());
    const look = () => {
      const moves: MoveRecord[] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).moves : [];
      const found = moves.find((each) => isThis(each) && states.includes(each.state));
      if (!found) return;
      changes.close();
      resolve(found);
    };
    changes.on('change', look);
    look();
  });
}

const agentServerOf = (workspace: string): number[] =>
  agentServersUnder(workspace === mine ? here.root : there.root).map(({ pid }) => pid);
/** Processes that a test kills in the middle of a move. */
const victims: readonly (readonly [name: string, pids: (from: string, to: string) => readonly number[]])[] = [
  ['the Hub that leads', () => [runningHub(here).pid]],
  ['the other Hub', () => [runningHub(there).pid]],
  ['the agent server of the source', (from) => agentServerOf(from)],
  ['the agent server of the target', (_, to) => agentServerOf(to)],
];

const innermost = (node: AnyStateNode): readonly AnyStateNode[] => {
  const inner = Object.values(node.states);
  return inner.length === 0 ? [node] : inner.flatMap(innermost);
};
/** States in which a move waits for a place, from its machine. */
const states = innermost(moveMachine.root)
  .filter(({ invoke }) => invoke.length > 0)
  .map(({ key }) => key);
const backStates: ReadonlySet<string> = new Set(Object.keys(moveMachine.root.states['cancelling']?.states ?? {}));

/** Resolves when the Hub that leads has reached the other one. */
async function connected(): Promise<void> {
  const { client } = runningHub(here);
  const isConnected = async () => (await client.hosts())[0]?.state === 'connected' || undefined;
  if (!(await isConnected())) await client.changeHost('build', 'enable');
  await eventually(isConnected, 'the host is connected');
}

/** Places at which the conversation accepts a turn. */
async function placesOf(): Promise<string[]> {
  const [at, away] = [await threadOf(here, threadId), await threadOf(there, threadId)];
  return [...(at?.status === 'active' ? [mine] : []), ...(away?.status === 'active' ? [theirs] : [])];
}

t.test('a move that would lose something is refused with the next step, and changes nothing', async (t) => {
  const refusal = async (words: RegExp, place = `build:${theirs}`) => {
    const { code, stdout, stderr } = await oratorio(here, ['move', threadId, place]);
    t.not(code, 0, stdout);
    t.match(stderr, words);
    t.same(await placesOf(), [mine], 'the conversation stays');
  };
  const before = filesOf(mine);
  git(mine, 'add', 'nothing');
  await refusal(/staged changes[\s\S]*nothing[\s\S]*git restore --staged/);
  git(mine, 'restore', '--staged', '.');
  execFileSync('ln', ['-s', '/etc/passwd', join(mine, 'out')]);
  await refusal(/would lose out \(a link that leads out of the workspace\)/);
  execFileSync('rm', [join(mine, 'out')]);
  writeFileSync(join(theirs, 'tracked.txt'), 'changed there');
  await refusal(/changes of its own in tracked\.txt/);
  t.equal(readFileSync(join(theirs, 'tracked.txt'), 'utf8'), 'changed there');
  writeFileSync(join(theirs, 'tracked.txt'), 'changed\nmore\n');
  git(theirs, 'commit', '-q', '--allow-empty', '-m', 'other');
  await refusal(/commits differ[\s\S]*git checkout/);
  git(theirs, 'reset', '-q', '--soft', 'HEAD~');
  await refusal(/no host nowhere/, 'nowhere:/srv/site');
  t.same(filesOf(mine), before);
});

t.test('a kill of any process at every step leaves the conversation at one place, byte for byte', async (t) => {
  let from = mine;
  const files = filesOf(mine);
  let hits = 0;
  const place = (path: string) => ({ host: path === mine ? null : 'build', workspacePath: path });
  const name = (path: string) => (path === mine ? mine : `build:${path}`);
  // Two of the victims in each state, in turn on the way there and back; then the client alone in each state.
  for (const [round, state] of [...states, ...states, ...states].entries()) {
    const isClientOnly = round >= 2 * states.length;
    const next = victims[(round + Math.floor(round / states.length)) % victims.length];
    const [victim, pidsOf] = isClientOnly || !next ? ['the client', () => []] : next;
    const to = from === mine ? theirs : mine;
    await connected();
    await Promise.all([
      runningHub(here).client.ensure({ workspacePath: mine }),
      runningHub(there).client.ensure({ workspacePath: theirs }),
    ]);
    const pids = pidsOf(from, to);
    // A change at the target makes it refuse the commit: the move goes back.
    const changed = join(to, 'tracked.txt');
    const content = readFileSync(changed, 'utf8');
    if (backStates.has(state)) writeFileSync(changed, 'changed there');
    const earlier = new Set((await runningHub(here).client.moves()).map(({ moveId }) => moveId));
    // The first moves are started by a client that dies with the victim.
    const client =
      isClientOnly || round % states.length === 0
        ? spawn(process.execPath, [command, 'move', threadId, name(to)], {
            cwd: here.root,
            env: here.env,
            stdio: 'ignore',
          })
        : undefined;
    if (!client) await runningHub(here).client.move({ threadId, from: place(from), to: place(to) });
    const isThis = ({ moveId }: MoveRecord) => !earlier.has(moveId);
    const { moveId, state: reached } = await untilSaved(t, isThis, [state, 'moved', 'cancelled']);
    for (const pid of pids) killIfThere(pid);
    client?.kill('SIGKILL');
    hits += reached === state ? 1 : 0;
    // Starts a Hub if none is left.
    await oratorioJson(here, 'up', mine);
    const ended = await eventually(async () => {
      const moves = await runningHub(here).client.moves();
      return moves.find((each) => each.moveId === moveId && hasMoveEnded(each));
    }, `the move ends after ${victim} was killed while ${state}`);
    if (backStates.has(state)) writeFileSync(changed, content);
    const at = ended.state === 'moved' ? to : from;
    await connected();
    t.same(await placesOf(), [at], `${ended.state} after ${victim} was killed while ${state}: it is at one place`);
    t.same(filesOf(at), files, 'byte for byte');
    if (backStates.has(state)) t.equal(ended.state, 'cancelled');
    from = at;
  }
  t.ok(hits >= states.length, `${hits} of ${3 * states.length} kills came before the state ended`);
});
