/** Turns that are resumed after the death of their server: their spans are one turn, and the time between belongs to the user. */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { KnownWork, WorkspaceCheckpoints } from '../../src/checkpoints/index.ts';
import { racyMs } from '../../src/checkpoints/limits.ts';
import { gitIn } from './repositories.ts';
import { clockAfter, openCheckpoints } from './resumed-turns.ts';
import { bench } from './tree-of-files.ts';

/** A workspace whose servers die. */
function servers(t: Test) {
  const place = bench(t);
  let checkpoints: WorkspaceCheckpoints = openCheckpoints(place.stores);
  t.teardown(() => checkpoints.close());
  const turnOf = (threadId = 'thread') => ({ threadId, turnId: 'turn_001', workspacePath: place.root });
  return {
    ...place,
    turnOf,
    get checkpoints() {
      return checkpoints;
    },
    async begin(threadId?: string): Promise<void> {
      checkpoints.begin(turnOf(threadId));
      await checkpoints.secure(turnOf(threadId));
    },
    /** A call of a turn. @returns its end */
    call(work: () => void, threadId?: string): number {
      const end = checkpoints.working(turnOf(threadId));
      work();
      end();
      return Date.now();
    },
    /** The server dies; the user works; another server starts. */
    async die(ofUser: () => void, workOf?: (threadId: string) => KnownWork | undefined): Promise<void> {
      const at = Date.now();
      await checkpoints.close();
      await clockAfter(place.stores, at);
      ofUser();
      await clockAfter(place.stores, at + racyMs);
      checkpoints = openCheckpoints(place.stores, workOf);
    },
    async resume(threadId?: string): Promise<void> {
      checkpoints.resume(turnOf(threadId), 'possible');
      await checkpoints.recovered();
    },
    undo: (force = false, threadId = 'thread', turnId = 'turn_001') =>
      checkpoints.restore({ ...turnOf(threadId), turnIds: [turnId], force, conversation: [] }),
    isThere: (...names: string[]) => names.map((name) => existsSync(place.at(name))),
  };
}

t.test('undo, diff and redo take all spans of a turn, and leave the changes of the user between them', async (t) => {
  const at = servers(t);
  await at.begin();
  at.call(() => at.write('one.txt', '1'));
  await at.die(() => at.write('while-dead.txt', 'mine'));
  await at.resume();
  at.write('before-the-first-tool.txt', 'mine');
  await at.checkpoints.secure(at.turnOf());
  at.call(() => at.write('two.txt', '2'));
  await at.checkpoints.settle(at.turnOf());
  at.write('after.txt', 'mine');
  const names = ['one.txt', 'two.txt', 'while-dead.txt', 'before-the-first-tool.txt', 'after.txt'];
  const { files } = await at.checkpoints.diff('thread', at.root, 'turn_001', false);
  t.same(files.map(({ path }) => path).sort(), ['one.txt', 'two.txt']);
  const list = await at.checkpoints.list('thread', at.root);
  t.same(
    list.map(({ turnId, isUndone }) => [turnId, isUndone]),
    [['turn_001', false]],
    'the list has one turn',
  );
  const undone = await at.undo();
  t.match(undone, { kind: 'restored', restoredTotal: 2, keptTotal: 3, conflicts: [] });
  t.same(at.isThere(...names), [false, false, true, true, true]);
  if (undone.kind === 'restored') await at.undo(false, 'thread', undone.restoreId);
  t.same(at.isThere(...names), [true, true, true, true, true], 'the undo is taken back');
  await at.undo();
  t.same(at.isThere(...names), [false, false, true, true, true], 'and made again');
});

t.test('a file that the user changed between two spans is a conflict when the turn had changed it', async (t) => {
  const at = servers(t);
  at.write('shared.txt', 'base\n');
  await at.begin();
  at.call(() => at.write('shared.txt', 'turn\n'));
  await at.die(() => {});
  await at.resume();
  appendFileSync(at.at('shared.txt'), 'mine\n');
  await at.checkpoints.secure(at.turnOf());
  at.call(() => at.write('two.txt', '2'));
  await at.checkpoints.settle(at.turnOf());
  t.match(await at.undo(), { kind: 'refused', conflicts: [{ path: 'shared.txt', by: 'user' }] });
  t.same([at.read('shared.txt'), at.isThere('two.txt')], ['turn\nmine\n', [true]], 'nothing was restored');
  await at.undo(true);
  t.same([at.read('shared.txt'), at.isThere('two.txt')], ['base\n', [false]], 'with consent all of it is');
});

t.test(
  'a file with the content that a file tool wrote in its last call is the turn’s, any other content asks',
  async (t) => {
    const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
    for (const isChanged of [false, true]) {
      const at = servers(t);
      await at.begin();
      at.checkpoints.working(at.turnOf());
      const beat = Date.now();
      await clockAfter(at.stores, beat);
      at.write('dir/made.txt', 'tool');
      const written = { [at.at('dir/made.txt')]: sha256('tool') };
      const known = { lastWorkedAt: 0, isWorking: true, written };
      await at.die(
        () => isChanged && appendFileSync(at.at('dir/made.txt'), ' mine'),
        () => known,
      );
      await at.resume();
      const undone = await at.undo();
      if (isChanged) t.match(undone, { kind: 'refused' });
      else t.match(undone, { kind: 'restored', restored: ['dir', 'dir/made.txt'] });
      t.same(at.isThere('dir/made.txt'), [isChanged]);
    }
  },
);

