/**
 * A coding task from beginning to end, in the installed product: a file is created, changed, searched and run, and
 * the outcome is reported – by the demo model and by an upstream that behaves as real ones do, through every way in.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Item } from '../../src/protocol/index.ts';
import { keptMarker } from '../../src/supervise/index.ts';
import { carries, scanProcesses } from '../../src/supervise/scan.ts';
import { Session } from '../appserver/session.ts';
import { answered, startMockUpstream, type UpstreamRequest } from '../fixtures/upstream/mock-upstream.ts';
import { eventually, isAlive } from '../hub/harness.ts';
import { command, makePlace, oratorio, type Place, startHub, stateOf } from './harness.ts';

const key = 'sk-a-key-of-the-tests';
const prompt = [
  '1. write greet.sh:',
  '```sh',
  'who=world',
  'echo "Hello, $who: $((6 * 7))"',
  '```',
  '2. replace "world" with "Oratorio" in greet.sh',
  '3. grep "Oratorio" in greet.sh',
  '4. run: sh greet.sh',
].join('\n');
const script = 'who=Oratorio\necho "Hello, $who: $((6 * 7))"\n';

/** The calls that a real model makes of such a task, one answer after the other. */
const calls = [
  { name: 'WriteFile', arguments: { path: 'greet.sh', content: script.replace('Oratorio', 'world') } },
  { name: 'EditFile', arguments: { path: 'greet.sh', oldText: 'who=world', newText: 'who=Oratorio' } },
  { name: 'GrepFiles', arguments: { pattern: 'Oratorio', path: 'greet.sh' } },
  { name: 'Exec', arguments: { command: 'sh greet.sh' } },
];

/** Model that takes the next step of the task, then reports the last tool result. Arguments arrive in pieces of seven characters. */
function model(request: UpstreamRequest) {
  const messages: { role: string; content: string }[] = request.body.messages;
  const since = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1);
  const results = since.filter(({ role }) => role === 'tool');
  const call = calls[results.length];
  if (!call) return answered(request, { text: `It printed: ${results.at(-1)?.content}` });
  return answered(request, {
    reasoning: `Step ${results.length + 1}.`,
    toolCalls: [{ id: `call_${results.length}`, ...call }],
  });
}

/** The Hub of all tests that need none of their own. */
const shared = makePlace(t);
const sharedHub = await startHub(shared);
const upstream = await startMockUpstream(t, model);
const ofUpstream = { EndPoint: upstream.url, ApiKey: 'key-of-the-upstream', Model: 'mock-model', UpstreamRetries: 0 };
const Api = { Enabled: true, ApiKey: key };

/** Workspaces of the two models, each with one agent server for every way in. */
const demo = shared.workspace('demo', { Api, Supervision: { BackoffBaseMs: 20 } });
const workspaces = [demo, shared.workspace('upstream', { ...ofUpstream, Api })];

/** Checks the outcome of the task in a workspace, and removes it. */
function isDone(t: Test, workspace: string, report: string): void {
  const file = join(workspace, 'greet.sh');
  t.equal(readFileSync(file, 'utf8'), script);
  rmSync(file);
  t.match(report, /Hello, Oratorio: 42/);
}

const tools = ['WriteFile', 'EditFile', 'GrepFiles', 'Exec'];

t.test('oratorio chat --yes completes the task', async (t) => {
  for (const workspace of workspaces) {
    const { code, stdout, stderr } = await oratorio(shared, ['chat', '--yes', '--workspace', workspace, prompt]);
    t.equal(code, 0, stderr);
    isDone(t, workspace, stdout);
  }
});

/** A workspace with a rule, and without services. */
const ruled = shared.workspace('rules', {
  Permissions: { Rules: [{ Tool: 'Exec', Prefix: 'touch', Decision: 'deny' }] },
});

t.test('a command that only reads, and one of a rule, run without a question; a denied one never runs', async (t) => {
  const workspace = ruled;
  writeFileSync(join(workspace, 'a.txt'), 'first line\n');
  const chat = (...args: string[]) => oratorio(shared, ['chat', '--workspace', workspace, ...args]);
  t.match((await chat('run: head -n 1 a.txt')).stdout, /first line/);
  t.match(await chat('run: mkdir made'), { code: 0, stdout: /declined/ }, 'without a terminal it is declined');
  t.notOk(existsSync(join(workspace, 'made')), 'unattended without --yes');
  const added = await oratorio(shared, ['rules', 'add', '--workspace', workspace, 'mkdir made']);
  t.equal(added.code, 0);
  await chat('run: mkdir made');
  t.ok(existsSync(join(workspace, 'made')), 'the rule holds at once, in the running server');
  t.match((await chat('--yes', 'run: touch denied')).stdout, /refused by a rule/);
  t.notOk(existsSync(join(workspace, 'denied')));
});

