import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { ModelError } from '../../src/agent/index.ts';
import type { AutomationRun, TraceEvent } from '../../src/protocol/index.ts';
import { agentMetrics, expose, metricTables, renderMetrics, startTelemetry } from '../../src/telemetry/index.ts';
import { RunNumbers } from '../../src/telemetry/run-numbers.ts';
import { TurnFollower } from '../../src/telemetry/turn-follower.ts';
import { TurnNumbers } from '../../src/telemetry/turn-numbers.ts';
import { call, listening, neverEnds, say, scripted, talk, text, tool } from '../agent/helpers.ts';
import { anyCharacter } from '../any-character.ts';
import { logged, patientMs, scene, telemetrySettings } from './helpers.ts';
import { lint, parse, value } from './prometheus.ts';

const prefix = 'oratorio_agent_';

t.test('a scrape has the numbers of real turns of the demo model', async (t) => {
  const { runtime, store, scrape, workspacePath } = scene(t);
  writeFileSync(join(workspacePath, 'a.txt'), 'one\n');
  const { thread } = runtime.threads.start({ config: { approvalPolicy: 'autoApprove' } });
  await talk(runtime, thread.id, 'think about it\nread a.txt\nread nowhere.txt');
  await talk(runtime, thread.id, 'say hello');
  const { contentType, text, families } = await scrape();
  t.equal(contentType, 'text/plain; version=0.0.4; charset=utf-8');
  t.strictSame(lint(families), []);
  const events = store.traces.events(thread.id, { limit: 1_000 }).events;
  const ofType = (type: string) => events.filter((event) => event.type === type);
  t.equal(value(families, `${prefix}turns_total`, { status: 'completed' }), 2);
  t.equal(value(families, `${prefix}turns_total`, { status: 'failed' }), 0, 'a status without turns is exported as 0');
  t.equal(value(families, `${prefix}tool_calls_total`, { tool: 'ReadFile', outcome: 'completed' }), 1);
  t.equal(value(families, `${prefix}tool_calls_total`, { tool: 'ReadFile', outcome: 'failed' }), 1);
  t.equal(value(families, `${prefix}tool_duration_seconds_count`, { tool: 'ReadFile' }), 2);
  t.equal(value(families, `${prefix}model_calls_total`, { outcome: 'completed' }), ofType('tokens.used').length);
  t.equal(value(families, `${prefix}model_call_duration_seconds_count`), ofType('tokens.used').length);
  t.ok((value(families, `${prefix}first_segment_seconds_count`) ?? 0) >= 2);
  for (const type of new Set(events.map((event) => event.type))) {
    t.equal(value(families, `${prefix}trace_events_total`, { type }), ofType(type).length, type);
  }
  const { inputTokens, outputTokens, eventCount } = store.traces.totals();
  t.equal(value(families, `${prefix}tokens_total`, { direction: 'input' }), inputTokens);
  t.equal(value(families, `${prefix}tokens_total`, { direction: 'output' }), outputTokens);
  t.equal(value(families, `${prefix}stored_trace_events`), eventCount);
  t.equal(value(families, `${prefix}traced_sessions`), 1);
  t.equal(value(families, `${prefix}active_turns`), 0);
  t.equal(value(families, `${prefix}info`, { version: '1.2.3' }), 1);
  const turnMs = ofType('turn.completed').reduce((sum, { durationMs = 0 }) => sum + durationMs, 0);
  const sum = value(families, `${prefix}turn_duration_seconds_sum`) ?? Number.NaN;
  t.ok(Math.abs(sum - turnMs / 1_000) < 1e-6, `${sum} seconds are ${turnMs} milliseconds`);
  t.notOk(text.includes(workspacePath), 'no path');
  t.notOk(text.includes(thread.id), 'no thread');
});

t.test('failed, cancelled and waiting turns and sub-agents are counted separately', async (t) => {
  const asks = tool({ name: 'Danger', needsApproval: true });
  let round = 0;
  const provider = scripted(async function* (request, signal) {
    round += 1;
    if (round === 1) throw new ModelError('upstreamFailed', 'the upstream is down');
    if (round === 2) {
      yield say('thinking about it');
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    }
    const last = request.messages.at(-1);
    if (last?.role === 'tool') yield say('done');
    else yield call(`call_${round}`, 'Danger');
    yield { type: 'usage', inputTokens: 10, outputTokens: 3 };
  });
  const { runtime, scrape } = scene(t, provider, { tools: () => [asks] });
  const { thread } = runtime.threads.start({});
  t.equal((await talk(runtime, thread.id, 'fails')).turn.status, 'failed');

  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('hangs'), ear.listener);
  begin();
  await ear.until('item/agentMessage/delta');
  t.equal(value((await scrape()).families, `${prefix}active_turns`), 1);
  runtime.turns.interrupt(thread.id, turn.id)();
  await ear.until('turn/cancelled');

  const asked = listening();
  runtime.turns.start(thread.id, text('asks'), asked.listener).begin();
  const { params } = await asked.until('item/approval/request');
  t.equal(value((await scrape()).families, `${prefix}pending_approvals`), 1);
  runtime.turns.respond(params.requestId, 'decline');
  await asked.until('turn/completed');

  const { families } = await scrape();
  t.strictSame(lint(families), []);
  for (const status of ['failed', 'cancelled', 'completed']) {
    t.equal(value(families, `${prefix}turns_total`, { status }), 1, status);
  }
  t.equal(value(families, `${prefix}model_calls_total`, { outcome: 'failed' }), 1);
  t.equal(value(families, `${prefix}model_calls_total`, { outcome: 'cancelled' }), 1);
  t.equal(value(families, `${prefix}model_calls_total`, { outcome: 'completed' }), 2);
  t.equal(value(families, `${prefix}tool_calls_total`, { tool: 'other', outcome: 'declined' }), 1);
  t.equal(value(families, `${prefix}approvals_total`, { decision: 'decline', decided_by: 'user' }), 1);
  t.equal(value(families, `${prefix}approval_wait_seconds_count`), 1);
  t.equal(value(families, `${prefix}pending_approvals`), 0);
});

