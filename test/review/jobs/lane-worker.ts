/**
 * Works on jobs until it is killed, and says `begin` and `done` with their key and number in one line each. Arguments: the
 * database's directory, its own name. A job takes a few milliseconds; every fifth one hangs, so that a kill finds it at work.
 */
import { writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { createLogger } from '../../../src/log/index.ts';
import { Lane } from '../../../src/review/jobs/index.ts';
import { openReviewStore } from '../../../src/review/store/index.ts';

const [directory = '', owner = '', hangs = ''] = process.argv.slice(2);
const logger = createLogger({ name: 'worker', level: 'silent' });
const store = await openReviewStore({ directory, owner, logger });
const lane: Lane = new Lane({
  ...{ store, owner, logger, kinds: ['delivery'], concurrency: 8, leaseMs: 1_500, renewMs: 300 },
  giveUp: async () => {},
  async work({ key, payload }, signal) {
    writeSync(1, `begin ${key} ${payload['number']}\n`);
    const mustHang = hangs === 'hangs' && Number(payload['number']) % 5 === 4;
    await pause(mustHang ? 600_000 : 3, undefined, { signal });
    writeSync(1, `done ${key} ${payload['number']}\n`);
  },
});
store.onWake(() => lane.wake());
lane.wake();
setInterval(() => {}, 1_000);
