/** A prompt of the official client over the death of the agent server, and of the Hub with it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import type { Item } from '../../src/protocol/index.ts';
import {
  eventually,
  isAlive,
  killIfThere,
  makeWorkspace,
  quick,
  startTestHub,
  type TestHub,
  temporaryDirectory,
} from '../hub/harness.ts';
import { choose, editorIn } from './harness.ts';

/** Id of the open question. */
const waiting = async (hub: TestHub): Promise<string | undefined> =>
  (await hub.call('GET', '/v1/inbox')).body.find(({ state }: { state: string }) => state === 'open')?.request.requestId;

t.test(
  'a prompt stays open while the agent server and the Hub are killed, and session/load joins its turn',
  async (t) => {
    const home = temporaryDirectory(t, 'oratorio-home-');
    const hub = await startTestHub(t, { home });
    const workspace = makeWorkspace(t, { ...quick, Provider: 'demo', DashBoard: { Enabled: false } });
    const first = await hub.ensure(workspace);
    const editor = await editorIn(t, home, () => new Promise(() => undefined));
    const { sessionId } = await editor.agent.request('session/new', { cwd: workspace, mcpServers: [] });
    let isAnswered = false;
    const prompt = [{ type: 'text' as const, text: 'run: echo x >> effects' }];
    const answered = editor.agent.request('session/prompt', { sessionId, prompt }).finally(() => {
      isAnswered = true;
    });
    const requestId = await eventually(() => waiting(hub), 'it asks');

    killIfThere(first.pid ?? 0);
    const second = await eventually(async () => {
      const record = await hub.record(workspace);
      return record.turnsResumed === 1 && record.pid !== first.pid ? record : undefined;
    }, 'the turn goes on');
    await hub.kill('SIGKILL');
    killIfThere(second.pid ?? 0);
    await eventually(() => !isAlive(second.pid ?? 0) || undefined, 'the server has ended');
    const next = await startTestHub(t, { home });
    t.equal(await eventually(() => waiting(next), 'it waits again'), requestId);
    t.notOk(isAnswered);

    const other = await editorIn(t, home, () => choose('accept'));
    await other.agent.request('session/load', { sessionId, cwd: workspace, mcpServers: [] });
    t.match(await answered, { stopReason: 'end_turn' });
    t.equal(readFileSync(join(workspace, 'effects'), 'utf8'), 'x\n');
    t.equal(other.asked.length, 1);
    t.equal(editor.asked.length, 1, 'the same question is shown once');
    const record = await next.record(workspace);
    const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '');
    t.teardown(() => client.close());
    const { thread } = (await client.request('thread/read', { threadId: sessionId, includeTurns: true })) as {
      thread: { turns: { resumes?: number; items: Item[] }[] };
    };
    const [turn] = thread.turns;
    t.match(thread.turns, [{ resumes: 2 }]);
    const texts = turn?.items.map((item) => (item.type === 'agentMessage' ? item.text : '')).join('');
    t.ok(texts);
    t.equal(editor.said(), texts, 'the updates add up');
    t.equal(editor.of('tool_call').length, 1);
    await next.shutdown();
  },
);
