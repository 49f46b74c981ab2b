import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import * as stacks from '../../../src/deploy/stack/index.ts';
import { stackSecrets, testStack } from '../fake-engine/stack.ts';

function directoryOf(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-stack-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

t.test('a stack is read with its settings, the owners of its files and its secrets', async (t) => {
  const layout = testStack(t, { hasIngress: true });
  writeFileSync(layout.privateKey, 'PEM of the App');
  const stack = stacks.readStack(layout.directory);
  t.match(stack, { layout, hasIngress: true, config: { appId: '1', writesEnabled: true } });
  t.strictSame(stack.ownership, { compose: 'ours', overlay: 'ours', caddyfile: 'ours' });
  t.strictSame(new Set(stack.secrets), new Set([...Object.values(stackSecrets), 'PEM of the App']));
  writeFileSync(layout.compose, 'services: {}\n');
  rmSync(layout.overlay);
  t.match(stacks.readStack(layout.directory), {
    hasIngress: false,
    ownership: { compose: 'foreign', overlay: 'missing' },
  });
});

t.test('a directory that is not a stack, or half of one, is refused', async (t) => {
  const directory = directoryOf(t);
  writeFileSync(join(directory, 'notes.txt'), '');
  t.throws(() => stacks.readStack(directory), { code: 'notAStack', hint: /--dir/ });
  const layout = testStack(t);
  rmSync(layout.env);
  t.throws(() => stacks.readStack(layout.directory), { code: 'notAStack', message: /\.env cannot be read/ });
});

t.test(
  'a secret is read from a file or from standard input, and an invalid one is refused without being shown',
  async (t) => {
    const file = join(directoryOf(t), 'secret');
    const write = (content: string | Buffer, mode = 0o600): void => {
      writeFileSync(file, content);
      chmodSync(file, mode);
    };
    write('0123456789abcdef\r\n');
    t.strictSame(await stacks.readSecretLine(file, 'The secret'), { text: '0123456789abcdef', warnings: [] });
    chmodSync(file, 0o644);
    t.match(await stacks.readSecretLine(file, 'The secret'), { warnings: [/chmod 600/] });
    const stdin = Readable.from([Buffer.from('from-standard-'), Buffer.from('input-0123\n')]);
    t.match(await stacks.readSecretLine('-', 'The secret', { stdin }), { text: 'from-standard-input-0123' });
    for (const content of [
      '',
      '\n',
      'k9-k9',
      'two lines of it\nare too many',
      Buffer.from([0xff, 0xfe]),
      'x'.repeat(70_000),
    ]) {
      write(content);
      const error = await stacks.readSecretLine(file, 'The secret').catch((reason: unknown) => reason);
      t.match(error, { code: 'secretRefused', message: /^The secret/ });
      if (content.length > 4) t.notMatch(String(error), String(content));
    }
    write('line one\nline two\n');
    t.match(await stacks.readSecretFile(file, 'The key'), { text: 'line one\nline two' });
    await t.rejects(stacks.readSecretFile(join(file, 'absent'), 'The key'), { code: 'secretRefused' });
    await t.rejects(stacks.readSecretFile(tmpdir(), 'The key'), { code: 'secretRefused', message: /directory/ });
  },
);

t.test('reading a secret that is never typed can be cancelled', async (t) => {
  const controller = new AbortController();
  const stdin = new Readable({ read: () => setImmediate(() => controller.abort()) });
  await t.rejects(stacks.readSecretFile('-', 'The key', { stdin, signal: controller.signal }), { code: 'cancelled' });
});

t.test('user, platform, free space and SELinux of the machine are detected', async (t) => {
  t.strictSame(stacks.stackUser({ uid: 0, gid: 0 }), { uid: 10_001, gid: 10_001, isOther: true });
  t.strictSame(stacks.stackUser({ uid: 1000, gid: 100 }), { uid: 1000, gid: 100, isOther: false });
  stacks.requireLinux('linux');
  t.throws(() => stacks.requireLinux('darwin'), { code: 'unsupportedPlatform' });
  const directory = directoryOf(t);
  t.ok((await stacks.freeBytes(join(directory, 'not', 'there'))) > 0);
  writeFileSync(join(directory, 'enforce'), '1\n');
  t.ok(stacks.isSelinuxEnforcing(join(directory, 'enforce')));
  t.notOk(stacks.isSelinuxEnforcing(join(directory, 'absent')));
});

t.test('a tree is given to a user, and links in it are not followed', async (t) => {
  const directory = directoryOf(t);
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  const other = uid === 0 ? 10_001 : uid;
  mkdirSync(join(directory, 'tree', 'below'), { recursive: true });
  writeFileSync(join(directory, 'outside'), '');
  writeFileSync(join(directory, 'tree', 'below', 'file'), '');
  symlinkSync(join(directory, 'outside'), join(directory, 'tree', 'link'));
  await stacks.giveTo(join(directory, 'tree'), other, gid);
  for (const path of ['tree', 'tree/below', 'tree/below/file', 'tree/link'])
    t.equal(lstatSync(join(directory, path)).uid, other, path);
  t.equal(lstatSync(join(directory, 'outside')).uid, uid);
  await t.rejects(stacks.giveTo(join(directory, 'absent'), other, gid), { code: 'fileFailed' });
  await t.rejects(stacks.giveTo(directory, other, gid, AbortSignal.abort()), { code: 'cancelled' });
});
