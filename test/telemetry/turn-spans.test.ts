import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ModelError } from '../../src/agent/index.ts';
import type { TraceEvent } from '../../src/protocol/index.ts';
import { startTelemetry, traceparentOf, workspaceId } from '../../src/telemetry/index.ts';
import { call, listening, neverEnds, say, scripted, settings, talk, text, tool } from '../agent/helpers.ts';
import { collector, type ReceivedSpan } from './collector.ts';
import { logged, patientMs, scene, telemetrySettings } from './helpers.ts';

const named = (spans: readonly ReceivedSpan[], name: string) => spans.filter((span) => span.name === name);

function only(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const [first, ...others] = named(spans, name);
  if (!first || others.length > 0) throw new Error(`${others.length + Number(first !== undefined)} spans ${name}`);
  return first;
}

const isWithin = (inner: ReceivedSpan, outer: ReceivedSpan) =>
  inner.startedAt >= outer.startedAt && inner.endedAt <= outer.endedAt && inner.startedAt <= inner.endedAt;

t.test('a turn is a trace with spans for requests to the model and tool calls, with times and numbers', async (t) => {
  const { url, spans, requests } = await collector(t);
  const { runtime, store, workspacePath, stop } = scene(t, undefined, {
    telemetry: { Enabled: true, Endpoint: url, Headers: { 'x-team': 'secret-team' } },
  });
  writeFileSync(join(workspacePath, 'a.txt'), 'the content\n');
  const { thread } = runtime.threads.start({ config: { approvalPolicy: 'autoApprove' } });
  const before = Date.now();
  const { turn } = await talk(runtime, thread.id, 'think about it\nread a.txt\nread nowhere.txt');
  store.traces.flush();
  const events = store.traces.events(thread.id, { limit: 100 }).events;
  await stop();
  const after = Date.now();

  const root = only(spans, 'turn');
  t.equal(root.parentSpanId, undefined);
  t.strictSame(new Set(spans.map(({ traceId }) => traceId)), new Set([root.traceId]), 'one trace');
  for (const span of spans) {
    if (span !== root) t.equal(span.parentSpanId, root.spanId, span.name);
    t.ok(isWithin(span, root), `${span.name} is within its turn`);
  }
  t.ok(root.startedAt >= before && root.endedAt <= after);
  t.equal(root.startedAt, Date.parse(turn.startedAt));
  t.equal(root.endedAt, Date.parse(turn.completedAt ?? ''));
  t.match(root.attributes, {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': thread.id,
    'oratorio.turn.id': turn.id,
    'oratorio.turn.status': 'completed',
  });
  t.notOk(root.isError);

  const chats = named(spans, 'chat demo');
  const used = events.filter(({ type }) => type === 'tokens.used');
  t.equal(chats.length, used.length, 'one for each request');
  for (const [index, chat] of chats.entries()) {
    const { durationMs = Number.NaN, data, at } = used[index] as TraceEvent;
    t.equal(chat.kind, 3, 'a client');
    t.equal(chat.endedAt, Date.parse(at));
    t.equal(chat.endedAt - chat.startedAt, durationMs);
    t.match(chat.attributes, {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'demo',
      'gen_ai.request.model': 'demo',
      'gen_ai.usage.input_tokens': data['inputTokens'],
      'gen_ai.usage.output_tokens': data['outputTokens'],
    });
  }
  const sum = (name: string) => chats.reduce((total, { attributes }) => total + Number(attributes[name]), 0);
  t.equal(root.attributes['gen_ai.usage.input_tokens'], sum('gen_ai.usage.input_tokens'));

  const tools = named(spans, 'execute_tool ReadFile');
  t.strictSame(tools.map(({ attributes }) => attributes['oratorio.tool.outcome']).sort(), ['completed', 'failed']);
  for (const { attributes, isError, traceId, spanId } of tools) {
    t.equal(isError, attributes['oratorio.tool.outcome'] === 'failed');
    t.match(attributes['gen_ai.tool.call.id'], /./);
    const callId = String(attributes['gen_ai.tool.call.id']);
    const named = traceparentOf({ threadId: thread.id, turnId: turn.id, callId });
    t.equal(named, `00-${traceId}-${spanId}-01`, 'servers of tools can name the span');
  }
  t.match(root.resource, {
    'service.name': 'oratorio-agent',
    'service.version': /^\d/,
    'oratorio.workspace': workspaceId(workspacePath),
  });
  t.match(requests[0], {
    path: '/v1/traces',
    headers: { 'x-team': 'secret-team', 'content-type': 'application/json' },
  });
  const sent = JSON.stringify(spans);
  for (const content of ['a.txt', 'the content', 'think about', workspacePath])
    t.notOk(sent.includes(content), content);
});

