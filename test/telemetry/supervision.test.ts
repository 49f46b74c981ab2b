import t from 'tap';
import { createActor } from 'xstate';
import { hubMachine } from '../../machines/index.ts';
import type { Config } from '../../src/config/index.ts';
import { workspaceKey } from '../../src/config/index.ts';
import { projections } from '../../src/inspect/index.ts';
import { expose, startHubTelemetry, workspaceId } from '../../src/telemetry/index.ts';
import { pathsOf, StateWatch } from '../../src/telemetry/state-watch.ts';
import { policy, Workspace } from '../machines/worlds.ts';
import { collector, type ReceivedSpan } from './collector.ts';
import { logged, patientMs, telemetrySettings } from './helpers.ts';
import { lint, parse, value } from './prometheus.ts';

/** The real machine in a world that the test plays, and the Hub's telemetry beside it. */
function supervised(settings: Partial<Config['Telemetry']> = {}) {
  const { logger, lines } = logged();
  const telemetry = startHubTelemetry({
    settings: telemetrySettings(settings),
    projections,
    logger,
    flushMs: patientMs,
  });
  const world = new Workspace();
  telemetry.observe(world.actor, 'agent-server', '/home/somebody/secret-project');
  const numbers = async () => parse((await expose(telemetry.families())).text);
  return { telemetry, world, numbers, lines };
}

const transitions = { name: 'oratorio_hub_transitions_total' };

t.test('states, restarts, failed probes and durations of starts are counted', async (t) => {
  const { world, numbers, telemetry } = supervised();
  await world.run();
  await world.probeFailed(2);
  await world.probePassed();
  await world.probeFailed(3);
  await world.probePassed();
  await world.exited(1);
  await world.pass(policy.backoffCapMs);
  await world.prepared();
  await world.spawned();
  await world.ready();
  await world.stop();
  await world.exited(0);
  const families = await numbers();
  t.strictSame(lint(families), []);
  const entered = (state: string) => value(families, transitions.name, { machine: 'agent-server', state });
  t.equal(entered('starting'), 2);
  t.equal(entered('running'), 3, 'once it had recovered');
  t.equal(entered('unhealthy'), 1);
  t.equal(entered('exited'), 1);
  t.equal(entered('stopping'), 1);
  t.equal(entered('stopped'), 1, 'it was at rest before, which is no transition');
  t.equal(value(families, 'oratorio_hub_restarts_total'), 1, 'the first start was asked for');
  t.equal(world.emitted.filter((event) => event.type === 'appserver.starting' && event.delayMs !== null).length, 1);
  t.equal(value(families, 'oratorio_hub_probe_failures_total'), 5);
  t.equal(value(families, 'oratorio_hub_start_duration_seconds_count', { ownership: 'managed' }), 2);
  t.notOk(JSON.stringify([...families.values()]).includes('secret-project'), 'no path');
  await telemetry.stop();
});

t.test('sidecars are counted by their own machine, and external servers by their ownership', async (t) => {
  const { world, numbers } = supervised();
  await world.run('keep');
  await world.sidecar('exited');
  const families = await numbers();
  t.ok((value(families, transitions.name, { machine: 'api-proxy', state: 'running' }) ?? 0) >= 1);
  const foreign = supervised();
  await foreign.world.ensure();
  await foreign.world.prepared('external');
  await foreign.world.spawned();
  await foreign.world.ready();
  const counted = await foreign.numbers();
  t.equal(value(counted, 'oratorio_hub_start_duration_seconds_count', { ownership: 'external' }), 1);
});