t.test('a turn of an ended process counts as a crash without a duration', async (t) => {
  const { logger } = logged();
  const heard: ((events: readonly TraceEvent[]) => void)[] = [];
  const telemetry = startTelemetry({
    flushMs: patientMs,
    settings: telemetrySettings(),
    workspacePath: '/work',
    traces: {
      subscribe(listener) {
        heard.push(listener);
        return () => heard.splice(0);
      },
    },
    describe: async () => ({ provider: 'demo', model: 'demo' }),
    logger,
  });
  const crashed: TraceEvent = {
    id: 1,
    sessionKey: 'thread_1',
    type: 'turn.completed',
    at: new Date().toISOString(),
    turnId: 'turn_001',
    durationMs: 86_400_000,
    data: { status: 'failed', interruptedBy: 'crash' },
  };
  heard[0]?.([crashed]);
  const families = parse((await expose(telemetry.families())).text);
  t.equal(value(families, `${prefix}turns_total`, { status: 'crashed' }), 1);
  t.equal(value(families, `${prefix}turns_total`, { status: 'failed' }), 0);
  t.equal(value(families, `${prefix}turn_duration_seconds_count`), 0);
  await telemetry.stop();
  t.equal(heard.length, 0, 'nothing is heard after the end');
});

t.test('an optional part has its metrics exactly when it is present', async (t) => {
  const { runtime, telemetry, store } = scene(t, neverEnds());
  const least = parse((await renderMetrics({ version: '1', telemetry, runtime: runtime })).text);
  for (const metric of [agentMetrics.mcpServers, agentMetrics.automations]) {
    t.notOk(least.has(metric.name), metric.name);
  }
  const { text } = await renderMetrics({
    version: '1"\\\n',
    telemetry,
    runtime,
    traces: store.traces,
    mcpByState: { ready: 2, failed: 1, invented: 7 },
    automationsByState: { waiting: 4 },
    servers: [
      { connections: 1, sseReaders: 2, webSockets: 3 },
      { connections: 10, sseReaders: 20, webSockets: 30 },
    ],
  });
  const families = parse(text);
  t.strictSame(lint(families), []);
  t.equal(value(families, `${prefix}info`, { version: '1"\\\n' }), 1, 'labels are escaped');
  t.equal(value(families, `${prefix}mcp_servers`, { state: 'ready' }), 2);
  t.equal(value(families, `${prefix}mcp_servers`, { state: 'stopped' }), 0);
  t.equal(value(families, `${prefix}mcp_servers`, { state: 'invented' }), undefined);
  t.equal(value(families, `${prefix}automations`, { state: 'waiting' }), 4);
  t.equal(value(families, `${prefix}automation_runs_total`, { status: 'completed' }), 0);
  t.equal(value(families, `${prefix}web_sockets`), 33);
  const all = new Set(
    [...Object.values(metricTables.agent), ...Object.values(metricTables.process)].map(({ name }) => name),
  );
  t.strictSame(new Set(families.keys()), all, 'the table names every metric, and no other');
});

t.test('runs of automations are counted once each, without those of earlier processes', (t) => {
  const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
  const numbers = new RunNumbers(at(3));
  const run = (status: AutomationRun['status'], second?: number): AutomationRun => ({
    runId: `run_${second}`,
    automationId: 'a',
    scheduledFor: at(0),
    status,
    trigger: 'schedule',
    attempt: 1,
    coalesced: 1,
    ...(second !== undefined && { finishedAt: at(second) }),
  });
  const old = [run('completed', 2), run('failed', 1)];
  numbers.note({ id: 'a', recentRuns: [run('running'), ...old] }, false);
  numbers.note({ id: 'a', recentRuns: [run('failed', 4), ...old] }, false);
  numbers.note({ id: 'a', recentRuns: [run('failed', 4), ...old] }, false);
  numbers.note({ id: 'a', recentRuns: [run('completed', 6), run('missed', 5), ...old] }, false);
  numbers.note({ id: 'b', recentRuns: [run('completed', 4)] }, true);
  const [family] = numbers.families();
  const counts = Object.fromEntries(family?.samples.map(({ labels, value }) => [labels['status'], value]) ?? []);
  t.strictSame(counts, { completed: 2, failed: 1, cancelled: 0, missed: 1 });
  t.end();
});

