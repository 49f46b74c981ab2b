import { once } from 'node:events';
import t from 'tap';
import type { ProcessIdentity } from '../../src/protocol/index.ts';
import {
  adoptManaged,
  isAlive,
  killGroupVerified,
  killMarked,
  ownIdentity,
  readIdentity,
} from '../../src/supervise/index.ts';
import { ProcessTree } from '../../src/supervise/process-tree.ts';
import { sendToGroup, signalProcess } from '../../src/supervise/signals.ts';
import {
  firstLine,
  isStopped,
  newMarker,
  nothingLeft,
  start,
  startPlain,
  temporaryDirectory,
  until,
} from './helpers.ts';

/** Identity of the running process with this pid. @throws if it cannot be identified */
function identify(pid: number): ProcessIdentity {
  const identity = readIdentity(pid);
  if (typeof identity === 'string') throw new Error(`${pid} is ${identity}`);
  return identity;
}

t.test('a process that ignores SIGTERM is killed', async (t) => {
  const child = await start(t, 'ignores-sigterm');
  await firstLine(child);
  t.equal(child.terminate(), 'sent');
  t.equal(isAlive(child.identity), 'alive');
  t.match(await child.kill(), { remaining: [], uncertain: false });
  t.match(await child.exited, { signal: 'SIGKILL' });
  await child.gone();
});

t.test('sweep gives SIGTERM a chance before it kills', async (t) => {
  const polite = await start(t, 'stops-itself');
  await firstLine(polite);
  // The process stops after its line: a signal sent before does not continue it.
  await until('stopped', () => isStopped(polite.pid));
  await new ProcessTree(polite.identity, polite.marker).end(600_000);
  t.match(await polite.exited, { exitCode: 7 });
  const stubborn = await start(t, 'ignores-sigterm');
  await firstLine(stubborn);
  await stubborn.sweep();
  t.match(await stubborn.exited, { signal: 'SIGKILL' });
});

for (const [name, fixture, args] of [
  ['in its group', 'forks-grandchild', []],
  ['in its group with an empty environment', 'forks-grandchild', ['bare']],
  ['that left the group', 'setsid-grandchild', []],
] as const) {
  t.test(`a descendant ${name} dies with a killed process`, async (t) => {
    const child = await start(t, fixture, [...args]);
    const grandchild = identify(Number(await firstLine(child)));
    t.match(await child.kill(), { remaining: [], uncertain: false });
    t.equal(isAlive(grandchild), 'gone');
    await child.gone();
  });

  t.test(`a descendant ${name} is swept after the exit of its leader, and the group is not gone before`, async (t) => {
    const child = await start(t, fixture, [...args, 'exit']);
    const grandchild = identify(Number(await firstLine(child)));
    t.match(await child.exited, { exitCode: 0 });
    t.equal(isAlive(grandchild), 'alive');
    let gone = false;
    const whenGone = child.gone().then(() => {
      gone = true;
    });
    const giveUp = new AbortController();
    const impatient = t.rejects(child.gone(giveUp.signal), { name: 'AbortError' });
    t.equal(child.terminate(), 'gone', 'the leader is no more, so its number is not signalled');
    giveUp.abort();
    await impatient;
    t.notOk(gone);
    t.match(await child.sweep(), { ended: 1, remaining: [] });
    t.equal(isAlive(grandchild), 'gone');
    await whenGone;
  });
}

t.test('processes of a crashed Hub are ended by their record alone', async (t) => {
  const marker = newMarker();
  const child = await start(t, 'setsid-grandchild', [], { marker });
  const grandchild = identify(Number(await firstLine(child)));
  t.match(await killGroupVerified(child.identity, marker), { remaining: [], uncertain: false });
  t.equal(isAlive(child.identity), 'gone');
  t.equal(isAlive(grandchild), 'gone');
  t.strictSame(await killGroupVerified(child.identity, marker), { ended: 0, remaining: [], uncertain: false });
});

t.test('a group without its leader is ended when the marker proves its origin', async (t) => {
  const marker = newMarker();
  const child = await start(t, 'forks-grandchild', ['exit'], { marker });
  const grandchild = identify(Number(await firstLine(child)));
  await child.exited;
  t.match(await killGroupVerified(child.identity, marker), { ended: 1, remaining: [] });
  t.equal(isAlive(grandchild), 'gone');
});

t.test('killMarked ends markers below the given one, not those with an equal beginning only', async (t) => {
  const marker = newMarker();
  const ours = await start(t, 'waits', [], { marker: `${marker}/command` });
  const unrelated = await start(t, 'waits', [], { marker: `${marker}-other` });
  t.equal(await killMarked(''), 0, 'an empty marker matches no process');
  t.equal(await killMarked(`${marker}/com`), 0);
  t.equal(isAlive(ours.identity), 'alive');
  t.equal(await killMarked(marker), 1);
  t.equal(isAlive(ours.identity), 'gone');
  t.equal(isAlive(unrelated.identity), 'alive');
});

