import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import pg from 'pg';
import t, { type Test } from 'tap';
import { openReviewStore } from '../../../src/review/store/index.ts';
import { parseConnectionString } from '../../../src/review/store/postgres/connection-string.ts';
import { quiet } from './databases.ts';

const setting = 'Storage.ConnectionString';
const parsed = (text: string) => parseConnectionString(pg, text, setting);

t.test('an invalid connection string is refused by name, without a part of it', (t) => {
  const refused: readonly (readonly [text: string, problem: RegExp])[] = [
    [' postgres://u:hunter2@h/d', /begins or ends with a space/],
    ['host=h password=hunter2', /does not begin with postgres/],
    ['postgres://u:hunter2/x@h/d', /password contains a character/],
    ['postgres://u:hunter2@x@h/d', /password contains a character/],
    ['postgres://u:hunter2?x@h/d', /password contains a character/],
    ['postgres://u:hunter2#x@h/d', /password contains a character/],
    ['postgres://u:hunter2%zz@h/d', /password contains a character/],
    ['postgres://u:hunter2@one,two/d', /several hosts/],
    ['postgres://u:hunter2@/d?host=one,two', /several hosts/],
    ['postgres://u:hunter2@h:x/d', /host or port is invalid/],
    ['postgres://u:hunter2@h/d?sslmode=bogus', /sslmode is unknown/],
    ['postgres://u:hunter2@h/d?sslrootcert=/missing/ca.pem', /sslrootcert names cannot be read \(ENOENT\)/],
    ['postgres://u:hunter2@h/d?statement_timeout=soon', /statement_timeout is invalid/],
  ];
  for (const [text, problem] of refused) {
    let error: unknown;
    try {
      parsed(text);
    } catch (thrown) {
      error = thrown;
    }
    t.match(error, { code: 'invalidConnectionString', message: problem, hint: /Storage\.ConnectionString/ }, text);
    t.notMatch(`${error} ${(error as { hint?: string }).hint}`, /hunter2/, text);
  }
  for (const text of [
    'postgres://h/d',
    'postgresql://u:p%40%2F@h:5432/d?sslmode=verify-full&application_name=a',
    'postgres://u@%2Ftmp%2Fsocket/d',
    'postgres://u:p@[::1]:5432/d',
  ])
    t.doesNotThrow(() => parsed(text), text);
  t.end();
});

t.test('time limits of a connection string become statements', (t) => {
  const { config, session, transaction, deadlineMs } = parsed(
    'postgres://h/d?statement_timeout=700&lock_timeout=300&a=b',
  );
  t.equal(config.connectionString, 'postgres://h/d?a=b');
  const each = (name: string, value: string) => `set_config\\('${name}', '${value}', pg_backend_pid\\(\\) <> 42\\)`;
  t.match(session(42), new RegExp(`^SELECT ${each('statement_timeout', '700')}, ${each('lock_timeout', '300')}`));
  t.match(transaction, /SET LOCAL statement_timeout = 700/);
  t.ok(deadlineMs > 700);
  t.end();
});

/** A server that answers the first message of each connection. @returns its port, and the messages */
async function answering(t: Test, answer: (socket: Socket) => void) {
  const messages: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (bytes) => {
      messages.push(bytes);
      answer(socket);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => server.close());
  return { port: (server.address() as AddressInfo).port, messages };
}

function errorMessage(code: string, text: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${text}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeUInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

t.test('the start sends only parameters that pgbouncer accepts, and a refusal names pgbouncer', async (t) => {
  const refusal = errorMessage('08P01', 'unsupported startup parameter: options');
  const { port, messages } = await answering(t, (socket) => socket.end(refusal));
  const connectionString = `postgres://u:p@127.0.0.1:${port}/d?statement_timeout=700&sslmode=disable`;
  await t.rejects(openReviewStore({ connectionString, owner: 'one', logger: quiet }), {
    code: 'databaseUnavailable',
    message: /unsupported startup parameter/,
    hint: /pgbouncer refuses a parameter of Storage\.ConnectionString/,
  });
  const words = (messages[0] ?? Buffer.alloc(8)).subarray(8).toString().split('\0');
  const names = words.filter((word, n) => n % 2 === 0 && word !== '');
  const accepted = ['user', 'database', 'client_encoding', 'application_name', 'datestyle', 'timezone'];
  t.strictSame(
    names.filter((name) => !accepted.includes(name.toLowerCase())),
    [],
  );
});

t.test('a start that fails without a SQLSTATE is an outage with its cause and the setting', async (t) => {
  const servers = [
    { answer: Buffer.from('N'), query: 'sslmode=verify-full', hint: /Enable TLS on the database server/ },
  ];
  for (const { answer, query, hint } of servers) {
    const { port } = await answering(t, (socket) => socket.end(answer));
    const connectionString = `postgres://u@127.0.0.1:${port}/d?${query}`;
    await t.rejects(
      openReviewStore({ connectionString, owner: 'one', logger: quiet }),
      { code: 'databaseUnavailable', isRetryable: true, hint },
      query,
    );
  }
});
