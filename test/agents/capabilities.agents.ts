/** Capabilities of each agent with its real package, found by a conversation on the scripted model: the table of docs/agents.md. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { presets } from '../../src/external/index.ts';
import type { Turn } from '../../src/protocol/index.ts';
import { agentPresets } from '../../src/protocol/index.ts';
import { eventually, killIfThere, startTestHub } from '../hub/harness.ts';
import { startModel } from './model.ts';
import { record as recordFindings } from './results.ts';
import { agentWorkspace, answerUntil, chosenSubjects, connectTurns, type InputPart, linesHeld } from './scene.ts';
import { packagesOf } from './subjects.ts';

t.setTimeout(1_200_000);

const hub = await startTestHub(t);
writeFileSync(join(hub.home, 'config.json'), JSON.stringify({ Turns: { ResumeAgents: true } }));
const mcpServer = fileURLToPath(new URL('../../test/agents/mcp-server.mjs', import.meta.url));
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const text = (words: string): InputPart => ({ type: 'text', text: words });

for (const subject of chosenSubjects()) {
  t.test(`${subject.name}: its capabilities are as the preset says`, async (t) => {
    const model = await startModel();
    t.teardown(() => model.close());
    const { home, workspace } = agentWorkspace(t, subject, model.url, (home) => ({
      McpServers: { notes: { transport: 'stdio', command: process.execPath, args: [mcpServer, home] } },
    }));
    const served = new Set<number>();
    const serve = async () => {
      const { endpoints, pid } = await hub.ensure(workspace);
      served.add(pid ?? 0);
      return connectTurns(t, endpoints['appServerWebSocket'] ?? '');
    };
    const talk = await serve();
    const { thread } = (await talk.client.request('thread/start', {})) as { thread: { id: string } };

    const made = await talk.start(thread.id, text('Please make allowed.txt'));
    const asked = await answerUntil(hub, made.ended);
    const { tokenUsage } = await made.ended;
    t.ok(existsSync(join(workspace, 'allowed.txt')), 'a task is done');
    const asks = asked > 0;
    t.equal(asks, agentPresets[subject.name].approvals === 'asks');

    const declined = await talk.start(thread.id, text('Please make declined.txt'));
    await answerUntil(hub, declined.ended, 'decline');
    const obeysDecline = !existsSync(join(workspace, 'declined.txt'));
    t.equal(obeysDecline, asks);

    const held = await talk.start(thread.id, text('Please hold the line'));
    const running = eventually(() => linesHeld(workspace).length > 0 || undefined, 'the command runs');
    await answerUntil(hub, running);
    await talk.client.request('turn/interrupt', { threadId: thread.id, turnId: held.turnId });
    const canBeInterrupted = (await held.ended).status === 'cancelled';
    t.ok(canBeInterrupted, 'an interrupt ends the turn');

    // An interrupted command of codex may live on.
    const known = new Set(linesHeld(workspace));
    const runsAgain = () => linesHeld(workspace).some((pid) => !known.has(pid)) || undefined;
    const { thread: broken } = (await talk.client.request('thread/start', {})) as { thread: { id: string } };
    const killed = await talk.start(broken.id, text('Please hold the line'));
    await answerUntil(hub, eventually(runsAgain, 'the command runs again'));
    for (const pid of linesHeld(workspace)) known.add(pid);
    for (const pid of served) killIfThere(pid);
    await eventually(async () => {
      const { state, pid } = await hub.record(workspace);
      return (state === 'running' && !served.has(pid ?? 0)) || undefined;
    }, 'the next agent server runs');
    const next = await serve();
    await next.client.request('thread/subscribe', { threadId: broken.id, replayRecent: true });
    // An agent that has lost the call begins it again, and the command never ends.
    const isResumed = eventually(async () => {
      const read = await next.client.request('thread/read', { threadId: broken.id, includeTurns: true });
      const { turns } = (read as { thread: { turns: Turn[] } }).thread;
      const turn = turns.find(({ id }) => id === killed.turnId);
      return turn?.completedAt !== undefined || runsAgain() ? turn : undefined;
    }, 'the killed turn ends, or works again');
    await answerUntil(hub, isResumed);
    const { status, error, resumes: times } = await isResumed;
    t.comment(JSON.stringify({ status, error }));
    const resumes = times === 1 && (status === 'completed' || status === 'running');
    if (status === 'running')
      await next.client.request('turn/interrupt', { threadId: broken.id, turnId: killed.turnId });

    const before = model.requests.length;
    const shown = await next.start(thread.id, text('Please look at this'), { type: 'image', url: pixel });
    await answerUntil(hub, shown.ended);
    const seesImages = model.requests.slice(before).some(({ hasImage }) => hasImage);

    await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
    const again = await serve();
    const sent = model.requests.length;
    const last = await again.start(thread.id, text('Please say that you are there'));
    await answerUntil(hub, last.ended);
    const remembers = model.requests.slice(sent).some(({ text }) => text.includes('make allowed.txt'));
    const listedBy = readdirSync(home).flatMap((name) => /^tools-listed-(\d+)$/.exec(name)?.[1] ?? []);
    // The agent server itself asks as well.
    const takesMcpServers = listedBy.some((pid) => !served.has(Number(pid)));
    t.equal(takesMcpServers, presets[subject.name].takesMcpServers);
    const reportsTokens = (tokenUsage?.inputTokens ?? 0) > 0;
    await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });

    const capabilities = { asks, takesMcpServers, canBeInterrupted, seesImages, remembers, resumes, reportsTokens };
    t.comment(JSON.stringify(capabilities));
    if (t.passing()) recordFindings(subject.name, packagesOf(subject).join(' '), { capabilities });
  });
}
