import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { createLogger } from '../../../src/log/index.ts';
import { createReviewAgent } from '../../../src/review/agent/index.ts';
import { BackendSettings } from '../../../src/review/settings/index.ts';
import {
  answered,
  delta,
  event,
  eventStream,
  hang,
  startMockUpstream,
  write,
} from '../../fixtures/upstream/mock-upstream.ts';
import { eventually, makeWorkspace, quick, startTestHub } from '../../hub/harness.ts';
import { program } from '../../programs.ts';
import { after, assignmentOf, hooksOf, writeFiles } from './harness.ts';

const agentServer = {
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', program('src/appserver/main.ts')],
};
const draft = { summary: 'Fine.', findings: [] };

t.test('the Hub starts the agent server of a workspace, and starts it again when it dies', async (t) => {
  let hangs = false;
  const upstream = await startMockUpstream(t, (request) => {
    if (hangs) return [eventStream, write(event(delta({ role: 'assistant', content: 'Hm' }))), hang];
    const isFirst = request.body.messages.at(-1).role === 'user';
    const toolCalls = [{ id: `call_${request.number}`, name: 'SubmitReviewDraft', arguments: draft }];
    return answered(request, isFirst ? { toolCalls } : { text: 'done' });
  });
  const workspace = makeWorkspace(t, {
    ...quick,
    EndPoint: upstream.url,
    ApiKey: 'key',
    Model: 'mock-model',
    DashBoard: { Enabled: true },
  });
  const worktreePath = join(workspace, '.oratorio', 'worktrees', 'run-1');
  writeFiles(worktreePath, after);
  const hub = await startTestHub(t, { agentServer });
  const agent = createReviewAgent({
    settings: () => v.parse(BackendSettings, {}),
    logger: createLogger({ name: 'test', level: 'silent' }),
    env: { ORATORIO_HOME: hub.home },
  });
  t.teardown(() => agent.close());
  const review = (hooks = hooksOf().hooks) =>
    agent.review(assignmentOf(hub.home, { worktreePath, more: { workspacePath: workspace } }), hooks);

  t.match(await agent.status(workspace), { state: 'unreachable' }, 'nothing is started only to be looked at');
  t.match(await hub.record(workspace), { state: 'stopped' });
  const [first, second] = await Promise.all([review(), review()]);
  t.not(first.threadId, second.threadId, 'two reviews, one agent server');
  t.strictSame(await agent.status(workspace), { state: 'reachable' });
  const trace = new URL((await agent.traceUrl(workspace, first.threadId)) ?? 'none:');
  const { dashboard } = (await hub.record(workspace)).endpoints;
  t.equal(`${trace.origin}${trace.pathname}`, dashboard);
  t.equal(trace.hash, `#/sessions/${first.threadId}`, 'the Dashboard asks for its token itself');

  hangs = true;
  const { hooks, turns } = hooksOf();
  const rejected = t.rejects(review(hooks), { code: 'agentConnectionLost', isRetryable: true });
  await eventually(() => turns.find(({ turnId }) => turnId !== null), 'the model is asked');
  const { pid } = await hub.record(workspace);
  process.kill(pid ?? 0, 'SIGKILL');
  await rejected;
  hangs = false;
  const { threadId = '' } = turns[0] ?? {};
  await eventually(
    () =>
      agent.interrupt(workspace, threadId).then(
        () => true,
        (error: { code: string }) => {
          if (error.code !== 'agentUnavailable' && error.code !== 'agentConnectionLost') throw error;
        },
      ),
    'the next agent server is there, and the turn of the dead one is over',
  );
  t.match(await review(), { findings: [] });
});

t.test('without a Hub nothing is reachable, and asking starts none', async (t) => {
  const home = t.testdir();
  const agent = createReviewAgent({
    settings: () => v.parse(BackendSettings, {}),
    logger: createLogger({ name: 'test', level: 'silent' }),
    home,
  });
  t.match(await agent.status('/nowhere'), { state: 'unreachable', message: /Hub/ });
  t.equal(await agent.traceUrl('/nowhere', 'thread_1'), undefined, 'nobody serves it, and nobody is made to');
  await agent.close();
  await t.rejects(agent.review(assignmentOf(home), hooksOf().hooks), { code: 'agentUnavailable' }, 'after its end');
});
