/** Outages of PostgreSQL as a replica meets them: silent connections, a standby, refused connections, log-ins and certificates. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { TLSSocket } from 'node:tls';
import pg from 'pg';
import t, { type Test } from 'tap';
import type { Logger } from '../../../src/log/index.ts';
import type { Database } from '../../../src/review/store/database.ts';
import { ReviewStoreError } from '../../../src/review/store/errors.ts';
import { openReviewStore } from '../../../src/review/store/index.ts';
import { withOutageLog } from '../../../src/review/store/outage.ts';
import { type Certificate, certificateFor, expired } from '../../deploy/doctor/tls.ts';
import { SilentProxy } from '../silent-proxy.ts';
import { postgres, postgresSubject, quiet, stopPostgres, temporaryDirectory } from './databases.ts';

t.teardown(stopPostgres);

/** Longest time until work continues. */
const recoveryMs = 120_000;

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

t.test('a store whose connections fell silent closes without them', async (t) => {
  const { proxy, store } = await behindProxy(t);
  await Promise.all(Array.from({ length: 4 }, (_, n) => store.setFact(`fact ${n}`, 'before')));
  proxy.swallow();
  const pending = store.setFact('late', 'x').catch(() => {});
  t.ok((await took(store.close())) < 60_000);
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

const outage = { code: 'databaseUnavailable', isRetryable: true, isOutage: true };

/** Role with the password `right`. @returns SQL as the administrator, and the change of its line in `pg_hba.conf` */
async function role(t: Test, name: string) {
  const { adminUrl, socket } = await postgres();
  const admin = new pg.Client(adminUrl);
  await admin.connect();
  const file = join(dirname(socket), 'data', 'pg_hba.conf');
  const before = readFileSync(file, 'utf8');
  const write = async (text: string) => {
    writeFileSync(file, text);
    await admin.query('SELECT pg_reload_conf()');
  };
  t.teardown(async () => {
    await write(before);
    await admin.end();
  });
  await admin.query(`CREATE ROLE ${name} LOGIN SUPERUSER PASSWORD 'right'`);
  return {
    sql: (text: string) => admin.query(text),
    admitBy: (method: string) => write(`local all ${name} ${method}\n${before}`),
  };
}

/** Repeats `work` on new connections until it fails with this hint: the server reads its files a moment after the request. */
async function failsWith(t: Test, cut: () => void, work: () => Promise<unknown>, hint: RegExp): Promise<void> {
  for (;;) {
    cut();
    const error = await work().catch((reason: unknown) => reason);
    // A statement on a connection that was cut fails with another hint.
    if (error !== undefined) t.match(error, outage);
    if (error instanceof ReviewStoreError && hint.test(error.hint ?? '')) return;
  }
}

/** Repeats `work` until it succeeds; until then each failure is an outage. */
async function succeeds(t: Test, work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      t.match(error, outage);
    }
  }
}

/** Address of an empty database. */
async function emptyDatabase(t: Test): Promise<string> {
  const subject = await postgresSubject(t);
  await subject.open('direct');
  if (!('connectionString' in subject.where)) throw new Error('PostgreSQL has a connection string');
  return subject.where.connectionString;
}

t.test('a wrong password and a refusal of pg_hba.conf are outages until the log-in works again', async (t) => {
  const { sql, admitBy } = await role(t, 'guarded');
  await admitBy('scram-sha-256');
  const proxy = await SilentProxy.start(t, (await postgres()).socket);
  const cut = () => proxy.cut();
  const url = proxy.url(await emptyDatabase(t));
  const open = (user: string) =>
    openReviewStore({ connectionString: url.replace('//oratorio@', `//${user}@`), owner: 'guarded', logger: quiet });
  const store = await open('guarded:right');
  t.teardown(() => store.close());
  await store.setFact('a', '1');
  const hint = /^Check user and password in Storage\.ConnectionString\.$/;
  for (const user of ['guarded', 'guarded:wrong'])
    await t.rejects(open(user), { code: 'databaseUnavailable', hint }, user);

  await sql(`ALTER ROLE guarded PASSWORD 'other'`);
  await failsWith(t, cut, () => store.setFact('a', '2'), hint);
  await sql(`ALTER ROLE guarded PASSWORD 'right'`);
  await succeeds(t, () => store.setFact('a', '3'));

  await admitBy('reject');
  await failsWith(t, cut, () => store.setFact('a', '4'), /pg_hba\.conf of the server/);
  await admitBy('scram-sha-256');
  await succeeds(t, () => store.setFact('a', '5'));
  t.equal(await store.fact('a'), '5');
});

