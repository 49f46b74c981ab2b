import { once } from 'node:events';
import { Readable } from 'node:stream';
import t from 'tap';
import { PacedReading } from '../../src/lib/index.ts';

const chunks = 100;

/** Reads a stream whose chunks have all arrived. @returns the most chunks handled in one turn of the event loop, and their order */
async function mostAtOnce(listen: (stream: Readable, take: (chunk: string) => void) => void) {
  const stream = new Readable({ encoding: 'utf8', read: () => {} });
  for (let index = 0; index < chunks; index += 1) stream.push(`${index} `);
  stream.push(null);
  let text = '';
  let handled = 0;
  let most = 0;
  listen(stream, (chunk) => {
    if (handled === 0) setImmediate(() => (handled = 0));
    handled += 1;
    most = Math.max(most, handled);
    text += chunk;
    for (const until = performance.now() + 1; performance.now() < until; );
  });
  await once(stream, 'end');
  return { most, text };
}

t.test('a stream whose chunks have all arrived is handled in batches, so that other work has its turn', async (t) => {
  const plain = await mostAtOnce((stream, take) => stream.on('data', take));
  t.ok(plain.most > 20, 'without batches one turn of the event loop handles all');
  const reading = new PacedReading(5);
  const paced = await mostAtOnce((stream, take) =>
    stream.on('data', (chunk: string) => reading.run(stream, () => take(chunk))),
  );
  // One batch when its bytes arrive, and one when the pause of the batch before ends.
  t.ok(paced.most <= 12, `${paced.most} chunks`);
  t.equal(paced.text, plain.text, 'in order, none lost');
});
