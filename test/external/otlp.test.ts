/** Telemetry that agents export: bytes of the official library, each agent's attributes, hostile bodies, and sums that count nothing twice. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  JsonLogsSerializer,
  JsonTraceSerializer,
  ProtobufLogsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer';
import { InMemoryLogRecordExporter, LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { DelegatedRequest } from '../../src/agent/index.ts';
import { dialects, exportsElsewhere, requestOf, sessionOf } from '../../src/external/telemetry/dialects.ts';
import { type ExportedRecord, recordsOf, type Signal } from '../../src/external/telemetry/otlp.ts';
import { decodeRequest } from '../../src/external/telemetry/protobuf.ts';
import { TelemetryReceiver } from '../../src/external/telemetry/receiver.ts';
import { TurnAccount } from '../../src/external/telemetry/turn-account.ts';
import { HttpError } from '../../src/http/index.ts';
import { createLogger } from '../../src/log/index.ts';

const parse = (bytes: Uint8Array | undefined): unknown => JSON.parse(Buffer.from(bytes ?? []).toString());
const at = 1_790_000_000_000;

/** Log records as an agent exports them, by the library that agents use. */
async function logs(...records: readonly Record<string, string | number | boolean>[]) {
  const exporter = new InMemoryLogRecordExporter();
  const provider = new LoggerProvider({ processors: [new SimpleLogRecordProcessor({ exporter })] });
  for (const attributes of records) provider.getLogger('agent').emit({ timestamp: at, body: 'a request', attributes });
  await provider.forceFlush();
  const finished = exporter.getFinishedLogRecords();
  return {
    bytes: ProtobufLogsSerializer.serializeRequest(finished) ?? new Uint8Array(),
    text: JsonLogsSerializer.serializeRequest(finished) ?? new Uint8Array(),
  };
}

const gemini = {
  'event.name': 'gemini_cli.api_response',
  'session.id': 'one',
  model: 'gemini-pro',
  duration_ms: 1_234,
  input_token_count: 100,
  output_token_count: 20,
  cached_content_token_count: 60,
  thoughts_token_count: 5,
  tool_token_count: 3,
  interactive: false,
  ratio: 0.5,
};

t.test('logs of the official library are the same in Protocol Buffers and in JSON', async (t) => {
  const { bytes, text } = await logs(gemini, { 'event.name': 'another', negative: -7 });
  const decoded = recordsOf('logs', decodeRequest('logs', bytes), 10);
  t.same(decoded, recordsOf('logs', parse(text), 10));
  const [first, second] = decoded;
  t.match(first, { name: gemini['event.name'], endedAt: at });
  t.same(Object.fromEntries(first?.attributes ?? []), gemini);
  t.equal(second?.attributes.get('negative'), -7);
  t.throws(() => recordsOf('logs', decodeRequest('logs', bytes), 1), { status: 413, code: 'tooManyRecords' });
});

t.test('spans of the official library are the same in Protocol Buffers and in JSON', async (t) => {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  const span = provider.getTracer('agent').startSpan('chat', { startTime: [at / 1_000, 0], attributes: { tokens: 7 } });
  span.end([at / 1_000, 250_000_000]);
  await provider.forceFlush();
  const finished = exporter.getFinishedSpans();
  const decoded = recordsOf(
    'traces',
    decodeRequest('traces', ProtobufTraceSerializer.serializeRequest(finished) ?? new Uint8Array()),
    10,
  );
  t.same(decoded, recordsOf('traces', parse(JsonTraceSerializer.serializeRequest(finished)), 10));
  t.match(decoded, [{ name: 'chat', endedAt: at + 250, durationMs: 250 }]);
  t.equal(decoded[0]?.attributes.get('tokens'), 7);
});

const record = (attributes: Record<string, string | number | boolean>): ExportedRecord => ({
  name: String(attributes['event.name']),
  attributes: new Map(Object.entries(attributes)),
  endedAt: at,
  durationMs: undefined,
});

t.test('a request of each agent is understood', (t) => {
  const common = { endedAt: at, cachedInputTokens: 60, reasoningTokens: 5 };
  const cases = [
    [
      dialects.gemini,
      gemini,
      { ...common, model: 'gemini-pro', durationMs: 1_234, inputTokens: 103, outputTokens: 25 },
    ],
    [
      dialects.qwen,
      { ...gemini, 'event.name': 'qwen-code.api_response', tool_token_count: 0 },
      { ...common, model: 'gemini-pro', durationMs: 1_234, inputTokens: 100, outputTokens: 20 },
    ],
    [
      dialects.claude,
      {
        'event.name': 'api_request',
        'session.id': 'one',
        model: 'claude-x',
        input_tokens: '10',
        output_tokens: '4',
        cache_read_tokens: '60',
        cache_creation_tokens: '30',
        cost_usd: '0.0125',
        duration_ms: '900',
      },
      { model: 'claude-x', durationMs: 900, inputTokens: 100, outputTokens: 4, cachedInputTokens: 60, costUsd: 0.0125 },
    ],
  ] as const;
  for (const [dialect, attributes, request] of cases) {
    if (!dialect) throw new Error('there is such a dialect');
    const exported = record(attributes);
    t.match(requestOf(dialect, exported, at + 1), request);
    t.equal(sessionOf(dialect, exported), 'one');
    t.equal(requestOf(dialect, record({ ...attributes, 'event.name': 'user_prompt' }), at), undefined);
    const hostile = {
      ...attributes,
      input_token_count: -5,
      input_tokens: 'NaN',
      duration_ms: 1e300,
      model: 'm'.repeat(9_000),
    };
    const bounded = requestOf(dialect, { ...record(hostile), endedAt: at * 2 }, at);
    t.ok(bounded && bounded.inputTokens >= 0 && bounded.durationMs <= 1e9 && bounded.endedAt === at);
    t.equal(bounded?.model?.length, 200);
  }
  t.end();
});

