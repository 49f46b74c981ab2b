/** Scope of an approval: real tools, real files and a store, run by scripted models. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import {
  type ApprovalNeed,
  createBuiltinTools,
  imageReader,
  MemoryStore,
  type RuntimeOptions,
  type Tool,
} from '../../../src/agent/index.ts';
import { Config } from '../../../src/config/index.ts';
import { createTool } from '../../../src/mcp/tool.ts';
import type { ApprovalDecision, ApprovalPolicy, InputPart } from '../../../src/protocol/index.ts';
import { answers, call, listening, say, service, settings, text } from '../helpers.ts';
import { serve } from '../tools/run-tool.ts';

type Call = readonly [name: string, args: Record<string, unknown>];

function place(t: Test) {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-grants-')));
  t.teardown(() => rmSync(base, { recursive: true, force: true }));
  for (const name of ['ws', 'ws/trees/other', 'outside/deep', 'home']) mkdirSync(join(base, name), { recursive: true });
  return { base, workspace: join(base, 'ws'), outside: join(base, 'outside'), home: join(base, 'home') };
}

/** A service whose threads make the calls of the test; `ask` returns the scopes asked for and the results. */
function stage(t: Test, config: Record<string, unknown> = {}, ofServers: readonly Tool[] = []) {
  const places = place(t);
  const { Tools } = v.parse(Config, config);
  const builtin = createBuiltinTools({
    tools: Tools,
    blockedPaths: [],
    passEnvironment: [],
    secrets: [],
    environment: process.env,
    home: places.home,
  });
  const tools = [...builtin, ...ofServers];
  const store = new MemoryStore();
  const serviceOf = (provider: ReturnType<typeof answers>, more: Partial<RuntimeOptions> = {}) =>
    service(provider, {
      workspacePath: places.workspace,
      worktreeRoots: [join(places.workspace, 'trees')],
      store,
      tools: () => tools,
      settings,
      ...more,
    }).runtime;

  async function ask(
    calls: readonly Call[],
    {
      decision = 'decline',
      threadId,
      approvalPolicy,
      workspaceOverride,
    }: {
      decision?: ApprovalDecision;
      threadId?: string;
      approvalPolicy?: ApprovalPolicy;
      workspaceOverride?: string;
    } = {},
  ) {
    const rounds = calls.map(([name, args], at) => [call(`c${at}`, name, args)]);
    const runtime = serviceOf(answers(...rounds, [say('done')]));
    const id =
      threadId ??
      runtime.threads.start({ config: workspaceOverride === undefined ? {} : { workspaceOverride } }).thread.id;
    const ear = listening();
    const scopes: string[] = [];
    const { begin } = runtime.turns.start(
      id,
      text('go'),
      (event) => {
        ear.listener(event);
        if (event.method !== 'item/approval/request') return;
        scopes.push(event.params.scopeKey);
        runtime.turns.respond(event.params.requestId, decision);
      },
      { approvalPolicy },
    );
    begin();
    const { turn } = (await ear.until('turn/completed')).params;
    const results = turn.items.flatMap((item) => (item.type === 'toolResult' ? [item] : []));
    await runtime.close();
    return { threadId: id, scopes, results };
  }
  return { ...places, ask, store, tools, serviceOf };
}

t.test('regression: M1 one file allowed for the session allows no neighbour, no list and no search', async (t) => {
  const { ask, outside } = stage(t);
  for (const name of ['one', 'two', 'deep/three']) writeFileSync(join(outside, name), 'PRIVATE');
  const one = join(outside, 'one');
  const first = await ask([['ReadFile', { path: one }]], { decision: 'acceptForSession' });
  t.match(first.results, [{ outcome: 'completed', text: 'PRIVATE' }]);
  const later = await ask(
    [
      ['ReadFile', { path: one }],
      ['ReadFile', { path: join(outside, 'two') }],
      ['ReadFile', { path: outside }],
      ['FindFiles', { pattern: '**/*', path: outside }],
      ['GrepFiles', { pattern: 'PRIVATE', path: outside }],
      ['GrepFiles', { pattern: 'PRIVATE', path: one }],
    ],
    { threadId: first.threadId },
  );
  t.match(
    later.results.map(({ outcome }) => outcome),
    ['completed', 'declined', 'declined', 'declined', 'declined', 'declined'],
    'the file itself is read again, nothing else',
  );
  t.equal(new Set(later.scopes).size, 5, 'each is a scope of its own');
  const listed = await ask([['ReadFile', { path: outside }]], { decision: 'acceptAlways' });
  t.match(listed.results, [{ outcome: 'completed' }]);
  const after = await ask([
    ['ReadFile', { path: outside }],
    ['GrepFiles', { pattern: 'PRIVATE', path: outside }],
    ['ReadFile', { path: join(outside, 'two') }],
  ]);
  t.match(
    after.results.map(({ outcome }) => outcome),
    ['completed', 'declined', 'declined'],
    'a list allowed for always reads nothing',
  );
});

