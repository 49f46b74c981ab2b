/** Outages of PostgreSQL as a replica meets them: silent connections, a standby, refused connections, a pooler. */
import pg from 'pg';
import t, { type Test } from 'tap';
import type { Logger } from '../../../src/log/index.ts';
import type { Database } from '../../../src/review/store/database.ts';
import { ReviewStoreError } from '../../../src/review/store/errors.ts';
import { openReviewStore } from '../../../src/review/store/index.ts';
import { withOutageLog } from '../../../src/review/store/outage.ts';
import { SilentProxy } from '../silent-proxy.ts';
import { postgres, postgresSubject, quiet, stopPostgres } from './databases.ts';

t.teardown(stopPostgres);

/** Longest time until work continues. */
const recoveryMs = 30_000;

/** A store behind a proxy. */
async function behindProxy(t: Test, query = '') {
  const subject = await postgresSubject(t);
  await subject.open('direct');
  if (!('connectionString' in subject.where)) throw new Error('PostgreSQL has a connection string');
  const { connectionString } = subject.where;
  const { socket } = await postgres();
  const proxy = await SilentProxy.start(t, socket);
  const store = await openReviewStore({
    connectionString: proxy.url(connectionString, query),
    owner: 'proxied',
    logger: quiet,
  });
  t.teardown(() => store.close());
  return { subject, connectionString, socket, proxy, store };
}

async function took(work: Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work;
  return performance.now() - from;
}

t.test('work continues after all idle connections fell silent', async (t) => {
  const { proxy, store } = await behindProxy(t);
  await Promise.all(Array.from({ length: 8 }, (_, n) => store.setFact(`fact ${n}`, 'before')));
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  proxy.swallow();
  const all = Promise.all(Array.from({ length: 8 }, (_, n) => store.setFact(`fact ${n}`, 'after')));
  t.ok((await took(all)) < recoveryMs);
  t.equal(await store.fact('fact 7'), 'after');
});

t.test('a statement whose connection fell silent ends, and its connection is never used again', async (t) => {
  const { subject, connectionString, proxy, store } = await behindProxy(t, '&statement_timeout=300');
  const holder = new pg.Client(connectionString);
  await holder.connect();
  t.teardown(() => holder.end());
  await holder.query('BEGIN; LOCK TABLE "facts"');
  const waiting = store.setFact('a', 'b');
  const isWaiting = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'oratorio proxied' AND wait_event_type = 'Lock'`;
  while ((await subject.sql(isWaiting)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  proxy.swallow();
  t.ok(
    (await took(t.rejects(waiting, { code: 'databaseUnavailable', isRetryable: true, isOutage: true }))) < recoveryMs,
  );
  await holder.query('ROLLBACK');
  await Promise.all(Array.from({ length: 12 }, (_, n) => store.setFact(`fact ${n}`, 'after')));
  t.equal(await store.fact('fact 11'), 'after');
});

t.test('a store whose connections fell silent closes within two seconds', async (t) => {
  const { proxy, store } = await behindProxy(t);
  await Promise.all(Array.from({ length: 4 }, (_, n) => store.setFact(`fact ${n}`, 'before')));
  proxy.swallow();
  const pending = store.setFact('late', 'x').catch(() => {});
  t.ok((await took(store.close())) < 5_000);
  await pending;
});

t.test('a standby is refused with each connection, and the primary is used once it is back', async (t) => {
  const { proxy, store, socket } = await behindProxy(t);
  const standby = await (await postgres()).standby();
  t.teardown(() => standby.stop());
  await store.setFact('a', '1');
  proxy.target = standby.socket;
  proxy.cut();
  await t.rejects(store.fact('a'), { code: 'databaseReadOnly' }, 'old values are not read either');
  await t.rejects(store.setFact('a', '2'), { code: 'databaseReadOnly', isRetryable: true, isOutage: true });
  proxy.target = socket;
  await store.setFact('a', '3');
  t.equal(await store.fact('a'), '3');
});

t.test('a server that becomes read-only loses its connections', async (t) => {
  const { subject, store } = await behindProxy(t);
  await store.setFact('a', '1');
  await subject.sql('ALTER SYSTEM SET default_transaction_read_only = on');
  t.teardown(async () => {
    await subject.sql('SET default_transaction_read_only = off');
  });
  await subject.sql('SELECT pg_reload_conf()');
  const isOn = async () =>
    (await subject.sql('SHOW default_transaction_read_only'))[0]?.['default_transaction_read_only'];
  while ((await isOn()) !== 'on') await new Promise((resolve) => setTimeout(resolve, 5));
  await t.rejects(store.setFact('a', '2'), { code: 'databaseReadOnly', isOutage: true });
  await subject.sql('ALTER SYSTEM RESET default_transaction_read_only');
  await subject.sql('SELECT pg_reload_conf()');
  while ((await isOn()) !== 'off') await new Promise((resolve) => setTimeout(resolve, 5));
  await store.setFact('a', '3');
});

t.test('refused connections are an outage while others work', async (t) => {
  const { connectionString, proxy, store } = await behindProxy(t);
  const admin = new pg.Client((await postgres()).adminUrl);
  await admin.connect();
  t.teardown(() => admin.end());
  const database = connectionString.replace(/^.*\//, '');
  await store.setFact('a', '1');
  await admin.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS false`);
  const all = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => store.setFact(`fact ${n}`, 'x')));
  const failed = all.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
  for (const error of failed) t.match(error, { code: 'databaseUnavailable', isRetryable: true, isOutage: true });
  proxy.cut();
  await t.rejects(store.setFact('a', '2'), { code: 'databaseUnavailable', isRetryable: true, isOutage: true });
  await admin.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS true`);
  await Promise.all(Array.from({ length: 20 }, (_, n) => store.setFact(`fact ${n}`, 'y')));
});

t.test('a database with another encoding than UTF8 is refused at the start', async (t) => {
  const { adminUrl } = await postgres();
  const admin = new pg.Client(adminUrl);
  await admin.connect();
  t.teardown(() => admin.end());
  await admin.query(`CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
  const connectionString = adminUrl.replace(/postgres$/, 'latin');
  await t.rejects(openReviewStore({ connectionString, owner: 'one', logger: quiet }), {
    code: 'databaseUnsuited',
    message: /LATIN1, not UTF8/,
    hint: /Storage\.ConnectionString/,
    isRetryable: false,
  });
});

t.test('many failures of one outage are logged in one line, and its end in another', async (t) => {
  const lines: string[] = [];
  const logger = {
    warn: (message: string) => void lines.push(message),
    info: (message: string) => void lines.push(message),
  } as unknown as Logger;
  let fails = true;
  const call = async () => {
    if (fails) throw new ReviewStoreError('databaseFull', 'No space left on device');
    return 1 as never;
  };
  const inner = {
    read: call,
    snapshot: call,
    write: call,
    statement: call,
    close: async () => {},
  } as unknown as Database;
  const database = withOutageLog(inner, logger, { recoveryMs: 20, reminderMs: 60_000 });
  t.teardown(() => database.close());
  for (let n = 0; n < 200; n += 1) await t.rejects(database.write(call), { code: 'databaseFull' });
  t.strictSame(lines, ['the database is unavailable; work waits']);
  fails = false;
  await database.read(call);
  while (lines.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  t.strictSame(lines.slice(1), ['the database is available again']);
});
