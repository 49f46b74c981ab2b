/** Turns as clients see them: withdrawn parts of an answer, and an end that is not stored yet. */
import t from 'tap';
import { ModelError, openStore, type ThreadEvent } from '../../../src/agent/index.ts';
import type { FileCheckpoints } from '../../../src/agent/runtime/types.ts';
import type { Turn } from '../../../src/protocol/index.ts';
import { call, listening, say, scripted, service, settings, talk, text, tool } from '../helpers.ts';
import { temporaryDirectory } from '../store/helpers.ts';

const texts = ({ items }: Pick<Turn, 'items'>) =>
  items.flatMap((item) =>
    item.type === 'agentMessage' || item.type === 'reasoningContent' ? [[item.text, item.discarded]] : [],
  );
const discarded = (events: readonly ThreadEvent[]) =>
  events.flatMap((event) => (event.method === 'item/discarded' ? [event.params.itemIds] : []));

for (const [cause, options] of [
  ['a repetition', { maxRetries: 2 }],
  ['another model', { fallbackModels: ['second'] }],
] as const) {
  t.test(`${cause} withdraws the texts of the answer that broke off, and no others`, async (t) => {
    const requests: string[] = [];
    const provider = scripted(async function* ({ messages }) {
      requests.push(JSON.stringify(messages));
      if (requests.length === 1) {
        yield say('I count.');
        yield call('c1', 'Count');
      } else if (requests.length === 2) {
        yield { type: 'thinking', text: 'half a thought' };
        yield say('half an ans');
        throw new ModelError('upstreamProtocol', 'cut', { retryAfterMs: 1 });
      } else yield say('whole');
    });
    const directory = temporaryDirectory(t);
    const store = openStore(directory);
    const { runtime, bugs } = service(provider, {
      store: store.threads,
      tools: () => [tool({ name: 'Count' })],
      settings: { ...settings, ...options },
    });
    const { thread } = runtime.threads.start({});
    const { turn, ear } = await talk(runtime, thread.id, 'go');
    const shown = [
      ['I count.', undefined],
      ['half a thought', true],
      ['half an ans', true],
      ['whole', undefined],
    ];
    t.same(texts(turn), shown);
    const withdrawn = turn.items.filter((item) => 'discarded' in item).map(({ id }) => id);
    t.same(discarded(ear.events), [withdrawn]);
    await talk(runtime, thread.id, 'again');
    t.notMatch(requests.at(-1), /half/, 'it is not sent to the model again');
    t.match(requests.at(-1), /I count\..*whole/);
    await runtime.close();
    store.close();
    const reopened = openStore(directory);
    t.teardown(() => reopened.close());
    t.same(texts(reopened.threads.turns(thread.id, { limit: 2 })[0] as Turn), shown, 'and it is stored so');
    t.same(bugs, []);
  });
}

t.test('an answer that is not repeated stays when its request fails', async (t) => {
  const provider = scripted(async function* () {
    yield say('half an ans');
    throw new ModelError('upstreamProtocol', 'cut');
  });
  const { runtime } = service(provider);
  const { turn, ear } = await talk(runtime, runtime.threads.start({}).thread.id, 'go');
  t.same([turn.status, texts(turn), discarded(ear.events)], ['failed', [['half an ans', undefined]], []]);
});

/** Checkpoints that hold up the end of a turn until the test lets it be stored. */
function slowCheckpoints() {
  const asked = Promise.withResolvers<void>();
  const saved = Promise.withResolvers<void>();
  const checkpoints = {
    recovered: () => undefined,
    begin: () => undefined,
    secure: async () => undefined,
    settle: () => {
      asked.resolve();
      return saved.promise;
    },
  } as unknown as FileCheckpoints;
  return { checkpoints, asked: asked.promise, save: () => saved.resolve() };
}

for (const end of ['completed', 'cancelled'] as const) {
  t.test(`a turn whose ${end} end is not stored yet is shown as running`, async (t) => {
    const provider = scripted(async function* (_, signal) {
      yield say('done');
      if (end === 'completed') return;
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    });
    const { checkpoints, asked, save } = slowCheckpoints();
    const { runtime } = service(provider, { checkpoints });
    const { thread } = runtime.threads.start({});
    const ear = listening();
    const { turn, begin } = runtime.turns.start(thread.id, text('go'), ear.listener);
    begin();
    await ear.until('item/agentMessage/delta');
    if (end === 'cancelled') runtime.turns.interrupt(thread.id, turn.id)();
    await asked;
    const [before] = runtime.threads.read(thread.id, { includeTurns: true }).turns ?? [];
    t.match(before, { status: 'running', completedAt: undefined, interruptedBy: undefined, finishReason: undefined });
    save();
    await ear.until(`turn/${end}`);
    const [after] = runtime.threads.read(thread.id, { includeTurns: true }).turns ?? [];
    t.match(after, { status: end, completedAt: String }, 'positive control: the stored end is shown');
  });
}