t.test('no free text of a model, a client or a user becomes a label', async (t) => {
  const word = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 40 }),
    fc.constantFrom(
      'ReadFile',
      'readfile',
      'mcp__x__y',
      'mcp__',
      '__proto__',
      'constructor',
      '"} 1\n# TYPE',
      '/etc/passwd',
    ),
  );
  const event = fc.record({
    id: fc.nat(),
    sessionKey: word,
    type: fc.constantFrom(
      'turn.started',
      'tool.started',
      'tool.completed',
      'tool.failed',
      'approval.completed',
      'tokens.used',
      'turn.completed',
      'error',
      'response',
    ),
    at: fc.constant('2026-01-01T00:00:00.000Z'),
    turnId: word,
    callId: word,
    tool: word,
    durationMs: fc.oneof(fc.double(), fc.integer()),
    data: fc.record({
      outcome: word,
      status: word,
      decision: word,
      decidedBy: word,
      finishReason: word,
      code: word,
      model: word,
      inputTokens: fc.anything(),
      outputTokens: fc.anything(),
    }),
  }) as fc.Arbitrary<TraceEvent>;
  const property = fc.asyncProperty(fc.array(event, { maxLength: 60 }), async (events) => {
    const numbers = new TurnNumbers();
    const follower = new TurnFollower([numbers]);
    for (const each of events) follower.take(each);
    const families = parse((await expose(numbers.families())).text);
    if (lint(families).length > 0) throw new Error(lint(families).join('\n'));
    const allowed =
      /^(\w{1,30}|turn\.\w+|session\.\w+|tool\.\w+|approval\.\w+|tokens\.used|context\.compacted|model\.(replaced|failed))$/;
    for (const { series, name } of families.values()) {
      if (series.length > 1_000) throw new Error(`${name} has ${series.length} series`);
      for (const { labels } of series) {
        const { le: _, ...others } = labels;
        for (const text of Object.values(others)) if (!allowed.test(text)) throw new Error(`${name} has ${text}`);
      }
    }
    const tools = families.get(`${prefix}tool_calls_total`)?.series ?? [];
    const known = /^(\w+File|\w+Files|Exec|Web\w+|SpawnSubagent|mcp|other)$/;
    for (const { labels } of tools) if (!known.test(labels['tool'] ?? '')) throw new Error(labels['tool']);
  });
  await t.resolves(fc.assert(property, { numRuns: 200 }));
});

t.test('the test parser of the format refuses invalid text', (t) => {
  const good = '# HELP a_total It.\n# TYPE a_total counter\na_total{x="1"} 2\n';
  t.strictSame(lint(parse(good)), []);
  t.throws(() => parse(good.trimEnd()), /line feed/);
  t.throws(() => parse(`${good}b 1\n`), /outside/);
  t.throws(() => parse(good + good), /second TYPE/);
  t.throws(() => parse(good.replace('"1"', '1')), /not labels/);
  t.throws(() => parse(good.replace(' 2', ' two')), /not a number/);
  t.match(lint(parse(good.replaceAll('a_total', 'a_ms'))), [/_total/, /base unit/]);
  t.match(lint(parse(`${good}a_total{x="1"} 3\n`)), [/twice/]);
  const histogram = (...lines: string[]) =>
    `# HELP d_seconds It.\n# TYPE d_seconds histogram\n${lines.map((line) => `d_seconds_${line}\n`).join('')}`;
  const whole = ['bucket{le="1"} 1', 'bucket{le="+Inf"} 2', 'sum 3', 'count 2'];
  t.strictSame(lint(parse(histogram(...whole))), []);
  t.match(lint(parse(histogram('bucket{le="1"} 3', ...whole.slice(1)))), [/cumulative/]);
  t.match(lint(parse(histogram('bucket{le="1"} 1', 'sum 3', 'count 2'))), [/\+Inf/, /count/]);
  t.end();
});

t.test('every metric of the table follows the conventions and has its name once', (t) => {
  const all = Object.values(metricTables).flatMap((table) => Object.values(table));
  t.equal(new Set(all.map(({ name }) => name)).size, all.length);
  for (const { name, type, help, labels, buckets } of all) {
    const text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    t.strictSame(lint(parse(text)), [], name);
    t.match(help, /^[A-Z].*\.$/, `${name}: help is a sentence`);
    for (const label of Object.keys(labels)) t.match(label, /^[a-z][a-z_]*$/);
    t.strictSame(
      [...buckets].sort((left, right) => left - right),
      buckets,
      `${name}: buckets rise`,
    );
    t.equal(buckets.length > 0, type === 'histogram');
  }
  t.end();
});
