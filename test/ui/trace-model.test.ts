/** Model of a trace, without a page: bars, rows, filters, ranges of time, exports. */
import fc from 'fast-check';
import t from 'tap';
import { defaults, type EventSummary, traceTypes } from '../../src/protocol/index.ts';
import { momentAt, placeOf, stripOf } from '../../src/ui/views/chat/lens/segments.ts';
import { maxEventsPerPage } from '../../src/ui/views/sessions/paths.ts';
import { entryOf, textChars } from '../../src/ui/views/sessions/trace/entry.ts';
import { type ChromeEvent, toChromeTrace, toJsonLines } from '../../src/ui/views/sessions/trace/export.ts';
import {
  parseFilter,
  spellFilter,
  spellTerm,
  type Term,
  toggleTerm,
} from '../../src/ui/views/sessions/trace/filter.ts';
import { humanMs, isTurn, type Span, TraceModel, type Turn } from '../../src/ui/views/sessions/trace/model.ts';
import { entryRows, type Showing, spanRows, treeRows } from '../../src/ui/views/sessions/trace/rows.ts';
import { moved, parseZoom, spellZoom, ticks, within, zoomed } from '../../src/ui/views/sessions/trace/scale.ts';
import { TraceTree } from '../../src/ui/views/sessions/trace/tree.ts';
import type { EventInput } from './sessions-backend.ts';
import { story } from './stories.ts';

const day = Date.parse('2026-11-21T12:00:00Z');

/** Events as the API sends them, numbered from 1. */
const events = (inputs: readonly EventInput[]): EventSummary[] =>
  inputs.map(({ at = day, data = {}, ...rest }, index) => {
    const event = { ...rest, id: index + 1, sessionKey: 's', at: new Date(at).toISOString(), data };
    // A newer server may send types that this version does not know.
    return event as EventSummary;
  });

function modelOf(inputs: readonly EventInput[]): TraceModel {
  const model = new TraceModel();
  model.append(events(inputs).map(entryOf));
  return model;
}

const turnOf = (model: TraceModel, index = 0): Turn => {
  const turn = model.roots.filter(isTurn)[index];
  if (!turn) throw new Error(`There is no turn ${index}.`);
  return turn;
};

const everything: Showing = { terms: [], found: new Map(), isDimmed: false, folded: new Set(), now: day };
const asked = (text: string, more: Partial<Showing> = {}): Showing => ({
  ...everything,
  terms: parseFilter(text).terms,
  ...more,
});

const turnId = 'turn_001';
const oneTurn: readonly EventInput[] = [
  { type: 'turn.started', at: day, turnId },
  { type: 'thinking', at: day + 900, turnId, durationMs: 800, data: { text: 'Hm.' } },
  { type: 'approval.requested', at: day + 1_000, turnId, callId: 'a', data: { kind: 'exec', summary: 'rm -rf build' } },
  {
    type: 'approval.completed',
    at: day + 6_000,
    turnId,
    callId: 'a',
    data: { decision: 'accept', decidedBy: 'user', client: 'oratorio-cli' },
  },
  { type: 'tool.started', at: day + 6_000, turnId, callId: 'a', tool: 'Exec', data: { arguments: '{"command":"x"}' } },
  {
    type: 'tool.failed',
    at: day + 7_000,
    turnId,
    callId: 'a',
    tool: 'Exec',
    durationMs: 1_000,
    data: { result: 'no' },
  },
  { type: 'response', at: day + 8_000, turnId, durationMs: 900, data: { text: 'It failed.' } },
  { type: 'tokens.used', at: day + 8_000, turnId, data: { inputTokens: 10, outputTokens: 5 } },
  { type: 'turn.completed', at: day + 8_000, turnId, durationMs: 8_000, data: { status: 'completed' } },
];

