/** Time until a limit is reset, as each provider states it. No test sends a request. */
import fc from 'fast-check';
import t from 'tap';
import { agentLimit, problemIn, refusedFault, reportedFault } from '../../../src/agent/providers/upstream/errors.ts';
import { type LimitRefusal, resetMs, resetSources } from '../../../src/agent/providers/upstream/reset.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
/** Noon of this machine. */
const noon = new Date(2026, 10, 30, 12, 0).getTime();
const at = (hours: number, minutes = 0, days = 0) => new Date(2026, 10, 30 + days, hours, minutes).getTime() - noon;
/** 20:00 UTC: noon in California. */
const evening = Date.UTC(2026, 10, 30, 20, 0);

const refusal = (over: Partial<LimitRefusal>): LimitRefusal => ({
  ...{ headers: {}, error: {}, message: '', quotas: [], isUsedUp: false, now: noon },
  ...over,
});
const epoch = (ms: number) => Math.floor((noon + ms) / second);
const iso = (ms: number) => new Date(noon + ms).toISOString();

type Case = readonly [source: keyof typeof resetSources | 'none', over: Partial<LimitRefusal>, ms: number | undefined];
const cases: readonly Case[] = [
  ['retryAfter', { headers: { 'retry-after': '7' } }, 7 * second],
  ['retryAfter', { headers: { 'retry-after': new Date(noon + hour).toUTCString() } }, hour],
  ['retryAfter', { headers: { 'retry-after-ms': '1234', 'retry-after': '9' } }, 1_234],
  ['subscription', { error: { type: 'usage_limit_reached', resets_at: epoch(5 * hour) } }, 5 * hour],
  ['subscription', { error: { type: 'usage_limit_reached', resets_in_seconds: 3_600 } }, hour],
  ['subscription', { error: { metadata: { resetsAt: iso(hour) } } }, hour],
  [
    'window',
    {
      headers: {
        ...{ 'x-codex-primary-used-percent': '100', 'x-codex-primary-reset-at': String(epoch(5 * hour)) },
        ...{ 'x-codex-secondary-used-percent': '100.0', 'x-codex-secondary-reset-after-seconds': '172800' },
      },
    },
    48 * hour,
  ],
  [
    'window',
    {
      headers: {
        ...{ 'x-codex-primary-used-percent': '100', 'x-codex-primary-reset-at': String(epoch(5 * hour)) },
        ...{ 'x-codex-secondary-used-percent': '12', 'x-codex-secondary-reset-at': String(epoch(90 * hour)) },
      },
    },
    5 * hour,
  ],
  [
    'none',
    { headers: { 'x-codex-primary-used-percent': '37.5', 'x-codex-primary-reset-at': String(epoch(hour)) } },
    undefined,
  ],
  ['none', { headers: { 'x-codex-primary-used-percent': '100', 'x-codex-primary-reset-at': '' } }, undefined],
  ['day', { now: evening, quotas: ['GenerateRequestsPerDayPerProjectPerModel-FreeTier'] }, 12 * hour],
  ['day', { now: evening, quotas: ['PerDay'], error: { details: [{ retryDelay: '30s' }] } }, 12 * hour],
  ['stated', { quotas: ['PerMinute'], error: { details: [{ '@type': 'RetryInfo', retryDelay: '1.2s' }] } }, 1_200],
  ['stated', { error: { retry_after: 3 } }, 3 * second],
  ['window', { headers: { 'anthropic-ratelimit-unified-reset': String(epoch(5 * hour)) } }, 5 * hour],
  ['limits', { headers: { 'anthropic-ratelimit-tokens-reset': iso(minute) } }, minute],
  [
    'limits',
    {
      headers: {
        ...{ 'x-ratelimit-reset-requests': '1s', 'x-ratelimit-remaining-requests': '9' },
        ...{ 'x-ratelimit-reset-tokens': '6m0s', 'x-ratelimit-remaining-tokens': '0' },
      },
    },
    6 * minute,
  ],
  ['none', { isUsedUp: true, headers: { 'x-ratelimit-reset-requests': '1s' } }, undefined],
  [
    'passedOn',
    { error: { metadata: { headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(noon + hour) } } } },
    hour,
  ],
  ['duration', { message: 'Rate limit reached for gpt-5. Please try again in 20s.' }, 20 * second],
  ['duration', { message: 'Please retry in 45.8s.' }, 45_800],
  ['duration', { message: 'try again in 1h2m3s' }, hour + 2 * minute + 3 * second],
  ['duration', { message: "You've hit your limit. Try again in 3 days 2 hours 5 minutes." }, 74 * hour + 5 * minute],
  ['duration', { message: 'Too many requests: wait 120 ms' }, 120],
  ['time', { message: 'try again at 18:40' }, at(18, 40)],
  ['time', { message: "You've hit your usage limit. Upgrade to Pro, or try again at 6:40 PM." }, at(18, 40)],
  ['time', { message: 'limit reached, resets 9am' }, at(9, 0, 1)],
  ['time', { message: 'Resets at 12:00 PM' }, 0],
  ['time', { message: 'resets at 11:58' }, 0],
  ['time', { message: 'Try again at Dec 1st, 2026 6:40 PM.' }, at(18, 40, 1)],
  ['time', { message: 'available again Jan 2 at 08:00' }, new Date(2027, 0, 2, 8, 0).getTime() - noon],
  ['time', { message: 'try again at 2026-12-01T18:40:00Z', now: evening }, 22 * hour + 40 * minute],
  ['time', { message: 'try again after 2026-12-01 18:40 UTC', now: evening }, 22 * hour + 40 * minute],
  ['time', { message: 'limit · resets 10pm (Europe/Berlin)', now: evening }, hour],
  ['time', { message: 'Claude AI usage limit reached|1796054400', now: 1_796_054_400_000 - hour }, hour],
  ['none', { message: 'try again later' }, undefined],
  ['none', { message: 'Try again with at most 20 pictures and 3 tools.' }, undefined],
  ['none', { message: 'try again at 25:99' }, undefined],
  ['none', { message: 'resets 6pm (Nowhere/Land)' }, undefined],
];