const logger = createLogger({ name: 'test', level: 'error', stream: { write: () => true }, pretty: false });

async function receiver(t: Test, now?: () => number) {
  const taken: [Signal, number][] = [];
  const served = await TelemetryReceiver.listen({
    logger,
    protect: () => {},
    ...(now && { now }),
    take: (signal, records) => taken.push([signal, records.length]),
  });
  t.teardown(() => served.close());
  const post = (path: string, body: Uint8Array, headers: Record<string, string> = {}) =>
    fetch(`${served.address}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-protobuf', ...headers },
      body: new Uint8Array(body),
    });
  return { served, taken, post };
}

t.test('the receiver takes logs, traces and metrics, in both forms, packed or not', async (t) => {
  const { served, taken, post } = await receiver(t);
  const { bytes, text } = await logs(gemini);
  const inJson = { 'content-type': 'application/json; charset=utf-8' };
  const answer = await post('/v1/logs', bytes);
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('content-type'), 'application/x-protobuf');
  t.equal(await (await post('/v1/logs', text, inJson)).text(), '{}');
  t.equal((await post('/v1/logs', gzipSync(bytes), { 'content-encoding': 'gzip' })).status, 200);
  t.equal((await post('/v1/traces', new Uint8Array())).status, 200);
  const metrics = JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics: [{ name: 'tokens', sum: {} }] }] }] });
  t.equal((await post('/v1/metrics', Buffer.from(metrics), inJson)).status, 200);
  t.same(taken, [
    ['logs', 1],
    ['logs', 1],
    ['logs', 1],
    ['traces', 0],
    ['metrics', 1],
  ]);
  t.match(served.address, /^http:\/\/127\.0\.0\.1:\d+\/[\w-]{32}$/);
});

t.test('everything else is an error with a code, and changes nothing', async (t) => {
  const { served, taken, post } = await receiver(t);
  const { bytes } = await logs(gemini);
  const { origin } = new URL(served.address);
  const inJson = { 'content-type': 'application/json' };
  const packed = { 'content-encoding': 'gzip' };
  const refused = [
    [fetch(`${origin}/${'x'.repeat(32)}/v1/logs`, { method: 'POST', body: 'x' }), 404, 'notFound'],
    [fetch(`${origin}/v1/logs`, { method: 'POST', body: 'x' }), 404, 'notFound'],
    [post('/v1/profiles', bytes), 404, 'notFound'],
    [post('/v1/logs', bytes, { origin: 'http://page.example' }), 403, 'foreignOrigin'],
    [post('/v1/logs', bytes, { 'content-type': 'text/plain' }), 415, 'unsupportedMediaType'],
    [post('/v1/logs', bytes, { 'content-encoding': 'br' }), 415, 'unsupportedEncoding'],
    [post('/v1/logs', bytes, packed), 400, 'invalidRequest'],
    [post('/v1/logs', gzipSync(new Uint8Array(4_194_305)), packed), 413, 'payloadTooLarge'],
    [post('/v1/logs', new Uint8Array(1_048_577)), 413, 'payloadTooLarge'],
    [post('/v1/logs', Buffer.from('{'), inJson), 400, 'invalidRequest'],
    [post('/v1/logs', Buffer.from('{"resourceLogs":[{"scopeLogs":7}]}'), inJson), 400, 'invalidRequest'],
    [post('/v1/logs', bytes.subarray(0, -1)), 400, 'invalidRequest'],
  ] as const;
  for (const [asked, status, code] of refused) {
    const answer = await asked;
    t.equal(answer.status, status);
    t.match(await answer.json(), { code }, `${status} ${code}`);
  }
  t.same(taken, []);
  await served.close();
  const later = await post('/v1/logs', bytes).then(
    ({ status }) => status,
    () => 'refused',
  );
  t.not(later, 200, 'its port ends with it');
  t.same(taken, []);
});

t.test('more requests in a second than an agent needs are refused', async (t) => {
  let now = 0;
  const { post, taken } = await receiver(t, () => now);
  for (let each = 0; each < 50; each += 1) await post('/v1/traces', new Uint8Array());
  const answer = await post('/v1/traces', new Uint8Array());
  t.equal(answer.status, 429);
  t.equal(answer.headers.get('retry-after'), '1');
  now = 1_001;
  t.equal((await post('/v1/traces', new Uint8Array())).status, 200);
  t.equal(taken.length, 51);
});

const judged = (make: () => unknown): boolean => {
  try {
    make();
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
  }
  return true;
};

t.test('any bytes and any JSON are records or a refusal', async () => {
  const { bytes } = await logs(gemini, gemini);
  const decodes = (signal: Signal, given: Uint8Array) => {
    let request: unknown;
    try {
      request = decodeRequest(signal, given);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return true;
    }
    return judged(() => recordsOf(signal, request, 1_000));
  };
  const signal = fc.constantFrom<Signal>('logs', 'traces', 'metrics');
  fc.assert(fc.property(signal, fc.uint8Array({ maxLength: 200 }), decodes), { numRuns: 500 });
  const changes = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(changes, fc.nat(bytes.length), (places, length) => {
      const changed = Uint8Array.from(bytes);
      for (const [place, byte] of places) changed[place] = byte;
      return decodes('logs', changed) && decodes('logs', changed.subarray(0, length));
    }),
    { numRuns: 500 },
  );
  const members = [
    'resourceLogs',
    'scopeLogs',
    'logRecords',
    'attributes',
    'key',
    'value',
    'stringValue',
    'timeUnixNano',
  ];
  const json = fc.object({ key: fc.constantFrom(...members), maxDepth: 7, maxKeys: 3 });
  fc.assert(
    fc.property(signal, json, (which, value) => judged(() => recordsOf(which, value, 1_000))),
    { numRuns: 500 },
  );
});

t.test('the trace of a turn counts the larger sum of ACP and the export, and nothing twice', async (t) => {
  const tokens = fc.record({ inputTokens: fc.nat(1_000), outputTokens: fc.nat(1_000) });
  const sum = (all: readonly { inputTokens: number; outputTokens: number }[]) => ({
    inputTokens: all.reduce((total, one) => total + one.inputTokens, 0),
    outputTokens: all.reduce((total, one) => total + one.outputTokens, 0),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(tokens), fc.array(tokens), tokens, async (early, late, acp) => {
      const traced: DelegatedRequest[] = [];
      const account = new TurnAccount({ requested: (request) => traced.push(request) });
      const add = (each: { inputTokens: number; outputTokens: number }) =>
        account.add({ ...each, model: 'm', endedAt: 0, durationMs: 1 });
      for (const each of early) add(each);
      const cut = new AbortController();
      cut.abort();
      const use = await account.settle(acp, true, cut.signal);
      for (const each of late) add(each);
      account.close();
      account.close();
      t.notOk(add({ inputTokens: 1, outputTokens: 1 }), 'it is closed');
      const isCounted = acp.inputTokens + acp.outputTokens > 0;
      t.match(use, isCounted ? acp : sum(early));
      const exported = sum([...early, ...late]);
      const whole = isCounted ? acp : exported;
      t.match(sum(traced), {
        inputTokens: Math.max(exported.inputTokens, whole.inputTokens),
        outputTokens: Math.max(exported.outputTokens, whole.outputTokens),
      });
      for (const { endedAt } of traced) t.ok(endedAt >= account.startedAt);
    }),
    { numRuns: 60 },
  );
});

t.test('a turn that ACP counts nothing of waits for the next export of an agent that exports', async (t) => {
  const traced: DelegatedRequest[] = [];
  const account = new TurnAccount({ requested: (request) => traced.push(request) });
  const settled = account.settle({ inputTokens: 0, outputTokens: 0 }, true);
  account.add({ inputTokens: 7, outputTokens: 3, costUsd: 0.5, model: 'm', endedAt: Date.now(), durationMs: 1 });
  t.match(await settled, { inputTokens: 7, outputTokens: 3, costUsd: 0.5 });
  account.close();
  t.equal(traced.length, 1, 'nothing is left over');
});

t.test('regression: settings of an agent that are a pipe do not block, and leave its export alone', async (t) => {
  const workspace = t.testdir({});
  const dialect = dialects.gemini;
  if (!dialect) throw new Error('gemini exports');
  const file = join(workspace, '.gemini', 'settings.json');
  mkdirSync(join(workspace, '.gemini'));
  const isLeftAlone = () => exportsElsewhere(dialect, { HOME: workspace }, [workspace]);
  t.equal(isLeftAlone(), false, 'no settings');
  writeFileSync(file, '{"theme": "dark"}');
  t.equal(isLeftAlone(), false, 'other settings');
  writeFileSync(file, '{"telemetry": {"enabled": false}}');
  t.equal(isLeftAlone(), true, 'settings of telemetry');
  rmSync(file);
  execFileSync('mkfifo', [file]);
  t.equal(isLeftAlone(), true, 'a pipe');
});
