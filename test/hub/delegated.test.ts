/** One agent leads others: scoped tokens at the Hub, and `oratorio mcp` with the official client of the protocol. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import t, { type Test } from 'tap';
import { loadCredentials } from '../../src/hub/credentials.ts';
import { ScopedTokens } from '../../src/hub/scoped-tokens.ts';
import { createLogger } from '../../src/log/index.ts';
import type { DelegatedRequest, InboxItem } from '../../src/protocol/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { runInProcess } from '../cli/in-process.ts';
import { program, programEnvironment } from '../programs.ts';
import { eventually, makeWorkspace, quick, request, startTestHub, temporaryDirectory } from './harness.ts';

const oratorio = ['--disable-warning=ExperimentalWarning', program('src/cli/main.ts')];
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
    args: [...oratorio, 'mcp', '--no-start', ...args],
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

t.test('a scoped token opens the routes of its scopes, and no other', async (t) => {
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
  await t.rejects(client.callTool({ name: 'decide_request', arguments: {} }), /Unknown tool/);
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

t.test('a token is listed without itself, and opens nothing once it is revoked', async (t) => {
  const { token, ...issued } = await issue(['list'], { cwd: own });
  const other = await issue(['list']);
  const listed = (await hub.call('GET', '/v1/tokens')).body;
  t.same(
    listed.find(({ tokenId }: { tokenId: string }) => tokenId === issued.tokenId),
    issued,
  );
  t.notOk(JSON.stringify(listed).includes(token));
  const revoke = (tokenId: unknown, by = hub.lock.token) =>
    request({ ...hub.lock, token: by }, 'POST', '/v1/tokens/revoke', { tokenId });
  for (const by of [token, pageToken(hub.home)]) t.equal((await revoke(issued.tokenId, by)).status, 401);
  t.match(await revoke(issued.tokenId), { status: 200, body: issued });
  t.match(await delegated(token, { do: 'list' }), { status: 403, body: { error: { code: 'tokenRevoked' } } });
  t.equal((await delegated(other.token, { do: 'list' })).status, 200, 'another token of the same name holds');
  for (const unknown of [issued.tokenId, 'none', '__proto__']) t.equal((await revoke(unknown)).status, 404);
  t.equal((await revoke(7)).status, 400);
});

t.test('a program whose token is revoked gets no other one, and one that ends gives its own back', async (t) => {
  const [revoked, ending] = [await connect(t, own, '--name', 'revoked'), await connect(t, own, '--name', 'ending')];
  for (const client of [revoked, ending]) t.match(await call(client, 'list_workspaces'), { isError: false });
  const cli = (...args: string[]) => runInProcess(hub.home, 'tokens', ...args, '--json', '--no-start');
  const tokens = JSON.parse((await cli()).stdout);
  t.same(tokens, (await hub.call('GET', '/v1/tokens')).body);
  const idOfHolder = (of: readonly { name: string; tokenId: string }[], name: string) =>
    of.find((each) => each.name === name)?.tokenId ?? 'none';
  t.match(JSON.parse((await cli('revoke', idOfHolder(tokens, 'revoked'))).stdout), { name: 'revoked' });
  for (let again = 0; again < 2; again += 1)
    t.match(await call(revoked, 'list_workspaces'), { isError: true, text: /was revoked/ });
  t.match(await cli('revoke', 'none'), { code: 1, stdout: /There is no token none/ });
  await ending.close();
  await eventually(async () => {
    const { body } = await hub.call('GET', '/v1/tokens');
    return idOfHolder(body, 'ending') === 'none' || undefined;
  }, 'the token is given back');
});

t.test('tokens hold for the next Hub, a damaged record ends them, and it has a bound', async (t) => {
  const directory = temporaryDirectory(t);
  const credentials = loadCredentials(directory);
  const logger = createLogger({ name: 'test', level: 'debug', stream: new PassThrough(), pretty: false });
  const open = () => new ScopedTokens(directory, credentials, logger);
  const first = open();
  const { tokenId } = await first.issue({ name: 'one', scopes: ['list', 'list'] }, []);
  const revoked = await first.issue({ name: 'two', scopes: ['list'] }, []);
  await first.revoke(revoked.tokenId);
  t.match(open().list(), [{ tokenId, scopes: ['list'] }]);
  const file = join(directory, 'tokens.json');
  t.notOk(readFileSync(file, 'utf8').includes(revoked.token));
  t.equal(statSync(file).mode & 0o777, 0o600);
  const all = Array.from({ length: 1_000 }, () => first.issue({ name: 'many', scopes: ['list'] }, []));
  await Promise.all(all);
  t.equal(open().list().length, 1_000);
  t.notOk(
    open()
      .list()
      .some((each) => each.tokenId === tokenId),
    'the oldest made room',
  );
  writeFileSync(file, '{');
  t.same(open().list(), []);
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