/** TLS in front of the server, which accepts no TLS on a Unix socket. Its certificate can be exchanged. */
async function withTls(t: Test, target: string, certificate: Certificate) {
  let current = certificate;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    client.on('error', () => {});
    open.add(client.on('close', () => open.delete(client)));
    // The first message requests TLS.
    client.once('data', () => {
      client.write('S');
      const secure = new TLSSocket(client, { isServer: true, ...current });
      const behind = connect(target);
      for (const socket of [secure, behind]) socket.on('error', () => client.destroy());
      client.on('close', () => behind.destroy());
      secure.pipe(behind).pipe(secure);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  t.teardown(() => {
    cut();
    server.close();
  });
  return {
    ...{ cut, port: (server.address() as AddressInfo).port },
    use: (next: Certificate) => {
      current = next;
    },
  };
}

t.test('a certificate that changes or has expired is an outage until one is accepted again', async (t) => {
  const first = certificateFor(t, 'IP:127.0.0.1');
  const other = certificateFor(t, 'IP:127.0.0.1');
  const old = expired(t, certificateFor(t, 'IP:127.0.0.1'));
  const authorities = join(temporaryDirectory(t), 'authorities.pem');
  writeFileSync(authorities, first.cert + old.cert);
  const tls = await withTls(t, (await postgres()).socket, first);
  const database = (await emptyDatabase(t)).replace(/^.*\//, '');
  const connectionString = `postgres://oratorio@127.0.0.1:${tls.port}/${database}?sslmode=verify-full&sslrootcert=${authorities}`;
  const open = () => openReviewStore({ connectionString, owner: 'secure', logger: quiet });
  const store = await open();
  t.teardown(() => store.close());
  await store.setFact('a', '1');
  for (const [certificate, hint] of [
    [other, /^Name the authority of the certificate with sslrootcert=FILE in Storage\.ConnectionString\.$/],
    [old, /^Renew the certificate of the database server\.$/],
  ] as const) {
    tls.use(certificate);
    await failsWith(t, tls.cut, () => store.setFact('a', '2'), hint);
    await t.rejects(open(), { code: 'databaseUnavailable', hint });
    tls.use(first);
    await succeeds(t, () => store.setFact('a', '3'));
  }
});

t.test('notifications come over Database.ListenUrl, again after its connection fell silent', async (t) => {
  const { sql } = await role(t, 'listening');
  const connectionString = await emptyDatabase(t);
  const proxy = await SilentProxy.start(t, (await postgres()).socket);
  const listenUrl = proxy.url(connectionString).replace('//oratorio@', '//listening@');
  const options = { connectionString, logger: quiet };
  const one = await openReviewStore({ ...options, listenUrl, owner: 'one' });
  const two = await openReviewStore({ ...options, owner: 'two' });
  t.teardown(() => Promise.all([one.close(), two.close()]));
  const wakes: string[] = [];
  t.teardown(one.onWake((what) => wakes.push(what)));
  const listener = `SELECT pid FROM pg_stat_activity WHERE usename = 'listening' AND query LIKE 'LISTEN%' AND state = 'idle'`;
  const pidOf = async () => Number((await sql(listener)).rows[0]?.pid ?? 0);
  while ((await pidOf()) === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const first = await pidOf();
  proxy.swallow();
  // The server ends a session whose client has gone only when it writes to it: the newest session counts.
  const newest = `SELECT max(pid) AS pid FROM pg_stat_activity WHERE usename = 'listening' AND pid <> ${first} AND query LIKE 'LISTEN%'`;
  while (((await sql(newest)).rows[0]?.pid ?? null) === null) await new Promise((resolve) => setTimeout(resolve, 50));
  wakes.length = 0;
  await two.publish('run.changed', {});
  // A hint of the clock comes as three: runs, jobs, events.
  while (!wakes.some((what, n) => what === 'events' && wakes[n - 1] !== 'jobs')) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
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
