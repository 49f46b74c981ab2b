import { randomInt } from 'node:crypto';

/**
 * Seed of a test that draws few cases in each run, so that many runs cover the rest. `ORATORIO_TEST_SEED=<number>` repeats the cases
 * of a run, whose output has its seed.
 */
export function drawnSeed(): number {
  const given = Number(process.env['ORATORIO_TEST_SEED']);
  return Number.isSafeInteger(given) ? given : randomInt(1_000_000);
}
