/** The move of a conversation whose turn was suspended: refused with the next step, and possible after it. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { AppServerClient, startThread, startTurn } from '../../src/client/index.ts';
import { eventually } from '../hub/harness.ts';
import { makePlace, oratorio, oratorioJson, runningHub } from './harness.ts';

t.test('a conversation whose turn was suspended at a question moves after the answer, and loses nothing', async (t) => {
  const place = makePlace(t);
  const [from, to] = [place.workspace('from'), place.workspace('to')];
  for (const path of [from, to]) mkdirSync(path, { recursive: true });
  await oratorioJson(place, 'up', from, '--no-follow');
  const hub = runningHub(place);
  const connect = async () => {
    const { endpoints } = await hub.client.ensure({ workspacePath: from });
    return AppServerClient.connect(endpoints['appServerWebSocket'] ?? '');
  };
  const first = await connect();
  const threadId = await startThread(first, { workspacePath: from });
  await startTurn(first, threadId, 'write "hello" to greeting.txt');
  const question = () =>
    eventually(async () => {
      const [item] = await hub.client.inbox();
      return item?.state === 'open' ? item : undefined;
    }, 'the question is in the inbox');
  await question();
  first.close();
  t.match(await oratorioJson(place, 'stop', from), { state: 'stopped' }, 'a stop suspends the turn');

  const move = () => oratorio(place, ['move', threadId, to]);
  const refused = await move();
  t.equal(refused.code, 1);
  t.match(refused.stderr, /cannot move: its turn waits for your answer\. Answer first: oratorio inbox/);
  t.notOk(existsSync(join(to, 'greeting.txt')));

  const { workspaceId, request } = await question();
  await hub.client.answerInbox(workspaceId, request.requestId, { decision: 'accept' });
  await eventually(async () => {
    const { threads } = await hub.client.threads();
    return threads.find((each) => each.threadId === threadId)?.activity === 'idle' || undefined;
  }, 'the turn ends');
  const moved = await move();
  t.match(moved, { code: 0 }, moved.stderr);
  t.ok(existsSync(join(to, 'greeting.txt')), 'the work of the turn moves, too');
  const { threads } = await hub.client.threads();
  t.same(threads.filter((each) => each.threadId === threadId).length, 1, 'it is at one place');
});
