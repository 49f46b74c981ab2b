/** Contract of ReviewStore, method by method, on both databases. */
import t from 'tap';
import { stopPostgres } from './databases.ts';

t.teardown(stopPostgres);

await import('./contract/items.ts');
await import('./contract/runs.ts');
await import('./contract/drafts.ts');
await import('./contract/jobs.ts');