t.test('a search allowed for the session covers the directories below its start, and no other operation', async (t) => {
  const { ask, outside, base } = stage(t);
  for (const name of ['one', 'deep/three']) writeFileSync(join(outside, name), 'PRIVATE');
  const outcomes = ({ results }: { results: readonly { outcome?: string }[] }) => results.map(({ outcome }) => outcome);
  const found = await ask([['FindFiles', { pattern: '**/*', path: outside }]], { decision: 'acceptForSession' });
  t.match(found.results, [{ text: /deep\/three/ }], 'positive control: it finds names below');
  const after = await ask(
    [
      ['FindFiles', { pattern: '*', path: outside }],
      ['FindFiles', { pattern: '**/*', path: base }],
      ['GrepFiles', { pattern: 'PRIVATE', path: outside }],
      ['ReadFile', { path: join(outside, 'one') }],
      ['ReadFile', { path: outside }],
    ],
    { threadId: found.threadId },
  );
  t.same(outcomes(after), ['completed', 'declined', 'declined', 'declined', 'declined']);
  const searched = await ask([['GrepFiles', { pattern: 'PRIVATE', path: outside }]], { decision: 'acceptForSession' });
  t.match(searched.results, [{ text: /deep\/three/ }], 'positive control: it searches files below');
  const later = await ask(
    [
      ['GrepFiles', { pattern: 'PRIV', path: outside }],
      ['GrepFiles', { pattern: 'PRIVATE', path: base }],
      ['FindFiles', { pattern: '*', path: outside }],
      ['ReadFile', { path: join(outside, 'one') }],
    ],
    { threadId: searched.threadId },
  );
  t.same(outcomes(later), ['completed', 'declined', 'declined', 'declined']);
});

t.test('a file that may be written for the session may be edited, and no other file is covered', async (t) => {
  const { ask, workspace } = stage(t);
  for (const name of ['a.txt', 'b.txt']) writeFileSync(join(workspace, name), 'one');
  const write = (path: string): Call => ['WriteFile', { path, content: 'two' }];
  const edit = (path: string): Call => ['EditFile', { path, oldText: 'two', newText: 'three' }];
  const first = await ask([write('a.txt')], { decision: 'acceptForSession' });
  const { threadId } = first;
  const { results } = await ask([edit('a.txt'), write('./a.txt'), write('b.txt'), edit('b.txt')], { threadId });
  t.match(results, [{ outcome: 'completed' }, { outcome: 'completed' }, { outcome: 'declined' }, {}]);
  t.equal(readFileSync(join(workspace, 'b.txt'), 'utf8'), 'one');
  t.match((await ask([write('a.txt')])).results, [{ outcome: 'declined' }], 'another thread asks again');
});

t.test(
  'a tool of an MCP server that is allowed for the session runs with any arguments, and no other tool does',
  async (t) => {
    const host = {
      ...{
        serverName: 'srv',
        isTrusted: false,
        toolTimeoutSec: 1,
        connection: () => undefined,
        settled: async () => {},
        stateText: () => 'off',
      },
      ...{ clean: (text: string) => text, cleanResult: (text: string) => text },
    };
    const [say, send] = ['say', 'send'].map((name) =>
      createTool(`srv__${name}`, { name, inputSchema: { type: 'object', properties: {} } }, host),
    );
    if (!say || !send) throw new Error('a tool is missing');
    const { ask } = stage(t, {}, [say, send]);
    const { threadId } = await ask([['srv__say', { x: 1 }]], { decision: 'acceptForSession' });
    const { results, scopes } = await ask(
      [
        ['srv__say', { y: 'other' }],
        ['srv__send', {}],
      ],
      { threadId },
    );
    t.match(results, [{ text: /srv is not ready/ }, { outcome: 'declined' }], 'the first one reached its server');
    t.equal(scopes.length, 1);
  },
);

