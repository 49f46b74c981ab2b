/** Requests that a service refuses because of one part: the turn continues without that part, and so do later turns. */
import t from 'tap';
import {
  ModelError,
  type ModelRequest,
  openStore,
  type ThreadEvent,
  type ThreadService,
} from '../../../src/agent/index.ts';
import type { InputPart } from '../../../src/protocol/index.ts';
import { pictures } from '../../pictures.ts';
import { call, listening, say, scripted, service, settings, tool } from '../helpers.ts';
import { temporaryDirectory } from '../store/helpers.ts';

const picture = { type: 'image', url: `data:image/png;base64,${pictures.png.toString('base64')}` } as const;
const words = (text: string): InputPart => ({ type: 'text', text });

async function converse(threads: ThreadService, threadId: string, input: readonly InputPart[]) {
  const ear = listening();
  threads.startTurn(threadId, input, ear.listener).begin();
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
      const { threads, bugs } = service(provider, { store: first.threads });
      const { thread } = threads.start({});
      const { turn, events } = await converse(threads, thread.id, [words('see'), picture]);
      t.match(turn, { status: 'completed' });
      t.same(requests.splice(0), [1, 0], 'asked once more');
      t.same(notices(events), ['requestRepeated', 'pictureRefused']);
      t.match(
        turn.items.find((item) => item.type === 'systemNotice'),
        { text: /Asking again without 1 picture\./ },
      );
      t.match((await converse(threads, thread.id, [words('and now?')])).turn, { status: 'completed' });
      t.same(requests.splice(0), [0], 'the next turn is not refused');
      await threads.close();
      first.close();
      const second = openStore(directory);
      t.teardown(() => second.close());
      const restarted = service(provider, { store: second.threads });
      t.match((await converse(restarted.threads, thread.id, [words('hello?')])).turn, { status: 'completed' });
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
  const { threads } = service(provider);
  const { thread } = threads.start({});
  await converse(threads, thread.id, [words('one'), picture]);
  await converse(threads, thread.id, [words('two'), picture]);
  await converse(threads, thread.id, [words('three')]);
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
  const { threads } = service(provider, { tools: () => [look] });
  const { turn } = await converse(threads, threads.start({}).thread.id, [words('look')]);
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
  const { threads } = service(provider, { settings: { ...settings, maxRetries: 3 } });
  const { thread } = threads.start({});
  const { turn } = await converse(threads, thread.id, [words('see'), picture]);
  t.match(turn, { status: 'failed', error: { code: 'upstreamRejected', message: 'Unknown parameter: foo' } });
  t.same(requests.splice(0), [1, 0]);
  isBroken = false;
  await converse(threads, thread.id, [words('and now?')]);
  t.same(requests, [1], 'positive control: nothing was left out for good');
});
