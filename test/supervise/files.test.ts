import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { createFileAtomic } from '../../src/lib/index.ts';
import {
  AtomicFile,
  ensurePrivateDirectory,
  readIdentity,
  readJson,
  removeStaleTemps,
  writeFileAtomic,
  writeFileAtomicAsync,
} from '../../src/supervise/index.ts';
import { startPlain, temporaryDirectory } from './helpers.ts';

for (const [name, write] of [
  ['writeFileAtomic', writeFileAtomic],
  ['writeFileAtomicAsync', writeFileAtomicAsync],
] as const) {
  t.test(`${name} replaces a file with one readable by its owner only`, async (t) => {
    const directory = temporaryDirectory(t);
    const path = join(directory, 'state.json');
    writeFileSync(path, 'old', { mode: 0o644 });
    await write(path, 'new');
    t.equal(readFileSync(path, 'utf8'), 'new');
    t.equal(statSync(path).mode & 0o777, 0o600);
    await write(path, Buffer.from([1, 2]), { mode: 0o640 });
    t.strictSame([...readFileSync(path)], [1, 2]);
    t.equal(statSync(path).mode & 0o777, 0o640);
    t.strictSame(readdirSync(directory), ['state.json']);
  });

  t.test(`${name} leaves no file when it fails`, async (t) => {
    const directory = temporaryDirectory(t);
    const path = join(directory, 'occupied');
    mkdirSync(join(path, 'inside'), { recursive: true });
    await t.rejects(async () => write(path, 'new'));
    t.strictSame(readdirSync(directory), ['occupied']);
    await t.rejects(async () => write(join(directory, 'no', 'where'), 'new'), { code: 'ENOENT' });
  });
}

t.test('a writer killed at any moment leaves the old content or the new one', async (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, 'state.json');
  for (let round = 0; round < 12; round++) {
    const { child } = await startPlain(t, 'rewrites-file', [path]);
    // Spread over a few writes; where in a write it hits is up to the machine.
    for (let read = 0; read < round; read++) t.match(readFileSync(path, 'utf8'), /^([a-z])\1{65535}$/);
    child.kill('SIGKILL');
    await once(child, 'exit');
    t.match(readFileSync(path, 'utf8'), /^([a-z])\1{65535}$/);
  }
  removeStaleTemps(directory);
  t.strictSame(readdirSync(directory), ['state.json']);
});

t.test('removeStaleTemps removes only temporary files of ended processes', async (t) => {
  const directory = temporaryDirectory(t);
  const { child, pid } = await startPlain(t, 'waits');
  const live = `.a.json.${pid}.0123456789ab.tmp`;
  const old = `.b.json.${pid}.0123456789ab.tmp`;
  const foreign = '.c.json.1.0123456789ab.tmp';
  for (const name of [live, old, 'x.tmp', '.hidden']) writeFileSync(join(directory, name), '');
  mkdirSync(join(directory, foreign));
  for (const name of [old, foreign]) utimesSync(join(directory, name), 1, 1);
  removeStaleTemps(directory);
  t.strictSame(readdirSync(directory).sort(), [live, foreign, '.hidden', 'x.tmp'].sort());
  rmdirSync(join(directory, foreign));
  child.kill('SIGKILL');
  await once(child, 'exit');
  removeStaleTemps(directory);
  t.strictSame(readdirSync(directory).sort(), ['.hidden', 'x.tmp']);
});

t.test('the temporary file of a writer whose exit code was not read yet is removed', async (t) => {
  const directory = temporaryDirectory(t);
  const { child, pid } = await startPlain(t, 'waits');
  writeFileSync(join(directory, `.a.json.${pid}.0123456789ab.tmp`), '');
  child.kill('SIGKILL');
  // Without a turn of the event loop the child is not reaped and stays a zombie.
  const deadline = performance.now() + 60_000;
  while (readIdentity(pid) !== 'gone' && performance.now() < deadline);
  t.doesNotThrow(() => process.kill(pid, 0), 'its number is still taken');
  removeStaleTemps(directory);
  t.strictSame(readdirSync(directory), []);
});

t.test('AtomicFile writes the last of many values, and writes again after a failure', async (t) => {
  const directory = temporaryDirectory(t);
  const file = new AtomicFile(join(directory, 'sub', 'state.json'));
  await t.rejects(file.write('too early'), { code: 'ENOENT' });
  mkdirSync(join(directory, 'sub'));
  await Promise.all(Array.from({ length: 100 }, (_, i) => file.write(String(i))));
  t.equal(readFileSync(file.path, 'utf8'), '99');
  const first = file.write('first');
  await Promise.resolve();
  await Promise.all([first, file.write('second')]);
  t.equal(readFileSync(file.path, 'utf8'), 'second');
  t.strictSame(readdirSync(join(directory, 'sub')), ['state.json']);
});

t.test('readJson distinguishes missing, unreadable and invalid files without quoting the content', async (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, 'state.json');
  const schema = v.object({ token: v.string(), nested: v.object({ port: v.number() }) });
  t.strictSame(readJson(path, schema), { kind: 'missing' });
  const value = { token: 'sesame', nested: { port: 1 } };
  writeFileSync(path, JSON.stringify(value));
  t.strictSame(readJson(path, schema), { kind: 'ok', value });
  writeFileSync(path, '{"token": "sesame", nonsense');
  t.strictSame(readJson(path, schema), { kind: 'invalid', problem: 'is not JSON' });
  writeFileSync(path, '{"token": "sesame", "nested": {"port": "sesame"}}');
  t.strictSame(readJson(path, schema), { kind: 'invalid', problem: 'nested.port must be number' });
  t.match(readJson(directory, schema), { kind: 'invalid', problem: 'is not a regular file' });
});

t.test('ensurePrivateDirectory creates a directory, restricts its mode, and follows a link', async (t) => {
  const directory = temporaryDirectory(t);
  const deep = join(directory, 'a', 'b');
  ensurePrivateDirectory(deep);
  t.equal(statSync(deep).mode & 0o777, 0o700);
  t.equal(statSync(join(directory, 'a')).mode & 0o777, 0o700);
  mkdirSync(join(directory, 'open'), { mode: 0o755 });
  ensurePrivateDirectory(join(directory, 'open'));
  t.equal(statSync(join(directory, 'open')).mode & 0o777, 0o700);
  symlinkSync(deep, join(directory, 'link'));
  ensurePrivateDirectory(join(directory, 'link'));
  t.ok(existsSync(join(directory, 'link')));
  writeFileSync(join(directory, 'file'), '');
  t.throws(() => ensurePrivateDirectory(join(directory, 'file')), { code: 'EEXIST' });
});

t.test('createFileAtomic makes a file for its owner once, and follows no link', (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, 'key');
  t.equal(createFileAtomic(path, 'first'), true);
  t.equal(createFileAtomic(path, 'second'), false);
  t.equal(readFileSync(path, 'utf8'), 'first');
  t.equal(statSync(path).mode & 0o777, 0o600);
  symlinkSync(join(directory, 'elsewhere'), join(directory, 'link'));
  t.equal(createFileAtomic(join(directory, 'link'), 'third'), false);
  t.strictSame(readdirSync(directory).sort(), ['key', 'link']);
  t.end();
});