t.test('regression: M1 a file that has become a directory is not covered by its approval', async (t) => {
  const { tools, outside, workspace } = stage(t);
  const path = join(outside, 'swapped');
  writeFileSync(path, 'x');
  const read = tools.find(({ name }) => name === 'ReadFile');
  const parsed = read?.parse({ path });
  if (!read || !parsed?.ok) throw new Error('not parsed');
  const context = {
    workspacePath: workspace,
    threadId: 't',
    turnId: 'u',
    callId: 'c',
    signal: new AbortController().signal,
    onOutput: () => undefined,
    isApproved: () => false,
    spawnSubagent: () => Promise.reject(new Error('none')),
  };
  t.match(await read.approvalFor(parsed.args, context), { operation: 'read' } satisfies Partial<ApprovalNeed>);
  t.match(await read.run(parsed.args, context), { isError: false, text: 'x' });
  unlinkSync(path);
  mkdirSync(path);
  t.match(await read.run(parsed.args, context), { isError: true, text: /was a file when approval was considered/ });
});

t.test(
  'regression: M2 a command allowed for always runs in its real directory only, and with nothing added',
  async (t) => {
    const { ask, workspace } = stage(t);
    const other = join(workspace, 'trees', 'other');
    writeFileSync(join(workspace, 'test.sh'), 'echo trusted');
    writeFileSync(join(other, 'test.sh'), 'echo HOSTILE > proof');
    const command = 'sh test.sh';
    await ask([['Exec', { command }]], { decision: 'acceptAlways' });
    const again = await ask([['Exec', { command }]]);
    t.match(again, { scopes: [], results: [{ outcome: 'completed', text: /trusted/ }] }, 'the same is not asked again');
    const added = await ask([
      ['Exec', { command: `${command}; touch more` }],
      ['Exec', { command: `${command} ` }],
      ['Exec', { command, workingDir: 'trees/other' }],
    ]);
    t.match(
      added.results.map(({ outcome }) => outcome),
      ['declined', 'declined', 'declined'],
    );
    const inWorktree = await ask([['Exec', { command }]], { workspaceOverride: other });
    t.match(inWorktree.results, [{ outcome: 'declined' }], 'a worktree has files of its own');
    t.same(readdirSync(other), ['test.sh']);
  },
);

t.test('regression: M2 grants of earlier versions match nothing', async (t) => {
  const { ask, store, outside } = stage(t);
  writeFileSync(join(outside, 'one'), 'PRIVATE');
  for (const scope of ['shell:true', `file:read:${outside}`, `file:read:${outside}/one`]) store.putGrant(null, scope);
  const { scopes } = await ask([
    ['Exec', { command: 'true' }],
    ['ReadFile', { path: join(outside, 'one') }],
    ['GrepFiles', { pattern: 'P', path: outside }],
  ]);
  t.equal(scopes.length, 3);
});

