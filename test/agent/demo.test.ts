import t from 'tap';
import type { ModelEvent } from '../../src/agent/index.ts';
import { DemoProvider } from '../../src/agent/providers/demo.ts';

async function ask(words: string, paceMs = 0) {
  const events: ModelEvent[] = [];
  const request = { messages: [{ role: 'user' as const, text: words }] };
  for await (const event of new DemoProvider({ paceMs }).stream(request, new AbortController().signal))
    events.push(event);
  const said = (type: 'text' | 'thinking') => events.flatMap((event) => (event.type === type ? [event.text] : []));
  return { events, answer: said('text').join(''), thought: said('thinking').join(''), pieces: said('text').length };
}

t.test('every answer says that it is the demo model, streams in words, and tells its usage last', async (t) => {
  for (const words of [
    'hello',
    'help',
    '',
    '   ',
    'echo x',
    'count to 3',
    'what is the meaning of life?',
    '🎼 ünï',
    'x'.repeat(10_000),
  ]) {
    const { events, answer, thought, pieces } = await ask(words);
    t.match(answer, /^Demo model \(offline, no AI\): \S/, words.slice(0, 20));
    t.not(thought, '');
    t.ok(pieces > 5);
    t.match(events.at(-1), { type: 'usage', inputTokens: Number, outputTokens: Number });
    t.equal(events.filter(({ type }) => type === 'usage').length, 1);
  }
});

t.test('it follows its rules', async (t) => {
  t.match((await ask('Hello there')).answer, /Hello! I can/);
  t.match((await ask('what can you do?')).answer, /set ApiKey/);
  t.equal((await ask('echo  two\n lines ')).answer, 'Demo model (offline, no AI): two\n lines');
  t.equal((await ask('please count to 5')).answer, 'Demo model (offline, no AI): 1 2 3 4 5');
  t.match((await ask('count to 0')).answer, /nothing to count/);
  t.match((await ask('count to 999999999999')).answer, / 1000 … and so on; I stop at 1000\.$/);
  t.match((await ask('Why is the sky blue?')).answer, /You said: Why is the sky blue\?/);
});

t.test('the same words get the same answer', async (t) => {
  t.same((await ask('tell me')).events, (await ask('tell me')).events);
});

t.test('it stops when it is told to', async (t) => {
  const abort = new AbortController();
  const stream = new DemoProvider({ paceMs: 1 }).stream(
    { messages: [{ role: 'user', text: 'count to 1000' }] },
    abort.signal,
  );
  let heard = 0;
  await t.rejects(async () => {
    for await (const _ of stream) {
      heard += 1;
      if (heard === 5) abort.abort();
    }
  });
  t.equal(heard, 5);
});

t.test('it lists itself', async (t) => {
  t.same(await new DemoProvider().listModels(), [{ id: 'demo', ownedBy: 'oratorio' }]);
});
