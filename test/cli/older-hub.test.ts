/** A Hub of an earlier version, which lacks places, hosts and moves. */
import t from 'tap';
import { fakeHub, lockOf, sendJson, statusOf, writeLock } from '../client/fake-hub.ts';
import { temporaryDirectory } from '../hub/harness.ts';
import { runInProcess } from './in-process.ts';

t.test(
  'regression: a command that an earlier Hub lacks names the version as the reason, and how to replace the Hub',
  async (t) => {
    const hub = await fakeHub((request, response) => {
      if (request.url === '/v1/status') sendJson(response, 200, statusOf(hub.baseUrl));
      else if (request.url === '/v1/appservers') sendJson(response, 200, []);
      else sendJson(response, 404, { error: { code: 'notFound', message: 'There is no such route.', details: null } });
    });
    t.teardown(() => hub.close());
    const home = temporaryDirectory(t);
    writeLock(home, lockOf(hub.baseUrl));
    for (const words of [['place'], ['move', '--list'], ['hosts']]) {
      const { code, stderr } = await runInProcess(home, ...words);
      t.not(code, 0, words.join(' '));
      t.match(stderr, /earlier version\. Replace it: oratorio hub stop --detach && oratorio up/, words.join(' '));
    }
  },
);
