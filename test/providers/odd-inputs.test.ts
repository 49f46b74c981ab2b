/** Odd text and odd pictures from every source: no service has a reason to refuse a request because of them. */
import fc from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import { inputOf } from '../../src/acp/prompt.ts';
import type { ContentPart, ModelMessage, ModelProvider } from '../../src/agent/index.ts';
import { openStore } from '../../src/agent/index.ts';
import { parseJson } from '../../src/http/body.ts';
import { toToolResult } from '../../src/mcp/result.ts';
import type { InputPart } from '../../src/protocol/index.ts';
import { messageText, readMessage } from '../../src/rpc/index.ts';
import { call, listening, scripted, service, settings, tool as toolOf } from '../agent/helpers.ts';
import { message, thread as storedThread, turn as storedTurn, temporaryDirectory } from '../agent/store/helpers.ts';
import { animated, type PictureType, pictures, pictureUrl, png } from '../pictures.ts';
import { ask, tool, user } from './client.ts';
import { startFake } from './fake.ts';
import { refusalOf } from './strict.ts';
import { providerFor, subjects } from './subjects.ts';

const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_128 };
const wires = subjects.filter(({ name }) =>
  /^(OpenAI Responses|Anthropic, thinking budget|Gemini 3|chat completions: (openai|mistral))$/.test(name),
);

const oddText = fc
  .array(fc.constantFrom('\ud83d', '\ude00', '😀', '\\', '\\ud83d', '\\u0000', '\0', 'a', ' ', '"', '\n'), {
    minLength: 1,
    maxLength: 8,
  })
  .map((parts) => parts.join(''));
const types = Object.keys(pictures) as PictureType[];
const whole = fc.constantFrom(...types.map((type) => pictures[type]), animated, png(3, 2));
const oddBytes = fc.oneof(
  whole,
  fc.tuple(whole, fc.nat(40)).map(([bytes, length]) => bytes.subarray(0, length)),
  whole.map((bytes) => Buffer.concat([bytes, Buffer.from('<script>trailing')])),
  fc.tuple(whole, fc.nat(300), fc.nat(255)).map(([bytes, at, byte]) => {
    const changed = Buffer.from(bytes);
    changed[at % changed.length] = byte;
    return changed;
  }),
  fc.constantFrom(png(0, 1), png(9_000, 1), Buffer.from('<!doctype html><p>no picture'), Buffer.from('BM1234')),
);
const oddUrl = fc.oneof(
  fc
    .tuple(oddBytes, fc.constantFrom('png', 'jpeg', 'gif', 'webp', 'svg+xml', 'bmp'))
    .map(([bytes, type]) => pictureUrl(bytes, type)),
  fc.constantFrom(
    'data:image/png,%89PNG',
    'data:image/svg+xml,<svg/>',
    'data:',
    'not an address',
    'file:///etc/passwd',
    'data:image/png;base64,-_ \n==',
  ),
);
const oddArguments = fc.oneof(
  oddText,
  oddText.map((key) => JSON.stringify({ key })),
);

const content = fc.array(
  fc.oneof(
    oddText.map((text): ContentPart => ({ type: 'text', text })),
    oddUrl.map((url): ContentPart => ({ type: 'image', url })),
  ),
  { minLength: 1, maxLength: 3 },
);

const conversation = fc
  .tuple(oddText, content, oddText, oddArguments, content)
  .map(([system, said, text, args, result]): ModelMessage[] => [
    { role: 'system', text: `x${system}` },
    { role: 'user', content: said },
    { role: 'assistant', text, toolCalls: [{ callId: `c${text}`, name: 'lookup', arguments: args }] },
    { role: 'tool', callId: `c${text}`, name: 'lookup', content: result },
    { role: 'assistant', text: `x${text}`, toolCalls: [] },
    user('hello'),
  ]);

for (const subject of wires) {
  t.test(`${subject.name}: no odd text or picture of a conversation or a tool makes the service refuse`, async (t) => {
    const fake = await startFake(t, subject.dialect());
    const provider = await providerFor(fake, subject.settings);
    t.teardown(() => provider.close());
    await fc.assert(
      fc.asyncProperty(conversation, oddText, async (messages, description) => {
        const heard = await ask(provider, { messages, tools: [{ ...tool, description }] });
        return heard.finish === 'stop';
      }),
      { ...seed, numRuns: 30 },
    );
    t.ok(fake.answered.length >= 30);
  });
}

t.test('the stand-in refuses such text and pictures: positive control', async (t) => {
  for (const body of [
    { text: 'a \ud83d' },
    { text: 'a \0' },
    { '\ude00': 1 },
    { arguments: '{"a":"\\ud83d"}' },
    { image_url: { url: pictureUrl(pictures.png, 'jpeg') } },
    { source: { media_type: 'image/png', data: Buffer.from('<p>').toString('base64') } },
    { inlineData: { mimeType: 'image/svg+xml', data: pictures.png.toString('base64') } },
    { image_url: pictureUrl(pictures.webp.subarray(0, 40), 'webp') },
  ]) {
    t.type(refusalOf(body), 'string', JSON.stringify(body).slice(0, 80));
  }
  t.equal(refusalOf({ image_url: pictureUrl(pictures.png, 'png'), text: 'a 😀' }), undefined);
});

const isStrict = (value: unknown): boolean => !/\\ud[89a-f]/.test(JSON.stringify(value).replaceAll('\\\\', ''));

