/** Requests that a service refuses because of one part: the turn continues without that part, and so do later turns. */
import t from 'tap';
import { ModelError, type ModelRequest, openStore, type Runtime, type ThreadEvent } from '../../../src/agent/index.ts';
import type { InputPart } from '../../../src/protocol/index.ts';
import { pictures } from '../../pictures.ts';
import { call, listening, say, scripted, service, settings, tool } from '../helpers.ts';
import { temporaryDirectory } from '../store/helpers.ts';

const picture = { type: 'image', url: `data:image/png;base64,${pictures.png.toString('base64')}` } as const;
const words = (text: string): InputPart => ({ type: 'text', text });

async function converse(runtime: Runtime, threadId: string, input: readonly InputPart[]) {
  const ear = listening();
  runtime.turns.start(threadId, input, ear.listener).begin();
  const end = await Promise.race([ear.until('turn/completed'), ear.until('turn/failed')]);
  return { turn: end.params.turn, events: ear.events };
}

const picturesIn = ({ messages }: ModelRequest): number =>
  messages.flatMap((message) => ('content' in message ? message.content.filter(({ type }) => type === 'image') : []))
    .length;
const notices = (events: readonly ThreadEvent[]) =>
  events.flatMap((event) =>
    event.method === 'item/completed' && event.params.item.type === 'systemNotice' ? [event.params.item.kind] : [],
  );

/** A model without pictures. */
function blind(refusal: () => ModelError) {
  const requests: number[] = [];
  const provider = scripted(async function* (request) {
    requests.push(picturesIn(request));
    if (picturesIn(request) > 0) throw refusal();
    yield say('I see no picture.');
  });
  return { provider, requests };
}

const refusals: readonly (readonly [string, () => ModelError])[] = [
  ['a status', () => new ModelError('upstreamRejected', 'The upstream answered 400: Bad Request.', { status: 400 })],
  ['a size', () => new ModelError('contextTooLong', 'The upstream answered 413.', { status: 413 })],
  ['words', () => new ModelError('upstreamRejected', 'No endpoints found that support image input.', { status: 404 })],
  ['words of a failure', () => new ModelError('upstreamFailed', 'image input is not supported', { status: 500 })],
];
for (const [by, refusal] of refusals) {
  t.test(
    `a picture that the service refuses by ${by} is left out, also in later turns and after a restart`,
    async (t) => {
      const { provider, requests } = blind(refusal);
      const directory = temporaryDirectory(t);
      const first = openStore(directory);
      const { runtime, bugs } = service(provider, { store: first.threads });
      const { thread } = runtime.threads.start({});
      const { turn, events } = await converse(runtime, thread.id, [words('see'), picture]);
      t.match(turn, { status: 'completed' });
      t.same(requests.splice(0), [1, 0], 'asked once more');
      t.same(notices(events), ['requestRepeated', 'pictureRefused']);
      t.match(
        turn.items.find((item) => item.type === 'systemNotice'),
        { text: /Asking again without 1 picture\./ },
      );
      t.match((await converse(runtime, thread.id, [words('and now?')])).turn, { status: 'completed' });
      t.same(requests.splice(0), [0], 'the next turn is not refused');
      await runtime.close();
      first.close();
      const second = openStore(directory);
      t.teardown(() => second.close());
      const restarted = service(provider, { store: second.threads });
      t.match((await converse(restarted.runtime, thread.id, [words('hello?')])).turn, { status: 'completed' });
      t.same([requests.splice(0), bugs], [[0], []]);
    },
  );
}

t.test('a picture that the service takes stays; one that it refuses later does not take it away', async (t) => {
  const requests: number[] = [];
  const provider = scripted(async function* (request) {
    requests.push(picturesIn(request));
    if (picturesIn(request) > 1) throw new ModelError('upstreamRejected', 'Could not process image', { status: 400 });
    yield say('I see.');
  });
  const { runtime } = service(provider);
  const { thread } = runtime.threads.start({});
  await converse(runtime, thread.id, [words('one'), picture]);
  await converse(runtime, thread.id, [words('two'), picture]);
  await converse(runtime, thread.id, [words('three')]);
  t.same(requests, [1, 2, 1, 1]);
});

t.test('a picture of a tool that the service refuses is left out in the running turn', async (t) => {
  const requests: number[] = [];
  const provider = scripted(async function* (request) {
    requests.push(picturesIn(request));
    if (picturesIn(request) > 0) throw new ModelError('upstreamRejected', 'invalid image', { status: 400 });
    yield request.messages.at(-1)?.role === 'tool' ? say('done') : call('c1', 'Look');
  });
  const look = tool({ name: 'Look', run: () => ({ text: 'a picture', isError: false, images: [picture] }) });
  const { runtime } = service(provider, { tools: () => [look] });
  const { turn } = await converse(runtime, runtime.threads.start({}).thread.id, [words('look')]);
  t.match(turn, { status: 'completed' });
  t.same(requests, [0, 1, 0]);
});

