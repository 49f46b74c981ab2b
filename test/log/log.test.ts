import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { createLogger, type LoggerOptions, levelOf, RecentLog } from '../../src/log/index.ts';
import { appendingTo } from '../../src/log/log-file.ts';

/** Logger with its output. */
function logging(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const stream = { write: (text: string) => lines.push(text) };
  const logger = createLogger({ name: 'test', level: 'debug', stream, pretty: false, ...options });
  return { logger, lines, records: () => lines.map((line) => JSON.parse(line)) };
}

t.test('each record is one line of JSON', async (t) => {
  const { logger, lines, records } = logging();
  logger.info('hello\nworld', { port: 80, nested: { list: [1, 'two'] }, at: 'not this' });
  t.equal(lines.length, 1);
  t.match(lines[0], /^\{"at":"\d{4}-\d\d-\d\dT[\d:.]+Z","level":"info","name":"test","msg":"hello\\nworld",.*\}\n$/);
  t.match(records()[0], { port: 80, nested: { list: [1, 'two'] } });
});

t.test('records below the level are dropped', async (t) => {
  const levels = ['silent', 'error', 'warn', 'info', 'debug'] as const;
  for (const [index, level] of levels.entries()) {
    const { logger, records } = logging({ level });
    logger.error('e');
    logger.warn('w');
    logger.info('i');
    logger.debug('d');
    t.same(
      records().map((record) => record.level),
      levels.slice(1, index + 1),
      level,
    );
  }
  t.equal(levelOf({}), 'info');
  t.equal(levelOf({ ORATORIO_LOG: ' DEBUG ' }), 'debug');
  t.equal(levelOf({ ORATORIO_LOG: 'loud' }), 'info');
});

t.test('children add fields and share secrets in both directions', async (t) => {
  const { logger, records } = logging();
  const child = logger.child({ workspace: 'w' }).child({ turn: 1 });
  child.protect('child-secret');
  logger.protect('parent-secret');
  child.info('parent-secret', { turn: 2 });
  logger.info('child-secret');
  t.match(records(), [{ msg: '[redacted]', workspace: 'w', turn: 2 }, { msg: '[redacted]' }]);
});

t.test('errors are logged with causes and codes', async (t) => {
  const { logger, records } = logging();
  logger.error('failed', { error: Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'E1' }) });
  t.match(records()[0].error, {
    name: 'Error',
    message: 'outer',
    code: 'E1',
    stack: /outer\n\s+at /,
    cause: { message: 'inner' },
  });
});

t.test('a bug has an id that is in the log', async (t) => {
  const { logger, records } = logging();
  const id = logger.bug(new TypeError('oops'), { route: '/x' });
  t.match(id, /^[0-9a-f]{12}$/);
  t.match(records()[0], { level: 'error', errorId: id, route: '/x', error: { name: 'TypeError' } });
});

t.test('values of secret keys are redacted at any depth', async (t) => {
  const { logger, lines } = logging();
  const fields = {
    token: 'a1',
    apiKey: 'b2',
    ApiKey: 'c3',
    api_key: 'd4',
    Authorization: 'e5',
    secret: { in: 'f6' },
    password: ['g7'],
  };
  logger.info('x', { ...fields, inside: [{ deep: fields }], tokens: 5 });
  t.notMatch(lines[0], /a1|b2|c3|d4|e5|f6|g7/);
  t.match(lines[0], /"tokens":5/);
});

t.test('registered secrets are redacted everywhere in a record', async (t) => {
  const secrets = fc.string({ minLength: 16, maxLength: 40 }).map((text) => `<${text.replaceAll('<', '.')}`);
  fc.assert(
    fc.property(secrets, fc.string(), fc.string(), (secret, before, after) => {
      const { logger, records } = logging();
      logger.protect(secret);
      const text = before + secret + after;
      logger.info(text, {
        text,
        list: [text],
        [text]: 1,
        error: new Error(text),
        url: `/?t=${encodeURIComponent(secret)}`,
      });
      const found: string[] = [];
      JSON.stringify(records()[0], (key, value) => {
        found.push(key, String(value));
        return value;
      });
      return found.every((one) => !one.includes(secret) && !one.includes(encodeURIComponent(secret)));
    }),
  );
  const { logger, lines } = logging();
  logger.protect('s3cr+t/=');
  logger.info('a s3cr+t/= b', { url: 'ws://h/ws?token=s3cr%2Bt%2F%3D' });
  t.notMatch(lines[0], /s3cr/);
  logger.protect('');
  logger.protect('ab');
  logger.info('cab');
  t.match(lines[1], /"msg":"cab"/, 'nothing short is looked for');
});