t.test('a process that reuses a recorded pid is not signalled, nor is its group', async (t) => {
  const bystander = await startPlain(t, 'forks-grandchild', [], { detached: true });
  const companion = identify(Number(bystander.line));
  t.teardown(() => process.kill(-bystander.pid, 'SIGKILL'));
  const itself = identify(bystander.pid);
  for (const stale of [
    { ...itself, startedTicks: '1' },
    { ...itself, bootId: '00000000-0000-0000-0000-000000000000' },
  ]) {
    const adopted = adoptManaged(stale, { logDirectory: temporaryDirectory(t), marker: newMarker(), pollMs: 20 });
    t.strictSame(await adopted.exited, { exitCode: null, signal: null, observed: false });
    t.equal(adopted.terminate(), 'gone');
    t.strictSame(await adopted.kill(), { ended: 0, remaining: [], uncertain: false });
    t.strictSame(await adopted.sweep(), { ended: 0, remaining: [], uncertain: false });
    t.strictSame(await killGroupVerified(stale, newMarker()), { ended: 0, remaining: [], uncertain: false });
    await adopted.gone();
  }
  t.equal(isAlive(itself), 'alive');
  t.equal(isAlive(companion), 'alive');
});

t.test('the group of a recycled pid is not signalled when its new leader has ended', async (t) => {
  const unrelated = await startPlain(t, 'forks-grandchild', ['exit'], { detached: true });
  const member = identify(Number(unrelated.line));
  t.teardown(() => process.kill(member.pid, 'SIGKILL'));
  if (unrelated.child.exitCode === null) await once(unrelated.child, 'exit');
  const ours = { ...member, pid: unrelated.pid, startedTicks: '1' };
  t.strictSame(await killGroupVerified(ours, newMarker()), { ended: 0, remaining: [], uncertain: false });
  t.equal(isAlive(member), 'alive');
});

t.test('a process with an unknown identity is not signalled and not reported as gone', async (t) => {
  const bystander = await startPlain(t, 'waits', [], { detached: true });
  const elsewhere = { ...identify(bystander.pid), pidNamespace: '1' };
  t.strictSame(await killGroupVerified(elsewhere, newMarker()), { ended: 0, remaining: [], uncertain: true });
  const adopted = adoptManaged(elsewhere, { logDirectory: temporaryDirectory(t), marker: newMarker(), pollMs: 10 });
  t.teardown(() => adopted.detach());
  t.equal(adopted.terminate(), 'unknown');
  t.strictSame(await adopted.kill(), { ended: 0, remaining: [], uncertain: true });
  const soon = AbortSignal.timeout(100);
  await t.rejects(adopted.gone(soon), { name: /AbortError|TimeoutError/ });
  t.equal(bystander.child.exitCode, null);
});

t.test('a process cannot end itself, its own group or all processes', async (t) => {
  const own = ownIdentity();
  t.equal(signalProcess({ ...own, pid: 1, startedTicks: identify(1).startedTicks }, 'SIGURG'), 'unknown');
  for (const leader of [1, 0, -1]) t.equal(sendToGroup(leader, 'SIGURG'), 'unknown');
  const adopted = adoptManaged(own, { logDirectory: temporaryDirectory(t), marker: newMarker() });
  t.teardown(() => adopted.detach());
  t.equal(adopted.terminate(), 'unknown');
  t.equal(isAlive(own), 'alive');
});

t.test('an adopted process is polled when another source reports its end', async (t) => {
  const marker = newMarker();
  const child = await start(t, 'setsid-grandchild', [], { marker });
  await firstLine(child);
  const directory = temporaryDirectory(t);
  const adopted = adoptManaged(child.identity, { logDirectory: directory, marker, pollMs: 1, isWatched: () => true });
  await child.kill();
  await child.gone();
  adopted.poll();
  t.strictSame(await adopted.exited, { exitCode: null, signal: null, observed: false });
});

t.test('an adopted process is watched until it is released', async (t) => {
  const marker = newMarker();
  const child = await start(t, 'setsid-grandchild', [], { marker });
  const grandchild = identify(Number(await firstLine(child)));
  const adopted = adoptManaged(child.identity, { logDirectory: temporaryDirectory(t), marker, pollMs: 10 });
  const released = adoptManaged(child.identity, { logDirectory: temporaryDirectory(t), marker, pollMs: 10 });
  let noticed = false;
  void released.exited.then(() => {
    noticed = true;
  });
  released.detach();
  t.match(await adopted.kill(), { remaining: [] });
  t.strictSame(await adopted.exited, { exitCode: null, signal: null, observed: false });
  await adopted.gone();
  t.equal(isAlive(grandchild), 'gone');
  t.notOk(noticed);
});

nothingLeft(t);