t.test('a refusal that has another cause ends the turn after one more request, and the picture stays', async (t) => {
  const requests: number[] = [];
  let isBroken = true;
  const provider = scripted(async function* (request) {
    requests.push(picturesIn(request));
    if (isBroken) throw new ModelError('upstreamRejected', 'Unknown parameter: foo', { status: 400 });
    yield say('I see.');
  });
  const { runtime } = service(provider, { settings: { ...settings, maxRetries: 3 } });
  const { thread } = runtime.threads.start({});
  const { turn } = await converse(runtime, thread.id, [words('see'), picture]);
  t.match(turn, { status: 'failed', error: { code: 'upstreamRejected', message: 'Unknown parameter: foo' } });
  t.same(requests.splice(0), [1, 0]);
  isBroken = false;
  await converse(runtime, thread.id, [words('and now?')]);
  t.same(requests, [1], 'positive control: nothing was left out for good');
});

const offered = ['ReadFile', 'docs__good', 'docs__coin', 'bad', 'docs__last'];
const systemEvents = (events: readonly ThreadEvent[], kind: string) =>
  events.flatMap((event) =>
    event.method === 'system/event' && event.params.kind === kind ? [event.params.message] : [],
  );

/** A model whose service refuses every request with the tool `bad`. */
function picky(refusal: (index: number) => ModelError, refused: readonly string[] = ['bad']) {
  const requests: string[][] = [];
  const provider = scripted(async function* ({ tools = [] }) {
    const names = tools.map(({ name }) => name);
    requests.push(names);
    const index = names.findIndex((name) => refused.includes(name));
    if (index >= 0) throw refusal(index);
    yield say('hello');
  });
  return { provider, requests };
}
const rejected = (message: string, status = 400) =>
  new ModelError('upstreamRejected', `The upstream answered ${status}: ${message}.`, { status });

const rejectedField = (field: string) =>
  new ModelError('upstreamRejected', 'The upstream answered 400: Invalid schema.', {
    status: 400,
    refusedFields: [field],
  });

const shapes: Readonly<Record<string, (index: number) => ModelError>> = {
  'a name as OpenAI writes it': () =>
    rejected("Invalid schema for function 'bad': In context=('properties', 'docs__coin'), schema must have a type"),
  'an index as OpenAI writes it': (index) => rejected(`Invalid 'tools[${index}].function.parameters': not an object`),
  'an index in the Responses API': (index) => rejected(`Missing required parameter: 'tools[${index}].name'`),
  'an index as Anthropic writes it': (index) =>
    rejected(`tools.${index}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12`),
  'an index as Google writes it': (index) =>
    rejected(
      `* GenerateContentRequest.tools[0].function_declarations[${index}].parameters.properties[x]: missing field`,
    ),
  'an index in the JSON names of Google': (index) =>
    rejected(`Unknown name "$ref" at 'tools[0].functionDeclarations[${index}].parameters': Cannot find field`),
  'an index as pydantic writes it': (index) =>
    rejected(`[{"type":"dict_type","loc":["body","tools",${index},"function","parameters"]}]`, 422),
  'an index in the tuples of vLLM': (index) =>
    rejected(`[{'type': 'dict_type', 'loc': ('body', 'tools', ${index}, 'function', 'parameters')}]`),
  'an index in a field beside the message': (index) => rejectedField(`tools[${index}].function.parameters`),
  'an index in a field of Google': (index) => rejectedField(`tools[0].function_declarations[${index}].parameters`),
  'a name in a field beside the message': () => rejectedField('bad'),
  'a name in double quotes': () => rejected('Tool "bad" has an invalid schema'),
  'a name before the word tool': () => rejected('The parameters of the `bad` tool are not an object'),
};
for (const [by, refusal] of Object.entries(shapes)) {
  t.test(`a tool that the service refuses by ${by} is left out, also in later turns and after a restart`, async (t) => {
    const { provider, requests } = picky(refusal);
    const rest = offered.filter((name) => name !== 'bad');
    const tools = () => offered.map((name) => tool({ name }));
    const directory = temporaryDirectory(t);
    const first = openStore(directory);
    const { runtime, bugs } = service(provider, { store: first.threads, tools });
    const { thread } = runtime.threads.start({});
    const { turn, events } = await converse(runtime, thread.id, [words('hello')]);
    t.match(turn, { status: 'completed' });
    t.same(requests.splice(0), [offered, rest], 'positive control: the first request is refused; asked once more');
    t.same(notices(events), ['requestRepeated', 'toolRefused']);
    t.match(systemEvents(events, 'retrying'), [/Asking again without the tool bad\.$/]);
    t.match(systemEvents(events, 'toolProblem'), [
      /refused the tool bad; .*Correct the schema where the tool is defined/,
    ]);
    const { turn: second, events: later } = await converse(runtime, thread.id, [words('and now?')]);
    t.match(second, { status: 'completed' });
    t.same([requests.splice(0), notices(later)], [[rest], []], 'the next turn is not refused, and says nothing again');
    await converse(runtime, runtime.threads.start({}).thread.id, [words('hello')]);
    t.same(requests.splice(0), [offered, rest], 'another conversation tries the tool');
    await runtime.close();
    first.close();
    const reopened = openStore(directory);
    t.teardown(() => reopened.close());
    const restarted = service(provider, { store: reopened.threads, tools });
    t.match((await converse(restarted.runtime, thread.id, [words('hello?')])).turn, { status: 'completed' });
    t.same([requests.splice(0), bugs], [[rest], []]);
  });
}

