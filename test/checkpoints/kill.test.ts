import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { LocalEngines } from '../../src/checkpoints/index.ts';
import { type Bench, bench, limits, stateOf, TreeCheckpoints } from './tree-of-files.ts';

/** 8 rounds in the continuous integration; `ORATORIO_TEST_KILLS=200` for more. */
const rounds = Number(process.env['ORATORIO_TEST_KILLS'] ?? 8);
const program = join(import.meta.dirname, 'victim.ts');
const node = ['--conditions=development', '--disable-warning=ExperimentalWarning', program];

const ofTree = { treeId: 'tree', limits, ownDirectories: [], gitEnvironment: undefined };

function fill(place: Bench): string[] {
  for (let number = 0; number < 10; number += 1) {
    place.write(`deleted/${number}`, `deleted ${number}`);
    place.write(`changed/${number}`, `content ${number}`);
  }
  place.write('mode', 'mode', 0o755);
  symlinkSync('target', place.at('link'));
  return stateOf(place.root);
}

t.test('a restore that is killed at any step is as before or as after once the next start has recovered', async (t) => {
  const first = bench(t);
  fill(first);
  mkdirSync(first.stores, { mode: 0o700 });
  const printed = execFileSync(process.execPath, [...node, first.root, first.stores], { encoding: 'utf8' });
  const steps = Number(printed);
  t.ok(steps > 40, `there are ${steps} steps`);
  const outcomes = { before: 0, after: 0 };
  for (let round = 0; round < rounds; round += 1) {
    const place = bench(t);
    const before = fill(place);
    mkdirSync(place.stores, { mode: 0o700 });
    const killAt = 1 + Math.floor((round * steps) / rounds);
    const end = spawnSync(process.execPath, [...node, place.root, place.stores, String(killAt)]);
    t.equal(end.signal, 'SIGKILL', `killed at step ${killAt}`);
    const takenBack: string[] = [];
    const tree = new TreeCheckpoints({
      place: { ...ofTree, root: place.root, directory: place.stores },
      engines: new LocalEngines(),
      takeBack: (threadId, turnIds) => takenBack.push(threadId, ...turnIds),
    });
    await tree.ready();
    const recovered = stateOf(place.root);
    const turns = await tree.ask('turns', 'thread');
    t.notOk(existsSync(place.at('.oratorio/restore')), 'nothing that was staged is left');
    t.same(
      turns.filter(({ endSeq }) => endSeq === null),
      [],
      'no turn is open',
    );
    if (JSON.stringify(recovered) === JSON.stringify(before)) {
      outcomes.before += 1;
      const isRestored = turns.some(({ turn }) => turn.startsWith('restore_'));
      // The conversation went with the files: by the killed process, or by the recovery.
      if (isRestored && takenBack.length > 0) t.same(takenBack, ['thread', 'turn_001']);
    } else {
      outcomes.after += 1;
      t.same(takenBack, [], 'the conversation stays with the files');
      t.equal(turns.length, 1, 'the turn can be taken back');
      const request = { thread: 'thread', turns: ['turn_001'], paths: undefined, force: false, conversation: [] };
      t.equal((await tree.restore(request)).kind, 'restored');
      t.same(stateOf(place.root), before);
    }
    await tree.close();
  }
  t.ok(outcomes.before > 0 && outcomes.after > 0, JSON.stringify(outcomes));
});
