/** Conversations that move between two machines with their own Hubs, joined by a real `ssh`, and back. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { moveMachine } from '../../machines/index.ts';
import type { MoveRecord } from '../../src/protocol/index.ts';
import { stateOf as filesOf } from '../checkpoints/tree-of-files.ts';
import { eventually, killIfThere } from '../hub/harness.ts';
import { agentServersUnder, oratorio, oratorioJson, runningHub } from './harness.ts';
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

/** State of a move in the record of the Hub, which is on disk before the work of the state begins. */
function savedState(moveId: string): string | undefined {
  const { moves } = JSON.parse(readFileSync(join(here.home, 'hub', 'moves.json'), 'utf8'));
  return moves.find((each: MoveRecord) => each.moveId === moveId)?.state;
}

const pathOf = (workspace: string) => agentServersUnder(workspace === mine ? here.root : there.root);
/** Processes that a test kills in the middle of a move. */
const victims = {
  'the Hub that leads': () => [runningHub(here).pid],
  'the other Hub': () => [runningHub(there).pid],
  'both agent servers': () => [...pathOf(mine), ...pathOf(theirs)].map(({ pid }) => pid),
};

/** States of a move, from its machine: all that work. */
const states = Object.keys(moveMachine.config.states ?? {}).filter(
  (state) => !['waiting', 'cancelling', 'moved', 'cancelled'].includes(state),
);

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

t.test('a kill of either side at every step leaves the conversation at one place, byte for byte', async (t) => {
  let from = mine;
  const files = filesOf(mine);
  let round = 0;
  // Two of three victims in each state, in turn on the way there and back.
  for (const state of [...states, ...states]) {
    const [name, pids] = Object.entries(victims)[(round + Math.floor(round / states.length)) % 3] ?? [];
    round += 1;
    const to = from === mine ? theirs : mine;
    const place = (path: string) => ({ host: path === mine ? null : 'build', workspacePath: path });
    await oratorioJson(here, 'hosts', 'enable', 'build');
    const { moveId } = await runningHub(here).client.move({ threadId, from: place(from), to: place(to) });
    await eventually(() => [state, 'moved', 'cancelled'].includes(savedState(moveId) ?? '') || undefined, state);
    for (const pid of pids?.() ?? []) killIfThere(pid);
    const ended = await eventually(async () => {
      const moves = (await oratorioJson(here, 'move', '--list')) as MoveRecord[];
      const found = moves.find((each) => each.moveId === moveId);
      return found?.state === 'moved' || found?.state === 'cancelled' ? found : undefined;
    }, `the move ends after ${name} was killed while ${state}`);
    const at = ended.state === 'moved' ? to : from;
    await oratorioJson(here, 'up', mine);
    t.same(await placesOf(), [at], `${ended.state} after ${name} was killed while ${state}: it is at one place`);
    t.same(filesOf(at), files, 'byte for byte');
    from = at;
  }
});