/** Runs a turn of a model that says odd things, then one against a strict service. */
async function oddTurn(
  strict: ModelProvider,
  [input, text, args, result]: readonly [readonly InputPart[], string, string, { text: string; url: string }],
): Promise<boolean> {
  let isOdd = true;
  const odd = scripted(async function* ({ messages }) {
    if (messages.at(-1)?.role === 'tool') return;
    yield { type: 'thinking', text: text.slice(0, 2) };
    yield { type: 'thinking', text: text.slice(2) };
    yield { type: 'text', text: text.slice(0, 1) };
    yield { type: 'text', text: text.slice(1) };
    yield { type: 'toolCallDelta', index: 0, callId: `c${text}`, name: 'Look', argumentsDelta: args };
    yield call(`c${text}`, 'Look', args);
  });
  const provider: ModelProvider = { ...odd, stream: (...request) => (isOdd ? odd : strict).stream(...request) };
  const look = toolOf({
    name: 'Look',
    run: () => ({ text: result.text, isError: false, images: [{ type: 'image', url: result.url }] }),
  });
  const { runtime } = service(provider, {
    tools: () => [{ ...look, inputSchema: { type: 'object', properties: {} } }],
  });
  const { thread } = runtime.threads.start({ displayName: text });
  const ear = listening();
  for (const end of [1, 2]) {
    runtime.turns.start(thread.id, input, ear.listener).begin();
    const ended = await Promise.race([ear.until('turn/completed', end), ear.until('turn/failed')]);
    if (ended.method === 'turn/failed') throw new Error(ended.params.error.message);
    isOdd = false;
  }
  return (
    isStrict(ear.events.filter(({ method }) => method !== 'turn/started')) &&
    isStrict(runtime.threads.read(thread.id, { includeTurns: true }).turns?.map(({ items }) => items))
  );
}

const input = fc.array(
  fc.oneof(
    oddText.map((text): InputPart => ({ type: 'text', text })),
    oddUrl.map((url): InputPart => ({ type: 'image', url })),
    oddText.map((name): InputPart => ({ type: 'fileRef', path: `/x/${name}` })),
  ),
  { minLength: 1, maxLength: 3 },
);

t.test(
  'after any prompt, answer and result the next turn of the thread is not refused, and its events are strict JSON',
  async (t) => {
    const subject = wires.find(({ name }) => name === 'chat completions: openai') ?? wires[0];
    if (!subject) throw new Error('no wire');
    const fake = await startFake(t, subject.dialect());
    const strict = await providerFor(fake, { ...subject.settings, Model: 'gpt-4.1' });
    t.teardown(() => strict.close());
    const result = fc.record({ text: oddText, url: oddUrl });
    await fc.assert(
      fc.asyncProperty(fc.tuple(input, oddText, oddArguments, result), (odd) => oddTurn(strict, odd)),
      { ...seed, numRuns: 30 },
    );
  },
);

t.test('a thread that an earlier version filled with such text and pictures works again', async (t) => {
  for (const subject of wires) {
    const fake = await startFake(t, subject.dialect());
    const provider = await providerFor(fake, subject.settings);
    t.teardown(() => provider.close());
    const store = openStore(temporaryDirectory(t));
    t.teardown(() => store.close());
    const base = { turnId: 'turn_001', createdAt: '2026-01-01T00:00:00.000Z', status: 'completed' } as const;
    store.threads.putThread(storedThread('old', { displayName: 'a \ud83d', workspacePath: '/work' }));
    store.threads.putTurn(storedTurn('old', 1, { status: 'failed' }));
    store.threads.putItem('old', {
      ...{ ...base, id: 'item_001', type: 'userMessage' },
      input: [
        { type: 'text', text: 'see \ud83d \0' },
        { type: 'image', url: pictureUrl(pictures.png, 'jpeg') },
        { type: 'image', url: pictureUrl(Buffer.from('<html>'), 'png') },
      ],
    });
    store.threads.putItem('old', message(1, 2, 'said \ude00'));
    store.threads.putItem('old', {
      ...{ ...base, id: 'item_003', type: 'toolCall', callId: 'c1', tool: 'Exec', source: 'builtin' },
      arguments: '{"command":"echo \\ud83d \\u0000"}',
    });
    store.threads.putItem('old', {
      ...{ ...base, id: 'item_004', type: 'toolResult', callId: 'c1', tool: 'Exec', outcome: 'completed' },
      text: 'out \ud83d\0',
    });
    const { runtime } = service(provider, { store: store.threads, settings: { ...settings, maxRetries: 0 } });
    const ear = listening();
    runtime.turns.start('old', [{ type: 'text', text: 'image?' }], ear.listener).begin();
    const end = await Promise.race([ear.until('turn/completed'), ear.until('turn/failed')]);
    t.match(end, { method: 'turn/completed' }, subject.name);
    t.equal(fake.requests.length, 1, 'the first request is accepted');
    t.ok(isStrict(runtime.threads.read('old', { includeTurns: true })));
  }
});

t.test('text that comes in over a socket, from an editor or from an MCP server is well-formed', async (t) => {
  fc.assert(
    fc.property(oddText, oddUrl, (text, url) => {
      const params = { threadId: 'a', input: [{ type: 'text', text }] };
      const frame = readMessage(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'turn/start', params }));
      const body = parseJson(Buffer.from(JSON.stringify(params)), v.unknown());
      const data = url.slice(url.indexOf(',') + 1);
      const { text: said, images = [] } = toToolResult(
        {
          content: [
            { type: 'text', text },
            { type: 'image', data, mimeType: 'image/png' },
          ],
        },
        (clean) => clean,
      );
      const prompt = inputOf([{ type: 'text', text }]);
      const sent = messageText({ id: 1, result: { prompt, said } });
      return (
        [frame, body, said].every(isStrict) &&
        isStrict(JSON.parse(sent)) &&
        refusalOf(images.map((image) => image.url)) === undefined
      );
    }),
    { ...seed, numRuns: 200 },
  );
  t.pass('in 200 cases');
});
