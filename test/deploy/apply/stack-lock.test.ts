import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { lockHolder, withStackLock } from '../../../src/deploy/apply/index.ts';
import { layoutOf } from '../../../src/deploy/layout.ts';
import { program, programEnvironment } from '../../programs.ts';
import { temporaryDirectory } from './helpers.ts';

const { signal } = new AbortController();
const options = { command: 'upgrade', waitMs: 0, signal };

t.test('a second command is refused with the name of the first', async (t) => {
  const layout = layoutOf(join(temporaryDirectory(t), 'new', 'stack'));
  t.equal(lockHolder(layout), null);
  const result = await withStackLock(layout, { ...options, command: 'webhook enable' }, async () => {
    t.match(lockHolder(layout), { pid: process.pid, command: 'webhook enable', since: /^20/ });
    await t.rejects(
      withStackLock(layout, options, async () => t.fail('both')),
      {
        code: 'stackLocked',
        message: new RegExp(`oratorio server webhook enable\` \\(process ${process.pid}, since`),
      },
    );
    return 7;
  });
  t.equal(result, 7);
  t.equal(lockHolder(layout), null);
  t.strictSame(readdirSync(layout.state), ['lock']);
  t.equal(statSync(layout.directory).mode & 0o777, 0o750);
  t.equal(statSync(layout.state).mode & 0o777, 0o700);
  await t.rejects(
    withStackLock(layout, options, () => Promise.reject(new Error('work'))),
    { message: 'work' },
  );
  t.equal(await withStackLock(layout, options, async () => 'free again'), 'free again');
});

t.test('a waiting command gets the lock when it is free, and a wait can be cancelled', async (t) => {
  const layout = layoutOf(temporaryDirectory(t));
  const controller = new AbortController();
  const waits: unknown[] = [];
  const onWait = (holder: unknown) => void waits.push(holder);
  let waiting: Promise<string> | undefined;
  await withStackLock(layout, { ...options, command: 'init' }, async () => {
    const cancelledOnWait = {
      ...options,
      waitMs: 600_000,
      signal: controller.signal,
      onWait: () => controller.abort(),
    };
    await t.rejects(
      withStackLock(layout, cancelledOnWait, async () => {}),
      { code: 'cancelled' },
    );
    const printed = new Promise<void>((resolve) => {
      const heard = (holder: unknown) => {
        onWait(holder);
        resolve();
      };
      waiting = withStackLock(layout, { ...options, waitMs: 600_000, onWait: heard }, async () => 'mine');
    });
    await printed;
  });
  t.equal(await waiting, 'mine');
  t.match(waits, [{ command: 'init', pid: process.pid }]);
});

t.test('the lock of a killed command is free at once', async (t) => {
  const layout = layoutOf(temporaryDirectory(t));
  const args = ['--conditions=development', program('test/fixtures/process/holds-stack-lock.mjs'), layout.directory];
  const child = spawn(process.execPath, args, {
    env: { ...programEnvironment, NODE_NO_WARNINGS: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  t.match(lockHolder(layout), { pid: child.pid, command: 'restart' });
  await t.rejects(
    withStackLock(layout, options, async () => {}),
    { code: 'stackLocked', message: /server restart/ },
  );
  child.kill('SIGKILL');
  await once(child, 'exit');
  t.ok(existsSync(`${layout.lock}.json`), 'what it said of itself is still there');
  t.equal(lockHolder(layout), null, 'and means nothing');
  t.equal(await withStackLock(layout, options, async () => 'free'), 'free');
  t.strictSame(readdirSync(layout.state), ['lock']);
});

t.test('a directory in which nothing can be locked is an error that names it', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'file'), '');
  await t.rejects(
    withStackLock(layoutOf(join(directory, 'file')), options, async () => {}),
    { code: 'fileFailed', message: /file/ },
  );
  const layout = layoutOf(join(directory, 'stack'));
  mkdirSync(layout.lock, { recursive: true });
  await t.rejects(
    withStackLock(layout, options, async () => {}),
    { code: 'fileFailed', message: /\.server\/lock/ },
  );
});
