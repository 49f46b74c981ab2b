/** The stand-in for Anthropic, proven with Anthropic's own SDK as a correct client. */
import Anthropic from '@anthropic-ai/sdk';
import t, { type Test } from 'tap';
import { pictures } from '../pictures.ts';
import { startFake } from './fake.ts';
import { anthropicFake } from './fakes/anthropic.ts';
import { lookUp, toolSchema } from './script.ts';

type Messages = Anthropic.MessageParam[];

async function client(t: Test) {
  const fake = await startFake(t, anthropicFake(), { pieceBytes: [11] });
  const sdk = new Anthropic({ apiKey: fake.apiKey, baseURL: new URL(fake.endPoint).origin, maxRetries: 0 });
  const ask = (messages: Messages, more: Partial<Anthropic.MessageStreamParams> = {}) =>
    sdk.messages
      .stream({
        model: 'claude-sonnet-5-5',
        max_tokens: 4_096,
        thinking: { type: 'adaptive' } as Anthropic.ThinkingConfigParam,
        tools: [{ name: 'lookup', description: 'Looks up.', input_schema: { ...toolSchema, required: ['key'] } }],
        messages,
        ...more,
      })
      .finalMessage();
  return { fake, sdk, ask };
}

const results = ({ content }: Anthropic.Message): Anthropic.ToolResultBlockParam[] =>
  content.flatMap((block) =>
    block.type === 'tool_use'
      ? [{ type: 'tool_result', tool_use_id: block.id, content: lookUp((block.input as { key: string }).key) }]
      : [],
  );

const said = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('');

t.test('a correct client is served: five rounds with thinking, parallel calls, picture, endings, list', async (t) => {
  const { sdk, ask } = await client(t);
  for (const [text, rounds] of [
    ['tool loop 5', 5],
    ['parallel', 1],
  ] as const) {
    const messages: Messages = [{ role: 'user', content: text }];
    let answer = await ask(messages);
    for (let round = 0; round < rounds; round += 1) {
      t.equal(answer.stop_reason, 'tool_use');
      t.same(
        answer.content.slice(0, 2).map(({ type }) => type),
        ['thinking', 'redacted_thinking'],
      );
      messages.push({ role: 'assistant', content: answer.content }, { role: 'user', content: results(answer) });
      answer = await ask(messages);
    }
    t.match(said(answer), /^Found: value of/);
  }
  const image = {
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: pictures.png.toString('base64') },
  } as const;
  t.equal(
    said(await ask([{ role: 'user', content: [{ type: 'text', text: 'image' }, image] }])),
    'I see image/png of 96',
  );
  t.equal((await ask([{ role: 'user', content: 'refusal' }])).stop_reason, 'refusal');
  t.equal((await ask([{ role: 'user', content: 'length' }])).stop_reason, 'max_tokens');
  t.equal((await sdk.models.list()).data.length, 2);
});

t.test('a refusal has the words of the service', async (t) => {
  const { sdk, ask } = await client(t);
  const question: Messages = [{ role: 'user', content: 'tool loop 2' }];
  const answer = await ask(question);
  const [thinking, redacted, call] = answer.content;
  if (thinking?.type !== 'thinking' || !redacted || call?.type !== 'tool_use') throw new Error('no thinking');
  const after = (
    content: Anthropic.ContentBlockParam[],
    next: Anthropic.ContentBlockParam[] = results(answer),
  ): Messages => [...question, { role: 'assistant', content }, { role: 'user', content: next }];
  const cases: readonly (readonly [string, Messages, RegExp])[] = [
    ['thinking left out', after([call]), /Expected `thinking` or `redacted_thinking`, but found `tool_use`/],
    ['thinking changed', after([{ ...thinking, thinking: 'else' }, redacted, call]), /cannot be modified/],
    ['redacted thinking left out', after([thinking, call]), /cannot be modified/],
    ['thinking reordered', after([redacted, thinking, call]), /cannot be modified|Invalid `signature`/],
    [
      'a foreign signature',
      after([{ ...thinking, signature: 'x' }, redacted, call]),
      /Invalid `signature` in `thinking`/,
    ],
    [
      'no result',
      after(answer.content, [{ type: 'text', text: 'next' }]),
      /without `tool_result` blocks immediately after/,
    ],
    [
      'text before the result',
      after(answer.content, [{ type: 'text', text: 'next' }, ...results(answer)]),
      /without `tool_result` blocks immediately after/,
    ],
    [
      'a result without its call',
      [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_x', content: 'y' }] }],
      /unexpected `tool_use_id`/,
    ],
    ['an empty text', [{ role: 'user', content: [{ type: 'text', text: '' }] }], /must be non-empty/],
    ['a prefill', [...question, { role: 'assistant', content: 'I' }], /prefill/],
    [
      'an id with a colon',
      after([{ ...call, id: 'a:b' }], [{ type: 'tool_result', tool_use_id: 'a:b', content: 'x' }]),
      /should match pattern/,
    ],
  ];
  for (const [name, messages, words] of cases) await t.rejects(ask(messages), { message: words }, name);
  const budget = { type: 'enabled', budget_tokens: 2_000 } as const;
  await t.rejects(ask(question, { thinking: budget }), { message: /not supported/ });
  await t.rejects(ask(question, { temperature: 0 } as object), { message: /temperature/ });
  await t.rejects(ask(question, { max_tokens: 200_000 }), { message: /max_tokens/ });
  await t.rejects(ask(question, { model: 'claude-9' }), { message: /404/ });
  const marked = Array.from({ length: 5 }, (_, index) => ({
    type: 'text' as const,
    text: `${index}`,
    cache_control: { type: 'ephemeral' as const },
  }));
  await t.rejects(ask([{ role: 'user', content: marked }]), { message: /A maximum of 4 blocks with cache_control/ });
  const unauthenticated = new Anthropic({ apiKey: 'wrong', baseURL: sdk.baseURL, maxRetries: 0 });
  await t.rejects(unauthenticated.models.list(), { message: /401/ });
});
