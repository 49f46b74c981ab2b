/** One agent leads others: scoped tokens at the Hub, and `oratorio mcp` with the official client of the protocol. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import t, { type Test } from 'tap';
import type { DelegatedRequest, InboxItem } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { program, programEnvironment } from '../programs.ts';
import { eventually, makeWorkspace, quick, request, startTestHub } from './harness.ts';

const settings = { ...quick, Provider: 'demo', DashBoard: { Enabled: false } };
const hub = await startTestHub(t);
const led = makeWorkspace(t, settings);
const own = makeWorkspace(t, settings);
const idOf = async (path: string): Promise<string> => (await hub.ensure(path)).page?.split('/')[2] ?? '';
const ledId = await idOf(led);
const ownId = await idOf(own);

const issue = async (scopes: readonly string[], more: object = {}) =>
  (await hub.call('POST', '/v1/tokens', { name: 'lead', scopes, ...more })).body;
const delegated = (token: string, body: DelegatedRequest | object) =>
  request({ ...hub.lock, token }, 'POST', '/v1/delegated', body);

async function connect(t: Test, cwd: string, ...args: string[]): Promise<Client> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', program('src/cli/main.ts'), 'mcp', '--no-start', ...args],
    cwd,
    env: { ...programEnvironment, ORATORIO_HOME: hub.home } as Record<string, string>,
    stderr: 'inherit',
  });
  const client = new Client({ name: 'official', version: '1' });
  await client.connect(transport);
  t.teardown(() => client.close());
  return client;
}

async function call(client: Client, name: string, args: Record<string, unknown> = {}) {
  const { content, isError } = await client.callTool({ name, arguments: args });
  const [first] = content as { type: string; text: string }[];
  return { isError: isError === true, text: first?.text ?? '' };
}

t.test('a scoped token opens what its scopes name, and no other route', async (t) => {
  const { token, expiresAt } = await issue(['list']);
  t.ok(Date.parse(expiresAt) > Date.now());
  t.match(await delegated(token, { do: 'list' }), { status: 200, body: [{ workspaceId: /./ }, { workspaceId: /./ }] });
  const listed = JSON.stringify((await delegated(token, { do: 'list' })).body);
  t.notMatch(listed, /token=|ws:/, 'no address of an agent server');
  for (const body of [
    { do: 'read', workspaceId: ledId },
    { do: 'start', workspacePath: led },
    { do: 'prompt', workspaceId: ledId, text: 'run: touch never' },
    { do: 'requests' },
    { do: 'approve', workspaceId: ledId, requestId: 'approval_1', decision: 'accept' },
  ])
    t.match(await delegated(token, body), { status: 403, body: { error: { code: 'scopeMissing' } } }, body.do);
  for (const path of ['/v1/appservers', '/v1/inbox', '/v1/events/recent', '/v1/page', '/v1/inbox/history'])
    t.equal((await request({ ...hub.lock, token }, 'GET', path)).status, 401, path);
  const escalation = { name: 'more', scopes: ['approve'] };
  t.equal((await request({ ...hub.lock, token }, 'POST', '/v1/tokens', escalation)).status, 401);
  const page = { ...hub.lock, token: pageToken(hub.home) };
  t.equal((await request(page, 'POST', '/v1/tokens', escalation)).status, 401, 'nor does a page issue one');
});

t.test('a token that was changed, or is of another kind, opens nothing', async (t) => {
  const { token } = await issue(['list']);
  const [, sealed = '', proof = ''] = token.split('.');
  const facts = JSON.parse(Buffer.from(sealed, 'base64url').toString());
  const more = Buffer.from(JSON.stringify({ ...facts, scopes: ['approve'] })).toString('base64url');
  for (const forged of [`scp.${more}.${proof}`, `scp.${sealed}.`, `ntf.${sealed}.${proof}`, 'scp..', hub.lock.token])
    t.equal((await delegated(forged, { do: 'list' })).status, 401);
  for (const body of [{}, { do: 'list!' }, { do: 'prompt', workspaceId: ledId, text: '' }, []])
    t.equal((await delegated(token, body)).status, 400, JSON.stringify(body));
  t.equal((await hub.call('POST', '/v1/tokens', { name: '\u202e', scopes: ['list'] })).status, 400);
  t.equal((await hub.call('POST', '/v1/tokens', { name: 'x', scopes: [] })).status, 400);
});

t.test('another agent lists, prompts, waits and reads through the official client', async (t) => {
  const client = await connect(t, own, '--name', 'lead');
  const { tools } = await client.listTools();
  t.same(tools.map(({ name }) => name).sort(), [
    'list_workspaces',
    'prompt_agent',
    'read_conversation',
    'start_workspace',
  ]);
  t.match((await call(client, 'list_workspaces')).text, ledId);
  t.match((await call(client, 'start_workspace', { workspacePath: led })).text, /"state": "running"/);
  const said = await call(client, 'prompt_agent', { workspaceId: ledId, text: 'hello there', waitSeconds: 120 });
  t.match(JSON.parse(said.text), { workspaceId: ledId, turns: [{ status: 'completed', prompt: 'hello there' }] });
  const { threadId, turns } = JSON.parse(said.text);
  t.ok(turns[0].answer.length > 0);
  t.match((await call(client, 'read_conversation', { workspaceId: ledId })).text, threadId);
  t.match((await call(client, 'read_conversation', { workspaceId: ledId, threadId })).text, /hello there/);
  t.match(await call(client, 'prompt_agent', { workspaceId: ledId }), { isError: true, text: /text must be/ });
  t.match(await call(client, 'read_conversation', { workspaceId: 'none' }), {
    isError: true,
    text: /no such workspace/,
  });
  await t.rejects(client.callTool({ name: 'decide_request', arguments: {} }), /no such tool/);
});

t.test('with the right to approve it decides for others, and never for its own workspace', async (t) => {
  const client = await connect(t, own, '--allow', 'list,read,prompt,approve', '--name', 'lead');
  await call(client, 'prompt_agent', { workspaceId: ledId, text: 'run: touch led' });
  await call(client, 'prompt_agent', { workspaceId: ownId, text: 'run: touch own' });
  const inbox = async (): Promise<InboxItem[]> => (await hub.call('GET', '/v1/inbox')).body;
  const itemOf = (target: string) =>
    eventually(async () => (await inbox()).find(({ request: each }) => each.target === target), target);
  const [ofLed, ofOwn] = [await itemOf('touch led'), await itemOf('touch own')];
  const listed = await call(client, 'list_requests');
  t.match(listed.text, ofLed.request.requestId);
  t.notMatch(listed.text, ofOwn.request.requestId);
  const decide = (workspaceId: string, requestId: string, decision = 'accept') =>
    call(client, 'decide_request', { workspaceId, requestId, decision });
  t.match(await decide(ownId, ofOwn.request.requestId), { isError: true, text: /own workspace/ });
  t.match(await decide(ledId, ofOwn.request.requestId), { isError: true });
  t.match(await decide(ledId, ofLed.request.requestId, 'acceptAlways'), { isError: true });
  t.match(JSON.parse((await decide(ledId, ofLed.request.requestId)).text), {
    decision: 'accept',
    decidedBy: 'agent lead',
  });
  t.match(await decide(ledId, ofLed.request.requestId, 'decline'), { isError: true, text: /decided already/ });
  await eventually(() => existsSync(join(led, 'led')), 'the command of the other workspace runs');
  t.notOk(existsSync(join(own, 'own')));
  t.match(
    (await inbox()).map(({ request: each }) => each.requestId),
    [ofOwn.request.requestId],
    'it still waits',
  );
  t.match((await hub.call('GET', '/v1/inbox/history?limit=1')).body, [{ decidedBy: 'agent lead', token: 'lead' }]);
});

t.test('an agent server’s mark binds a token to its workspace, wherever the holder runs', async (t) => {
  const marker = await markerOf(led);
  const { ownWorkspaces } = await issue(['approve'], { cwd: '/', marker });
  t.same(ownWorkspaces, [(await hub.record(led)).canonicalWorkspacePath]);
});

/** Mark of the agent server of a workspace, as its commands carry it. */
async function markerOf(workspace: string): Promise<string> {
  const { endpoints } = await hub.record(workspace);
  const { host } = new URL(endpoints['appServerWebSocket'] ?? '');
  const health = (await (await fetch(`http://${host}/healthz`)).json()) as { incarnation: string };
  return health.incarnation;
}