t.test(
  'requests to models have their ids, retries, cached and reasoning tokens and cost; each failure is a span',
  async (t) => {
    const { url, spans } = await collector(t);
    let asked = 0;
    const provider = scripted(async function* () {
      asked += 1;
      yield { type: 'received', requestId: `req_${asked}` };
      if (asked === 1) throw new ModelError('upstreamFailed', 'overloaded', { retryAfterMs: 20 });
      yield say('done');
      const parts = { cachedInputTokens: 40, cacheWriteTokens: 5, reasoningTokens: 3, costUsd: 0.25 };
      yield { type: 'usage', inputTokens: 100, outputTokens: 10, ...parts };
    });
    const { runtime, store, scrape, stop } = scene(t, provider, {
      telemetry: { Enabled: true, Endpoint: url },
      settings: { ...settings, maxRetries: 2 },
    });
    const { thread } = runtime.threads.start({});
    t.match((await talk(runtime, thread.id, 'x')).turn, { status: 'completed' });
    const { families } = await scrape();
    store.traces.flush();
    const { events } = store.traces.events(thread.id, { limit: 100 });
    const { pauseMs = 0 } = store.traces.session(thread.id) ?? {};
    await stop();
    const [failed, answered] = spans.filter(({ name }) => name.startsWith('chat'));
    t.match(failed, {
      isError: true,
      attributes: { 'error.type': 'upstreamFailed', 'oratorio.model.request_id': 'req_1' },
    });
    t.match(answered, {
      isError: false,
      attributes: {
        'oratorio.model.request_id': 'req_2',
        'oratorio.model.retries': 1,
        'oratorio.model.cost_usd': 0.25,
        'gen_ai.usage.input_tokens': 100,
        'gen_ai.usage.cache_read.input_tokens': 40,
        'gen_ai.usage.cache_creation.input_tokens': 5,
        'gen_ai.usage.reasoning.output_tokens': 3,
      },
    });
    for (const [name, expected] of [
      ['cost_usd_total', 0.25],
      ['cached_input_tokens_total', 40],
      ['reasoning_tokens_total', 3],
      ['model_retries_total', 1],
    ] as const) {
      t.equal(families.get(`oratorio_agent_${name}`)?.series[0]?.value, expected, name);
    }
    t.match(events.find(({ type }) => type === 'model.failed')?.data, {
      code: 'upstreamFailed',
      text: 'overloaded',
      requestId: 'req_1',
    });
    t.match(events.find(({ type }) => type === 'tokens.used')?.data, {
      requestId: 'req_2',
      retries: 1,
      costUsd: 0.25,
      cachedInputTokens: 40,
      firstTokenMs: Number,
      pausedMs: Number,
    });
    t.ok(pauseMs >= 15, 'the pause is a sum of the conversation');
  },
);

t.test('with IncludeContent spans have messages, arguments and results, shortened', async (t) => {
  const { url, spans } = await collector(t);
  const { runtime, workspacePath, stop } = scene(t, undefined, {
    telemetry: { Enabled: true, Endpoint: `${url}/custom/path`, IncludeContent: true },
    clean: (words) => words.replaceAll('hunter2', '…'),
  });
  writeFileSync(join(workspacePath, 'a.txt'), `hunter2\n${'a line of it\n'.repeat(800)}`);
  const { thread } = runtime.threads.start({ config: { approvalPolicy: 'autoApprove' } });
  await talk(runtime, thread.id, 'think about it\nread a.txt');
  await stop();
  const root = only(spans, 'turn');
  t.strictSame(JSON.parse(String(root.attributes['gen_ai.input.messages'])), [
    { role: 'user', parts: [{ type: 'text', content: 'think about it\nread a.txt' }] },
  ]);
  const parts = named(spans, 'chat demo').flatMap(({ attributes }) => {
    const text = attributes['gen_ai.output.messages'];
    return text === undefined ? [] : JSON.parse(String(text))[0].parts;
  });
  t.match(parts, [{ type: 'reasoning', content: /it/ }]);
  t.ok(parts.some(({ type }: { type: string }) => type === 'text'));
  const read = only(spans, 'execute_tool ReadFile');
  t.match(read.attributes['gen_ai.tool.call.arguments'], /a\.txt/);
  const result = String(read.attributes['gen_ai.tool.call.result']);
  t.ok(result.length < 5_000 && result.endsWith('…'), 'cut');
  t.notOk(JSON.stringify(spans).includes('hunter2'), 'no secret');
  t.equal(root.resource['oratorio.workspace_path'], workspacePath);
});

