/** Turns that outgrow the window of their model. */
import t from 'tap';
import { ModelError, type ModelMessage } from '../../../src/agent/index.ts';
import { call, listening, say, scripted, service, settings, talk, text, tool } from '../helpers.ts';

const request = 'Count to one hundred, one step at a time, and never skip a number: 42 is one, too.';
const compaction = { isAutomatic: true, contextWindow: 0, reserveTokens: 20_000, keepRecentTurns: 3 };

/** Size of a request, as a service with three bytes to a token counts it. */
const tokensOf = (messages: readonly ModelMessage[]): number => Math.ceil(JSON.stringify(messages).length / 3);

/** A model with a window, which refuses longer requests, and counts with each call of the tool. */
function counter(window: number, last: number, words = 0) {
  const sizes: number[] = [];
  const requests: (readonly ModelMessage[])[] = [];
  let step = 0;
  let summaries = 0;
  const provider = scripted(async function* ({ messages }) {
    const whole = JSON.stringify(messages);
    const inputTokens = tokensOf(messages);
    if (inputTokens > window) throw new ModelError('contextTooLong', 'the prompt is too long');
    sizes.push(inputTokens);
    if (whole.includes('Summarise the conversation')) {
      summaries += 1;
      yield say(`Goal: count. Done: up to ${step}. Next: ${step + 1}.`);
    } else if (step < last) {
      requests.push([...messages]);
      step += 1;
      yield say(`Step ${step}. ${'Because the user asked for it. '.repeat(words)}`);
      yield call(`c${step}`, 'Count', { number: step });
    } else {
      requests.push([...messages]);
      yield say(`counted to ${step}`);
    }
    yield { type: 'usage', inputTokens, outputTokens: 10 };
  });
  const facts = () => ({
    provider: 'scripted',
    owner: 'scripted/m',
    contextWindow: window,
    maxOutputTokens: 4_096,
    reasoning: false,
  });
  return { provider: { ...provider, facts }, sizes, requests, summaries: () => summaries };
}

for (const [window, resultChars] of [
  [32_000, 6_000],
  [16_000, 9_000],
] as const) {
  t.test(`a turn of 100 requests in a window of ${window} ends with the right answer`, async (t) => {
    const { provider, sizes, requests, summaries } = counter(window, 100, 40);
    const ran: number[] = [];
    const count = tool({
      name: 'Count',
      run: async ({ number }) => {
        ran.push(Number(number));
        return { text: `${number} ${'x'.repeat(resultChars)}`, isError: false };
      },
    });
    const { runtime, bugs } = service(provider, {
      tools: () => [count],
      settings: { ...settings, maxToolCallRounds: 200, compaction },
    });
    const { thread } = runtime.threads.start({});
    const { turn } = await talk(runtime, thread.id, request);
    t.match(turn, { status: 'completed', finishReason: 'stop' });
    t.equal(runtime.threads.read(thread.id, { includeTurns: true }).contextUsage?.window, window);
    t.match(JSON.stringify(turn.items.at(-1)), 'counted to 100');
    t.same(
      ran,
      Array.from({ length: 100 }, (_, index) => index + 1),
      'every tool ran once, in order',
    );
    t.ok(Math.max(...sizes) <= window, 'no request exceeded the window');
    t.ok(summaries() > 1, `${summaries()} summaries`);
    const last = requests.at(-1) ?? [];
    t.match(JSON.stringify(last), request, 'the last request holds the words of the user');
    for (const [index, message] of last.entries()) {
      if (message.role !== 'assistant') continue;
      const results = last.slice(index + 1, index + 1 + message.toolCalls.length);
      t.same(
        results.map((result) => result.role === 'tool' && result.callId),
        message.toolCalls.map(({ callId }) => callId),
        'every call has its result',
      );
    }
    t.same(bugs, []);
  });
}

t.test('a window that is smaller than known is learned from the refusals', async (t) => {
  const { provider, requests } = counter(8_000, 30);
  const facts = () => ({ ...provider.facts(), contextWindow: 200_000 });
  const big = tool({ name: 'Count', run: async () => ({ text: 'y'.repeat(3_000), isError: false }) });
  const { runtime } = service(
    { ...provider, facts },
    { tools: () => [big], settings: { ...settings, maxToolCallRounds: 99, compaction } },
  );
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, request);
  t.match(turn, { status: 'completed' });
  t.match(JSON.stringify(requests.at(-1)), request);
});

t.test('a turn that cannot be shortened fails with the message of the service, after one request', async (t) => {
  let asked = 0;
  const provider = scripted(async function* () {
    asked += 1;
    yield* [];
    throw new ModelError('contextTooLong', 'the prompt is too long: 9 tokens');
  });
  const { runtime } = service(provider);
  const { turn } = await talk(runtime, runtime.threads.start({}).thread.id, 'x');
  t.match(turn, { status: 'failed', error: { code: 'contextTooLong', message: 'the prompt is too long: 9 tokens' } });
  t.equal(asked, 1);
});

t.test('an interrupt ends a compaction at once', async (t) => {
  const { provider } = counter(4_000, 50);
  const hanging = {
    ...provider,
    async stream(...args: Parameters<typeof provider.stream>) {
      const [{ messages }, , signal] = args;
      if (!JSON.stringify(messages).includes('Summarise')) return provider.stream(...args);
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    },
  };
  const big = tool({ name: 'Count', run: async () => ({ text: 'y'.repeat(2_000), isError: false }) });
  const { runtime } = service(hanging, {
    tools: () => [big],
    settings: { ...settings, maxToolCallRounds: 99, compaction },
  });
  const { thread } = runtime.threads.start({});
  const ear = listening();
  runtime.threads.subscribe(thread.id, ear.listener);
  const { turn, begin } = runtime.turns.start(thread.id, text(request), ear.listener);
  begin();
  await ear.until('system/event');
  runtime.turns.interrupt(thread.id, turn.id)();
  t.match((await ear.until('turn/cancelled')).params, { turn: { status: 'cancelled', interruptedBy: 'user' } });
});
