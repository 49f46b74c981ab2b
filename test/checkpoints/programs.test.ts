import t from 'tap';
import { bench, checkpointsOf, runProgram, stateOf } from './tree-of-files.ts';

/** 250 programs in the continuous integration; 10,000 in `npm run bench -- checkpoints`. */
const programs = Number(process.env['ORATORIO_TEST_UNDO_RUNS'] ?? 250);
const programsPerTree = 50;
const stepsPerTurn = 8;

let changed = 0;

t.test(`${programs} random programs are taken back whole`, async (t) => {
  for (let first = 0; first < programs; first += programsPerTree) {
    const place = bench(t);
    const { turn, undo } = checkpointsOf(t, place, { fileBytes: 1_000_000 });
    const wrong: number[] = [];
    for (let seed = first; seed < Math.min(programs, first + programsPerTree); seed += 1) {
      const before = stateOf(place.root);
      await turn(`turn_${seed}`, () => runProgram(place.root, seed, stepsPerTurn, seed % 10 === 0));
      if (JSON.stringify(stateOf(place.root)) !== JSON.stringify(before)) changed += 1;
      const result = await undo([`turn_${seed}`]);
      const isSame = JSON.stringify(stateOf(place.root)) === JSON.stringify(before);
      if (result.kind !== 'restored' || !isSame) wrong.push(seed);
      // Changes of the user, which stay: the next program begins with them.
      runProgram(place.root, seed + 1_000_000, stepsPerTurn, false);
    }
    t.same(wrong, [], `seeds ${first} and on`);
  }
  t.ok(changed > programs / 2, `${changed} of the programs changed something`);
});
