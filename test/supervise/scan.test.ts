import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { markerVariable, scanProcesses } from '../../src/supervise/scan.ts';

const onLinux = { skip: process.platform === 'linux' ? false : 'only Linux shows the environment of a process' };

t.test('a process without an environment carries no marker, in every scan', onLinux, async (t) => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)'], { env: {}, stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  for (let scan = 0; scan < 2; scan++) {
    const found = (await scanProcesses()).find(({ pid }) => pid === child.pid);
    t.equal(found?.marker, 'absent');
  }
});

t.test('a process that was just spawned is found by its marker', onLinux, async (t) => {
  const marker = `scan-test-${process.pid}`;
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)'], {
    env: { [markerVariable]: marker },
    stdio: 'ignore',
  });
  t.teardown(() => child.kill('SIGKILL'));
  const found = (await scanProcesses()).find(({ pid }) => pid === child.pid);
  t.same(found?.marker, { value: marker });
});