t.test('each request to a model is a bar with its model, tokens, cost and time to the first token', async (t) => {
  const data = { provider: 'openai', model: 'gpt-6-sol', requestId: 'req_1' };
  const numbers = {
    inputTokens: 10,
    outputTokens: 5,
    cachedInputTokens: 4,
    costUsd: 0.0123,
    firstTokenMs: 340,
    retries: 1,
  };
  const failed = { ...data, code: 'upstreamFailed', text: 'overloaded' };
  const model = modelOf([
    { type: 'turn.started', at: day, turnId },
    { type: 'model.failed', at: day + 500, turnId, durationMs: 400, data: failed },
    {
      type: 'tokens.used',
      at: day + 2_000,
      turnId,
      durationMs: 1_000,
      data: { ...data, ...numbers, finishReason: 'stop' },
    },
    { type: 'turn.completed', at: day + 2_000, turnId, durationMs: 2_000, data: { status: 'completed' } },
  ]);
  const turn = turnOf(model);
  t.match(turn, { tokens: 15, costUsd: 0.0123, failures: 1 });
  t.match(turn.children, [
    {
      kind: 'request',
      state: 'failed',
      label: 'gpt-6-sol',
      start: day + 100,
      text: 'upstreamFailed · overloaded · req_1',
    },
    {
      kind: 'request',
      state: 'done',
      start: day + 1_000,
      end: day + 2_000,
      text: '10 in · 5 out · 4 cached · $0.0123 · first token after 340 ms · 1 retry · stop · req_1',
    },
  ]);
  const rows = (text: string) => spanRows(model, asked(text)).rows.map(({ state }) => state);
  t.strictSame(rows('type:tokens.used'), ['done', 'done']);
  t.strictSame(rows('type:model.failed'), ['done', 'failed']);
});

t.test('a pair of events and a segment are one bar each, within their turn', async (t) => {
  const turn = turnOf(modelOf(oneTurn));
  const bars = turn.children.map(({ kind, start, end, state }) => [kind, start - day, (end ?? 0) - day, state]);
  t.strictSame(bars, [
    ['thinking', 100, 900, 'done'],
    ['approval', 1_000, 6_000, 'done'],
    ['tool', 6_000, 7_000, 'failed'],
    ['response', 7_100, 8_000, 'done'],
  ]);
  t.match(turn, { state: 'done', thinking: 1, responses: 1, tools: 1, failures: 1, tokens: 15 });
  t.equal(humanMs(turn, day), 5_000, 'time spent waiting for approval');
});

t.test('every event is stored and maps to its bar', async (t) => {
  const model = modelOf([...oneTurn, { type: 'weather.changed', at: day + 9_000, data: { sun: true } }]);
  t.equal(model.entries.length, oneTurn.length + 1);
  for (const { id } of model.entries) t.ok(model.spanOf(id), `event ${id}`);
  t.equal(model.spanOf(6), model.spanOf(5), 'both ends of a call');
  t.match(model.roots.at(-1), { kind: 'moment', label: 'weather.changed', text: '{"sun":true}' });
});

t.test('a call without an end is open until its turn ends', async (t) => {
  const model = modelOf(oneTurn.slice(0, 5));
  const turn = turnOf(model);
  t.equal(turn.end, undefined);
  t.match(turn.children.at(-1), { kind: 'tool', state: 'open', end: undefined });
  model.append([...events(oneTurn.slice(0, 5)), { ...events(oneTurn)[8], id: 6 } as EventSummary].map(entryOf));
  t.equal(turn.children.at(-1)?.end, day + 8_000, 'the end of the turn ends the call');
});

t.test('overlapping approvals count once in the waiting time', async (t) => {
  const wait = (callId: string, from: number, to: number): EventInput[] => [
    { type: 'approval.requested', at: day + from, turnId, callId },
    { type: 'approval.completed', at: day + to, turnId, callId, data: { decision: 'accept' } },
  ];
  const waits = [...wait('a', 0, 1_000), ...wait('b', 500, 2_000), ...wait('c', 3_000, 3_500)];
  waits.sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
  t.equal(humanMs(turnOf(modelOf([{ type: 'turn.started', at: day, turnId }, ...waits])), day), 2_500);
});

t.test('a trace without beginnings and durations is coarse', async (t) => {
  t.notOk(modelOf(oneTurn).isCoarse);
  t.ok(modelOf([{ type: 'response', turnId, data: { text: 'all of it' } }]).isCoarse);
  t.ok(modelOf([oneTurn[0] as EventInput, { type: 'tool.completed', turnId, callId: 'a', tool: 'Exec' }]).isCoarse);
  const cut = new TraceModel(true);
  cut.append(events(oneTurn.slice(5)).map(entryOf));
  t.notOk(cut.isCoarse, 'a trace with evicted events is not coarse');
});