t.test('the time until a reset is read from each form of a refusal', (t) => {
  for (const [source, over, ms] of cases) {
    const name = JSON.stringify(over);
    t.equal(resetMs(refusal(over)), ms === undefined ? undefined : Math.max(0, ms), name);
    if (source !== 'none' && (ms ?? 0) > 0) t.equal(resetSources[source](refusal(over)), ms, `${source}: ${name}`);
  }
  t.same(
    Object.keys(resetSources).filter((source) => cases.every(([each]) => each !== source)),
    [],
    'each source has a case',
  );
  t.end();
});

t.test('a wrong clock of this machine does not change the wait: the clock of the provider counts', (t) => {
  for (const off of [-30 * 24 * hour, 2 * hour]) {
    const headers = { date: new Date(noon).toUTCString(), 'anthropic-ratelimit-unified-reset': String(epoch(hour)) };
    t.equal(resetMs(refusal({ headers, now: noon + off })), hour);
  }
  t.equal(resetMs(refusal({ error: { resets_at: epoch(-hour) } })), 0, 'a reset in the past');
  t.equal(resetMs(refusal({ error: { resets_at: epoch(8_760 * hour) } })), 8_760 * hour, 'a reset in a year');
  t.end();
});

t.test('each form of refusal becomes a failure with its reset; a used-up balance has none', (t) => {
  const fault = (status: number, headers: Readonly<Record<string, string>>, error: object) => {
    const given = { clean: (text: string) => text, now: noon };
    const { code, resetMs: ms, retryAfterMs } = refusedFault(status, headers, JSON.stringify({ error }), given);
    return [code, ms, retryAfterMs];
  };
  const rate = 'upstreamRateLimited';
  const used = 'upstreamQuotaExceeded';
  const google = { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'You exceeded your current quota.' };
  const day = { violations: [{ quotaId: 'GenerateRequestsPerDayPerProject' }] };
  const perDay = resetSources.day(refusal({ quotas: ['PerDay'] }));
  const limit = { type: 'rate_limit_error', message: 'This request would exceed your rate limit.' };
  const unified = { 'anthropic-ratelimit-unified-reset': String(epoch(5 * hour)), 'retry-after': '18000' };
  const table: readonly (readonly [string, readonly unknown[], readonly unknown[]])[] = [
    ['OpenAI, requests', fault(429, {}, { message: 'Please try again in 20s.' }), [rate, 20 * second, 20 * second]],
    [
      'OpenAI, balance',
      fault(429, { 'x-ratelimit-reset-requests': '1s' }, { message: 'x', code: 'insufficient_quota' }),
      [used, undefined, 1_000],
    ],
    ['a balance', fault(402, {}, { message: 'Insufficient credits' }), [used, undefined, undefined]],
    [
      'Gemini, a minute',
      fault(429, {}, { ...google, message: `${google.message} Please retry in 1.2s.` }),
      [rate, 1_200, 1_200],
    ],
    ['Gemini, a day', fault(429, {}, { ...google, details: [day, { retryDelay: '30s' }] }), [used, perDay, perDay]],
    [
      'codex',
      fault(429, {}, { type: 'usage_limit_reached', message: 'x', resets_in_seconds: 3_600 }),
      [rate, hour, hour],
    ],
    ['Claude', fault(429, unified, limit), [rate, 5 * hour, 5 * hour]],
    [
      'Claude, a window alone',
      fault(429, { 'anthropic-ratelimit-unified-reset': String(epoch(5 * hour)) }, limit),
      [rate, 5 * hour, 5 * hour],
    ],
    [
      'a rate of an hour, which may be free earlier',
      fault(429, { 'x-ratelimit-reset-tokens': '1h' }, { message: 'x' }),
      [rate, hour, undefined],
    ],
    [
      'OpenRouter',
      fault(
        429,
        {},
        { message: 'free-models-per-day', metadata: { headers: { 'X-RateLimit-Reset': String(noon + hour) } } },
      ),
      [rate, hour, hour],
    ],
    ['a compatible server', fault(429, {}, { message: 'try again at 18:40' }), [rate, at(18, 40), at(18, 40)]],
  ];
  for (const [name, found, expected] of table) t.same(found, expected, name);
  const problem = problemIn({ error: { type: 'usage_limit_reached', message: 'x', resets_in_seconds: 3_600 } });
  const reported = reportedFault(problem ?? { message: '' }, (text) => text, noon);
  t.match(reported, { code: rate, resetMs: hour, retryAfterMs: hour }, 'codex, inside of an answer');
  t.end();
});