t.test('regression: M4 WebFetch sends nothing to a host that was not approved', async (t) => {
  let requests = 0;
  const host = await serve(t, (request, response) => {
    requests += 1;
    if (request.url === '/away') response.writeHead(302, { location: `http://${elsewhere}/?d=KEY` });
    else response.writeHead(200, { 'content-type': 'text/plain' });
    response.end('page');
  });
  let leaked = 0;
  const elsewhere = await serve(t, (_, response) => {
    leaked += 1;
    response.end('page');
  });
  const url = `http://${host}/?d=KEY`;
  const strict = stage(t);
  const asked = await strict.ask([['WebFetch', { url }]]);
  t.same(asked.scopes, [`web:http://${host}`]);
  t.match(asked.results, [{ outcome: 'declined' }]);
  const unattended = await strict.ask([['WebFetch', { url }]], { approvalPolicy: 'interrupt' });
  t.match(unattended, { scopes: [], results: [{ outcome: 'declined', text: /rejected by policy/ }] });
  t.equal(requests, 0, 'no byte left');

  const session = await strict.ask([['WebFetch', { url }]], { decision: 'acceptForSession' });
  const { threadId } = session;
  const later = await strict.ask(
    [
      ['WebFetch', { url: `http://${host}/other` }],
      ['WebFetch', { url: `http://${elsewhere}/` }],
      ['WebFetch', { url: `https://${host}/` }],
    ],
    { threadId },
  );
  t.same(later.scopes, [`web:http://${elsewhere}`, `web:https://${host}`], 'one host is approved, by scheme and port');
  t.match(later.results[0]?.text, /not on the public internet/, 'approval does not open private addresses');
  t.equal(requests, 0);

  const free = stage(t, { Tools: { Web: { AllowedHosts: [host] } } });
  const allowed = await free.ask([
    ['WebFetch', { url }],
    ['WebFetch', { url: `http://${host}/away` }],
  ]);
  t.same(allowed.scopes, [], 'AllowedHosts answers beforehand');
  t.match(allowed.results, [
    { outcome: 'completed', text: /page/ },
    { outcome: 'failed', text: new RegExp(`redirects to ${elsewhere}, which has not been approved`) },
  ]);
  t.equal(leaked, 0);
  const open = stage(t, { Tools: { Web: { AllowedHosts: [host, elsewhere] } } });
  const followed = await open.ask([['WebFetch', { url: `http://${host}/away` }]], { approvalPolicy: 'interrupt' });
  t.match(followed, { scopes: [], results: [{ outcome: 'completed', text: /page/ }] });
  t.equal(leaked, 1, 'a redirect between allowed hosts is followed');
});

/** A whole PNG of one pixel. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

t.test('regression: image paths of stored messages obey the rules of the file tools', async (t) => {
  const { workspace, outside, home, serviceOf } = stage(t);
  const file = (path: string, bytes: Buffer) => writeFileSync(path, bytes);
  file(join(workspace, 'good.png'), png);
  file(join(outside, 'also-good.png'), png);
  file(join(workspace, 'blocked.png'), png);
  file(join(home, 'home.png'), png);
  mkdirSync(join(workspace, '.oratorio'));
  file(join(workspace, '.oratorio', 'state.png'), png);
  file(join(workspace, 'key.png'), Buffer.from('-----BEGIN PRIVATE KEY-----'));
  file(join(workspace, 'large.png'), Buffer.concat([png, Buffer.alloc(10 * 1_048_576)]));
  symlinkSync(join(outside, 'also-good.png'), join(workspace, 'link.png'));
  symlinkSync(outside, join(workspace, 'linked'));
  const shown = [join(workspace, 'good.png'), join(outside, 'also-good.png'), 'good.png'];
  const refused = [
    ...[
      'blocked.png',
      '.oratorio/state.png',
      'key.png',
      'large.png',
      'link.png',
      'linked/also-good.png',
      'missing.png',
    ],
    join(home, 'home.png'),
    '/dev/zero',
    '/proc/self/environ',
    workspace,
  ];
  const provider = answers([say('seen')]);
  const runtime = serviceOf(provider, { readImage: imageReader({ blockedPaths: ['blocked.png'], home }) });
  const { thread } = runtime.threads.start({});
  const talk = async (input: readonly InputPart[]) => {
    const ear = listening();
    runtime.turns.start(thread.id, input, ear.listener).begin();
    await ear.until('turn/completed');
  };
  await talk([...shown, ...refused].map((path) => ({ type: 'localImage', path, mimeType: 'image/png' })));
  // The stored message is read again with the next turn, when a path may lead elsewhere.
  unlinkSync(join(workspace, 'good.png'));
  symlinkSync(join(home, 'home.png'), join(workspace, 'good.png'));
  await talk(text('and now?'));
  const imagesOf = (at: number) =>
    provider.requests[at]?.messages.flatMap((message) =>
      message.role === 'user' ? message.content.map(({ type }) => type) : [],
    );
  t.same(imagesOf(0), [...shown.map(() => 'image'), ...refused.map(() => 'text')]);
  t.same(imagesOf(1), ['text', 'image', 'text', ...refused.map(() => 'text'), 'text']);
  await runtime.close();
});