t.test('the bars do not depend on the pieces in which events arrive, and repeated events count once', async (t) => {
  const entries = events(story(day, 3, 5)).map(entryOf);
  const plain = (span: Span): unknown => {
    const { turn: _, children, approvals: __, ...rest } = span as Turn;
    return { ...rest, children: (children ?? []).map(plain) };
  };
  const whole = new TraceModel();
  whole.append(entries);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 40 }), fc.nat(10), (sizes, again) => {
      const model = new TraceModel();
      let from = 0;
      for (const size of sizes) {
        // A page may begin with events that the stream has already delivered.
        model.append(entries.slice(Math.max(0, from - again), from + size));
        from += size;
      }
      model.append(entries.slice(from));
      t.equal(model.entries.length, entries.length);
      t.strictSame(model.roots.map(plain), whole.roots.map(plain));
    }),
    { numRuns: 30 },
  );
});

t.test('every trace type of the protocol has a label', async (t) => {
  const data = {
    ...{ text: 'words', status: 'completed', arguments: 'words', result: 'words', decision: 'accept' },
    ...{ inputTokens: 1, outputTokens: 2, tokensBefore: 3, tokensAfter: 4, reason: 'words', displayName: 'words' },
  };
  for (const type of traceTypes) {
    const [event] = events([{ type, data }]);
    t.not(event && entryOf(event).text, '', type);
  }
  const [long] = events([{ type: 'response', data: { text: 'x'.repeat(10_000) } }]);
  t.ok(long && entryOf(long).text.length <= textChars + 1 && entryOf(long).isShortened, 'long texts are not kept');
  const [emoji] = events([{ type: 'response', data: { text: `${'x'.repeat(textChars - 1)}👩‍👩‍👧‍👦` } }]);
  t.equal(emoji && entryOf(emoji).text, `${'x'.repeat(textChars - 1)}…`, 'regression: an emoji is not cut in half');
});

t.test('rows list turns before their children, and can be folded, filtered and dimmed', async (t) => {
  const model = modelOf([...oneTurn, ...oneTurn.map((input) => ({ ...input, turnId: 'turn_002' }))]);
  const names = (showing: Showing) =>
    spanRows(model, showing).rows.map(({ kind, label, tool }) => tool ?? (kind === 'turn' ? label : kind));
  t.equal(spanRows(model, everything).rows.length, 10);
  t.strictSame(names({ ...everything, folded: new Set(['turn_001']) }).slice(0, 2), ['turn_001', 'turn_002']);
  t.strictSame(names(asked('tool:exec turn:turn_002')), ['turn_002', 'Exec'], 'with the turn around it');
  t.equal(spanRows(model, asked('tool:Exec')).matchCount, 2);
  const dimmed = spanRows(model, asked('tool:Exec', { isDimmed: true }));
  t.strictSame([dimmed.rows.length, dimmed.matchCount], [10, 2]);
  t.equal(model.spanOf(5)?.row, 3, 'each bar knows its row');
  t.strictSame(
    entryRows(model, asked('type:tool')).rows.map(({ id }) => id),
    [5, 6, 14, 15],
  );
});

/** Two rounds: a failed request and its retry with two calls, then an answer. */
const twoRounds: readonly EventInput[] = [
  { type: 'turn.started', at: day, turnId },
  { type: 'model.failed', at: day + 200, turnId, durationMs: 100, data: { model: 'm', text: 'overloaded' } },
  { type: 'thinking', at: day + 900, turnId, durationMs: 500, data: { text: 'Hm.' } },
  {
    type: 'tokens.used',
    at: day + 1_000,
    turnId,
    durationMs: 600,
    data: { inputTokens: 9, outputTokens: 1, costUsd: 0.01 },
  },
  ...['a', 'b'].flatMap((callId): EventInput[] => [
    { type: 'approval.completed', at: day + 1_000, turnId, callId, data: { decision: 'accept', decidedBy: 'policy' } },
    {
      type: 'tool.started',
      at: day + 1_000,
      turnId,
      callId,
      tool: 'Exec',
      data: { arguments: `{"command":"${callId}"}` },
    },
    { type: 'tool.completed', at: day + 2_000, turnId, callId, tool: 'Exec', durationMs: 1_000, data: { result: '' } },
  ]),
  { type: 'approval.requested', at: day + 2_000, turnId, callId: 'c', data: { kind: 'exec', summary: 'x' } },
  {
    type: 'approval.completed',
    at: day + 6_000,
    turnId,
    callId: 'c',
    data: { decision: 'decline', decidedBy: 'user' },
  },
  { type: 'response', at: day + 7_900, turnId, durationMs: 1_000, data: { text: 'Done.' } },
  {
    type: 'tokens.used',
    at: day + 8_000,
    turnId,
    durationMs: 2_000,
    data: { inputTokens: 20, outputTokens: 2, costUsd: 0.02 },
  },
  { type: 'turn.completed', at: day + 10_000, turnId, durationMs: 10_000, data: { status: 'completed' } },
];

