import { existsSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { removeControlGroups } from './control-groups.ts';

const treesOf = (t: Test): string =>
  t.testdir({
    cpu: { run: { container: {} }, other: {} },
    memory: { run: { container: { nested: {} } } },
    run: {},
  });

/** Refuses a directory so many times. */
function busyFor(times: number, code = 'EBUSY') {
  let left = times;
  return (directory: string): void => {
    if (directory.endsWith('container') && left > 0) {
      left -= 1;
      throw Object.assign(new Error(`${code}: rmdir '${directory}'`), { code });
    }
    rmdirSync(directory);
  };
}

t.test('regression: a group whose processes are still ending is removed when they have ended', async (t) => {
  const root = treesOf(t);
  await removeControlGroups('run', { root, remove: busyFor(3) });
  for (const tree of ['cpu', 'memory', '']) t.notOk(existsSync(join(root, tree, 'run')), tree);
  t.ok(existsSync(join(root, 'cpu', 'other')), 'a group of another name stays');
});

t.test('a group that is busy at the deadline is named in the error', async (t) => {
  const removal = { root: treesOf(t), remove: busyFor(Number.POSITIVE_INFINITY), deadlineMs: 0 };
  await t.rejects(removeControlGroups('run', removal), { code: 'EBUSY', message: /run\/container/ });
});

t.test('groups that another engine still uses stay, and the others are removed', async (t) => {
  const root = treesOf(t);
  await removeControlGroups('run', { root, isShared: true, remove: busyFor(Number.POSITIVE_INFINITY), deadlineMs: 0 });
  t.ok(existsSync(join(root, 'cpu/run/container')));
  t.notOk(existsSync(join(root, 'run')));
});

t.test('any other error ends the removal at once', async (t) => {
  const removal = { root: treesOf(t), remove: busyFor(1, 'EPERM') };
  await t.rejects(removeControlGroups('run', removal), { code: 'EPERM' });
});
