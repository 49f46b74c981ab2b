/**
 * One turn of each client, which live through kill -9 of their agent server, of the Hub, and of both: AG-UI and the chat API, whose requests
 * are repeated, an MCP client, which polls its task, an editor behind the process `oratorio acp`, and the page in a browser.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { HttpAgent } from '@ag-ui/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import OpenAI from 'openai';
import type { Page } from 'playwright-core';
import t from 'tap';
import type { AppServerRecord, HubThreadList } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { choose, editorOn, introduce } from '../acp/harness.ts';
import { launchBrowser } from '../browser.ts';
import {
  answered,
  delta,
  done,
  event,
  eventStream,
  startMockUpstream,
  wait,
  write,
} from '../fixtures/upstream/mock-upstream.ts';
import { eventually, isAlive, killIfThere, makeWorkspace, quick, startTestHub, type TestHub } from '../hub/harness.ts';
import { program, programEnvironment } from '../programs.ts';
import { write as send } from '../ui/chat-scene.ts';
import { shows } from '../ui/shows.ts';

const key = 'a-key';
const over = Promise.withResolvers<void>();
t.teardown(() => over.resolve());

/** Runs the effect of a client, then answers in two parts; the second one comes when all kills are over. */
const upstream = await startMockUpstream(t, (request) => {
  const messages: { role: string }[] = request.body.messages;
  const [, name = ''] = /work of (\w+)/.exec(JSON.stringify(messages)) ?? [];
  const command = { command: `sh effect.sh ${name}` };
  if (messages.at(-1)?.role === 'user')
    return answered(request, { toolCalls: [{ id: `call_${name}`, name: 'Exec', arguments: command }] });
  const parts = ['half an ', 'answer'].map((content) => write(event(delta({ content }))));
  const [first, second] = parts;
  if (!first || !second) return [];
  return [eventStream, first, wait(over.promise), second, write(event(delta({}, 'stop'))), write(done)];
});

let hub: TestHub = await startTestHub(t);
const { home } = hub;
const workspace = makeWorkspace(t, {
  ...quick,
  ...{ EndPoint: upstream.url, ApiKey: 'k', Model: 'mock-model', UpstreamRetries: 0 },
  AgUi: { Enabled: true, ApiKey: key },
  Api: { Enabled: true, ApiKey: key, AutoApprove: true },
  Permissions: { Rules: [{ Tool: 'Exec', Prefix: 'sh effect.sh frontend', Decision: 'allow' }] },
});
writeFileSync(join(workspace, 'effect.sh'), 'echo $1 >> effects\n');
let record: AppServerRecord = await hub.ensure(workspace);

const effects = () => (existsSync(join(workspace, 'effects')) ? readFileSync(join(workspace, 'effects'), 'utf8') : '');
const timesOf = (name: string) =>
  effects()
    .split('\n')
    .filter((line) => line === name).length;
const prompt = (name: string) => `work of ${name}`;

/** Waits for another agent server, or the same one behind another Hub. */
async function running(earlierPid?: number | null): Promise<void> {
  record = await eventually(
    async () => {
      const now = await hub.record(workspace);
      return now.state === 'running' && now.pid !== earlierPid ? now : undefined;
    },
    () => `the agent server runs: ${hub.output()}`,
  );
}

const kills: Readonly<Record<string, () => Promise<void>>> = {
  async 'agent server'() {
    const pid = record.pid ?? 0;
    killIfThere(pid);
    await running(pid);
  },
  async Hub() {
    await hub.kill('SIGKILL');
    hub = await startTestHub(t, { home });
    await running();
  },
  async 'Hub and agent server'() {
    const pid = record.pid ?? 0;
    await hub.kill('SIGKILL');
    killIfThere(pid);
    await eventually(() => !isAlive(pid) || undefined, 'the agent server has ended');
    hub = await startTestHub(t, { home });
    await running(pid);
  },
};

/** `fetch` whose stream ends with an `AbortError` when it is cut: any other error leaves an unhandled rejection in the AG-UI client. */
const abortingFetch: typeof fetch = async (...request) => {
  const response = await fetch(...request);
  const pieces = response.body?.values();
  const body = new ReadableStream({
    async pull(controller) {
      try {
        const { done: isOver, value } = (await pieces?.next()) ?? { done: true, value: undefined };
        if (isOver) controller.close();
        else controller.enqueue(value);
      } catch (cause) {
        controller.error(new DOMException(String(cause), 'AbortError'));
      }
    },
  });
  return new Response(body, response);
};

/** A run of the official AG-UI client, which is sent again when it was cut. */
function frontend() {
  const headers = { authorization: `Bearer ${key}` };
  const agent = new HttpAgent({ url: '', threadId: 'a thread', headers, fetch: abortingFetch });
  agent.addMessage({ id: 'user-0', role: 'user', content: prompt('frontend') });
  const ends: unknown[] = [];
  const text = () =>
    agent.messages.flatMap((message) => (message.role === 'assistant' && message.content ? [message.content] : []));
  const run = () => {
    agent.url = record.serviceStatus['agui']?.url ?? '';
    const ended = agent.runAgent({ runId: 'a run' }, { onRunFinishedEvent: ({ event }) => void ends.push(event) });
    return ended.then(
      () => undefined,
      (error: unknown) => error,
    );
  };
  return { run, text, ends };
}

