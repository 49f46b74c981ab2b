import { lchownSync, mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { hostFiles } from '../../src/hosts/directory.ts';
import { temporaryDirectory } from '../hub/harness.ts';

const anotherUser = 65_534;

t.test('a home with a long path has its sockets in a private directory of its own', async (t) => {
  const home = join(temporaryDirectory(t), 'x'.repeat(100));
  const { socket, control, records } = hostFiles(home, 'build');
  t.teardown(() => rmSync(dirname(socket), { recursive: true }));
  t.equal(dirname(socket), dirname(control));
  t.not(dirname(socket), records);
  t.equal(statSync(dirname(socket)).mode & 0o777, 0o700);
});

t.test(
  'regression: a link of another user in place of that directory is refused, and its target is not changed',
  { skip: process.getuid?.() === 0 ? false : 'only root can give a link away' },
  async (t) => {
    const root = temporaryDirectory(t);
    const home = join(root, 'x'.repeat(100));
    const short = dirname(hostFiles(home, 'build').socket);
    const target = join(root, 'target');
    mkdirSync(target, { mode: 0o755 });
    rmSync(short, { recursive: true });
    symlinkSync(target, short);
    t.teardown(() => rmSync(short));
    lchownSync(short, anotherUser, anotherUser);
    t.throws(() => hostFiles(home, 'build'), /belongs to another user/);
    t.equal(statSync(target).mode & 0o777, 0o755);
  },
);