t.test('the chat API of a managed server completes the task', async (t) => {
  for (const workspace of workspaces) {
    const { serviceStatus } = await sharedHub.client.ensure({ workspacePath: workspace });
    const answer = await fetch(`${serviceStatus['api']?.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: '', messages: [{ role: 'user', content: prompt }] }),
    });
    t.equal(answer.status, 200);
    const { choices } = await answer.json();
    t.equal(choices[0].finish_reason, 'stop');
    isDone(t, workspace, choices[0].message.content);
  }
});

t.test('a JSON-RPC client of a managed server that approves each change completes the task', async (t) => {
  for (const workspace of workspaces) {
    const { endpoints } = await sharedHub.client.ensure({ workspacePath: workspace });
    const session = await Session.open(t, endpoints['appServerWebSocket'] ?? '', {
      onApproval: () => ({ decision: 'accept' }),
    });
    const { threadId } = await session.begin(prompt);
    const { turn } = await session.until('turn/completed');
    t.match(
      session.approvals.map(({ tool }) => tool),
      ['WriteFile', 'EditFile', 'Exec'],
    );
    const of = (type: Item['type']) => turn.items.filter((item) => item.type === type);
    t.match(
      of('toolCall'),
      tools.map((tool) => ({ tool })),
    );
    t.match(
      of('toolResult'),
      tools.map((tool) => ({ tool, outcome: 'completed' })),
    );
    t.match(of('commandExecution'), [{ command: 'sh greet.sh', output: 'Hello, Oratorio: 42\n', exitCode: 0 }]);
    const pieces = session.heard.filter(({ method }) => method === 'item/toolCall/argumentsDelta');
    t.ok(pieces.length > tools.length, `${pieces.length} pieces of arguments`);
    const report = turn.items.at(-1);
    isDone(t, workspace, report?.type === 'agentMessage' ? report.text : '');
    t.same((await session.call('thread/read', { threadId, includeTurns: true })).thread.turns, [turn]);
    t.same(session.faults, []);
  }
});

/** Runs `oratorio api` or `gateway` until its banner is whole. */
async function serveByHand(t: Test, place: Place, mode: string, workspace: string) {
  const child = spawn(process.execPath, [command, mode, '--workspace', workspace], { cwd: place.root, env: place.env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  t.teardown(() => child.kill('SIGKILL'));
  const [, url] = await eventually(
    () => /POST (http:\S+)\/v1\/chat\/completions[\s\S]*Ctrl-C/.exec(output) ?? undefined,
    () => `the banner: ${output}`,
  );
  return { banner: output, health: await (await fetch(`${url}/v1/health`)).json() };
}

t.test('oratorio api and gateway show model, provider and tools in the banner and the health response', async (t) => {
  const place = makePlace(t);
  const nine = [
    'ReadFile',
    'WriteFile',
    'EditFile',
    'GrepFiles',
    'FindFiles',
    'Exec',
    'WebFetch',
    'WebSearch',
    'SpawnSubagent',
  ];
  const demo = await serveByHand(t, place, 'api', place.workspace('demo', { Api: { Port: 0 } }));
  t.match(demo.banner, /model +demo \(offline\) no AI; for a real model: oratorio login/);
  t.match(demo.banner, /tools +9 \(all tools enabled\)/);
  t.match(demo.health, { status: 'ok', mode: 'api', model: 'demo', provider: 'demo', tools: { enabled: 9 } });
  t.same(demo.health.tools.names.sort(), nine.sort());

  const config = {
    Api: { Port: 0, Enabled: true },
    EndPoint: 'http://127.0.0.1:9/v1',
    ApiKey: 'k',
    Model: 'big',
    EnabledTools: ['readfile', 'EXEC'],
  };
  const other = await serveByHand(t, place, 'gateway', place.workspace('other', config));
  t.match(other.banner, /model +big at 127\.0\.0\.1:9\n/, 'regression: the banner names the model and its host');
  t.match(other.banner, /tools +2 \(tools: ReadFile, Exec\)/);
  t.match(other.health, { mode: 'gateway', model: 'big', provider: 'openai', tools: { enabled: 2 } });
});

t.test('an enabled service of a managed server is allocated, then running; a disabled one has a reason', async (t) => {
  const { client } = sharedHub;
  const workspace = shared.workspace('services', {
    Api: { Enabled: true },
    AgUi: { Enabled: true },
    DashBoard: { Enabled: false },
  });
  const seen: string[] = [];
  let isRunning = false;
  const watching = (async () => {
    while (!isRunning) {
      const record = (await client.list()).find(({ canonicalWorkspacePath }) => canonicalWorkspacePath === workspace);
      const { api, agui } = record?.serviceStatus ?? {};
      const now = `${api?.state} ${agui?.state}`;
      if (api && seen.at(-1) !== now) seen.push(now);
    }
  })();
  const record = await client.ensure({ workspacePath: workspace });
  isRunning = true;
  await watching;
  t.match(seen, ['allocated allocated']);
  const { serviceStatus } = record;
  t.match(serviceStatus, {
    api: { state: 'running', url: /^http:\/\/127\.0\.0\.1:\d+$/, reason: null },
    agui: { state: 'running', url: /^http:\/\/127\.0\.0\.1:\d+\/ag-ui$/, reason: null },
    dashboard: { state: 'disabled', url: null, reason: 'DashBoard is disabled.' },
  });
  const health = await (await fetch(`${serviceStatus['api']?.url}/v1/health`)).json();
  t.match(health, { mode: 'managed', tools: { enabled: 9 } });

  const plain = await client.ensure({ workspacePath: ruled });
  t.match(plain.serviceStatus, {
    api: { state: 'disabled', url: null, reason: 'Api is disabled.' },
    agui: { state: 'disabled', url: null, reason: 'AgUi is disabled.' },
  });
});

t.test(
  'after kill -9 of a managed server its command runs on, and the Hub’s next server continues the turn',
  async (t) => {
    const workspace = demo;
    const first = await sharedHub.client.ensure({ workspacePath: workspace });
    const session = await Session.open(t, first.endpoints['appServerWebSocket'] ?? '');
    const forks = 'sleep 3001 & setsid sleep 3002 & echo started; until [ -e go ]; do sleep 0.02; done; echo went';
    const { threadId, turnId } = await session.begin(`run: ${forks}`, { config: { approvalPolicy: 'autoApprove' } });
    await session.until('item/commandExecution/outputDelta');
    const marker = keptMarker(join(stateOf(workspace), 'kept-commands'));
    const carriers = async () =>
      (await scanProcesses()).filter((entry) => !entry.zombie && carries(entry, marker)).map(({ pid }) => pid);
    // A process that is just becoming its program has no environment for a moment.
    await eventually(async () => (await carriers()).length >= 3, 'all processes of the command are visible');
    process.kill(first.pid ?? 0, 'SIGKILL');
    const second = await eventually(async () => {
      const record = await sharedHub.client.byWorkspace(workspace);
      return record.state === 'running' && record.pid !== first.pid ? record : undefined;
    }, 'the Hub has restarted the server');
    t.ok((await carriers()).length >= 3, 'the command runs on');
    t.notOk(isAlive(first.pid ?? 0));
    writeFileSync(join(workspace, 'go'), '');
    const next = await Session.open(t, second.endpoints['appServerWebSocket'] ?? '');
    const { thread } = await next.call('thread/resume', { threadId });
    t.match(thread.turns, [{ id: turnId, resumes: 1 }]);
    const endOf = (place: number) =>
      eventually(async () => {
        const turn = (await next.call('thread/read', { threadId, includeTurns: true })).thread.turns?.[place];
        return turn?.completedAt === undefined ? undefined : turn;
      }, 'the turn ends');
    const { status, items } = await endOf(0);
    t.equal(status, 'completed', 'the turn continues');
    t.match(
      items.filter(({ type }) => type === 'toolResult'),
      [{ outcome: 'completed', text: /started\nwent/ }],
      'its command has run once',
    );
    t.same(await carriers(), [], 'no process of the command is left');
    await next.say(threadId, 'echo on we go');
    t.match((await endOf(1)).items.at(-1), { type: 'agentMessage', text: /on we go/ });
    await sharedHub.shutdown();
  },
);
