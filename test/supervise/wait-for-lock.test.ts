import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { LockError, waitForLock } from '../../src/supervise/index.ts';
import { startPlain, temporaryDirectory } from './helpers.ts';

t.test('a free lock is acquired without a wait', async (t) => {
  const lock = await waitForLock(join(temporaryDirectory(t), 'lock'), { waitMs: 0, onWait: () => t.fail('no wait') });
  if (lock === 'held') return t.fail('held');
  t.ok(lock.intact());
  lock.release();
});

t.test('a lock is acquired when its holder has ended; one notice per wait', async (t) => {
  const file = join(temporaryDirectory(t), 'lock');
  const holder = await startPlain(t, 'takes-lock', [file]);
  t.equal(await waitForLock(file, { waitMs: 0 }), 'held', 'one attempt without a wait');
  let notices = 0;
  const onWait = () => {
    notices += 1;
    holder.child.kill('SIGKILL');
  };
  const lock = await waitForLock(file, { waitMs: 600_000, onWait });
  if (lock === 'held') return t.fail('held');
  t.equal(notices, 1);
  lock.release();
});

t.test('a lock that stays held is reported when the time is over', async (t) => {
  const file = join(temporaryDirectory(t), 'lock');
  await startPlain(t, 'takes-lock', [file]);
  t.equal(await waitForLock(file, { waitMs: 30 }), 'held');
});

t.test('an abort ends the wait with its reason', async (t) => {
  const file = join(temporaryDirectory(t), 'lock');
  await startPlain(t, 'takes-lock', [file]);
  const controller = new AbortController();
  const { signal } = controller;
  const waiting = waitForLock(file, { waitMs: 600_000, signal, onWait: () => controller.abort(new Error('enough')) });
  await t.rejects(waiting, { message: 'enough' });
  await t.rejects(waitForLock(file, { waitMs: 0, signal }), { message: 'enough' });
});

t.test('a file that cannot serve as a lock is an error at once', async (t) => {
  const directory = join(temporaryDirectory(t), 'lock');
  mkdirSync(directory);
  await t.rejects(waitForLock(directory, { waitMs: 600_000 }), LockError);
});
