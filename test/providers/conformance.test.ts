/** Our providers against services that refuse the same requests as the real ones. */
import t, { type Test } from 'tap';
import type { ModelEvent } from '../../src/agent/index.ts';
import { pictures } from '../pictures.ts';
import { capabilities } from './capabilities.ts';
import { ask, continued, converse, tool, user } from './client.ts';
import { type FakeOptions, requestId, startFake } from './fake.ts';
import { lookUp } from './script.ts';
import { providerFor, type Subject, subjects } from './subjects.ts';

async function running(t: Test, { dialect, settings }: Subject, options?: FakeOptions) {
  const fake = await startFake(t, dialect(), options);
  const provider = await providerFor(fake, settings);
  t.teardown(() => provider.close());
  return { fake, provider };
}

const picture = pictures.png.toString('base64');

for (const subject of subjects) {
  t.test(subject.name, async (t) => {
    t.test(capabilities.toolLoop.test, async (t) => {
      const { fake, provider } = await running(t, subject, { pieceBytes: [7, 41, 41, 41] });
      const { last, rounds, messages } = await converse(provider, [user('tool loop 5')], { cacheKey: 'thread-1' });
      t.equal(last.text, `Found: ${[0, 1, 2, 3, 4].map((round) => lookUp(`k${round}`)).join(', ')}`);
      t.same([rounds.length, fake.answered.length, last.finish], [6, 6, 'stop']);
      for (const round of rounds.slice(0, 5)) t.equal(round.finish, 'toolCalls');
      const next = await converse(provider, [...messages, user('tool loop 2')], { cacheKey: 'thread-1' });
      t.match(next.last.text, lookUp('k1'), 'the next turn is understood, too');
    });

    t.test(capabilities.parallel.test, async (t) => {
      const { provider } = await running(t, subject);
      const { last, rounds } = await converse(provider, [user('parallel')]);
      t.equal(rounds[0]?.calls.length, 2);
      t.equal(last.text, `Found: ${lookUp('left')}, ${lookUp('right')}`);
    });

    t.test(capabilities.foreign.test, async (t) => {
      const { provider } = await running(t, subject);
      const foreign = {
        owner: 'other/model',
        data: [{ type: 'reasoning', text: 'secret', providerOptions: { x: { y: 1 } } }],
      };
      const { last } = await converse(provider, [
        user('tool loop 1'),
        {
          role: 'assistant',
          text: '',
          toolCalls: [{ callId: 'toolu/foreign:1', name: 'lookup', arguments: 'not JSON' }],
          state: foreign,
        },
        { role: 'tool', callId: 'toolu/foreign:1', name: 'lookup', content: [{ type: 'text', text: '' }] },
        { role: 'assistant', text: 'done', toolCalls: [] },
        user('tool loop 1'),
      ]);
      t.match(last.text, lookUp('k0'));
    });

    t.test(capabilities.pictures.test, async (t) => {
      const { provider } = await running(t, subject);
      const heard = await ask(provider, {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'image?' },
              { type: 'image', url: `data:image/png;base64,${picture}` },
            ],
          },
        ],
      });
      t.equal(heard.text, `I see image/png of ${picture.length}`);
    });

    t.test(capabilities.ends.test, async (t) => {
      const { provider } = await running(t, subject);
      t.equal((await ask(provider, { messages: [user('refusal')] })).finish, 'contentFilter');
      t.match(await ask(provider, { messages: [user('length')] }), { finish: 'length', text: 'This text is cut' });
      t.equal((await ask(provider, { messages: [user('filter')] })).finish, 'contentFilter');
    });

    t.test(capabilities.json.test, async (t) => {
      const { provider } = await running(t, subject);
      const schema = {
        type: 'object',
        properties: { answer: { type: 'number' } },
        required: ['answer'],
        additionalProperties: false,
      };
      const responseFormat = { type: 'json_schema', json_schema: { name: 'answer', schema } };
      t.equal((await ask(provider, { messages: [user('json')], responseFormat })).text, '{"answer":42}');
    });

    t.test(capabilities.usage.test, async (t) => {
      const { fake, provider } = await running(t, subject);
      const { rounds } = await converse(provider, [user('tool loop 2')], { cacheKey: 'thread-1' });
      for (const [index, { usage }] of rounds.entries()) {
        t.equal(usage?.inputTokens, Math.ceil((fake.answered[index]?.bytes ?? 0) / 4));
        t.equal(usage?.outputTokens, 20);
        t.notOk(usage?.isEstimated);
      }
      t.ok((rounds.at(-1)?.usage?.cachedInputTokens ?? 0) > 0, 'the beginning was read from the cache');
      t.equal(rounds[0]?.usage?.costUsd, subject.rules?.cost, 'a cost is that of the service');
    });

    t.test(capabilities.effort.test, async (t) => {
      const { provider } = await running(t, subject);
      for (const effort of ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const) {
        t.match(await ask(provider, { messages: [user('hello')], effort }), { text: 'You said: hello' }, effort);
      }
      t.match(await ask(provider, { messages: [user('hello')], maxOutputTokens: 5 }), { finish: 'stop' });
    });

    t.test(capabilities.statuses.test, async (t) => {
      const { fake, provider } = await running(t, subject);
      const cases = [
        [429, true],
        [500, true],
        [503, true],
        [529, true],
        [400, false],
        [403, false],
        [404, false],
      ] as const;
      for (const [status, isRetryable] of cases) {
        fake.faults.push({ status, body: `<html>${fake.apiKey}</html>`, headers: { 'retry-after': '7' } });
        const error = await ask(provider, { messages: [user('hello')] }).catch((thrown: Error) => thrown);
        t.match(error, { name: 'ModelError', isRetryable, retryAfterMs: 7_000 }, `${status}`);
        t.notMatch(JSON.stringify(error) + String(error), fake.apiKey);
      }
      fake.faults.push({ status: 529, body: '' });
      const plain = await ask(provider, { messages: [user('hello')] }).catch((thrown: Error) => thrown);
      t.match(plain, { isRetryable: true, retryAfterMs: undefined }, 'without a pause of its own');
      fake.faults.push({ status: 307, headers: { location: 'http://127.0.0.1:1/elsewhere' } });
      await t.rejects(ask(provider, { messages: [user('hello')] }), {
        code: 'upstreamRejected',
        message: /not followed/,
      });
    });

    t.test(capabilities.cuts.test, async (t) => {
      const { fake, provider } = await running(t, subject);
      await ask(provider, { messages: [user('tool loop 1')], tools: [tool] });
      const whole = fake.answerBytes;
      const places = Array.from({ length: 24 }, (_, index) => Math.floor((whole * index) / 24));
      for (const at of places) {
        for (const fault of [{ cutAfterBytes: at }, { endAfterBytes: at }]) {
          fake.faults.push(fault);
          const error = await ask(provider, { messages: [user('tool loop 1')], tools: [tool] }).catch((e: Error) => e);
          t.match(error, { name: 'ModelError', isRetryable: true }, JSON.stringify(fault));
        }
      }
    });

    t.test(capabilities.abort.test, async (t) => {
      const { fake, provider } = await running(t, subject);
      fake.faults.push({ isSilent: true });
      const abort = new AbortController();
      const asked = ask(provider, { messages: [user('hello')] }, abort.signal);
      while (fake.requests.length === 0) await new Promise(setImmediate);
      abort.abort(new Error('enough'));
      await t.rejects(asked, { message: 'enough' });
    });

    t.test(capabilities.list.test, async (t) => {
      const { provider } = await running(t, subject);
      const models = await provider.listModels(new AbortController().signal);
      t.ok(models.some(({ id }) => id.endsWith(String(subject.settings['Model']))));
      t.ok(models.every(({ contextWindow }) => (contextWindow ?? 0) > 0));
    });

    t.test(capabilities.requestId.test, async (t) => {
      const fake = await startFake(t, subject.dialect());
      for (const apiKey of [fake.apiKey, 'wrong']) {
        const provider = await providerFor({ ...fake, apiKey }, subject.settings);
        t.teardown(() => provider.close());
        const events: ModelEvent[] = [];
        const request = { messages: [user('hello')] };
        const answer = provider.stream(request, (event) => events.push(event), new AbortController().signal);
        await answer.catch((error: unknown) => t.match(error, { code: 'upstreamUnauthorized' }));
        t.match(events[0], { type: 'received', requestId });
        t.equal(events.filter(({ type }) => type === 'received').length, 1);
      }
    });

    t.test(capabilities.wrongKey.test, async (t) => {
      const fake = await startFake(t, subject.dialect());
      const provider = await providerFor({ ...fake, apiKey: 'wrong' }, subject.settings);
      t.teardown(() => provider.close());
      await t.rejects(ask(provider, { messages: [user('hello')] }), {
        code: 'upstreamUnauthorized',
        isRetryable: false,
      });
      const lists = await provider.lists(new AbortController().signal);
      t.match(lists.at(-1), { error: { code: 'upstreamUnauthorized' } });
    });
  });
}

for (const subject of subjects.filter(({ name }) => name === 'OpenAI Responses')) {
  t.test(`${subject.name}: state of another account is refused, and the fault says so`, async (t) => {
    const { provider: first } = await running(t, subject);
    const heard = await ask(first, { messages: [user('tool loop 1')], tools: [tool] });
    const { provider: second } = await running(t, subject);
    const messages = continued([user('tool loop 1')], heard);
    await t.rejects(ask(second, { messages, tools: [tool] }), {
      code: 'upstreamRejected',
      isRetryable: false,
      refusesState: true,
    });
  });
}