t.test('an external agent states its limit in the data or the words of an error', (t) => {
  const table: readonly (readonly [string, unknown, unknown])[] = [
    [
      "Internal error: You've hit your usage limit. Try again at 6:40 PM.",
      undefined,
      ['upstreamRateLimited', at(18, 40)],
    ],
    [
      'Internal error',
      { error: { type: 'usage_limit_reached', resets_in_seconds: 60 } },
      ['upstreamRateLimited', minute],
    ],
    ['Internal error', { status: 429, retry_after: 9 }, ['upstreamRateLimited', 9 * second]],
    ["Claude: You've hit your session limit", null, ['upstreamRateLimited', undefined]],
    ['You exceeded your current quota', {}, ['upstreamQuotaExceeded', undefined]],
    ['The tool failed', { status: 500 }, undefined],
  ];
  for (const [message, data, expected] of table) {
    const found = agentLimit(message, data, noon);
    t.same(found && [found.code, found.resetMs], expected, message);
  }
  t.end();
});

t.test('any message and any fields give a finite time or none, in little time', (t) => {
  const word = fc.constantFrom(
    'try again',
    'at',
    'in',
    'resets',
    '18:40',
    '6pm',
    '99',
    'Dec',
    'days',
    '.',
    '(',
    'Z',
    '2026-12-01T',
  );
  const message = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.array(word, { maxLength: 40 }).map((words) => words.join(' ')),
  );
  const value = fc.oneof(fc.integer(), fc.double(), fc.string(), fc.constant(null), fc.constant('9'.repeat(400)));
  const error = fc.dictionary(fc.constantFrom('resets_at', 'resets_in_seconds', 'retry_after', 'metadata'), value);
  fc.assert(
    fc.property(message, error, (text, fields) => {
      const ms = resetMs(refusal({ message: text, error: fields }));
      t.ok(ms === undefined || (Number.isFinite(ms) && ms >= 0));
    }),
    { numRuns: 500 },
  );
  const began = performance.now();
  resetMs(refusal({ message: 'try again in '.repeat(50_000) }));
  resetMs(refusal({ message: `retry ${'1 d, '.repeat(50_000)}` }));
  t.ok(performance.now() - began < 60_000, 'a long message takes linear time');
  t.end();
});