t.test('the turn of a sub-agent is a separate trace that links to its call', async (t) => {
  const { url, spans } = await collector(t);
  const { runtime, stop } = scene(t, undefined, { telemetry: { Enabled: true, Endpoint: url } });
  const { thread } = runtime.threads.start({ config: { approvalPolicy: 'autoApprove' } });
  await talk(runtime, thread.id, 'delegate: say one\ndelegate: say two');
  await stop();
  const turns = named(spans, 'turn');
  t.equal(turns.length, 3);
  const parent = turns.find(({ attributes }) => attributes['gen_ai.conversation.id'] === thread.id);
  const calls = named(spans, 'execute_tool SpawnSubagent');
  const children = turns.filter((turn) => turn !== parent);
  t.equal(new Set(turns.map(({ traceId }) => traceId)).size, 3, 'three traces');
  t.strictSame(
    new Set(children.map(({ links }) => links[0]?.spanId)),
    new Set(calls.map(({ spanId }) => spanId)),
    'each links to another call',
  );
  for (const child of children) {
    const call = calls.find(({ spanId }) => spanId === child.links[0]?.spanId);
    t.equal(child.links.length, 1);
    t.equal(child.links[0]?.traceId, parent?.traceId);
    t.ok(call && isWithin(child, call), 'it runs while its call does');
  }
  t.strictSame(parent?.links, []);
});

t.test('an approval is a span of its waiting time, and failed or cancelled work has an error status', async (t) => {
  const { url, spans } = await collector(t);
  const asks = tool({ name: 'Danger', needsApproval: true });
  let round = 0;
  const provider = scripted(async function* (request, signal) {
    round += 1;
    if (round === 1) throw new ModelError('upstreamRateLimited', 'the key of somebody is rate limited');
    if (round === 2) {
      yield say('thinking about it');
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    }
    if (request.messages.at(-1)?.role === 'tool') yield say('done');
    else yield call(`call_${round}`, 'Danger');
    yield { type: 'usage', inputTokens: 1, outputTokens: 1 };
  });
  const { runtime, stop } = scene(t, provider, {
    telemetry: { Enabled: true, Endpoint: url },
    tools: () => [asks],
  });
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'fails');
  const ear = listening();
  const { turn, begin } = runtime.turns.start(thread.id, text('hangs'), ear.listener);
  begin();
  await ear.until('item/agentMessage/delta');
  runtime.turns.interrupt(thread.id, turn.id)();
  await ear.until('turn/cancelled');
  const asked = listening();
  runtime.turns.start(thread.id, text('asks'), asked.listener).begin();
  const { params } = await asked.until('item/approval/request');
  runtime.turns.respond(params.requestId, 'accept');
  await asked.until('turn/completed');
  await stop();

  const turns = named(spans, 'turn').sort((left, right) => left.startedAt - right.startedAt);
  const [failed, cancelled, completed] = turns;
  t.match(failed, {
    isError: true,
    attributes: { 'error.type': 'upstreamRateLimited', 'oratorio.turn.status': 'failed' },
  });
  t.match(cancelled, { isError: false, attributes: { 'oratorio.turn.interrupted_by': 'user' } });
  t.match(completed, { isError: false });
  const chatOf = (root: ReceivedSpan | undefined) =>
    spans.filter(({ name, parentSpanId }) => name === 'chat scripted' && parentSpanId === root?.spanId);
  t.match(chatOf(failed), [{ isError: true, attributes: { 'error.type': 'upstreamRateLimited' } }]);
  t.match(chatOf(cancelled), [{ isError: false, attributes: { 'oratorio.cancelled': true } }]);
  t.equal(chatOf(completed).length, 2);
  const approval = only(spans, 'approval');
  t.equal(approval.parentSpanId, completed?.spanId);
  t.match(approval.attributes, {
    'oratorio.approval.kind': 'shell',
    'oratorio.approval.decision': 'accept',
    'oratorio.approval.decided_by': 'user',
  });
  t.notOk(JSON.stringify(spans).includes('somebody'), 'what an error says is content');
});

