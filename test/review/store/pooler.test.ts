/** A store behind a pooler like pgbouncer, in session and in transaction mode. */
import pg from 'pg';
import t, { type Test } from 'tap';
import { openReviewStore } from '../../../src/review/store/index.ts';
import { type PoolingMode, PoolingProxy } from '../pooling-proxy.ts';
import { facts, many, postgres, postgresSubject, quiet, stopPostgres, wanted, wishFor } from './databases.ts';

t.teardown(stopPostgres);

const outage = { message: /^PostgreSQL: /, isOutage: true, isRetryable: true };

/** An empty database behind a pooler. `clients`: connections to the server in session mode, where each client needs one. */
async function behindPooler(t: Test, mode: PoolingMode, clients = 24) {
  const subject = await postgresSubject(t, { isNew: true });
  if (!('connectionString' in subject.where)) throw new Error('PostgreSQL has a connection string');
  const { connectionString } = subject.where;
  const database = connectionString.replace(/^.*\//, '');
  const { socket } = await postgres();
  const size = mode === 'session' ? clients : 3;
  const pooler = await PoolingProxy.start(t, { mode, target: socket, database, size });
  const open = async (owner: string, query = '', listenUrl = '') => {
    const store = await openReviewStore({ connectionString: pooler.url(query), listenUrl, owner, logger: quiet });
    t.teardown(() => store.close());
    return store;
  };
  const client = async (url: string) => {
    const client = new pg.Client(url);
    client.on('error', () => {});
    await client.connect();
    t.teardown(() => client.end().catch(() => {}));
    return client;
  };
  return { subject, connectionString, socket, pooler, open, client };
}

t.test(
  'control: the pooler loses the state of a session between two transactions, and refuses parameters',
  async (t) => {
    const { pooler, client } = await behindPooler(t, 'transaction');
    const plain = await client(pooler.url());
    const pidOf = async () => (await plain.query('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;
    const pids = new Set<unknown>();
    while (pids.size < 3) pids.add(await pidOf());
    await plain.query('BEGIN');
    t.equal(await pidOf(), await pidOf(), 'one connection within a transaction');
    await plain.query('ROLLBACK');
    await plain.query(`SET application_name = 'kept'`);
    t.not((await plain.query('SHOW application_name')).rows[0]?.application_name, 'kept', 'on the next connection');
    await t.rejects(client(pooler.url('&statement_timeout=700')), /unsupported startup parameter: statement_timeout/);
  },
);

for (const mode of ['session', 'transaction'] as const) {
  t.test(`replicas migrate an empty database and share its work behind a pooler in ${mode} mode`, async (t) => {
    const { open, pooler } = await behindPooler(t, mode);
    const [one, two] = await Promise.all([open('one'), open('two')]);
    await one.syncRepositories([wanted()]);
    const count = 24;
    const items = await Promise.all(
      Array.from({ length: count }, async (_, n) => (n % 2 ? one : two).upsertItem(facts(n + 1, { title: `🎻 ${n}` }))),
    );
    await Promise.all(items.map(({ item }, n) => (n % 2 ? two : one).enqueueRun(wishFor(item))));
    const claims = await Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const owner = n % 2 ? 'one' : 'two';
        return (n % 2 ? one : two).claimRun(owner, 60_000, many);
      }),
    );
    t.equal(new Set(claims.map((claim) => claim?.run.runId)).size, count, 'each run once');
    for (let n = 0; n < count; n += 1)
      await (n % 2 ? one : two).enqueueJob({ kind: 'delivery', key: 'k', payload: { n }, dedupe: `${n}` });
    const order: unknown[] = [];
    while (order.length < count) {
      const jobs = (
        await Promise.all([
          one.claimJobs('one', ['delivery'], 5, 60_000),
          two.claimJobs('two', ['delivery'], 5, 60_000),
        ])
      ).flat();
      t.ok(jobs.length <= 1, 'one job of a key at a time');
      for (const job of jobs) {
        order.push(job.payload);
        t.ok(await one.completeJob(job));
      }
    }
    t.same(
      order,
      Array.from({ length: count }, (_, n) => ({ n })),
    );
    t.ok(pooler.clients > 2);
  });

  t.test(`a statement that waits for a lock ends behind a pooler in ${mode} mode`, async (t) => {
    const { open, client, connectionString } = await behindPooler(t, mode);
    const store = await open('one', '&statement_timeout=300');
    await store.setFact('a', '1');
    const holder = await client(connectionString);
    await holder.query('BEGIN; LOCK TABLE "facts", "repositories"');
    await t.rejects(
      store.syncRepositories([wanted()]),
      { ...outage, code: 'databaseBusy' },
      'by the server, in a transaction',
    );
    await t.rejects(store.setFact('a', '2'), outage);
    await holder.query('ROLLBACK');
    // Without a transaction only our side gives up: the server may still write 2 to `a`, even after this.
    await store.setFact('b', '3');
    t.equal(await store.fact('b'), '3');
  });

  t.test(`work continues after a pooler in ${mode} mode lost its connections to the server`, async (t) => {
    const { open, pooler } = await behindPooler(t, mode);
    const store = await open('one');
    await store.setFact('a', '1');
    pooler.cutServers();
    await store.syncRepositories([wanted()]);
    t.equal((await store.repositories()).length, 1);
  });

  t.test(`a pooler in ${mode} mode that moves to a standby and back is an outage in between`, async (t) => {
    const { open, pooler, socket } = await behindPooler(t, mode);
    const store = await open('one');
    await store.syncRepositories([wanted()]);
    // A standby that is made now has the tables.
    const standby = await (await postgres()).standby();
    t.teardown(() => standby.stop());
    pooler.target = standby.socket;
    pooler.cutServers();
    await t.rejects(store.syncRepositories([wanted('other')]), { ...outage, code: 'databaseReadOnly' });
    await t.rejects(store.setFact('a', '2'), { ...outage, code: 'databaseReadOnly' });
    pooler.target = socket;
    pooler.cutServers();
    await store.syncRepositories([wanted('other')]);
    t.strictSame(
      (await store.repositories()).map(({ name }) => name),
      ['hello', 'other'],
    );
  });
}

