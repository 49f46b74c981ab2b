/** Orders of the Hub for the unfinished turns of an agent server that it ends. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { hubRoutes } from '../../src/hub/route-table.ts';
import { defaults } from '../../src/protocol/index.ts';
import { orderHandOver, takeHandOver } from '../../src/supervise/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import { agentServerFixture, makeWorkspace, quick, startTestHub, temporaryDirectory } from './harness.ts';

const handOverMs = 20_000;
const hub = await startTestHub(t, {
  agentServer: agentServerFixture('notes-hand-over.ts'),
  policy: { gracefulStopMs: 50, handOverMs },
});
const workspace = makeWorkspace(t, quick);
const order = () => JSON.parse(readFileSync(join(workspace, 'hand-over.json'), 'utf8'));

t.test('the deadline of a stop and a restart exceeds the longest hand-over plus the end of a process', (t) => {
  const { maxHandOverMs, gracefulStopMs, killVerifyMs } = defaults.supervise;
  const longestMs = maxHandOverMs + gracefulStopMs + killVerifyMs;
  for (const { path, deadlineMs } of [hubRoutes.stopAppServer, hubRoutes.restartAppServer])
    t.ok(deadlineMs > longestMs, path);
  t.end();
});

t.test('an agent server gets the reason and the time of its end', async (t) => {
  const { incarnation } = await hub.ensure(workspace);
  t.ok(incarnation);
  await hub.call('POST', '/v1/appservers/restart', { workspacePath: workspace });
  t.match(order(), { reason: 'restart', withinMs: handOverMs, endsTurns: false });
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  t.match(order(), { reason: 'stop', withinMs: handOverMs, endsTurns: false });
});

t.test('stop --end-turns cancels the turns and grants no time', async (t) => {
  await hub.ensure(workspace);
  t.match(await runInProcess(hub.home, 'stop', workspace, '--end-turns'), { code: 0 });
  t.match(order(), { reason: 'stop', withinMs: 0, endsTurns: true });
  t.match(await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace, endTurns: 'yes' }), {
    status: 400,
  });
  await hub.ensure(workspace);
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  t.match(order(), { endsTurns: false }, 'the next stop suspends again');
});

t.test('the Hub waits for the hand-over before it kills, also at its own stop', async (t) => {
  writeFileSync(join(workspace, 'lingers'), '1500');
  await hub.ensure(workspace);
  const events = await hub.events();
  await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  t.match(await events.wait('appserver.exited'), { data: { exitCode: 0, signal: null } });
  await hub.ensure(workspace);
  const ends = events.wait('appserver.exited', ({ data }) => data['hubStopping'] === true);
  await hub.shutdown();
  t.match(await ends, { data: { exitCode: 0, signal: null } });
  t.match(order(), { reason: 'stop', withinMs: handOverMs });
});

t.test('an order counts once, and only for the start that it names', (t) => {
  const home = temporaryDirectory(t);
  const made = { incarnation: 'a', reason: 'restart', withinMs: 5, endsTurns: false } as const;
  orderHandOver(home, '/work', made);
  t.equal(takeHandOver(home, '/work', 'b'), undefined);
  orderHandOver(home, '/work', made);
  t.same(takeHandOver(home, '/work', 'a'), made);
  t.equal(takeHandOver(home, '/work', 'a'), undefined);
  t.end();
});
