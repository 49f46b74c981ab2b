/** Conversations that move between two machines with their own Hubs, joined by a real `ssh`, and back. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { stateOf as filesOf } from '../checkpoints/tree-of-files.ts';
import { oratorio, oratorioJson, runningHub } from './harness.ts';
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
