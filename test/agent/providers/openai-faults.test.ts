import { createServer as createTcpServer } from 'node:net';
import { inspect } from 'node:util';
import t, { type Test } from 'tap';
import type { ModelError, ModelEvent } from '../../../src/agent/model.ts';
import { brokenFault } from '../../../src/agent/providers/upstream/errors.ts';
import {
  type Action,
  answered,
  cut,
  delta,
  event,
  eventStream,
  hang,
  json,
  type MockUpstream,
  type Reply,
  rateLimited,
  refusal,
  type Script,
  says,
  startMockUpstream,
  streamed,
  wait,
  write,
} from '../../fixtures/upstream/mock-upstream.ts';
import { answerOf, apiKey, collect, hi, openAi, rejection } from './helpers.ts';

async function asked(t: Test, reply: Reply) {
  const upstream = await startMockUpstream(t, reply);
  const provider = openAi(upstream.url);
  t.teardown(() => provider.close());
  const error = await rejection(collect(provider));
  return { upstream, error };
}

/** Refusal as Google writes it, for both of its limits with these words. */
const gemini = (...details: readonly object[]) =>
  refusal(429, {
    message: 'You exceeded your current quota, please check your plan and billing details.',
    ...{ code: 429, status: 'RESOURCE_EXHAUSTED', details },
  });
const quota = (quotaId: string) => ({
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: [{ quotaId }],
});

const busy = (headers: Readonly<Record<string, string>> = {}) => refusal(503, { message: 'busy' }, headers);

t.test('an error names the pause that the upstream asks for', async (t) => {
  const inTwentySeconds = new Date(Date.now() + 20_000).toUTCString();
  const cases: readonly (readonly [Script, (ms: number | undefined) => boolean])[] = [
    [rateLimited(7), (ms) => ms === 7_000],
    [rateLimited(3_600), (ms) => ms === 3_600_000],
    [busy({ 'retry-after': '0' }), (ms) => ms === 0],
    [busy({ 'retry-after': inTwentySeconds }), (ms) => ms !== undefined && ms <= 20_000],
    [busy({ 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' }), (ms) => ms === 0],
    [busy({ 'retry-after-ms': '1234', 'retry-after': '9' }), (ms) => ms === 1_234],
    [busy({ 'retry-after': 'soon' }), (ms) => ms === undefined],
    [json(429, [{ error: { message: 'x', details: [{ retryDelay: '45.837906927s' }] } }]), (ms) => ms === 45_838],
    [refusal(429, { message: 'x', retry_after: 3 }), (ms) => ms === 3_000],
    [refusal(429, { message: 'x', metadata: { retry_after_ms: 250 } }), (ms) => ms === 250],
    [refusal(429, { message: 'x' }, { 'x-ratelimit-reset-requests': '1m30s' }), (ms) => ms === 90_000],
    [
      refusal(
        429,
        { message: 'x' },
        {
          ...{ 'x-ratelimit-reset-requests': '9s', 'x-ratelimit-remaining-requests': '12' },
          ...{ 'x-ratelimit-reset-tokens': '120ms', 'x-ratelimit-remaining-tokens': '0' },
        },
      ),
      (ms) => ms === 120,
    ],
    [
      refusal(
        429,
        { message: 'x' },
        { 'anthropic-ratelimit-requests-reset': new Date(Date.now() + 9_000).toISOString() },
      ),
      (ms) => ms !== undefined && ms <= 9_000 && ms > 0,
    ],
    [refusal(429, { message: 'x' }, { 'x-ratelimit-reset': `${Date.now() + 9_000}` }), (ms) => (ms ?? 0) > 0],
    [refusal(429, { message: 'x' }, { 'x-ratelimit-reset-requests': '24h' }), (ms) => ms === undefined],
    [busy({ 'x-ratelimit-reset-requests': '1m30s' }), (ms) => ms === undefined],
  ];
  for (const [script, isExpected] of cases) {
    const error = (await asked(t, () => script)).error as ModelError;
    t.ok(isExpected(error.retryAfterMs), `${error.message} ${error.retryAfterMs}`);
  }
});

t.test('an error says whether the same request may succeed later; the provider asks once', async (t) => {
  const cases: readonly (readonly [string, Script, boolean])[] = [
    ...[408, 409, 429, 500, 502, 503, 504, 529].map(
      (status) => [`${status}`, refusal(status, { message: 'x' }), true] as const,
    ),
    ...[301, 400, 401, 402, 403, 404, 413, 422, 501, 505].map(
      (status) => [`${status}`, refusal(status, { message: 'x' }), false] as const,
    ),
    ['a quota that is used up', refusal(429, { message: 'x', code: 'insufficient_quota' }), false],
    ['a daily quota', refusal(429, { message: 'Quota exceeded: GenerateRequestsPerDayPerProject' }), false],
    ['a hint not to', busy({ 'x-should-retry': 'false' }), false],
    ['a hint to', refusal(400, { message: 'x' }, { 'x-should-retry': 'true' }), true],
    ['a connection that is cut', [cut], true],
    ['an error in the stream before any word', streamed({ error: { message: 'x', type: 'server_error' } }), true],
    ['a stream that breaks before any word', [eventStream, write(': hi\n\n'), cut], true],
    ['a stream that breaks after a word', [eventStream, write(event(delta({ content: 'x' }))), cut], true],
    ['a stream that breaks after a thought', [eventStream, write(event(delta({ reasoning: 'x' }))), cut], true],
    [
      'a stream that breaks in a call',
      [eventStream, write(event(delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'x' } }] }))), cut],
      true,
    ],
    ['an error after a word', streamed(delta({ content: 'x' }), { error: { message: 'x', code: 503 } }), true],
    ['garbage', [eventStream, write('data: {\n\n')], false],
  ];
  for (const [name, script, isRetryable] of cases) {
    const { upstream, error } = await asked(t, () => script);
    t.match(error, { name: 'ModelError', isRetryable }, name);
    t.equal(upstream.requests.length, 1, name);
  }
});