t.test('a turn active at the end of the process is exported as an error', async (t) => {
  const { url, spans } = await collector(t);
  const heard: ((events: readonly TraceEvent[]) => void)[] = [];
  const { logger } = logged();
  const telemetry = startTelemetry({
    flushMs: patientMs,
    settings: telemetrySettings({ Enabled: true, Endpoint: url }),
    workspacePath: '/work',
    traces: {
      subscribe(listener) {
        heard.push(listener);
        return () => undefined;
      },
    },
    describe: () => Promise.reject(new Error('no provider')),
    logger,
  });
  const at = new Date().toISOString();
  const event = (type: TraceEvent['type'], more: Partial<TraceEvent> = {}): TraceEvent => ({
    id: 1,
    sessionKey: 's',
    turnId: 'turn_001',
    type,
    at,
    data: {},
    ...more,
  });
  heard[0]?.([
    event('turn.completed', {
      sessionKey: 'crashed',
      durationMs: 5_000,
      data: { status: 'failed', interruptedBy: 'crash' },
    }),
    event('turn.started'),
    event('tool.started', { callId: 'c', tool: 'Exec' }),
    event('approval.requested', { callId: 'd', data: { kind: 'shell' } }),
    event('context.compacted', { data: { tokensBefore: 10, tokensAfter: 2 } }),
    event('tool.started', { callId: 'e', tool: 'theirs', data: { source: 'client' } }),
  ]);
  await telemetry.stop();
  const open = spans.filter(({ attributes }) => attributes['gen_ai.conversation.id'] === 's');
  t.match(open, [{ name: 'turn', isError: true, message: /not heard/ }]);
  t.match(only(spans, 'execute_tool Exec'), { isError: true });
  t.match(only(spans, 'approval'), { isError: true });
  t.match(only(spans, 'execute_tool theirs'), { isError: false });
  t.match(open[0]?.events, [{ name: 'oratorio.context_compacted', attributes: { 'oratorio.tokens_after': 2 } }]);
  const crashed = spans.find(({ attributes }) => attributes['gen_ai.conversation.id'] === 'crashed');
  t.match(crashed, { name: 'turn', isError: true, attributes: { 'error.type': 'crashed' } });
  t.equal((crashed?.endedAt ?? 0) - (crashed?.startedAt ?? 0), 5_000);
});

t.test('the environment applies to unset settings', async (t) => {
  const { url, spans, requests } = await collector(t);
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/base`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20b',
    OTEL_SERVICE_NAME: 'my-agent',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  };
  Object.assign(process.env, environment);
  t.teardown(() => {
    for (const name of Object.keys(environment)) delete process.env[name];
  });
  const { runtime, stop } = scene(t, undefined, { telemetry: { Enabled: true } });
  const { thread } = runtime.threads.start({});
  await talk(runtime, thread.id, 'say hello');
  await stop();
  t.match(requests, [{ path: '/base/v1/traces', headers: { 'x-tenant': 'a b' } }]);
  t.match(only(spans, 'turn').resource, { 'service.name': 'my-agent', 'deployment.environment.name': 'test' });
});

t.test('disabled telemetry loads and sends nothing', async (t) => {
  const { url, requests } = await collector(t);
  const { runtime, stop, telemetry } = scene(t, neverEnds(), { telemetry: { Enabled: false, Endpoint: url } });
  t.notOk(telemetry.families().some(({ metric }) => metric.name.startsWith('oratorio_telemetry')));
  const { thread } = runtime.threads.start({});
  runtime.turns.start(thread.id, text('hangs'), undefined).begin();
  await stop();
  t.equal(requests.length, 0);
});
