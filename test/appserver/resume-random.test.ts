/** kill -9 at 300 random moments of turns: each ends like a turn without a kill. */
import { randomInt } from 'node:crypto';
import t from 'tap';
import { killAtRandom, randomOf } from './random-kills.ts';

t.test('turns that are killed at 300 random moments end as they would have', async (t) => {
  const seed = randomInt(2 ** 31);
  const { moments, kills, turns, faults } = await killAtRandom(t, { moments: 300, kills: 60, random: randomOf(seed) });
  t.comment(`seed ${seed}: ${moments} moments by ${kills} kills in ${turns} turns`);
  t.same(faults, []);
  t.ok(moments >= 300 && kills >= 60);
});