t.test('a start is a trace with a span per visited state, nested like the states', async (t) => {
  const { url, spans } = await collector(t);
  const { world, telemetry } = supervised({ Enabled: true, Endpoint: url });
  await world.run('keep');
  await world.exited(1);
  await world.pass(policy.backoffCapMs);
  await world.prepared();
  await telemetry.stop();

  const named = (name: string) => spans.filter((span) => span.name === name).sort((a, b) => a.startedAt - b.startedAt);
  const [first, second] = named('agent-server starting');
  t.equal(first?.parentSpanId, undefined);
  t.equal(second?.parentSpanId, undefined);
  t.not(first?.traceId, second?.traceId, 'each start has a trace of its own');
  t.match(second?.links, [{ spanId: first?.spanId, attributes: { 'oratorio.link': 'previous_start' } }]);
  const [running] = named('agent-server running');
  t.equal(running?.parentSpanId, first?.spanId);
  t.match(running, {
    isError: true,
    message: 'crashed',
    attributes: { 'error.type': 'crashed', 'oratorio.exitCode': 1 },
  });
  const [probing] = named('agent-server starting.probing');
  t.equal(probing?.parentSpanId, first?.spanId);
  t.match(first, { isError: false, attributes: { 'oratorio.incarnation': 1, 'oratorio.state': 'starting' } });
  const [exited] = named('agent-server exited');
  const [pause] = named('agent-server exited.backingOff');
  t.equal(pause?.parentSpanId, exited?.spanId);
  t.ok(named('api-proxy running').length + named('api-proxy starting').length > 0);
  t.same(
    spans.filter(({ name }) => name.startsWith('sidecar-slot')),
    [],
    'the slot of the sidecar has no span',
  );
  for (const sidecar of spans.filter(({ name }) => name.startsWith('api-proxy'))) {
    t.ok([first?.traceId, second?.traceId].includes(sidecar.traceId), 'the sidecar is in the trace of its server');
  }
  t.equal(second?.attributes['oratorio.unfinished'], true, 'the process ended in the middle of it');
  const ordered: (ReceivedSpan | undefined)[] = [first, running, exited];
  for (const [index, span] of ordered.entries()) {
    const before = ordered[index - 1];
    if (before && span) t.equal(span.startedAt, before.endedAt, `${before.name}, then ${span.name}`);
  }
  t.notOk(
    spans.some(({ name }) => name === 'agent-server stopped'),
    'a state at rest has no span',
  );
  t.match(first?.resource, { 'service.name': 'oratorio-hub' });
  t.equal(first?.attributes['oratorio.workspace'], workspaceId('/home/somebody/secret-project'));
  const sent = JSON.stringify(spans);
  t.notOk(sent.includes('secret-project'), 'no path');
  t.notOk(sent.includes('exited with code'), 'no text of an error');
});

t.test('with IncludeContent spans have the path and error messages, without credentials', async (t) => {
  const { url, spans } = await collector(t);
  const { world, telemetry } = supervised({ Enabled: true, Endpoint: url, IncludeContent: true });
  await world.ensure();
  await world.notPrepared(
    Object.assign(new Error('cannot ask http://u:hunter2@host'), { kind: 'startFailed', isRetryable: false }),
  );
  await telemetry.stop();
  const starting = spans.find(({ name }) => name === 'agent-server starting');
  t.match(starting, { isError: true, attributes: { 'oratorio.workspace_path': '/home/somebody/secret-project' } });
  t.match(starting?.attributes['oratorio.lastError'], /cannot ask/);
  t.notOk(JSON.stringify(spans).includes('hunter2'));
});

t.test('the Hub is observed, and ended actors are released', async (t) => {
  const { url, spans } = await collector(t);
  const { logger } = logged();
  const telemetry = startHubTelemetry({
    flushMs: patientMs,
    settings: telemetrySettings({ Enabled: true, Endpoint: url }),
    projections,
    logger,
  });
  const hub = createActor(hubMachine, { input: { drainDeadlineMs: 1_000 } });
  telemetry.observe(hub, 'hub');
  hub.subscribe({ error: () => undefined });
  const ended = new Promise<void>((resolve) => hub.subscribe({ complete: () => resolve(), error: () => resolve() }));
  hub.start();
  await ended;
  await telemetry.stop();
  const names = spans.map(({ name }) => name);
  t.ok(names.length > 0 && names.every((name) => name.startsWith('hub ')), names.join(', '));
  t.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1, 'one trace');
  t.notOk(
    spans.some(({ attributes }) => attributes['oratorio.unfinished']),
    'it has ended by itself',
  );
});

t.test('a listener that throws does not affect actors', async (t) => {
  const faults: unknown[] = [];
  const watch = new StateWatch({
    listeners: [
      {
        onSnapshot: () => undefined,
        onChange() {
          throw new Error('listener');
        },
        onGone() {
          throw new Error('listener');
        },
      },
    ],
    onFault: (error) => faults.push(error),
  });
  const world = new Workspace();
  watch.observe(world.actor, { machine: 'agent-server', workspacePath: '/w', parent: undefined });
  await world.run('keep');
  t.equal(world.state, 'running');
  world.actor.stop();
  t.ok(faults.length > 3);
  t.strictSame(world.errors, []);
});

t.test('state values are paths, and a workspace has the same name without its path everywhere', (t) => {
  t.strictSame(pathsOf('stopped'), ['stopped']);
  t.strictSame(pathsOf({ starting: { aborting: 'killing' } }), [
    'starting',
    'starting.aborting',
    'starting.aborting.killing',
  ]);
  t.strictSame(pathsOf({ a: 'b', c: {} }), ['a', 'a.b', 'c']);
  t.equal(workspaceId('/home/somebody'), workspaceKey('/home/somebody'));
  t.end();
});