t.test(
  'regression: rounds enclose their parts in order of time, and their costs add up to the cost of the turn',
  async (t) => {
    const model = modelOf(twoRounds);
    const tree = new TraceTree();
    const { rows } = treeRows(model, tree, { ...everything, folded: new Set() });
    t.strictSame(
      rows.map(({ kind }) => kind),
      ['turn', 'round', 'request', 'request', 'tool', 'tool', 'approval', 'round', 'request'],
      'a retried request adds no round, and an approval by a rule adds no row',
    );
    const rounds = tree.childrenOf(turnOf(model));
    for (const round of rounds) {
      const parts = tree.childrenOf(round);
      t.ok(parts.every(({ start, end }) => start >= round.start && (end ?? 0) <= (round.end ?? 0)));
      t.strictSame(
        [...parts].sort((a, b) => a.start - b.start),
        parts,
      );
    }
    t.equal(
      rounds.reduce((sum, { costUsd }) => sum + costUsd, 0),
      turnOf(model).costUsd,
    );
    t.equal(
      rounds.reduce((sum, { tokens }) => sum + tokens, 0),
      turnOf(model).tokens,
    );
    t.ok(model.spanOf(6)?.isByRule, 'a mark on the call');
    const calls = modelOf([
      { type: 'turn.started', at: day, turnId },
      { type: 'tokens.used', at: day + 10, turnId, durationMs: 10, data: {} },
      ...Array.from({ length: 46 }, (_, index): EventInput => {
        return { type: 'tool.started', at: day + 20 + index, turnId, callId: `c${index}`, tool: 'Exec', data: {} };
      }),
    ]);
    const shown = treeRows(calls, new TraceTree(), everything).rows;
    t.strictSame(
      shown.map(({ kind }) => kind),
      ['turn', 'round', 'request', 'calls'],
      'consecutive equal calls share one row',
    );
  },
);

t.test('the strip of a conversation shows the work of its turns in order, and the shares of each kind', async (t) => {
  const strip = stripOf(modelOf(twoRounds), day);
  t.equal(strip.totalMs, 10_000);
  const shareOf = (kind: string) =>
    strip.segments.filter((each) => each.kind === kind).reduce((sum, { share }) => sum + share, 0);
  t.ok(Math.abs(shareOf('asks') - 0.4) < 0.02, 'waiting for a person');
  t.ok(Math.abs(shareOf('works') - 0.1) < 0.02, 'parallel calls count once');
  t.ok(Math.abs(shareOf('thinks') - 0.5) < 0.02);
  t.equal(placeOf(strip, day + 3_000), 3_000);
  t.equal(momentAt(strip, 3_000)?.at, day + 3_000);
  t.equal(placeOf(strip, Number.POSITIVE_INFINITY), 10_000);
});

t.test('regression: the strip shows the pauses before repeated requests, also while one lasts', async (t) => {
  const failed = (after: number): EventInput => ({
    ...{ type: 'model.failed', at: day + after, turnId, durationMs: 1_000, data: { code: 'upstreamRateLimited' } },
  });
  const begun: readonly EventInput[] = [{ type: 'turn.started', at: day, turnId }, failed(1_000), failed(4_000)];
  const partsOf = (inputs: readonly EventInput[], now: number) =>
    stripOf(modelOf(inputs), now).segments.map(({ kind, share }) => [kind, Math.round(share * 10)]);
  const before = [
    ['thinks', 1],
    ['pauses', 2],
    ['thinks', 1],
  ];
  t.same(partsOf(begun, day + 10_000), [...before, ['pauses', 6]]);
  const answered: EventInput = {
    type: 'tokens.used',
    at: day + 9_000,
    turnId,
    durationMs: 2_000,
    data: { inputTokens: 1 },
  };
  const end: EventInput = { type: 'turn.completed', at: day + 10_000, turnId, durationMs: 10_000 };
  t.same(partsOf([...begun, answered, end], day), [...before, ['pauses', 3], ['thinks', 3]]);
});

