/**
 * One replica that takes jobs out of a queue in PostgreSQL until it is empty. Says `ready`, begins at the first line of its
 * input, then prints the numbers of the jobs that it has completed, as JSON. Argument: the connection string.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { createLogger } from '../src/log/index.ts';
import { openReviewStore } from '../src/review/store/index.ts';
import { drain } from './review-queue.ts';

const owner = `replica ${process.pid}`;
const logger = createLogger({ name: 'bench', level: 'warn' });
const store = await openReviewStore({ connectionString: process.argv[2] ?? '', owner, logger });
const input = createInterface({ input: process.stdin });
const go = once(input, 'line');
console.log('ready');
await go;
const done = await drain(store, owner, 2);
await store.close();
// The process ends on its own when all of this has been read: a pipe takes only so much at once.
input.close();
process.stdin.destroy();
console.log(JSON.stringify(done));