t.test(
  'time limits stay on a connection to the server, and leave those of a pooler to its other clients unchanged',
  async (t) => {
    const { open, pooler, client } = await behindPooler(t, 'transaction');
    const store = await open('one', '&lock_timeout=4321');
    await Promise.all(Array.from({ length: 9 }, (_, n) => store.setFact(`fact ${n}`, 'x')));
    const other = await client(pooler.url());
    for (let n = 0; n < 9; n += 1) t.match((await other.query('SHOW lock_timeout')).rows, [{ lock_timeout: '0' }]);
  },
);

t.test('notifications pass a pooler in transaction mode over Database.ListenUrl', async (t) => {
  const { open, connectionString } = await behindPooler(t, 'transaction');
  const one = await open('one', '', connectionString);
  const two = await open('two', '', connectionString);
  const wakes: string[] = [];
  t.teardown(one.onWake((what) => wakes.push(what)));
  const isHinted = () => wakes.some((what, n) => what === 'events' && wakes[n - 1] !== 'jobs');
  await two.publish('run.changed', {});
  while (!isHinted()) await new Promise((resolve) => setTimeout(resolve, 5));
  t.pass('a hint came before the timer, which gives three at once');
});

t.test('replicas behind a pooler in transaction mode poll without Database.ListenUrl', async (t) => {
  const { open } = await behindPooler(t, 'transaction');
  const [one, two] = await Promise.all([open('one'), open('two')]);
  const heard = new Promise<void>((resolve) => {
    t.teardown(one.onWake((what) => what === 'events' && resolve()));
  });
  await two.publish('run.changed', {});
  await heard;
  t.match(await one.events(0, 9), [{ kind: 'run.changed' }]);
});