t.test('any logged value results in a line without an exception', async (t) => {
  const { logger, records } = logging();
  const circle: Record<string, unknown> = { name: 'circle' };
  circle['self'] = circle;
  let deep: unknown = 'bottom';
  for (let level = 0; level < 50; level += 1) deep = { deep };
  logger.info('x', {
    circle,
    deep,
    big: 10n,
    when: new Date(0),
    never: new Date(Number.NaN),
    bytes: Buffer.from('abc'),
    fn() {},
    nothing: undefined,
    symbol: Symbol('s'),
  });
  t.match(records()[0], {
    circle: { self: '[circular]' },
    big: '10',
    when: '1970-01-01T00:00:00.000Z',
    never: null,
    bytes: '[3 bytes]',
  });
  const throwing = {
    get value(): never {
      throw new Error('getter');
    },
  };
  logger.info('lost', throwing);
  const broken = createLogger({
    name: 'x',
    level: 'info',
    stream: {
      write() {
        throw new Error('disk full');
      },
    },
  });
  t.doesNotThrow(() => broken.info('lost'));
});

t.test('a terminal gets readable lines', async (t) => {
  const chunks: string[] = [];
  const stream = { write: (text: string) => chunks.push(text), isTTY: true };
  const logger = createLogger({ name: 'hub', level: 'info', stream });
  logger.warn('look', { port: 80, path: 'a b', error: new Error('boom') });
  t.match(chunks.join(''), /warn .*hub look .*port=.*80.*path=.*"a b"/);
  t.match(chunks.join(''), /error=.*\n {2}Error: boom\n\s+at /);
});

t.test('a listener receives every written record without its secrets', async (t) => {
  const recent = new RecentLog(3);
  const logger = createLogger({ name: 'x', level: 'info', pretty: false, stream: { write: () => undefined } });
  const untap = logger.tap(recent.add);
  logger.protect('the-secret');
  logger.child({ part: 1 }).warn('it is the-secret', { token: 'hidden', more: ['the-secret'] });
  logger.debug('not written');
  t.match(recent.after(undefined, 10), {
    dropped: 0,
    lines: [
      {
        seq: 1,
        level: 'warn',
        name: 'x',
        msg: 'it is [redacted]',
        fields: { part: 1, token: '[redacted]', more: ['[redacted]'] },
      },
    ],
  });
  for (let nth = 2; nth <= 50; nth += 1) logger.info(`line ${nth}`);
  const seqs = (after: number | undefined, limit: number) => recent.after(after, limit).lines.map(({ seq }) => seq);
  t.same(seqs(undefined, 10), [48, 49, 50]);
  t.same(seqs(undefined, 2), [49, 50]);
  t.same(seqs(48, 10), [49, 50]);
  t.same(seqs(10, 2), [48, 49]);
  t.same(seqs(50, 10), []);
  t.equal(recent.after(10, 10).dropped, 37);
  t.equal(recent.after(47, 10).dropped, 0);
  untap();
  logger.info('nobody listens');
  t.same(seqs(50, 10), []);
});

t.test('a log that is deleted with its directory is made again, and one that is renamed is followed', async (t) => {
  const directory = join(t.testdir(), 'hub');
  const file = join(directory, 'hub.log');
  mkdirSync(directory);
  const descriptor = openSync(file, 'a', 0o600);
  t.teardown(() => closeSync(descriptor));
  const { logger } = logging({ stream: appendingTo(descriptor) });
  const messages = (path: string) => [...readFileSync(path, 'utf8').matchAll(/"msg":"(\w+)"/g)].map(([, word]) => word);
  logger.info('first');
  renameSync(file, `${file}.1`);
  logger.info('second');
  t.same(messages(`${file}.1`), ['first', 'second'], 'control: a file with a name stays');
  rmSync(directory, { recursive: true });
  logger.info('lost');
  mkdirSync(directory);
  if (process.platform !== 'linux') return;
  for (const word of ['third', 'fourth']) logger.info(word);
  t.same(messages(`${file}.1`), ['third', 'fourth']);
  t.equal(statSync(`${file}.1`).mode & 0o777, 0o600);
  t.equal(fstatSync(descriptor).nlink, 0, 'the descriptor of the process stays open');
});