t.test('two refused tools are left out one after the other, and one notice names both', async (t) => {
  const { provider, requests } = picky(
    (index) => rejected(`tools.${index}.custom.input_schema: invalid`),
    ['ReadFile', 'bad'],
  );
  const { runtime } = service(provider, { tools: () => offered.map((name) => tool({ name })) });
  const { turn, events } = await converse(runtime, runtime.threads.start({}).thread.id, [words('hello')]);
  t.match(turn, { status: 'completed' });
  t.same(requests.at(-1), ['docs__good', 'docs__coin', 'docs__last']);
  t.match(systemEvents(events, 'toolProblem'), [/refused the tools ReadFile, bad; .* gets them/]);
});

t.test('a refused tool of the client is left out; one that the request demands ends the turn', async (t) => {
  const { provider, requests } = picky(() => rejected("Invalid schema for function 'bad': no"));
  const { runtime } = service(provider, { tools: () => [tool({ name: 'ReadFile' })] });
  const clientTools = [{ name: 'bad', description: 'Odd.', inputSchema: { type: 'object' } }];
  const ask = async (toolChoice?: { readonly name: string }) => {
    const ear = listening();
    const { id } = runtime.threads.start({}).thread;
    runtime.turns.start(id, [words('hello')], ear.listener, { clientTools, toolChoice }).begin();
    return (await Promise.race([ear.until('turn/completed'), ear.until('turn/failed')])).params.turn;
  };
  t.match(await ask(), { status: 'completed' });
  t.same(requests.splice(0), [['bad', 'ReadFile'], ['ReadFile']]);
  t.match(await ask({ name: 'bad' }), { status: 'failed', error: { code: 'upstreamRejected' } });
  t.same(requests, [['bad', 'ReadFile']]);
});

t.test('an odd tool of a client is offered in part, and a system event names it', async (t) => {
  const { provider, requests } = picky(() => rejected('never'), []);
  const { runtime } = service(provider);
  const ear = listening();
  const inputSchema = { type: 'object', properties: { coin: { type: 'coin' } } };
  const clientTools = [
    { name: 'odd', description: 'Odd.', inputSchema },
    { name: 'worse', description: 'Worse.', inputSchema: { type: 'string' } },
  ];
  runtime.turns.start(runtime.threads.start({}).thread.id, [words('hello')], ear.listener, { clientTools }).begin();
  await ear.until('turn/completed');
  t.match(systemEvents(ear.events, 'toolProblem'), [
    /^The tool odd is offered in part: /,
    /^The tool worse is left out: /,
  ]);
  t.same(requests, [['odd']]);
});

const otherRefusals: Readonly<Record<string, ModelError>> = {
  'names no tool': rejected('Unknown parameter: foo'),
  'names an index of the conversation': rejected("messages.3.content.0: tool 'bad' was called without a result"),
  'names a number of tools': rejected("Invalid 'tools': array too long. Expected at most 3, but got 5"),
  'names two tools': rejected("Tool names must be unique: 'bad', 'docs__coin'"),
  'uses the name of a tool as a word': rejected('This function bad or good is not available'),
  'names an index beyond the list': rejected("Invalid 'tools[70].function.parameters'"),
  'has a field of another part': new ModelError('upstreamRejected', 'Unknown value.', {
    status: 400,
    refusedFields: ['bad', 'input[1].content'],
  }),
  'has another status': new ModelError('upstreamFailed', "Invalid schema for function 'bad'", { status: 500 }),
};
for (const [refusal, error] of Object.entries(otherRefusals)) {
  t.test(`a refusal that ${refusal} ends the turn, and no tool is left out`, async (t) => {
    const { provider, requests } = picky(() => error);
    const { runtime } = service(provider, { tools: () => offered.map((name) => tool({ name })) });
    const { turn } = await converse(runtime, runtime.threads.start({}).thread.id, [words('hello')]);
    t.match(turn, { status: 'failed', error: { message: error.message } });
    t.same(requests, [offered]);
  });
}
