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
import { eventually, killIfThere, makeWorkspace, processesOf, quick, startTestHub } from '../../hub/harness.ts';
import { program } from '../../programs.ts';
import { after, assignmentOf, faulty, hooksOf, writeFiles } from './harness.ts';

const agentServer = {
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', program('src/appserver/main.ts')],
};
const draft = { summary: 'Fine.', findings: [] };

t.test(
  'the Hub starts the agent server of a workspace, and a review continues the same turn after its death',
  async (t) => {
    let hangs = false;
    let finding: object | undefined;
    const upstream = await startMockUpstream(t, (request) => {
      if (hangs) return [eventStream, write(event(delta({ role: 'assistant', content: 'Hm' }))), hang];
      const isFirst = request.body.messages.at(-1).role === 'user';
      const toolCalls = [
        {
          id: `call_${request.number}`,
          name: 'SubmitReviewDraft',
          arguments: finding ? { ...draft, findings: [finding] } : draft,
        },
      ];
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
    let hub = await startTestHub(t, { agentServer });
    const { home } = hub;
    // The backend starts a Hub, too, when the one it uses is killed. It may come up after the end of the test's Hub.
    t.teardown(async () => {
      const left = () => processesOf(home, 'ORATORIO_HOME');
      for (const pid of left()) killIfThere(pid);
      await eventually(() => left().length === 0, 'every process of the home has ended');
    });
    const agent = createReviewAgent({
      settings: () => v.parse(BackendSettings, {}),
      logger: createLogger({ name: 'test', level: 'silent' }),
      env: { ORATORIO_HOME: hub.home },
    });
    t.teardown(() => agent.close());
    const assignment = () => assignmentOf(hub.home, { worktreePath, more: { workspacePath: workspace } });
    const review = (hooks = hooksOf().hooks, asked = assignment()) => agent.review(asked, hooks);
    const kill = async () => process.kill((await hub.record(workspace)).pid ?? 0, 'SIGKILL');

    t.match(await agent.status(workspace), { state: 'unreachable' }, 'a status request starts no server');
    t.match(await hub.record(workspace), { state: 'stopped' });
    const [first, second] = await Promise.all([review(), review()]);
    t.not(first.threadId, second.threadId, 'two reviews, one agent server');
    t.strictSame(await agent.status(workspace), { state: 'reachable' });
    const trace = new URL((await agent.traceUrl(workspace, first.threadId)) ?? 'none:');
    const { dashboard } = (await hub.record(workspace)).endpoints;
    t.equal(`${trace.origin}${trace.pathname}`, dashboard);
    t.equal(trace.hash, `#/sessions/${first.threadId}`, 'the Dashboard asks for its token itself');

    hangs = true;
    const inAnswer = hooksOf();
    const cut = review(inAnswer.hooks);
    const before = upstream.requests.length;
    await eventually(() => upstream.requests.length > before || undefined, 'the model is asked');
    hangs = false;
    await kill();
    t.match(await cut, { findings: [], ...inAnswer.turns[1] }, 'killed in an answer: the same turn hands in');
    t.equal(inAnswer.turns.length, 2, 'one turn, one attempt');

    const started: (string | null)[] = [];
    const beforeStart = hooksOf().hooks;
    const onTurn: typeof beforeStart.onTurn = async ({ turnId }) => {
      started.push(turnId);
      if (turnId === null) await kill();
    };
    t.match(await review({ ...beforeStart, onTurn }), { findings: [] }, 'killed before the turn starts');
    t.same(started, [null, 'turn_001'], 'one turn, one attempt');

    // The server dies while the backend reads the file of a suggested change.
    finding = {
      severity: 'major',
      title: 'Past the end',
      body: 'Adds undefined.',
      path: 'src/total.ts',
      oldText: faulty,
      newText: faulty.replace('<=', '<'),
    };
    const inCall = hooksOf();
    const asked = assignment();
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    let placed = 0;
    const readHeadBytes: typeof asked.prepared.readHeadBytes = async (paths) => {
      placed += 1;
      reached.resolve();
      await gate.promise;
      return asked.prepared.readHeadBytes(paths);
    };
    const held = review(inCall.hooks, { ...asked, prepared: { ...asked.prepared, readHeadBytes } });
    await reached.promise;
    const requests = upstream.requests.length;
    await kill();
    gate.resolve();
    t.match(await held, { findings: [{ finding: { title: 'Past the end' } }], withdrawn: [], ...inCall.turns[1] });
    t.equal(placed, 1, 'the repeated call is answered from memory');
    t.equal(inCall.turns.length, 2, 'one turn, one attempt');
    t.equal(upstream.requests.length, requests + 1, 'only the request after the call is sent');

    finding = undefined;
    hangs = true;
    const ofBoth = hooksOf();
    const cutTwice = review(ofBoth.hooks);
    const sent = upstream.requests.length;
    await eventually(() => upstream.requests.length > sent || undefined, 'the model is asked');
    hangs = false;
    const { pid } = await hub.record(workspace);
    await hub.kill('SIGKILL');
    killIfThere(pid ?? 0);
    hub = await startTestHub(t, { agentServer, home });
    t.match(await cutTwice, { findings: [], ...ofBoth.turns[1] }, 'killed with the Hub: the same turn hands in');
    t.equal(ofBoth.turns.length, 2, 'one turn, one attempt');
  },
);

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
