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

t.test('a process that runs another program with a marker is found by it', onLinux, async (t) => {
  const marker = `scan-test-exec-${process.pid}`;
  const program = `exec '${process.execPath}' -e 'console.log("runs"); setInterval(() => {}, 1_000)'`;
  const child = spawn('/bin/sh', ['-c', `echo waits; read -r _; ${markerVariable}=${marker} ${program}`], {
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const markerNow = async () => (await scanProcesses()).find(({ pid }) => pid === child.pid)?.marker;
  await once(child.stdout, 'data');
  t.equal(await markerNow(), 'absent');
  child.stdin.write('go\n');
  await once(child.stdout, 'data');
  t.same(await markerNow(), { value: marker });
});
