/** Random histories of the two queues, on both databases, against models of them. */
import t from 'tap';
import { stopPostgres } from './databases.ts';

t.teardown(stopPostgres);

await import('./model/jobs.ts');
await import('./model/runs.ts');
