/** A turn that kills its agent server each time, below a Hub. */
import t from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { program } from '../programs.ts';
import { eventually, makeWorkspace, quick, startTestHub } from './harness.ts';

// biome-ignore lint/suspicious/noExplicitAny: the test asserts answers field by field
type Answer = any;
const input = (text: string) => [{ type: 'text', text }];
const agentServer = {
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', program('test/appserver/turn-victim.ts')],
};

t.test('a turn that kills its server each time is given up before the server is', async (t) => {
  const hub = await startTestHub(t, { agentServer });
  const workspace = makeWorkspace(t, { ...quick, DashBoard: { Enabled: false } });
  const connect = async (record: AppServerRecord) => {
    const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '');
    t.teardown(() => client.close());
    return (
      method: 'thread/start' | 'turn/start' | 'thread/read' | 'approval/list' | 'approval/respond',
      params: Answer,
    ) => client.request(method, params) as Promise<Answer>;
  };
  const call = await connect(await hub.ensure(workspace));
  const { thread: innocent } = await call('thread/start', {});
  const { thread: guilty } = await call('thread/start', {});
  await call('turn/start', { threadId: innocent.id, input: input('script ask a1') });
  await eventually(async () => (await call('approval/list', {})).data[0], 'a question');
  await call('turn/start', { threadId: guilty.id, input: input('script poison p1') }).catch(() => undefined);

  const next = await eventually(async () => {
    const record = await hub.record(workspace);
    if (record.state !== 'running') return undefined;
    try {
      const again = await connect(record);
      const { thread } = await again('thread/read', { threadId: guilty.id, includeTurns: true });
      return thread.turns[0].completedAt === undefined ? undefined : { again, turn: thread.turns[0] };
    } catch {
      // The server has died again.
      return undefined;
    }
  }, 'the turn is given up');
  t.match(next.turn, { status: 'failed', resumes: 3, error: { code: 'resumedTooOften' } });
  t.equal((await hub.record(workspace)).state, 'running', 'the Hub has not given the server up');

  const { again } = next;
  const [request] = (await again('approval/list', {})).data;
  await again('approval/respond', { requestId: request.requestId, decision: 'accept' });
  const endOf = (threadId: string, number: number) =>
    eventually(async () => {
      const { thread } = await again('thread/read', { threadId, includeTurns: true });
      return thread.turns[number]?.completedAt === undefined ? undefined : thread.turns[number];
    }, 'the end of a turn');
  t.match(await endOf(innocent.id, 0), { status: 'completed' }, 'another turn lives');
  await again('turn/start', { threadId: guilty.id, input: input('script conclude c1') });
  t.match(await endOf(guilty.id, 1), { status: 'completed' }, 'its thread works');
  await hub.shutdown();
});
