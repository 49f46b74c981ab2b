/** kill -9 at 300 random moments of turns: each ends like a turn without a kill. */
import { randomInt } from 'node:crypto';
import t from 'tap';
import { killAtRandom, randomOf } from './random-kills.ts';

/** A sandbox changes the processes of a command, and no step of a turn. */
const parts = [
  { hasSandbox: true, moments: 100, kills: 20 },
  { hasSandbox: false, moments: 200, kills: 40 },
] as const;

t.test('turns that are killed at 300 random moments end as they would have', async (t) => {
  for (const part of parts) {
    const seed = randomInt(2 ** 31);
    const { moments, kills, turns, faults } = await killAtRandom(t, { ...part, random: randomOf(seed) });
    t.comment(`seed ${seed}: ${moments} moments by ${kills} kills in ${turns} turns, sandbox: ${part.hasSandbox}`);
    t.same(faults, []);
    t.ok(moments >= part.moments && kills >= part.kills);
  }
});
