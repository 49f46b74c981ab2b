import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { redact, redacted } from '../../src/lib/index.ts';
import { capLog, followLog, LogKeeper, readTail } from '../../src/supervise/index.ts';
import { nothingLeft, start, temporaryDirectory, until } from './helpers.ts';

t.test('a tail has as many whole characters of the end as fit', async (t) => {
  const file = join(temporaryDirectory(t), 'a.log');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), fc.nat(100), (text, bytes) => {
      writeFileSync(file, text);
      const tail = readTail(file, bytes);
      const length = Buffer.byteLength(tail);
      return (
        text.endsWith(tail) &&
        !tail.includes('\ufffd') === !text.slice(text.length - tail.length).includes('\ufffd') &&
        length <= bytes &&
        length > Math.min(bytes, Buffer.byteLength(text)) - 4
      );
    }),
    { numRuns: 300 },
  );
});

t.test('a tail leaves out an incomplete character and tolerates invalid bytes', async (t) => {
  const file = join(temporaryDirectory(t), 'a.log');
  writeFileSync(file, Buffer.concat([Buffer.from('ready €'), Buffer.from('€').subarray(0, 2)]));
  t.equal(readTail(file, 1_000), 'ready €');
  writeFileSync(file, Buffer.from([0x80, 0x80, 0x80, 0x80, 0xff, 0x61]));
  t.match(readTail(file, 1_000), /a$/);
  t.equal(readTail(file, 0), '');
  t.equal(readTail(join(file, '..', 'absent.log'), 10), '');
});

t.test('capLog moves the newest part to a second file, and the tail spans both', async (t) => {
  const file = join(temporaryDirectory(t), 'a.log');
  writeFileSync(file, '0123456789');
  t.equal(await capLog(file, 10), false);
  t.equal(await capLog(file, 4), true);
  t.equal(statSync(file).size, 0);
  t.equal(readFileSync(`${file}.1`, 'utf8'), '6789');
  t.equal(statSync(`${file}.1`).mode & 0o777, 0o600);
  t.equal(readTail(file, 3), '789');
  appendFileSync(file, 'ab');
  t.equal(readTail(file, 4), '89ab');
  t.equal(readTail(file, 1), 'b');
  t.equal(await capLog(join(file, '..', 'absent.log'), 4), false);
});

t.test('a flood stays within its bounds, with whole, consecutive lines retained', async (t) => {
  const maxBytes = 256 * 1024;
  const child = await start(t, 'floods-stderr', [], { logBytes: Number.POSITIVE_INFINITY });
  const keeper = new LogKeeper(10);
  const release = keeper.add([child.logs.stderr], maxBytes);
  t.teardown(release);
  const cuts = new Set<string>();
  await until('five cuts', () => {
    const older = readTail(`${child.logs.stderr}.1`, 200);
    if (older !== '') cuts.add(older);
    return cuts.size >= 5;
  });
  await child.kill();
  await until('the last cut', () => statSync(child.logs.stderr).size <= maxBytes);
  release();
  t.ok(statSync(`${child.logs.stderr}.1`).size <= 2 * maxBytes + 256 * 1024);
  const text = readFileSync(child.logs.stderr, 'utf8');
  t.notMatch(text, /\0/, 'no hole: the writer appends at the new end');
  const numbers = text
    .split('\n')
    .slice(1, -1)
    .map((line) => Number(line.split(' ')[0]));
  t.ok(numbers.every((number, at) => at === 0 || number === (numbers[at - 1] ?? 0) + 1));
});

t.test('a keeper stops with its last file, and continues with the others when one is lost', async (t) => {
  const directory = temporaryDirectory(t);
  const keeper = new LogKeeper(5);
  const file = join(directory, 'a.log');
  const alive = setInterval(() => {}, 1_000);
  t.teardown(() => clearInterval(alive));
  const releases = [keeper.add([directory], 1), keeper.add([file], 1), keeper.add([file], 1)];
  writeFileSync(file, 'too long');
  await until('cut', () => statSync(file).size === 0);
  releases[1]?.();
  releases[1]?.();
  writeFileSync(file, 'too long');
  await until('cut for the second holder', () => statSync(file).size === 0);
  for (const release of releases) release();
});

t.test('a log in a replaced directory, or one that cannot be watched, is capped', async (t) => {
  const directory = temporaryDirectory(t);
  const alive = setInterval(() => {}, 1_000);
  t.teardown(() => clearInterval(alive));
  const late = join(directory, 'late', 'a.log');
  const polled = new LogKeeper(5);
  const release = polled.add([late], 1);
  mkdirSync(join(directory, 'late'));
  for (const time of ['first', 'second']) {
    writeFileSync(late, 'too long');
    await until(`the ${time} cut`, () => statSync(late).size === 0);
  }
  release();
  const swept = new LogKeeper(5, 20);
  const replaced = join(directory, 'replaced');
  mkdirSync(replaced);
  const end = swept.add([join(replaced, 'a.log')], 1);
  rmSync(replaced, { recursive: true });
  mkdirSync(replaced);
  writeFileSync(join(replaced, 'a.log'), 'too long');
  await until('the cut', () => statSync(join(replaced, 'a.log')).size === 0);
  end();
});

t.test('a log of one huge line is capped', async (t) => {
  const child = await start(t, 'huge-line', ['3']);
  await child.exited;
  t.match(readTail(child.logs.stderr, 11), /^é{5}\n$/);
});

t.test('a log is followed from its creation across a cut, without splitting characters', async (t) => {
  const file = join(temporaryDirectory(t), 'a.log');
  const stop = new AbortController();
  const alive = setInterval(() => {}, 1_000);
  t.teardown(() => {
    stop.abort();
    clearInterval(alive);
  });
  let seen = '';
  const onText = (text: string) => {
    seen += text;
  };
  followLog(file, { onText, signal: stop.signal, pollMs: 10 });
  const euro = Buffer.from('€');
  writeFileSync(file, Buffer.concat([Buffer.from('one '), euro.subarray(0, 1)]));
  await until('the first part', () => seen === 'one ');
  appendFileSync(file, euro.subarray(1));
  await until('the character', () => seen === 'one €');
  truncateSync(file, 0);
  appendFileSync(file, 'two');
  await until('what came after the cut', () => seen === 'one €two');
  stop.abort();
  appendFileSync(file, 'three');
  let late = '';
  const again = new AbortController();
  followLog(file, {
    fromBytes: 3,
    onText: (text) => {
      late += text;
    },
    signal: again.signal,
    pollMs: 10,
  });
  await until('from the middle', () => late === 'three');
  again.abort();
  t.equal(seen, 'one €two');
  followLog(file, { onText: () => t.fail('aborted before'), signal: again.signal });
  t.ok(existsSync(file));
});

t.test('a redacted text has no secret', async (t) => {
  const secret = fc.string({ minLength: 8, maxLength: 40 }).filter((text) => !redacted.includes(text));
  fc.assert(
    fc.property(fc.array(secret, { maxLength: 4 }), fc.array(fc.string(), { maxLength: 4 }), (secrets, words) => {
      const text = words
        .flatMap((word, at) => [word, secrets[at] ?? '', encodeURIComponent(secrets[at] ?? '')])
        .join(' ');
      const clean = redact(text, secrets);
      return secrets.every((one) => !clean.includes(one) && !clean.includes(encodeURIComponent(one)));
    }),
    { numRuns: 300 },
  );
  t.equal(
    redact('a token abc$&def, and abc$&defghi', ['abc$&def', 'abc$&defghi', '']),
    `a token ${redacted}, and ${redacted}`,
  );
});

nothingLeft(t);
