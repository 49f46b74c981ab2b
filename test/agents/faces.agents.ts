/** Agents of other makers, with their real packages and a scripted model: each does the same task on every face. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { presets } from '../../src/external/index.ts';
import type { InboxItem } from '../../src/protocol/index.ts';
import { agentPresets } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { eventually, makeWorkspace, quick, startTestHub, type TestHub } from '../hub/harness.ts';
import { write } from '../ui/chat-scene.ts';
import { startModel } from './model.ts';
import { subjects } from './subjects.ts';
import { variable } from './variables.ts';

const programs = process.env[variable.programs];
if (programs === undefined) throw new Error(`${variable.programs} is not set: run npm run test:agents`);
const chosen = process.env[variable.names]?.split(',');

t.setTimeout(1_200_000);

const hub = await startTestHub(t);
const browser = await launchBrowser();
t.teardown(() => browser.close());

const inbox = async (of: TestHub): Promise<readonly InboxItem[]> => (await of.call('GET', '/v1/inbox')).body;

/** Allows every question until `done` resolves, as a second device does. @returns how many */
async function allowUntil(done: Promise<unknown>): Promise<number> {
  let allowed = 0;
  let isDone = false;
  const finish = () => {
    isDone = true;
  };
  void done.then(finish, finish);
  await eventually(async () => {
    for (const { workspaceId, request } of await inbox(hub)) {
      const { status } = await hub.call('POST', `/v1/inbox/${workspaceId}/${request.requestId}`, {
        decision: 'accept',
      });
      if (status === 200) allowed += 1;
    }
    return isDone || undefined;
  }, 'the turn ends');
  await done;
  return allowed;
}

for (const { name, configure } of subjects.filter(({ name }) => chosen?.includes(name) ?? true)) {
  t.test(`${name} does a task over JSON-RPC, chat completions and the page, and asks a second device`, async (t) => {
    const model = await startModel();
    t.teardown(() => model.close());
    // Not below /tmp: the sandbox of codex hides what is there.
    const home = mkdtempSync(join(homedir(), '.oratorio-agents-'));
    t.teardown(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));
    const { program, args } = presets[name];
    const Env = {
      HOME: home,
      PATH: [programs, process.env['PATH']].join(delimiter),
      ...configure(home, model.url),
    };
    const Agent = { Name: name, Command: [join(programs, program), ...args], Env };
    const workspace = makeWorkspace(t, { ...quick, Agent, Api: { Enabled: true, ApprovalMode: 'interactive' } });
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
  const client = await AppServerClient.connect(url, { clientInfo: { name: 'agents', version: '1' } });
  t.teardown(() => client.close());
  const ended = Promise.withResolvers<string>();
  client.onNotification(({ method }) => {
    if (/^turn\/(completed|failed|cancelled)$/.test(method)) ended.resolve(method);
  });
  const { thread } = (await client.request('thread/start', {})) as { thread: { id: string } };
  await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text: 'Please make one.txt' }] });
  const asked = await allowUntil(ended.promise);
  t.equal(await ended.promise, 'turn/completed');
  return asked;
}