t.test('a filter matches any value of one name and all names, with exclusions, durations and texts', async (t) => {
  const model = modelOf(oneTurn);
  const ids = (text: string, found: Showing['found'] = new Map()) =>
    spanRows(model, asked(text, { found }))
      .rows.filter((span) => span.kind !== 'turn')
      .map(({ id }) => id);
  t.strictSame(ids('type:thinking type:response'), [2, 7]);
  t.strictSame(ids('type:tool.failed tool:Exec'), [5]);
  t.strictSame(ids('type:tool.failed tool:Read'), []);
  t.strictSame(ids('type:tool'), [5], 'a type stands for all below it');
  t.strictSame(ids('-type:thinking -type:tool turn:turn_001'), [3, 7]);
  t.strictSame(ids('dur>2s'), [3]);
  t.strictSame(ids('dur>850ms dur<3s'), [5, 7]);
  t.strictSame(ids('is:failed'), [5]);
  t.strictSame(ids('"It failed"'), [7]);
  t.strictSame(ids('RM'), [3], 'texts in any case');
  t.strictSame(ids('hidden', new Map([['hidden', new Set([6])]])), [5], 'what the server found in the whole text');
  t.equal(parseFilter('dur=2').fault, 'A duration is written dur>2s or dur<500ms, not dur=2.');
  t.match(parseFilter('is:nice').fault, 'failed, running, waiting');
});

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const anyTerm: fc.Arbitrary<Term> = fc.oneof(
  fc.record({
    name: fc.constantFrom('type' as const, 'tool' as const, 'turn' as const, 'text' as const),
    value: text,
    isExcluded: fc.boolean(),
  }),
  fc
    .record({
      isLonger: fc.boolean(),
      amount: fc.nat(9999),
      unit: fc.constantFrom(['ms', 1], ['s', 1000], ['m', 60_000]),
      isExcluded: fc.boolean(),
    })
    .map(({ isLonger, amount, unit: [unit, ms], isExcluded }) => ({
      ...{ name: 'dur' as const, isLonger, isExcluded, ms: amount * Number(ms) },
      value: `${isLonger ? '>' : '<'}${amount}${unit}`,
    })),
);

t.test('a formatted filter parses as the same filter', async (t) => {
  fc.assert(
    fc.property(fc.array(anyTerm, { maxLength: 5 }), (terms) => {
      const { terms: read, fault } = parseFilter(spellFilter(terms));
      t.equal(fault, undefined);
      t.strictSame(
        read,
        terms.map((term) => ({ ...term })),
      );
    }),
  );
  fc.assert(
    fc.property(fc.string(), (typed) => {
      t.ok(parseFilter(typed).terms.length >= 0, 'no typed text throws');
    }),
  );
  const term: Term = { name: 'tool', value: 'Exec', isExcluded: false };
  t.equal(toggleTerm('type:tool', term), 'type:tool tool:Exec');
  t.equal(toggleTerm('type:tool tool:Exec', term), 'type:tool');
  t.equal(spellTerm({ name: 'tool', value: 'my tool', isExcluded: true }), '-tool:"my tool"');
});

t.test('zoom and pan stay within the session, and zoom keeps its centre in place', async (t) => {
  const bounds = { from: 0, to: 100_000 };
  const inside = fc
    .tuple(fc.nat(100_000), fc.nat(100_000))
    .map(([a, b]) => within(bounds, { from: Math.min(a, b), to: Math.max(a, b) }));
  fc.assert(
    fc.property(
      inside,
      fc.double({ min: 0.01, max: 20, noNaN: true }),
      fc.double({ min: -3, max: 3, noNaN: true }),
      (range, factor, share) => {
        for (const next of [zoomed(bounds, range, factor), moved(bounds, range, share)]) {
          t.ok(next.from >= -1e-6 && next.to <= bounds.to + 1e-6 && next.to > next.from);
        }
        t.ok(ticks(range, 0, 6).length <= 7);
      },
    ),
  );
  const near = zoomed(bounds, { from: 20_000, to: 60_000 }, 0.5, 30_000);
  t.strictSame(near, { from: 25_000, to: 45_000 });
  t.equal(spellZoom({ from: 1_200, to: 3_400 }, 1_000), '200-2400');
  t.strictSame(parseZoom('200-2400', 1_000), { from: 1_200, to: 3_400 });
  for (const bad of ['', 'x', '5-5', '9-1', '-1-5', undefined]) t.equal(parseZoom(bad, 0), undefined);
});

