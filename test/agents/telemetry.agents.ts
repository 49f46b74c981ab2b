/** Requests to a model that agents export with their real packages: in the trace of their turn, on the scripted model. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { workspaceStateDirectory } from '../../src/config/index.ts';
import { dialects } from '../../src/external/telemetry/dialects.ts';
import { eventually, startTestHub } from '../hub/harness.ts';
import { startModel } from './model.ts';
import { agentWorkspace, answerUntil, chosenSubjects, connectTurns } from './scene.ts';

t.setTimeout(600_000);

const hub = await startTestHub(t);

interface Used {
  readonly model?: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

function requestsOf(workspace: string): Used[] {
  const file = join(workspaceStateDirectory(hub.home, workspace), 'state.db');
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const rows = database.prepare(`SELECT json FROM traceEvents WHERE type = 'tokens.used' ORDER BY id`).all();
    return rows.map(({ json }) => JSON.parse(String(json)).data);
  } finally {
    database.close();
  }
}

for (const subject of chosenSubjects().filter(({ name }) => dialects[name])) {
  t.test(`${subject.name}: its requests are in the trace`, async (t) => {
    const model = await startModel();
    t.teardown(() => model.close());
    const { workspace } = agentWorkspace(t, subject, model.url);
    const { endpoints } = await hub.ensure(workspace);
    const talk = await connectTurns(t, endpoints['appServerWebSocket'] ?? '');
    const { thread } = (await talk.client.request('thread/start', {})) as { thread: { id: string } };
    const made = await talk.start(thread.id, { type: 'text', text: 'Please make allowed.txt' });
    await answerUntil(hub, made.ended);
    const { tokenUsage } = await made.ended;
    // Also those that it exports after the turn.
    await eventually(() => requestsOf(workspace).length > 0 || undefined, 'a request is in the trace');
    await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
    const requests = requestsOf(workspace);
    t.comment(JSON.stringify({ tokenUsage, requests, asked: model.requests.length }));
    const exported = requests.filter(({ model }) => model !== undefined);
    t.ok(exported.length > 0, 'a request was exported');
    t.ok(exported.length <= model.requests.length, 'none twice');
    const sum = (of: 'inputTokens' | 'outputTokens') => requests.reduce((all, each) => all + each[of], 0);
    t.ok(sum('inputTokens') >= (tokenUsage?.inputTokens ?? 0));
    t.ok(sum('outputTokens') >= (tokenUsage?.outputTokens ?? 0));
  });
}
