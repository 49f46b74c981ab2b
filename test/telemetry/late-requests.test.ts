/** Requests to a model that are reported after the end of their turn: spans of its trace. */
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import t from 'tap';
import type { TraceEvent } from '../../src/protocol/index.ts';
import { SpanIds } from '../../src/telemetry/span-ids.ts';
import { TurnFollower } from '../../src/telemetry/turn-follower.ts';
import { TurnSpans } from '../../src/telemetry/turn-spans.ts';

const start = Date.parse('2026-11-26T08:00:00.000Z');

t.test('a late request is a span of the turn that it names, also while the next one runs', async (t) => {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  const described = { provider: 'ours', model: 'our-model' };
  const follower = new TurnFollower([
    new TurnSpans({ tracer: provider.getTracer('test'), ids: new SpanIds(), includeContent: false, described }),
  ]);
  let id = 0;
  const take = (type: TraceEvent['type'], turnId: string, data: TraceEvent['data'] = {}) => {
    id += 1;
    const at = new Date(start + id * 1_000).toISOString();
    follower.take({ id, at, type, sessionKey: 'thread', turnId, data, durationMs: 500 });
  };
  const request = (inputTokens: number, more: TraceEvent['data'] = {}) => ({
    ...{ inputTokens, outputTokens: 1, provider: 'gemini', finishReason: 'stop' },
    ...more,
  });
  take('turn.started', 'first');
  take('tokens.used', 'first', request(10, { model: 'flash' }));
  take('turn.completed', 'first', { status: 'completed' });
  take('turn.started', 'second');
  take('tokens.used', 'first', request(20, { model: 'pro' }));
  take('tokens.used', 'unknown', request(30));
  take('tokens.used', 'second', request(40));
  take('turn.completed', 'second', { status: 'completed' });
  await provider.forceFlush();
  const spans = exporter.getFinishedSpans();
  const [first, second] = spans.filter(({ name }) => name === 'turn');
  const chats = spans.filter(({ name }) => name.startsWith('chat'));
  t.match(
    chats.map(({ name, attributes }) => [name, attributes['gen_ai.usage.input_tokens']]),
    [
      ['chat flash', 10],
      ['chat pro', 20],
      ['chat', 40],
    ],
    'the model of another provider is unknown, not ours',
  );
  t.same(
    chats.map(({ parentSpanContext }) => parentSpanContext?.spanId),
    [first, first, second].map((turn) => turn?.spanContext().spanId),
  );
  t.equal(second?.attributes['gen_ai.usage.input_tokens'], 40, 'the sum of a turn has its own requests only');
});