t.test('the JSON lines export has one event per line', async (t) => {
  const all = events(oneTurn);
  const lines = toJsonLines(all).trimEnd().split('\n');
  t.strictSame(
    lines.map((line) => JSON.parse(line)),
    all,
  );
  t.equal(toJsonLines([]), '');
});

t.test('the Chrome trace export has the structure that Perfetto and DevTools read', async (t) => {
  const { traceEvents, displayTimeUnit, otherData } = toChromeTrace(
    { sessionKey: 's', displayName: 'Mine' },
    events(oneTurn),
    day,
  );
  t.equal(displayTimeUnit, 'ms');
  t.match(otherData, { sessionKey: 's' });
  for (const event of traceEvents) {
    t.match(event, { name: String, cat: String, ph: /^[XiM]$/, ts: Number, pid: Number, tid: Number });
    t.ok(Number.isInteger(event.tid) && event.ts >= 0);
    if (event.ph === 'X') t.ok(event.dur !== undefined && event.dur >= 0, event.name);
    if (event.ph === 'i') t.equal(event.s, 't');
  }
  const call = traceEvents.find(({ name }) => name === 'Exec');
  t.match(call, { ph: 'X', ts: (day + 6_000) * 1_000, dur: 1_000_000, cat: 'tool,failed' });
  t.match(call?.args, { arguments: '{"command":"x"}', result: 'no', event: 5 }, 'both events, with whole texts');
  t.match(traceEvents.find(({ ph, name }) => ph === 'M' && name === 'process_name')?.args, { name: 'Mine' });
  const threads = traceEvents.filter(({ name }) => name === 'thread_name').map(({ args }) => args['name']);
  t.strictSame(threads, ['Turns', 'Thinking', 'Waiting for a person', 'Tools', 'Response']);
});

/** Slices of one track may contain each other; two that only overlap are drawn wrongly. */
function overlaps(events: readonly ChromeEvent[]): ChromeEvent[][] {
  const byTrack = Map.groupBy(
    events.filter(({ ph }) => ph === 'X'),
    ({ tid }) => tid,
  );
  return [...byTrack.values()].flatMap((track) => {
    const sorted = [...track].sort((a, b) => a.ts - b.ts);
    return sorted.flatMap((event, index) => {
      const next = sorted[index + 1];
      return next && next.ts < event.ts + (event.dur ?? 0) ? [[event, next]] : [];
    });
  });
}

t.test('overlapping calls of a Chrome trace are on separate tracks', async (t) => {
  const call = fc.tuple(fc.nat(5_000), fc.nat(5_000));
  fc.assert(
    fc.property(fc.array(call, { maxLength: 12 }), (calls) => {
      const inputs = calls
        .flatMap(([from, length], index): EventInput[] => [
          { type: 'tool.started', at: day + from, turnId, callId: `c${index}`, tool: 'Exec' },
          {
            type: 'tool.completed',
            at: day + from + length,
            turnId,
            callId: `c${index}`,
            tool: 'Exec',
            durationMs: length,
          },
        ])
        .sort((a, b) => (a.at ?? 0) - (b.at ?? 0) || a.type.localeCompare(b.type) * -1);
      const { traceEvents } = toChromeTrace({ sessionKey: 's' }, events(inputs), day + 10_000);
      t.strictSame(overlaps(traceEvents.filter(({ cat }) => cat === 'tool')), []);
      const names = new Set(traceEvents.filter(({ ph }) => ph === 'M').map(({ tid }) => tid));
      for (const { tid, ph } of traceEvents) if (ph !== 'M') t.ok(names.has(tid), 'every track has a name');
    }),
  );
});

t.test('the page requests as many events at once as the server allows', async (t) => {
  t.equal(maxEventsPerPage, defaults.dashboard.maxEventsPerPage);
});