t.test('a refusal is a typed error without the key', async (t) => {
  const quoted = `Incorrect API key provided: ${apiKey}.`;
  const cases: readonly (readonly [Script, object])[] = [
    [
      refusal(401, { message: quoted, code: 'invalid_api_key' }),
      {
        code: 'upstreamUnauthorized',
        message:
          /^The upstream at 127\.0\.0\.1:\d+ refuses the key \(401: Incorrect API key provided: \[redacted\]\)\.$/,
      },
    ],
    [refusal(403, { message: 'no' }), { code: 'upstreamUnauthorized' }],
    [refusal(404, { message: 'no such model' }), { code: 'upstreamRejected', message: /404: no such model\.$/ }],
    [refusal(429, { message: quoted }), { code: 'upstreamRateLimited' }],
    [json(500, { error: quoted }), { code: 'upstreamFailed', message: /\[redacted\]/ }],
    [json(400, { detail: quoted }), { code: 'upstreamRejected', message: /\[redacted\]/ }],
    [json(400, { detail: [{ msg: quoted }] }), { code: 'upstreamRejected', message: /\[redacted\]/ }],
    [
      json(400, [{ error: { message: quoted, status: 'INVALID_ARGUMENT' } }]),
      { code: 'upstreamRejected', message: /\[redacted\]/ },
    ],
    [json(400, { message: 'two\n\nlines. ' }), { message: 'The upstream answered 400: two lines.' }],
    [json(400, { error: { message: 'x'.repeat(20_000) } }), { code: 'upstreamRejected', message: /^.{100,600}$/ }],
    [json(400, { error: {} }), { message: 'The upstream answered 400: no reason given.' }],
    [json(400, 'text'), { message: 'The upstream answered 400.' }],
    [[{ do: 'head', status: 500 }, write('<html>')], { message: 'The upstream answered 500.' }],
    [[{ do: 'head', status: 500 }, write('{"error": {'), cut], { message: 'The upstream answered 500.' }],
    [[{ do: 'head', status: 400 }, write('x'.repeat(200_000)), hang], { message: 'The upstream answered 400.' }],
    [
      [{ do: 'head', status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
      { code: 'upstreamRejected', message: 'The upstream answered 302 (redirects are not followed).' },
    ],
    [streamed({ error: { message: quoted } }), { code: 'upstreamFailed', message: /\[redacted\]/ }],
    [
      refusal(400, { message: "This model's maximum context length is 8192 tokens.", code: 'context_length_exceeded' }),
      { code: 'contextTooLong' },
    ],
    [refusal(400, { message: "This model's maximum context length is 8192 tokens." }), { code: 'contextTooLong' }],
    [refusal(413, { message: 'prompt is too long: 210000 tokens > 200000 maximum' }), { code: 'contextTooLong' }],
    [refusal(400, { message: 'x', type: 'exceed_context_size_error' }), { code: 'contextTooLong' }],
    [refusal(429, { message: 'too many tokens per minute' }), { code: 'upstreamRateLimited' }],
    [gemini({ '@type': 'RetryInfo', retryDelay: '1.2s' }), { code: 'upstreamRateLimited', retryAfterMs: 1_200 }],
    [gemini(quota('GenerateRequestsPerMinutePerProjectPerModel')), { code: 'upstreamRateLimited' }],
    [
      gemini(quota('GenerateRequestsPerDayPerProject'), { retryDelay: '30s' }),
      { code: 'upstreamQuotaExceeded', isRetryable: false },
    ],
    [gemini(), { code: 'upstreamQuotaExceeded', isRetryable: false }],
    [gemini({ retryDelay: '3600s' }), { code: 'upstreamQuotaExceeded', isRetryable: false }],
    [
      refusal(429, { message: 'You exceeded your current quota' }, { 'retry-after': '2' }),
      { code: 'upstreamRateLimited', isRetryable: true, retryAfterMs: 2_000 },
    ],
    [
      refusal(429, { message: 'x', code: 'insufficient_quota' }, { 'x-ratelimit-reset-requests': '1s' }),
      { code: 'upstreamQuotaExceeded', isRetryable: false },
    ],
    [
      refusal(403, { message: 'x', errors: [{ reason: 'rateLimitExceeded' }] }),
      { code: 'upstreamRateLimited', isRetryable: true },
    ],
    [refusal(400, { message: 'max_tokens is too large: 100000.' }), { code: 'upstreamRejected', refusedFields: [] }],
    [refusal(400, { message: 'x', param: 'tools[1].function' }), { refusedFields: ['tools[1].function'] }],
    [
      refusal(400, { message: 'x', details: [{ fieldViolations: [{ field: 'tools[0]' }, { field: 'contents[1]' }] }] }),
      { refusedFields: ['tools[0]', 'contents[1]'] },
    ],
  ];
  for (const [script, expected] of cases) {
    const { error } = await asked(t, () => script);
    t.match(error, { name: 'ModelError', ...expected }, inspect(expected));
    t.notMatch(inspect(error, { depth: 9, showHidden: true }), apiKey);
  }
});

t.test('the list of models fails with the same typed errors', async (t) => {
  const tcp = createTcpServer((socket) => {
    socket.end(`HTTP/1.1 401 No\r\ncontent-length: 2\r\n\r\n{}`);
  });
  const provider = openAi(`http://127.0.0.1:${await listening(t, tcp)}`);
  t.teardown(() => provider.close());
  await t.rejects(provider.listModels(new AbortController().signal), { code: 'upstreamUnauthorized' });
});

async function listening(t: Test, server: ReturnType<typeof createTcpServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return (server.address() as { port: number }).port;
}

t.test(
  'a refused connection to this machine names its address, the way to start a server and the setting',
  async (t) => {
    // Not one that was free a moment ago: another process may be given that.
    const port = 1;
    const provider = openAi(`http://user:${apiKey}@127.0.0.1:${port}/v1?key=${apiKey}`);
    const error = await rejection(collect(provider));
    t.match(error, {
      code: 'upstreamUnreachable',
      isRetryable: true,
      maxRetries: 4,
      message: `The upstream at 127.0.0.1:${port} cannot be reached: ECONNREFUSED. Nothing listens there. Start the model server, or correct EndPoint; oratorio model names its file.`,
    });
    const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    t.match(
      brokenFault(refused, { address: '[::1]:11434' }, false).message,
      'Start the model server (ollama serve), or',
    );
    for (const place of [{ address: 'models.example:11434' }, { address: '127.0.0.1:11434', proxy: 'proxy:3128' }]) {
      const elsewhere = brokenFault(refused, place, false);
      t.match(elsewhere, { isRetryable: true, maxRetries: undefined }, 'control: another machine is waited for');
      t.notMatch(elsewhere.message, 'Nothing listens');
    }
    t.notMatch(inspect(error, { depth: 9, showHidden: true }), apiKey);
  },
);

t.test('a server that does not speak HTTP is a typed error', async (t) => {
  const port = await listening(
    t,
    createTcpServer((socket) => {
      socket.end('220 mail.example.com ESMTP\r\n');
    }),
  );
  const provider = openAi(`http://127.0.0.1:${port}`);
  t.match(await rejection(collect(provider)), { code: 'upstreamProtocol', message: /does not speak HTTP/ });
  const overTls = openAi(`https://127.0.0.1:${port}`);
  t.match(await rejection(collect(overTls)), { code: 'upstreamUnreachable' });
});

t.test('a key that is invalid in a header is refused before a request', async (t) => {
  const upstream = await startMockUpstream(t, (request) => says(request, 'x'));
  const error = await rejection(collect(openAi(upstream.url, { apiKey: `${apiKey}\nx: y` })));
  t.match(error, { name: 'ModelError', code: 'upstreamRejected' });
  t.notMatch(inspect(error, { depth: 9, showHidden: true }), apiKey);
  const pasted = openAi(upstream.url, { apiKey: ` ${apiKey}\n` });
  t.teardown(() => pasted.close());
  await collect(pasted);
  t.equal(upstream.requests[0]?.headers.authorization, `Bearer ${apiKey}`);
});

t.test('a silent upstream times out; comments keep the request alive', async (t) => {
  const silent: readonly (readonly [Script, string])[] = [
    [[hang], 'upstreamUnreachable'],
    [[eventStream, hang], 'upstreamFailed'],
    [[eventStream, write(event(delta({ content: 'x' }))), hang], 'upstreamFailed'],
  ];
  // Long enough for the sent part of a response to arrive on a busy machine; so all are waited for at once.
  const idleMs = 5_000;
  const givenUp = silent.map(async ([script, code]) => {
    const upstream = await startMockUpstream(t, () => script);
    const error = await rejection(collect(openAi(upstream.url, { idleMs })));
    t.match(error, { code, message: /was silent for 5000 ms/ });
    t.equal(upstream.requests.length, 1, 'the provider asks once');
    await upstream.untilIdle();
  });
  // Longer in all than the bound, but never silent for so long.
  const comments = Array.from({ length: 12 }, (): readonly Action[] => [
    { do: 'pause', ms: 500 },
    write(': alive\n\n'),
  ]);
  const upstream = await startMockUpstream(t, () => [
    eventStream,
    ...comments.flat(),
    ...streamed(delta({ content: 'x' }, 'stop')).slice(1),
  ]);
  const provider = openAi(upstream.url, { idleMs });
  t.teardown(() => provider.close());
  t.equal(answerOf(await collect(provider)).text, 'x');
  await Promise.all(givenUp);
});

t.test('a complete answer does not wait for the end of its connection', async (t) => {
  for (const script of [
    [...streamed(delta({ content: 'x' }, 'stop')), hang],
    [eventStream, write(event(delta({ content: 'x' }, 'stop'))), hang],
  ]) {
    const upstream = await startMockUpstream(t, () => script);
    // Without its [DONE] an answer is taken for complete after this time; the answer itself has to come within it.
    const provider = openAi(upstream.url, { idleMs: 5_000 });
    t.match(answerOf(await collect(provider)), { text: 'x', finish: 'stop' });
    await upstream.untilIdle();
  }
});

t.test('bytes after a complete answer end the connection', async (t) => {
  const upstream = await startMockUpstream(t, () => [
    ...streamed(delta({ content: 'x' }, 'stop')),
    ...Array.from({ length: 100 }, () => write('x'.repeat(10_000))),
    hang,
  ]);
  t.match(answerOf(await collect(openAi(upstream.url))), { text: 'x' });
  await upstream.untilIdle();
});

async function abortedAfter(upstream: MockUpstream, isTime: (event: ModelEvent) => boolean) {
  const abort = new AbortController();
  const heard: ModelEvent[] = [];
  const reason = new Error('enough');
  const emit = (event: ModelEvent) => {
    t.notOk(abort.signal.aborted, 'nothing is told after the abort');
    heard.push(event);
    if (isTime(event)) abort.abort(reason);
  };
  const error = await rejection(openAi(upstream.url).stream(hi, emit, abort.signal));
  return { error, reason, heard };
}

t.test('an abort ends the request at once, also inside a chunk', async (t) => {
  const chunks = ['a', 'b', 'c', 'd'].map((content) => event(delta({ content }))).join('');
  const upstream = await startMockUpstream(t, () => [eventStream, write(chunks), hang]);
  const { error, reason, heard } = await abortedAfter(upstream, (event) => event.type === 'text' && event.text === 'b');
  t.equal(error, reason);
  t.same(
    heard.map((event) => event.type === 'text' && event.text),
    ['a', 'b'],
  );
  await upstream.requests[0]?.closed;
  await upstream.untilIdle();
});

t.test('an abort ends the request before it starts and before its answer', async (t) => {
  const upstream = await startMockUpstream(t, () => [hang]);
  await t.rejects(collect(openAi(upstream.url), hi, AbortSignal.abort(new Error('never mind'))), {
    message: 'never mind',
  });
  t.equal(upstream.requests.length, 0);

  const abort = new AbortController();
  const asked = collect(openAi(upstream.url), hi, abort.signal);
  while (upstream.requests.length === 0) await new Promise(setImmediate);
  abort.abort(new Error('too long'));
  await t.rejects(asked, { message: 'too long' });
  await upstream.untilIdle();
});

t.test('a throwing listener ends its own request only', async (t) => {
  const upstream = await startMockUpstream(t, () => [eventStream, write(event(delta({ content: 'x' }))), hang]);
  const bug = new Error('bug');
  const provider = openAi(upstream.url);
  const signal = new AbortController().signal;
  const throwing = provider.stream(
    hi,
    () => {
      throw bug;
    },
    signal,
  );
  t.equal(await rejection(throwing), bug);
  await upstream.untilIdle();
});

t.test('a connection closed while idle is replaced without counting as an attempt', async (t) => {
  const ended = Promise.withResolvers<void>();
  let connections = 0;
  const answer = JSON.stringify({ choices: [{ message: { content: 'x' }, finish_reason: 'stop' }] });
  const server = createTcpServer((socket) => {
    connections += 1;
    let requests = 0;
    socket.on('error', () => {});
    socket.on('data', () => {
      requests += 1;
      // The second request on a connection finds it gone.
      if (requests === 2) socket.resetAndDestroy();
      else socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`);
    });
    socket.on('close', () => ended.resolve());
  });
  const provider = openAi(`http://127.0.0.1:${await listening(t, server)}`);
  t.teardown(() => provider.close());
  for (const _ of [1, 2]) t.equal(answerOf(await collect(provider)).text, 'x');
  t.equal(connections, 2);
  await ended.promise;
});

t.test('closing ends running requests and all connections', async (t) => {
  const upstream = await startMockUpstream(t, (request) =>
    request.number === 0 ? says(request, 'x') : [eventStream, write(event(delta({}))), hang],
  );
  const provider = openAi(upstream.url);
  await collect(provider);
  const running = rejection(collect(provider));
  while (upstream.requests.length < 2) await new Promise(setImmediate);
  provider.close();
  t.match(await running, { code: 'upstreamUnreachable', message: 'The provider was closed.' });
  await upstream.untilIdle();
  t.equal(upstream.requests.length, 2);
});

t.test('many parallel answers, some aborted, leave no connection open', async (t) => {
  const all = 60;
  const everybodyAsked = Promise.withResolvers<void>();
  const upstream = await startMockUpstream(t, (request) => {
    if (request.number === all - 1) everybodyAsked.resolve();
    const script = answered(request, { text: 'one two three', pieceLength: 2 });
    return [...script.slice(0, 4), wait(everybodyAsked.promise), ...script.slice(4)];
  });
  const provider = openAi(upstream.url);
  const letters = async (isLeaving: boolean) => {
    const abort = new AbortController();
    let heard = '';
    const emit = (event: ModelEvent) => {
      if (event.type === 'text') heard += event.text;
      if (isLeaving && heard.length === 6) abort.abort();
    };
    await rejection(provider.stream(hi, emit, abort.signal));
    return heard;
  };
  const heard = await Promise.all(Array.from({ length: all }, (_, index) => letters(index % 3 === 0)));
  for (const [index, words] of heard.entries()) t.equal(words, index % 3 === 0 ? 'one tw' : 'one two three');
  provider.close();
  await upstream.untilIdle();
});
