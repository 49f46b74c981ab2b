/** The store of contents: small ones are compressed together, each is read alone, and a removed one leaves its place. */
import { randomBytes } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ContentReader, hashOf } from '../../src/checkpoints/content-reader.ts';
import { Contents } from '../../src/checkpoints/contents.ts';
import { CheckpointDatabase } from '../../src/checkpoints/database.ts';

function store(t: Test) {
  const directory = t.testdir({ packs: {} });
  const [packs, file] = [join(directory, 'packs'), join(directory, 'checkpoints.db')];
  const open = () => {
    const database = new CheckpointDatabase(file);
    const contents = new Contents(packs, database);
    contents.open();
    const close = () => {
      contents.close();
      database.close();
    };
    t.teardown(close);
    /** Commits the contents that were put, as needed by an entry each. */
    const commit = (needed: readonly string[]) => {
      contents.flush();
      database.transaction(() => {
        contents.commit();
        for (const hash of needed) database.run('UPDATE blobs SET refs = 1 WHERE hash = ?', hash);
      });
      contents.settle();
    };
    const codecs = () => database.all('SELECT codec FROM blobs ORDER BY start, hash').map(({ codec }) => String(codec));
    return { contents, database, close, commit, codecs };
  };
  const pack = (number: number) => join(packs, `00000${number}.pack`);
  return { open, packs, pack };
}

/** A text like others, but for its number. */
const textOf = (number: number): Buffer => Buffer.from(`${number} the quick brown fox\n`.repeat(number % 60));
const texts = Array.from({ length: 300 }, (_, number) => textOf(number));
const read = (contents: ContentReader, hash: string): Buffer => Buffer.concat([...contents.read(hash)]);

t.test('small contents are compressed together, and each is read alone, also by the next start', async (t) => {
  const { open, pack, packs } = store(t);
  const first = open();
  const hashes = texts.map((text) => first.contents.put(text));
  const last = hashes.at(-1) ?? '';
  t.same(read(first.contents, last), texts.at(-1), 'before it is written');
  first.commit(hashes);
  t.ok(first.codecs().every((codec) => codec.startsWith('group:')));
  const bytes = Number(first.database.get('SELECT total(length) AS bytes FROM blobs')?.['bytes']);
  t.equal(bytes, statSync(pack(1)).size, 'their shares are the bytes of the pack');
  t.equal(first.contents.storedBytes, bytes);
  first.contents.put(textOf(7));
  first.commit([]);
  t.equal(statSync(pack(1)).size, bytes, 'a known content is not stored again');
  first.close();
  const { contents, database } = open();
  const reader = new ContentReader(packs, database);
  for (const [at, hash] of hashes.entries()) {
    // From both ends, so that groups alternate.
    const other = hashes.length - 1 - at;
    t.ok(read(contents, hash).equals(textOf(at)) && read(reader, hashes[other] ?? '').equals(textOf(other)), `${at}`);
  }
});

t.test('contents that do not become smaller, and a single one, have a place of their own', async (t) => {
  const { open } = store(t);
  const { contents, commit, codecs } = open();
  const noise = Array.from({ length: 5 }, () => randomBytes(3_000));
  const hashes = noise.map((each) => contents.put(each));
  commit(hashes);
  const text = contents.put(textOf(59));
  commit([text]);
  t.same(codecs(), ['raw', 'raw', 'raw', 'raw', 'raw', 'zstd']);
  t.same(
    [...hashes, text].map((hash) => read(contents, hash)),
    [...noise, textOf(59)],
  );
});

t.test('a store of the version before has contents without groups, and gets groups beside them', async (t) => {
  const { open } = store(t);
  const before = open();
  const old = before.contents.put(textOf(50));
  before.commit([old]);
  before.database.run('PRAGMA user_version = 1');
  before.close();
  const { contents, database, commit, codecs } = open();
  const hashes = [textOf(51), textOf(52)].map((text) => contents.put(text));
  commit(hashes);
  t.match(codecs(), ['zstd', /^group:/, /^group:/]);
  t.same(
    [old, ...hashes].map((hash) => read(contents, hash)),
    [textOf(50), textOf(51), textOf(52)],
  );
  t.equal(database.get('PRAGMA user_version')?.['user_version'], 3, 'a program that knows no groups refuses it');
});

t.test('a discarded group is gone, and another group takes its place', async (t) => {
  const { open, pack } = store(t);
  const { contents, commit, close } = open();
  const put = (from: number) => texts.slice(from, from + 20).map((text) => contents.put(text));
  const lost = put(100);
  contents.flush();
  t.same(read(contents, lost[3] ?? ''), textOf(103));
  contents.discard();
  t.throws(() => read(contents, lost[3] ?? ''), /missing/);
  const kept = put(200);
  t.same(read(contents, kept[3] ?? ''), textOf(203), 'not the group that was at this place');
  commit(kept);
  const { size } = statSync(pack(1));
  close();
  appendFileSync(pack(1), 'written by a process that was killed');
  const next = open();
  t.equal(statSync(pack(1)).size, size);
  t.same(
    kept.map((hash) => read(next.contents, hash)),
    texts.slice(200, 220),
  );
});

t.test('of groups whose other members are gone the rest moves on with its pack', async (t) => {
  const { open, pack, packs } = store(t);
  const { contents, commit, database } = open();
  const hashes = texts.map((text) => contents.put(text));
  // A pack is rewritten above 16 MiB only.
  for (let number = 0; number < 17; number += 1) contents.put(randomBytes(2 ** 20));
  const needed = hashes.filter((_, at) => at % 3 === 0);
  commit(needed);
  contents.clean();
  t.same(readdirSync(packs), ['000002.pack']);
  t.ok(statSync(pack(2)).size < 20_000, `${statSync(pack(2)).size}`);
  t.equal(database.get('SELECT count(*) AS count FROM blobs')?.['count'], new Set(needed).size);
  for (const hash of needed) t.equal(hashOf(read(contents, hash)), hash);
  t.throws(() => read(contents, hashes[1] ?? ''), /missing/);
});

t.test('a pack with a damaged group stays when it is mostly unused, and costs no more room each time', async (t) => {
  const { open, pack, packs } = store(t);
  const { contents, commit, close } = open();
  const hashes = texts.map((text) => contents.put(text));
  for (let number = 0; number < 17; number += 1) contents.put(randomBytes(2 ** 20));
  commit(hashes);
  close();
  const bytes = readFileSync(pack(1));
  const whole = bytes.indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]));
  writeFileSync(pack(1), bytes.fill(0xff, whole, whole + 40));
  const next = open();
  for (const _ of [1, 2]) t.throws(() => next.contents.clean(), { name: 'CheckpointError', message: /damaged/ });
  t.same([readdirSync(packs), statSync(pack(1)).size], [['000001.pack'], bytes.length]);
  t.equal(hashOf(read(next.contents, hashes[299] ?? '')), hashes[299], 'its other groups can be read');
});
