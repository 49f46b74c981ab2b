/** External agents, with their real packages and a scripted model: each does the same task on every face. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { agentPresets } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { startTestHub } from '../hub/harness.ts';
import { write } from '../ui/chat-scene.ts';
import { startModel } from './model.ts';
import { agentWorkspace, answerUntil, chosenSubjects, connectTurns } from './scene.ts';

t.setTimeout(1_200_000);

const hub = await startTestHub(t);
const browser = await launchBrowser();
t.teardown(() => browser.close());

const allowUntil = (done: Promise<unknown>): Promise<number> => answerUntil(hub, done);

for (const subject of chosenSubjects()) {
  const { name } = subject;
  t.test(`${name} does a task over JSON-RPC, chat completions and the page, and asks a second device`, async (t) => {
    const model = await startModel();
    t.teardown(() => model.close());
    const { workspace } = agentWorkspace(t, subject, model.url, () => ({
      Api: { Enabled: true, ApprovalMode: 'interactive' },
    }));
    const record = await hub.ensure(workspace);
    const isAsked = agentPresets[name].approvals === 'asks';
    const made = (file: string) => t.ok(existsSync(join(workspace, file)), `${file} is there`);

    t.equal((await overRpc(t, record.endpoints['appServerWebSocket'] ?? '')) > 0, isAsked, 'asked over JSON-RPC');
    made('one.txt');

    const api = new OpenAI({ baseURL: `${record.serviceStatus['api']?.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const answer = api.chat.completions.create({
      model: 'default',
      messages: [{ role: 'user', content: 'Please make two.txt' }],
    });
    t.equal((await allowUntil(answer)) > 0, isAsked, 'asked over chat completions');
    t.match((await answer).choices[0]?.message.content, 'All done.');
    made('two.txt');

    const page = await browser.newPage();
    page.setDefaultTimeout(120_000);
    await page.goto(`${hub.lock.apiBaseUrl}${record.page}#token=${pageToken(hub.home)}&at=/chat`);
    await write(page, 'Please make three.txt');
    const done = page.locator('.row-end', { hasText: 'Done' }).waitFor();
    t.equal((await allowUntil(done)) > 0, isAsked, 'asked from the page');
    await page.locator('.answer', { hasText: 'All done.' }).waitFor();
    made('three.txt');
    await page.close();
    await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
  });
}

async function overRpc(t: Test, url: string): Promise<number> {
  const { client, start } = await connectTurns(t, url);
  const { thread } = (await client.request('thread/start', {})) as { thread: { id: string } };
  const { ended } = await start(thread.id, { type: 'text', text: 'Please make one.txt' });
  const asked = await allowUntil(ended);
  t.equal((await ended).status, 'completed');
  return asked;
}
