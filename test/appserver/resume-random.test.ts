/** kill -9 at random moments of turns: each ends like a turn without a kill. */
import t from 'tap';
import { drawnSeed } from '../drawn-seed.ts';
import { killAtRandom, randomOf } from './random-kills.ts';

/** Killed turns in `npm test`, drawn for each run; `ORATORIO_TEST_KILLED_TURNS=300` for more, 2,400 in `npm run bench -- killed-turns`. */
const killedTurns = Number(process.env['ORATORIO_TEST_KILLED_TURNS'] ?? 100);

/** A sandbox changes the processes of a command, and no step of a turn. */
const parts = [
  { hasSandbox: true, moments: killedTurns / 4, kills: killedTurns / 20 },
  { hasSandbox: false, moments: (killedTurns * 3) / 4, kills: (killedTurns * 3) / 20 },
] as const;

t.test(`turns that are killed at ${killedTurns} random moments end as they would have`, async (t) => {
  for (const part of parts) {
    const seed = drawnSeed();
    const { moments, kills, turns, faults } = await killAtRandom(t, { ...part, random: randomOf(seed) });
    t.comment(`seed ${seed}: ${moments} moments by ${kills} kills in ${turns} turns, sandbox: ${part.hasSandbox}`);
    t.same(faults, []);
    t.ok(moments >= part.moments && kills >= part.kills);
  }
});
