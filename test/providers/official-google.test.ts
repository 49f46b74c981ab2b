/** The stand-in for Gemini, proven with Google's own SDK as a correct client. */
import { type Content, type FunctionCall, GoogleGenAI, type Part } from '@google/genai';
import t, { type Test } from 'tap';
import { pictures } from '../pictures.ts';
import { startFake } from './fake.ts';
import { googleFake } from './fakes/google.ts';
import { lookUp, toolSchema } from './script.ts';

async function client(t: Test) {
  const fake = await startFake(t, googleFake(), { pieceBytes: [17] });
  const { origin } = new URL(fake.endPoint);
  const connect = (apiKey: string) =>
    new GoogleGenAI({ apiKey, httpOptions: { baseUrl: origin, apiVersion: 'v1beta' } });
  const sdk = connect(fake.apiKey);
  const ask = async (contents: Content[], config: object = {}, model = 'gemini-3.8-flash') => {
    const parts: Part[] = [];
    let finishReason: string | undefined;
    const tools = [{ functionDeclarations: [{ name: 'lookup', description: 'x', parametersJsonSchema: toolSchema }] }];
    for await (const chunk of await sdk.models.generateContentStream({
      model,
      contents,
      config: { tools, ...config },
    })) {
      const [candidate] = chunk.candidates ?? [];
      parts.push(...(candidate?.content?.parts ?? []));
      finishReason = candidate?.finishReason ?? finishReason;
    }
    return { parts: parts.filter(({ text }) => text !== ''), finishReason };
  };
  return { ask, sdk, connect };
}

const person = (text: string): Content => ({ role: 'user', parts: [{ text }] });
const respond = ({ name, args }: FunctionCall): Part => ({
  functionResponse: { name: name ?? '', response: { output: lookUp(String(args?.['key'])) } },
});
const results = (parts: readonly Part[]): Content => ({
  role: 'user',
  parts: parts.flatMap(({ functionCall }) => (functionCall ? [respond(functionCall)] : [])),
});
const said = (parts: readonly Part[]): string => parts.map(({ text = '' }) => text).join('');

t.test('a correct client is served: five rounds with signatures, parallel calls, picture, endings, list', async (t) => {
  const { ask, sdk } = await client(t);
  for (const [text, rounds] of [
    ['tool loop 5', 5],
    ['parallel', 1],
  ] as const) {
    const contents = [person(text)];
    let answer = await ask(contents);
    for (let round = 0; round < rounds; round += 1) {
      contents.push({ role: 'model', parts: answer.parts }, results(answer.parts));
      answer = await ask(contents);
    }
    t.match(said(answer.parts), /^Found: value of/);
  }
  const image: Content = {
    role: 'user',
    parts: [{ text: 'image' }, { inlineData: { mimeType: 'image/png', data: pictures.png.toString('base64') } }],
  };
  t.equal(said((await ask([image])).parts), 'I see image/png of 96');
  t.equal((await ask([person('refusal')])).finishReason, 'SAFETY');
  t.equal((await ask([person('length')])).finishReason, 'MAX_TOKENS');
  const models = await sdk.models.list();
  t.equal(models.page[0]?.inputTokenLimit, 1_048_576);
});

t.test('a refusal has the words of the service', async (t) => {
  const { ask, connect } = await client(t);
  const question = person('tool loop 2');
  const { parts } = await ask([question]);
  const without = parts.map(({ thoughtSignature: _, ...part }) => part);
  const changed = parts.map((part) =>
    part.thoughtSignature === undefined ? part : { ...part, thoughtSignature: 'AAAA' },
  );
  const cases: readonly (readonly [string, Content[], RegExp])[] = [
    [
      'signature left out',
      [question, { role: 'model', parts: without }, results(parts)],
      /missing a thought_signature/,
    ],
    ['signature changed', [question, { role: 'model', parts: changed }, results(parts)], /signature is not valid/],
    ['no response', [question, { role: 'model', parts }, person('next')], /number of function response parts is equal/],
  ];
  for (const [name, contents, words] of cases) await t.rejects(ask(contents), { message: words }, name);
  const skipped = parts.map((part) =>
    part.functionCall ? { ...part, thoughtSignature: 'skip_thought_signature_validator' } : part,
  );
  await t.resolves(ask([question, { role: 'model', parts: skipped }, results(parts)]), 'foreign history may skip it');
  const both = { thinkingConfig: { thinkingBudget: 100, thinkingLevel: 'LOW' } };
  await t.rejects(ask([question], both), { message: /only set one/ });
  await t.rejects(ask([question], { thinkingConfig: { thinkingLevel: 'LOW' } }, 'gemini-2.5-flash'), {
    message: /Thinking level is not supported/,
  });
  await t.rejects(ask([question], {}, 'gemini-99'), { message: /is not found/ });
  await t.rejects(connect('wrong').models.list(), { message: /API key not valid/ });
});
