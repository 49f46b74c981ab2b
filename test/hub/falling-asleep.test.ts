/** Requests while an idle agent server ends, and the sleep of a workspace beyond the end of its Hub. Real agent servers with the demo model. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { PromptResponse } from '@agentclientprotocol/sdk';
import t from 'tap';
import { WebSocket } from 'ws';
import { nextRandom } from '../../machines/index.ts';
import { AppServerClient } from '../../src/client/index.ts';
import { dashboardPaths, pageSubprotocol } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { editorIn } from '../acp/harness.ts';
import { runInProcess } from '../cli/in-process.ts';
import {
  eventually,
  makeWorkspace,
  quick,
  request,
  startTestHub,
  type TestHub,
  temporaryDirectory,
} from './harness.ts';

const settings = { ...quick, Provider: 'demo', Api: { Enabled: true }, AgUi: { Enabled: true } };
const idle = { policy: { idleStopMs: 2_000 } };

const asleep = (workspace: string, of: TestHub) =>
  eventually(async () => {
    const record = await of.record(workspace);
    return record.phase === 'asleep' ? record : undefined;
  }, `${workspace} sleeps`);

const messages = [{ role: 'user', content: 'say hello' }];
const chat = (api: string, more: object = {}) =>
  fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages, ...more }),
  });

/** Status of the first answer on the WebSocket of a page. @throws Error when it closes before */
function answerOn(url: URL, token: string): Promise<number> {
  const socket = new WebSocket(url, [pageSubprotocol, token]);
  const params = { clientInfo: { name: 'page', version: '1' } };
  return new Promise<number>((resolve, reject) => {
    socket.on('open', () => socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })));
    socket.on(
      'message',
      (data) => JSON.parse(String(data)).id === 1 && resolve('result' in JSON.parse(String(data)) ? 200 : 0),
    );
    socket.on('error', reject).on('close', reject);
  }).finally(() => socket.terminate());
}

t.test('requests that arrive while a workspace falls asleep are answered', async (t) => {
  // Each round waits for the server's decision, then sends requests over the time in which the server ends.
  const early = await startTestHub(t, { policy: { idleStopMs: 300 } });
  const workspace = makeWorkspace(t, settings);
  const { endpoints, page: path = '' } = await early.ensure(workspace);
  const { api = '', agui = '', appServerWebSocket = '' } = endpoints;
  const page = { ...early.lock, token: pageToken(early.home) };
  const socketUrl = new URL(`${path}${dashboardPaths.socket.slice(1)}`, early.lock.apiBaseUrl);
  const models = async () => (await fetch(`${api}/v1/models`)).status;
  const turn = async () => {
    const answer = await chat(api, { stream: true });
    return (await answer.text()).includes('data: [DONE]') ? answer.status : 0;
  };
  const rpc = async () => {
    const client = await AppServerClient.connect(appServerWebSocket);
    await client.request('thread/start', {});
    client.close();
    return 200;
  };
  const faces: Record<string, () => Promise<number>> = {
    models,
    turn,
    rpc,
    agui: async () => (await fetch(agui, { method: 'POST', body: '{}' })).status,
    async run() {
      const input = { threadId: 't', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} };
      const answer = await fetch(agui, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
        body: JSON.stringify({ ...input, messages: [{ id: '1', role: 'user', content: 'say hello' }] }),
      });
      return (await answer.text()).split('RUN_FINISHED').length === 2 ? answer.status : 0;
    },
    async cli() {
      const { code, text } = await runInProcess(early.home, 'chat', 'say hello', '--workspace', workspace);
      if (code !== 0) throw new Error(text);
      return 200;
    },
    // The page opens its WebSocket again after the end of a server.
    socket: () => eventually(() => answerOn(socketUrl, page.token).catch(() => undefined), 'the page is served'),
    async editor() {
      const editor = await editorIn(t, early.home);
      const { sessionId } = await editor.agent.request('session/new', { cwd: workspace, mcpServers: [] });
      const prompt = [{ type: 'text' as const, text: 'say hello' }];
      const { stopReason } = await editor.agent.request<PromptResponse>('session/prompt', { sessionId, prompt });
      await editor.leave();
      return stopReason === 'end_turn' ? 200 : 0;
    },
    ensure: async () => ((await early.ensure(workspace)).state === 'running' ? 200 : 0),
    async page() {
      for (;;) {
        const { status, body } = await request(page, 'GET', `${path}dashboard/api/summary`);
        // A slow start exceeds the time for which the Hub holds a request.
        if (status !== 503 || body.error.details.state !== 'starting') return status;
      }
    },
  };
  const falls = await early.events();
  let state = { random: 0, seed: 42 };
  for (let round = 0; round < 2; round += 1) {
    await eventually(async () => {
      const { phase } = await early.record(workspace);
      return phase.startsWith('stopping') || phase === 'asleep' ? phase : undefined;
    }, 'it falls asleep');
    const asked = Object.entries(faces).flatMap(([name, ask]) =>
      [0, 1].map(async () => {
        state = nextRandom(state.seed);
        await new Promise((resolve) => setTimeout(resolve, state.random * 150));
        return [name, await ask().catch(String)] as const;
      }),
    );
    for (const [name, status] of await Promise.all(asked)) t.notMatch(status, /503|^0|Error/, name);
  }
  t.match((await falls.wait('appserver.exited')).data, { reason: 'idle' });
});

t.test('a workspace stays asleep under the next Hub, after a crash and after a hand-over', async (t) => {
  const home = temporaryDirectory(t);
  const workspace = makeWorkspace(t, settings);
  const first = await startTestHub(t, { home, ...idle });
  const { api = '', appServerWebSocket = '' } = (await first.ensure(workspace)).endpoints;
  await asleep(workspace, first);
  await first.kill('SIGKILL');
  // The Hub can also be killed after the server has agreed to sleep, and before it has ended.
  const file = `${home}/hub/appservers.json`;
  const state = JSON.parse(readFileSync(file, 'utf8'));
  const identity = { pid: 4_000_000, startedTicks: '1', bootId: 'another', pidNamespace: 'another' };
  state.appServers[0].server = { marker: 'ended', identity };
  writeFileSync(file, JSON.stringify(state));
  const second = await startTestHub(t, { home, ...idle });
  await asleep(workspace, second);
  const client = await AppServerClient.connect(appServerWebSocket);
  client.close();
  t.equal((await chat(api)).status, 200, 'the port and the token are those that its clients have');
  await asleep(workspace, second);
  await second.shutdown('detach');
  const third = await startTestHub(t, { home, ...idle });
  await asleep(workspace, third);
  await third.shutdown();
  const fourth = await startTestHub(t, { home, ...idle });
  t.match(await fourth.record(workspace), { phase: 'stopped' }, 'the stop of a Hub also stops its sleeping workspaces');
});
