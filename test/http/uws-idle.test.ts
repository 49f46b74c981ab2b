import t from 'tap';
import { jsonBytes } from '../../src/http/index.ts';
import { RawClient, rawRequest, start } from './support.ts';

t.test('an incomplete request ends with the idle time-out, as an idle connection does', async (t) => {
  const constant = jsonBytes(200, Buffer.from('{"ok":true}'));
  const { port } = await start(t, 'uws', { routes: [{ method: 'GET', path: '/', handler: () => constant }] });
  const good = rawRequest('GET', '/');
  const began = Date.now();
  const answers = await Promise.all(
    ['GET / HTTP/1.1\r\n', good.slice(0, -2), good].map(async (request) => {
      const client = await RawClient.connect(t, port);
      client.send(request);
      return client.untilClosed();
    }),
  );
  t.strictSame(answers.slice(0, 2), ['', ''], 'no answer at all');
  t.match(answers[2], '{"ok":true}');
  t.ok(Date.now() - began > 5_000, 'an idle connection is kept for a while');
});
