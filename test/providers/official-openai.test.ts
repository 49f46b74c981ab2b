/** The stand-in for OpenAI Responses, proven with OpenAI's own SDK as a correct client. */
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { pictures, pictureUrl } from '../pictures.ts';
import { startFake } from './fake.ts';
import { responsesFake } from './fakes/responses.ts';
import { lookUp, toolSchema } from './script.ts';

type Input = OpenAI.Responses.ResponseInputItem[];

async function client(t: Test) {
  const fake = await startFake(t, responsesFake(), { pieceBytes: [13] });
  const sdk = new OpenAI({ apiKey: fake.apiKey, baseURL: fake.endPoint, maxRetries: 0 });
  const ask = (input: Input, more: Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming> = {}) =>
    sdk.responses
      .stream({
        model: 'gpt-6-sol',
        store: false,
        include: ['reasoning.encrypted_content'],
        tools: [{ type: 'function', name: 'lookup', parameters: { ...toolSchema }, strict: false }],
        input,
        ...more,
        stream: true,
      })
      .finalResponse();
  return { fake, sdk, ask };
}

const person = (content: string): Input[number] => ({ role: 'user', content });
const results = ({ output }: OpenAI.Responses.Response): Input =>
  output.flatMap((item) =>
    item.type === 'function_call'
      ? [
          {
            type: 'function_call_output' as const,
            call_id: item.call_id,
            output: lookUp((JSON.parse(item.arguments) as { key: string }).key),
          },
        ]
      : [],
  );
const back = (response: OpenAI.Responses.Response): Input => response.output as Input;

t.test('a correct client is served: five rounds with reasoning, parallel calls, picture, endings, list', async (t) => {
  const { sdk, ask } = await client(t);
  for (const [text, rounds] of [
    ['tool loop 5', 5],
    ['parallel', 1],
  ] as const) {
    const input: Input = [person(text)];
    let answer = await ask(input);
    for (let round = 0; round < rounds; round += 1) {
      t.equal(answer.output[0]?.type, 'reasoning');
      input.push(...back(answer), ...results(answer));
      answer = await ask(input);
    }
    t.match(answer.output_text, /^Found: value of/);
    t.equal((await ask([...input, ...back(answer), person('hello')])).output_text, 'You said: hello');
  }
  const image = { type: 'input_image', image_url: pictureUrl(pictures.png, 'png'), detail: 'auto' } as const;
  const seen = await ask([{ role: 'user', content: [{ type: 'input_text', text: 'image' }, image] }]);
  t.equal(seen.output_text, 'I see image/png of 96');
  t.match((await ask([person('refusal')])).output, [{ content: [{ type: 'refusal' }] }]);
  t.match(await ask([person('length')]), { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
  t.equal((await sdk.models.list()).data.length, 2);
});

t.test('a refusal has the words of the service', async (t) => {
  const { sdk, ask } = await client(t);
  const question = person('tool loop 2');
  const answer = await ask([question]);
  const [reasoning, call] = back(answer);
  const [result] = results(answer);
  if (!reasoning || !call || !result || reasoning.type !== 'reasoning') throw new Error('no reasoning');
  const bare = { ...reasoning, encrypted_content: null };
  const cases: readonly (readonly [string, Input, RegExp])[] = [
    ['reasoning left out', [question, call, result], /without its required 'reasoning' item/],
    ['reasoning alone', [question, reasoning, person('next')], /without its required following item/],
    [
      'reasoning without its content',
      [question, bare, call, result],
      /Items are not persisted when `store` is set to false/,
    ],
    [
      'content of elsewhere',
      [question, { ...reasoning, encrypted_content: 'x' }, call, result],
      /could not be verified/,
    ],
    ['no output', [question, reasoning, call, person('next')], /No tool output found for function call/],
    ['no call', [question, result], /No tool call found for function call output/],
    [
      'a long id',
      [question, { type: 'function_call', call_id: 'x'.repeat(65), name: 'lookup', arguments: '{}' }],
      /maximum length 64/,
    ],
  ];
  for (const [name, input, words] of cases) await t.rejects(ask(input), { message: words }, name);
  await t.rejects(ask([question], { reasoning: { effort: 'minimal' } }), { code: 'unsupported_value' });
  await t.rejects(ask([question], { temperature: 0.5 }), { code: 'unsupported_parameter' });
  await t.rejects(ask([question], { max_output_tokens: 5 }), { code: 'integer_below_min_value' });
  await t.rejects(ask([question], { model: 'gpt-99' }), { message: /404/ });
  await t.rejects(new OpenAI({ apiKey: 'wrong', baseURL: sdk.baseURL, maxRetries: 0 }).models.list(), {
    message: /401/,
  });
});