t.test('a written file that the user changed after the death asks, also when no call ran', async (t) => {
  const at = servers(t);
  await at.begin();
  const lastWorkedAt = at.call(() => at.write('made.txt', 'tool'));
  const written = { [at.at('made.txt')]: createHash('sha256').update('tool').digest('hex') };
  await at.die(
    () => appendFileSync(at.at('made.txt'), ' mine'),
    () => ({ lastWorkedAt, isWorking: false, written }),
  );
  await at.resume();
  t.match(await at.undo(), { kind: 'refused', conflicts: [{ path: 'made.txt', by: 'user' }] });
});

t.test('the stored end of a turn’s last call limits its changes, not the work of another turn', async (t) => {
  const at = servers(t);
  await at.begin('first');
  await at.begin('second');
  const first = at.call(() => at.write('both.txt', '1'), 'first');
  await clockAfter(at.stores, first);
  const second = at.call(() => at.write('second.txt', '2'), 'second');
  await at.die(
    () => at.write('mine.txt', 'mine'),
    (threadId) => ({ lastWorkedAt: threadId === 'first' ? first : second, isWorking: false }),
  );
  await at.resume('first');
  t.match(await at.undo(false, 'first'), { kind: 'refused', conflicts: [{ path: 'both.txt', by: 'second' }] });
  t.match(await at.undo(true, 'first'), { restored: ['both.txt'], kept: ['mine.txt', 'second.txt'] });
});

t.test('a resumed turn that changes nothing more keeps its checkpoint', async (t) => {
  const at = servers(t);
  await at.begin();
  at.call(() => at.write('one.txt', '1'));
  await at.die(() => {});
  at.checkpoints.resume(at.turnOf(), 'certain');
  await at.checkpoints.settle(at.turnOf());
  await at.checkpoints.recovered();
  at.write('mine.txt', 'mine');
  t.match(await at.undo(), { kind: 'restored', restored: ['one.txt'], kept: ['mine.txt'] });
});

t.test('a note of the work before an earlier death makes no later change uncertain', async (t) => {
  const at = servers(t);
  await at.begin();
  at.checkpoints.working(at.turnOf());
  await at.die(() => {});
  await at.resume();
  await at.checkpoints.secure(at.turnOf());
  await at.die(() => at.write('mine.txt', 'mine'));
  await at.resume();
  await at.checkpoints.settle(at.turnOf());
  t.match(await at.undo(), { kind: 'restored', kept: ['mine.txt'], conflicts: [] });
});

t.test('a commit of the user between two spans stays, in the workspace and in a nested repository', async (t) => {
  for (const below of ['', 'lib']) {
    for (const isDead of [true, false]) {
      const at = servers(t);
      const top = join(at.root, below);
      mkdirSync(top, { recursive: true });
      const git = gitIn(top);
      git('init', '--quiet', '--initial-branch=main');
      writeFileSync(join(top, 'a.txt'), 'a');
      git('add', '.');
      git('commit', '--quiet', '--message=first');
      await at.begin();
      at.call(() => git('branch', 'of-the-turn'));
      const ofUser = () => {
        git('commit', '--quiet', '--allow-empty', '--message=mine');
      };
      await at.die(isDead ? ofUser : () => {});
      await at.resume();
      if (!isDead) ofUser();
      await at.checkpoints.secure(at.turnOf());
      at.call(() => at.write('two.txt', '2'));
      await at.checkpoints.settle(at.turnOf());
      const undone = await at.undo();
      const title = `${below || 'workspace'}, ${isDead ? 'before' : 'after'} the start`;
      t.equal(git('log', '-1', '--format=%s'), 'mine', title);
      t.same(at.isThere('two.txt'), [false], 'control: the files of the turn are taken back');
      const result = undone.kind === 'restored' ? (below ? undone.repositories?.[0] : undone.git) : undefined;
      t.equal(
        git('branch', '--list', 'of-the-turn') !== '',
        isDead,
        `${title}: the branch of the turn goes, or is named`,
      );
      t.ok(
        result?.left?.some(({ name }) => name === 'refs/heads/main'),
        `${title}: the branch of the user is named`,
      );
      rmSync(join(top, '.git'), { recursive: true });
    }
  }
});

t.test('a forced undo brings a whole nested repository back that the turn changed and the user removed', async (t) => {
  const at = servers(t);
  const top = at.at('lib');
  mkdirSync(top);
  const git = gitIn(top);
  git('init', '--quiet', '--initial-branch=main');
  git('commit', '--quiet', '--allow-empty', '--message=first');
  await at.begin();
  at.call(() => git('branch', 'of-the-turn'));
  await at.die(() => {});
  await at.resume();
  rmSync(top, { recursive: true });
  await at.checkpoints.secure(at.turnOf());
  at.call(() => at.write('two.txt', '2'));
  await at.checkpoints.settle(at.turnOf());
  t.match(await at.undo(true), { kind: 'restored' });
  t.same([git('log', '-1', '--format=%s'), git('branch', '--list', 'of-the-turn')], ['first', '']);
});
