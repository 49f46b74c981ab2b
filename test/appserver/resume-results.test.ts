/** kill -9 around the results of calls: the next agent server sends the model the results that it has seen before. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { KilledWorkspace, type Prepared, unsoundCalls } from './killed-turns.ts';

/** One pixel, as PNG. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

t.test('a result in a request that a kill interrupts is unchanged in every later request', async (t) => {
  const place = new KilledWorkspace(t);
  await place.connect();
  /** Results of a call in the requests so far, without repetitions. */
  const resultsOf = (callId: string) => [
    ...new Set(
      place.requests.flatMap(({ messages }) =>
        messages.flatMap((message) =>
          message.role === 'tool' && message.callId === callId ? [JSON.stringify(message.content)] : [],
        ),
      ),
    ),
  ];
  // Requests 2 to 5 carry the results of a read, of commands, of a written and of an edited file.
  for (const [number, last] of ['r', 'e2', 'e3', 'd'].entries()) {
    const turn = await place.prepare('work');
    place.arm({ kind: 'request', number: number + 2 });
    place.begin(turn);
    await place.hasEnded;
    const callId = `${turn.name}-${last}`;
    t.equal(resultsOf(callId).length, 1, 'control: the model has seen the result');
    writeFileSync(join(place.path, 'notes.txt'), `changed ${number}\n`);
    await place.restart();
    await place.connect();
    const { status, resumes, items } = (await place.ended(turn)).at(-1) ?? {};
    t.same({ status, resumes }, { status: 'completed', resumes: 1 });
    t.equal(resultsOf(callId).length, 1, callId);
    for (const { outcome } of items.filter(({ type }: { type: string }) => type === 'toolResult'))
      t.equal(outcome, 'completed');
    t.equal(place.effectsOf(turn).length, 3);
  }
  t.same(unsoundCalls(place.requests), []);
});

t.test('the model gets the names of the turn’s files that the user changed while no server was running', async (t) => {
  const place = new KilledWorkspace(t);
  await place.connect();
  const names = async (change: (turn: Prepared) => void) => {
    const turn = await place.prepare('work');
    // The fourth request: notes.txt is read, a file is written.
    place.arm({ kind: 'request', number: 4 });
    place.begin(turn);
    await place.hasEnded;
    change(turn);
    await place.restart();
    await place.connect();
    t.match((await place.ended(turn)).at(-1), { status: 'completed', resumes: 1 });
    const texts = JSON.stringify(place.requests.filter(({ id }) => id === turn.name).at(-1)?.messages);
    return /changed while the agent server was down: ([^"]*)\. Read them again/.exec(texts)?.[1];
  };
  t.equal(await names(() => undefined), undefined, 'control: no file has changed');
  const changed = await names(({ name }) => {
    writeFileSync(join(place.path, 'notes.txt'), 'of the user\n');
    writeFileSync(join(place.path, `${name}.txt`), 'one\n');
    writeFileSync(join(place.path, 'other.txt'), 'not of the turn\n');
  });
  t.match(changed, /^notes\.txt, t\d+\.txt$/);
});

t.test('a resumed turn sends the images of its earlier results', async (t) => {
  const place = new KilledWorkspace(t);
  await place.connect();
  writeFileSync(join(place.path, 'pixel.png'), Buffer.from(pixel, 'base64'));
  const turn = await place.prepare('picture');
  place.arm({ kind: 'request', number: 2 });
  place.begin(turn);
  await place.hasEnded;
  await place.restart();
  await place.connect();
  t.match((await place.ended(turn)).at(-1), { status: 'completed', resumes: 1 });
  const contents = place.requests.flatMap(({ messages }) =>
    messages.flatMap((message) => (message.role === 'tool' ? [message.content] : [])),
  );
  t.equal(contents.length, 2);
  t.match(contents[0], [{ type: 'text' }, { type: 'image', url: /^data:image/ }], 'control: the result has an image');
  t.same(contents[1], contents[0]);
});
