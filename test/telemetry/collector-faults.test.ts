import t from 'tap';
import { DemoProvider } from '../../src/agent/providers/demo.ts';
import { defaults, type TraceEvent } from '../../src/protocol/index.ts';
import { expose, startTelemetry, type Telemetry } from '../../src/telemetry/index.ts';
import { talk } from '../agent/helpers.ts';
import { unusedPort } from '../ports.ts';
import { collector } from './collector.ts';
import { logged, patientMs, scene, telemetrySettings } from './helpers.ts';
import { lint, parse, value } from './prometheus.ts';

const spansBy = async (telemetry: Telemetry, result: string) =>
  value(parse((await expose(telemetry.families())).text), 'oratorio_telemetry_spans_total', { result });

interface Hearing {
  readonly headers?: Readonly<Record<string, string>>;
  readonly flushMs?: number;
}

/** Telemetry that receives as many turns as a test sends, without a runtime. */
function hearing(
  endpoint: string,
  { headers = { authorization: 'Bearer hunter2' }, flushMs = patientMs }: Hearing = {},
) {
  const { logger, lines } = logged();
  let emit: (events: readonly TraceEvent[]) => void = () => undefined;
  const telemetry = startTelemetry({
    flushMs,
    settings: telemetrySettings({ Enabled: true, Endpoint: endpoint, Headers: headers }),
    workspacePath: '/work',
    traces: {
      subscribe(listener) {
        emit = listener;
        return () => undefined;
      },
    },
    describe: async () => ({ provider: 'demo', model: 'demo' }),
    logger,
  });
  let id = 0;
  const event = (type: TraceEvent['type'], number: number, data: Record<string, unknown> = {}): TraceEvent => {
    id += 1;
    return { id, type, sessionKey: `s${number}`, turnId: 'turn_001', at: new Date().toISOString(), data };
  };
  /** Two spans each. */
  const turns = (count: number) => {
    for (let number = 0; number < count; number += 1) {
      const used = { inputTokens: 1, outputTokens: 1, model: 'demo', finishReason: 'stop' };
      emit([event('turn.started', number), event('tokens.used', number, used)]);
      emit([event('turn.completed', number, { status: 'completed' })]);
    }
  };
  return { telemetry, turns, lines };
}

/** Until the SDK is loaded: from then on events become spans at once. */
async function loaded({ telemetry, turns }: ReturnType<typeof hearing>): Promise<void> {
  turns(1);
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    turns(defaults.telemetry.queueSpans);
    if (((await spansBy(telemetry, 'dropped')) ?? 0) > 0) return;
  }
}

t.test('without a collector turns complete, and lost spans are counted and logged once', async (t) => {
  const port = await unusedPort();
  const { runtime, stop, telemetry, lines } = scene(t, new DemoProvider({ paceMs: 0 }), {
    telemetry: { Enabled: true, Endpoint: `http://127.0.0.1:${port}` },
    flushMs: 500,
  });
  const { thread } = runtime.threads.start({});
  for (let count = 0; count < 5; count += 1) {
    t.equal((await talk(runtime, thread.id, 'say hello')).turn.status, 'completed');
  }
  await stop();
  t.equal(await spansBy(telemetry, 'exported'), 0);
  t.strictSame(lint(parse((await expose(telemetry.families())).text)), []);
  t.ok(lines.filter(({ level }) => level === 'warn').length <= 1, 'not more than one line');
  t.notOk(
    lines.some(({ level }) => level === 'error'),
    'no bug',
  );
});

t.test('a collector that answers 500, 400 or invalid data loses its spans only', async (t) => {
  for (const status of [400, 500]) {
    const { url } = await collector(t, (response) =>
      response.writeHead(status, 'No\tthanks').end('<html>'.repeat(1_000)),
    );
    const { telemetry, turns, lines } = hearing(url);
    turns(20);
    await telemetry.stop();
    t.equal(await spansBy(telemetry, 'failed'), 40, `${status}`);
    t.equal(await spansBy(telemetry, 'exported'), 0);
    t.equal(lines.filter(({ msg }) => String(msg).includes('cannot be exported')).length, 1, 'logged once');
    t.notOk(JSON.stringify(lines).includes('hunter2'), 'the headers are secret');
    t.notOk(JSON.stringify(lines).includes('<html>'), 'the answer is not logged');
  }
  const { url } = await collector(t, (response) => response.writeHead(200).end('nonsense'));
  const { telemetry, turns } = hearing(url);
  turns(3);
  await telemetry.stop();
  t.equal(await spansBy(telemetry, 'exported'), 6, 'it said that it took them');
});

t.test('with a collector that never answers the queue is bounded and the shutdown not delayed', async (t) => {
  const { url } = await collector(t, () => undefined);
  const heard = hearing(url, { flushMs: 500 });
  await loaded(heard);
  heard.turns(10_000);
  const { queueSpans, batchSpans } = defaults.telemetry;
  const dropped = (await spansBy(heard.telemetry, 'dropped')) ?? 0;
  t.ok(dropped >= 20_000 - queueSpans - batchSpans, `${dropped} spans were dropped, and counted`);
  await heard.telemetry.stop();
  t.equal(await spansBy(heard.telemetry, 'exported'), 0);
  t.pass('it has ended although nothing was answered');
});

t.test('a collector that is back gets later spans, which is logged', async (t) => {
  const { url, requests, server } = await collector(t, (response, count) => {
    response.writeHead(count <= 1 ? 400 : 200).end('{}');
  });
  const heard = hearing(url);
  heard.turns(300);
  const { batchSpans } = defaults.telemetry;
  const twice = new Promise<void>((resolve) => {
    server.on('request', () => {
      if (requests.length >= 1) resolve();
    });
  });
  // More than one batch is sent at once, the rest with the next one.
  await twice;
  await heard.telemetry.stop();
  t.equal(await spansBy(heard.telemetry, 'failed'), batchSpans);
  t.equal(await spansBy(heard.telemetry, 'exported'), 600 - batchSpans);
  t.match(
    heard.lines.map(({ msg }) => msg),
    [/cannot be exported/, /takes spans again/],
  );
});

t.test('an invalid header fails the export only, and is not logged', async (t) => {
  const { url, requests } = await collector(t);
  const { telemetry, turns, lines } = hearing(url, { headers: { 'x-key': 'hunter2\nhunter2' } });
  turns(3);
  await telemetry.stop();
  t.equal(requests.length, 0);
  t.equal(await spansBy(telemetry, 'failed'), 6);
  t.notOk(JSON.stringify(lines).includes('hunter2'));
});