/** A streamed chat request with an `Idempotency-Key`, which is sent again when it was cut. */
function chat() {
  const heard = { text: '' };
  const run = async () => {
    heard.text = '';
    const client = new OpenAI({ baseURL: `${record.serviceStatus['api']?.url}/v1`, apiKey: key, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: prompt('chat') }];
    const request = { model: 'mock-model', messages, stream: true as const };
    try {
      const stream = await client.chat.completions.create(request, { headers: { 'idempotency-key': 'k' } });
      for await (const { choices } of stream) heard.text += choices[0]?.delta.content ?? '';
      return undefined;
    } catch (error) {
      return error;
    }
  };
  return { run, heard };
}

/** Official MCP client, connected to the current agent server. */
async function mcpClient(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(`${record.serviceStatus['api']?.url}/v1/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  });
  // The types of the library are for a different module setting.
  await client.connect(transport as never);
  return client;
}

/** Starts a task of an MCP client. @returns its id */
async function task(): Promise<string> {
  const client = await mcpClient();
  const call = client.experimental.tasks.callToolStream(
    { name: 'prompt_agent', arguments: { text: prompt('mcp') } },
    CallToolResultSchema,
    { task: {} },
  );
  const { value } = await call.next();
  await client.close();
  return value?.type === 'taskCreated' ? value.task.taskId : '';
}

/** State of a task, read by a newly connected client. */
async function stateOf(taskId: string) {
  const client = await mcpClient();
  try {
    return await client.experimental.tasks.getTask(taskId);
  } finally {
    await client.close();
  }
}

/** An editor behind `oratorio acp`, which allows the command when all kills are over. */
async function editor() {
  const main = program('src/cli/main.ts');
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main, 'acp', '--no-start'], {
    cwd: workspace,
    env: { ...programEnvironment, HOME: home, ORATORIO_HOME: home },
  });
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const made = editorOn(
    Writable.toWeb(child.stdin),
    Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
    async () => {
      await over.promise;
      return choose('accept');
    },
  );
  await introduce(made);
  const { sessionId } = await made.agent.request('session/new', { cwd: workspace, mcpServers: [] });
  const answer = made.agent.request('session/prompt', {
    sessionId,
    prompt: [{ type: 'text', text: prompt('editor') }],
  });
  return { ...made, answer };
}

const complaints: string[] = [];
const browser = await launchBrowser();
t.teardown(() => browser.close());

/** The chat of the workspace's page below the address of the Hub, with a turn. */
async function chatPage(): Promise<Page> {
  const page = await browser.newPage({ reducedMotion: 'reduce' });
  page.setDefaultTimeout(300_000);
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(`${hub.lock.apiBaseUrl}${record.page}#token=${pageToken(home)}&at=/chat`);
  await send(page, prompt('page'));
  await ownCard(page).waitFor();
  return page;
}

/** The request of the page's own turn: those of the other clients are shown, too. */
const ownCard = (page: Page) => page.locator('.request-card', { hasText: 'sh effect.sh page' });

t.test('turns of five clients survive kills of the agent server, of the Hub and of both', async (t) => {
  const [agui, api] = [frontend(), chat()];
  let requests = [agui.run(), api.run()];
  const taskId = await task();
  const [acp, page] = [await editor(), await chatPage()];
  await eventually(() => acp.asked.length === 1 || undefined, 'the editor asks');
  const isHalf = () => (agui.text().at(-1) === 'half an ' && api.heard.text.endsWith('half an ')) || undefined;
  await eventually(isHalf, 'half of two answers');
  for (const [victim, kill] of Object.entries(kills)) {
    await kill();
    if (victim !== 'Hub') {
      const [, error] = await Promise.all(requests);
      t.ok(error, `${victim}: the request is cut`);
      requests = [agui.run(), api.run()];
      await eventually(isHalf, `half of two answers after the death of ${victim}`);
    }
    t.match(await stateOf(taskId), { taskId, status: 'working' }, `${victim}: the task still exists`);
    const { threads } = (await hub.call('GET', '/v1/threads')).body as HubThreadList;
    t.same(
      threads.map(({ name }) => name).sort(),
      ['editor', 'frontend', 'mcp', 'page'].map(prompt),
      `${victim}: the thread of a request without a session is not listed`,
    );
    // A Hub learns of it from the first report of the server.
    const resumed = async () => (await hub.record(workspace)).turnsResumed === 5 || undefined;
    await eventually(resumed, `every turn continues after the death of ${victim}`);
    t.same([timesOf('editor'), timesOf('page')], [0, 0], 'no answered question, no command');
  }
  over.resolve();
  await ownCard(page).getByRole('button', { name: 'Allow once' }).click();
  t.same(await Promise.all(requests), [undefined, undefined]);

  t.match(agui.ends, [{ runId: 'a run', outcome: { type: 'success' } }]);
  t.same(agui.text(), ['half an answer']);
  t.match(api.heard.text, /half an answer$/);
  const last = await mcpClient();
  const result = await last.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
  await last.close();
  const [part] = result.content;
  t.match(JSON.parse(part?.type === 'text' ? part.text : ''), { status: 'completed', answer: 'half an answer' });
  t.match(await acp.answer, { stopReason: 'end_turn' });
  t.equal(acp.said(), 'half an answer');
  t.equal(acp.asked.length, 1, 'the question is shown once');
  t.equal(acp.of('tool_call').length, 1);
  await page.locator('.row-end', { hasText: 'Done' }).waitFor();
  await shows(t, 'same', () => page.locator('.prose').allTextContents(), ['half an answer']);
  await shows(t, 'same', () => page.locator('.said .written').allTextContents(), [prompt('page')]);
  for (const name of ['frontend', 'chat', 'mcp', 'editor', 'page'])
    t.equal(timesOf(name), 1, `${name}: its command ran once`);
  t.same(complaints, []);
  await hub.shutdown();
});
