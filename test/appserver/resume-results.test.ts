/** kill -9 around the results of calls: the next agent server sends the model the results that it has seen before. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { KilledWorkspace, unsoundCalls } from './killed-turns.ts';

t.test('a result in a request that a kill cut off is the result in every later request', async (t) => {
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
