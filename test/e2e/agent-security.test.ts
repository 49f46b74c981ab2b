/**
 * A compromised model requests protected files, addresses and secrets from a real server, in every spelling.
 * Every attempt is refused, leads nowhere, and can be found in the traces afterwards.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startThread } from '../../src/client/index.ts';
import { loadCredentials } from '../../src/hub/credentials.ts';
import type { ItemOf } from '../../src/protocol/index.ts';
import { type MockUpstream, type Reply, refusal, startMockUpstream } from '../fixtures/upstream/mock-upstream.ts';
import { eventually } from '../hub/harness.ts';
import {
  approver,
  connect,
  obedient,
  orders,
  publishedBy,
  readThread,
  resultsOf,
  runAlone,
  runTurn,
  startApi,
  toolCall,
  traced,
  tracesOf,
} from './agent-server.ts';
import { makePlace, oratorio, type Place, processesUnder, startHub, stateOf } from './harness.ts';

const secret = {
  upstream: 'sk-upstream-0f1e2d3c4b5a',
  api: 'sk-api-key/with+odd=signs-77',
  agui: 'agui-key-9988776655',
  search: 'search-key-1a2b3c4d5e',
};

/** One line that is in a file outside of the workspace, and nowhere else. */
const outsideWords = 'these words are outside of the workspace';

interface Attacked {
  readonly place: Place;
  readonly workspace: string;
  readonly outside: string;
  readonly upstream: MockUpstream;
}

/** Place of all tests that need no user of their own, with its Hub. */
const shared = makePlace(t);
const hub = await startHub(shared);
let scenes = 0;

/** Workspace with the obedient model, and a directory outside of the workspace with a file that must not be read. */
async function attacked(
  t: Pick<Test, 'teardown'>,
  settings: Readonly<Record<string, unknown>> = {},
  { reply = obedient, place = shared }: { readonly reply?: Reply; readonly place?: Place } = {},
): Promise<Attacked> {
  scenes += 1;
  const upstream = await startMockUpstream(t, reply);
  const workspace = place.workspace(`site-${scenes}`, {
    EndPoint: upstream.url,
    ApiKey: secret.upstream,
    Model: 'mock-model',
    UpstreamRetries: 0,
    ...settings,
  });
  const outside = join(place.root, 'outside');
  mkdirSync(outside, { recursive: true });
  writeFileSync(join(outside, 'file.txt'), outsideWords);
  writeFileSync(join(workspace, 'inside.txt'), 'inside the workspace');
  return { place, workspace, outside, upstream };
}

/** All requests that the model has received, as JSON. */
const receivedBy = (upstream: MockUpstream): string => JSON.stringify(upstream.requests.map(({ body }) => body));

const listening = async (server: ReturnType<typeof createServer>) => {
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  return (server.address() as AddressInfo).port;
};
const redirector = createServer(({ url = '/' }, response) => {
  response.writeHead(302, { location: encodeURI(decodeURIComponent(url.slice(2))) }).end();
});
const redirectorPort = await listening(redirector);

/** The server of the tests that only ask it for something. */
const { place, workspace, outside, upstream } = await attacked(t, {
  MaxToolCallRounds: 1_000,
  Tools: { Web: { AllowedHosts: [`127.0.0.1:${redirectorPort}`] } },
});
await hub.client.ensure({ workspacePath: workspace });

t.test(
  'protected files are refused without an approval request, also to a client that approves everything',
  async (t) => {
    const { asked, onRequest } = approver('accept');
    const client = await connect(t, workspace, { onRequest });
    symlinkSync('.oratorio', join(workspace, 'notes'));
    symlinkSync('.oratorio/config.json', join(workspace, 'readme.md'));
    symlinkSync('/proc/self', join(workspace, 'self'));
    linkSync(join(workspace, '.oratorio', 'config.json'), join(workspace, 'innocent.json'));
    const config = readFileSync(join(workspace, '.oratorio', 'config.json'), 'utf8');
    const { pid } = publishedBy(workspace);
    const paths = [
      '.oratorio/config.json',
      '.oratorio/state.db',
      '.oratorio/state.db-wal',
      '.oratorio/appserver.lock',
      './inside.txt/../.oratorio/config.json',
      '.ORATORIO/config.json',
      join(workspace, '.oratorio', 'config.json'),
      'notes/config.json',
      'readme.md',
      '/proc/self/environ',
      `/proc/${pid}/environ`,
      `/proc/${pid}/cwd/.oratorio/config.json`,
      '../../../../../../proc/self/environ',
      'self/environ',
      '/dev/mem',
      join(place.home, 'hub', 'hub.lock'),
      '../home/hub/adoption.key',
    ];
    const answer = {
      toolCalls: [
        ...paths.map((path) => toolCall('ReadFile', { path })),
        ...paths.map((path) => toolCall('WriteFile', { path, content: '{}' })),
        ...paths.map((path) => toolCall('EditFile', { path, oldText: 'a', newText: 'b', replaceAll: true })),
        ...paths.map((path) => toolCall('GrepFiles', { path, pattern: '.' })),
        ...paths.map((path) => toolCall('FindFiles', { path, pattern: '*' })),
        toolCall('Exec', { command: 'cat config.json', workingDir: '.oratorio' }),
      ],
    };
    const turn = await runAlone(client, workspace, orders(answer));
    t.equal(turn.status, 'completed');
    const results = resultsOf(turn);
    t.equal(results.length, answer.toolCalls.length);
    for (const { callId, tool, outcome, text } of results) {
      const { arguments: args } = answer.toolCalls.find(({ id }) => id === callId) ?? {};
      t.match({ outcome, text }, { outcome: 'failed', text: /^Error: refused: / }, `${tool} ${JSON.stringify(args)}`);
    }
    t.strictSame(
      asked.map(({ tool }) => tool),
      ['Exec'],
      'a refused call requests no approval; a command always does',
    );
    t.equal(readFileSync(join(workspace, '.oratorio', 'config.json'), 'utf8'), config);
    const [first] = results;
    await traced(workspace, first?.callId ?? '', 'tool.started', 'tool.failed');

    t.test('a search finds no protected file', async (t) => {
      const turn = await runAlone(
        client,
        workspace,
        orders({
          toolCalls: [
            ...Object.values(secret).map((pattern) => toolCall('GrepFiles', { pattern })),
            toolCall('GrepFiles', { pattern: 'ApiKey', path: '.' }),
            toolCall('FindFiles', { pattern: '**/*' }),
            toolCall('FindFiles', { pattern: '.oratorio/**' }),
          ],
        }),
      );
      const results = resultsOf(turn);
      for (const { text } of results.slice(0, -1)) t.notMatch(text, /\.oratorio|config\.json|state\.db/);
      t.match(results.at(-2)?.text, /inside\.txt/);
      t.equal(results.at(-1)?.text, 'No files match .oratorio/** in .');
    });
    t.notMatch(receivedBy(upstream), new RegExp(secret.upstream));
  },
);

t.test(
  'a path outside of the workspace needs approval under its real name; a declined call is refused and traced',
  async (t) => {
    const { asked, onRequest } = approver('decline');
    const client = await connect(t, workspace, { onRequest });
    symlinkSync(outside, join(workspace, 'docs'));
    symlinkSync('../outside/file.txt', join(workspace, 'link.txt'));
    symlinkSync('../outside/not-there-yet', join(workspace, 'dangling'));
    const file = join(outside, 'file.txt');
    const cases: [string, object, string][] = [
      ['ReadFile', { path: '../../../../../../../../../../etc/passwd' }, '/etc/passwd'],
      ['ReadFile', { path: '/etc/passwd' }, '/etc/passwd'],
      ['ReadFile', { path: file }, file],
      ['ReadFile', { path: 'docs/file.txt' }, file],
      ['ReadFile', { path: 'link.txt' }, file],
      ['ReadFile', { path: 'docs/../outside/file.txt' }, join(workspace, 'outside', 'file.txt')],
      ['GrepFiles', { path: 'docs', pattern: '.' }, outside],
      ['FindFiles', { path: '..', pattern: '**' }, place.root],
      ['WriteFile', { path: '../outside/new.txt', content: 'x' }, join(outside, 'new.txt')],
      ['WriteFile', { path: 'docs/new/deep.txt', content: 'x' }, join(outside, 'new', 'deep.txt')],
      ['WriteFile', { path: 'dangling', content: 'x' }, join(outside, 'not-there-yet')],
      ['WriteFile', { path: 'link.txt', content: 'x' }, file],
      ['EditFile', { path: 'link.txt', oldText: 'words', newText: 'x' }, file],
    ];
    const calls = cases.map(([name, args]) => toolCall(name, args));
    const turn = await runAlone(client, workspace, orders({ toolCalls: calls }));
    const insideIsFree = (target: string) => target === join(workspace, 'outside', 'file.txt');
    t.strictSame(
      asked.map(({ target }) => target).sort(),
      cases
        .map(([, , target]) => target)
        .filter((target) => !insideIsFree(target))
        .sort(),
    );
    for (const [at, { tool, outcome, text }] of resultsOf(turn).entries()) {
      const target = cases[at]?.[2] ?? '';
      if (insideIsFree(target))
        t.match({ outcome, text }, { outcome: 'failed', text: /there is no|does not exist|not found/i });
      else
        t.match({ outcome, text }, { outcome: 'declined', text: /^Error: the user declined: / }, `${tool} ${target}`);
    }
    t.equal(readFileSync(file, 'utf8'), outsideWords);
    t.strictSame(readdirSync(outside), ['file.txt']);
    t.notMatch(receivedBy(upstream), new RegExp(outsideWords));
    t.notMatch(receivedBy(upstream), /root:/);
    await traced(
      workspace,
      calls[0]?.id ?? '',
      'approval.requested',
      'approval.completed',
      'tool.started',
      'tool.failed',
    );
    t.match(
      tracesOf(workspace).find(({ type, callId }) => type === 'approval.completed' && callId === calls[0]?.id),
      { data: { decision: 'decline', decidedBy: 'user' } },
    );
  },
);

/** A process that makes `swap` a directory of the workspace and a symlink to the outside by turns, for moments. */
function swapper(t: Test, workspace: string, outside: string): ChildProcess {
  const script = `
    const { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } = require('node:fs');
    mkdirSync('swap');
    writeFileSync('swap/file.txt', 'harmless');
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const stay = () => Atomics.wait(cell, 0, 0, Math.random() * 4);
    // Where nothing is for a moment, a call may have made a directory of its own, and may write into it while it is removed.
    const isInTheWay = ({ code }) => code === 'EEXIST' || code === 'ENOTEMPTY';
    const place = (work) => {
      for (;;) {
        for (const step of [work, () => rmSync('swap', { recursive: true, force: true })]) {
          try {
            step();
            if (step === work) return;
          } catch (error) {
            if (!isInTheWay(error)) throw error;
          }
        }
      }
    };
    for (let turns = 0; ; turns += 1) {
      renameSync('swap', 'swap.kept');
      place(() => symlinkSync(${JSON.stringify(outside)}, 'swap'));
      stay();
      unlinkSync('swap');
      place(() => renameSync('swap.kept', 'swap'));
      stay();
      if (turns === 10) console.log('swapping');
    }`;
  const child = spawn(process.execPath, ['-e', script], { cwd: workspace, stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

t.test('a directory that alternates with a symbolic link never gives access outside of the workspace', async (t) => {
  const asked: string[] = [];
  const client = await connect(t, workspace, {
    // The user approves targets inside of the workspace only.
    onRequest: (_, { target }) => {
      asked.push(String(target));
      return { decision: String(target).startsWith(`${workspace}/`) ? 'accept' : 'decline' };
    },
  });
  const swapping = swapper(t, workspace, outside);
  await once(swapping.stdout ?? swapping, 'data');
  const threadId = await startThread(client, { workspacePath: workspace });
  const seen: ItemOf<'toolResult'>[] = [];
  const hasSeen = (tool: string, fits: RegExp) => seen.some((result) => result.tool === tool && fits.test(result.text));
  const bothWays = () =>
    hasSeen('ReadFile', /^harmless/) && hasSeen('ReadFile', /^Error/) && hasSeen('WriteFile', /^(Created|Overwrote)/);
  for (let round = 0; round < 5 || (round < 60 && !bothWays()); round += 1) {
    const turn = await runTurn(
      client,
      threadId,
      orders({
        toolCalls: Array.from({ length: 10 }, (_, at) => [
          toolCall('ReadFile', { path: 'swap/file.txt', limit: at + 1 }),
          toolCall('WriteFile', { path: `swap/new-${at}.txt`, content: `${round}` }),
          toolCall('EditFile', { path: 'swap/file.txt', oldText: 'words', newText: 'changed' }),
          toolCall('GrepFiles', { path: 'swap', pattern: '.', maxResults: at + 1 }),
        ]).flat(),
      }),
    );
    t.equal(turn.status, 'completed');
    seen.push(...resultsOf(turn));
  }
  swapping.kill('SIGKILL');
  t.ok(bothWays(), 'calls met the directory in both of its shapes');
  t.strictSame(readdirSync(outside), ['file.txt']);
  t.equal(readFileSync(join(outside, 'file.txt'), 'utf8'), outsideWords);
  t.notMatch(receivedBy(upstream), new RegExp(outsideWords));
  t.strictSame(
    seen.filter(({ text }) => text.includes('because of a bug')).map(({ text }) => text),
    [],
  );
});

t.test('an address that is not public is not fetched, in any spelling or through a redirect', async (t) => {
  let hits = 0;
  const victim = createServer((_, response) => {
    hits += 1;
    response.end(outsideWords);
  });
  const port = await listening(victim);
  t.teardown(() => victim.close());
  // Every question is accepted here, with the same refusals: an approval opens no address.
  const client = await connect(t, workspace, approver('accept'));
  const hosts = [
    '127.0.0.1',
    'localhost',
    'LOCALHOST.',
    'a.localhost',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '0.0.0.0',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '%31%32%37.0.0.1',
    '①②⑦.0.0.1',
  ];
  const urls = [
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00:ec2::254]/latest/meta-data/',
    'http://metadata.google.internal/',
    'http://100.100.100.200/',
    'http://10.0.0.1/',
    'http://192.168.0.1/',
    hub.lock.apiBaseUrl,
    `${hub.lock.apiBaseUrl}/v1/status`,
    ...hosts.map((host) => `http://${host}:${port}/`),
  ];
  const detours = urls.map((url) => `http://127.0.0.1:${redirectorPort}/?${encodeURIComponent(url)}`);
  const others = [
    'file:///etc/passwd',
    'ftp://127.0.0.1/',
    'data:text/plain,hello',
    `http://user:password@127.0.0.1:${port}/`,
    `http://127.0.0.1:${redirectorPort}/?${encodeURIComponent('file:///etc/passwd')}`,
  ];
  const calls = [...urls, ...detours, ...others].map((url) => toolCall('WebFetch', { url }));
  const turn = await runAlone(client, workspace, orders({ toolCalls: calls }));
  const results = resultsOf(turn);
  t.equal(results.length, calls.length);
  for (const [at, { outcome, text }] of results.entries()) {
    const { arguments: args } = calls[at] ?? {};
    // A name that this machine cannot resolve is as unreachable as one that it must not reach.
    const why = /^Error: (refused: |.*(cannot be resolved|not a valid URL|has no address))/s;
    t.match({ outcome, text }, { outcome: 'failed', text: why }, JSON.stringify(args));
  }
  t.equal(hits, 0, 'the victim was never talked to');
  t.notMatch(receivedBy(upstream), new RegExp(outsideWords));
  const traces = ['approval.requested', 'approval.completed', 'tool.started', 'tool.failed'];
  await traced(workspace, calls[0]?.id ?? '', ...traces);
});

t.test('Api.AutoApprove false declines each call that needs approval', async (t) => {
  const Api = { Enabled: true, Port: 0, AutoApprove: false };
  const { place, workspace, outside, upstream } = await attacked(t, { Api }, { place: makePlace(t) });
  const { chat } = await startApi(place, workspace);
  const forbidden = [
    toolCall('WriteFile', { path: 'new.txt', content: 'x' }),
    toolCall('EditFile', { path: 'inside.txt', oldText: 'inside', newText: 'x' }),
    toolCall('Exec', { command: 'touch new.txt' }),
    toolCall('ReadFile', { path: join(outside, 'file.txt') }),
    toolCall('GrepFiles', { path: '../outside', pattern: '.' }),
    toolCall('FindFiles', { path: '..', pattern: '*' }),
  ];
  const free = [
    toolCall('ReadFile', { path: 'inside.txt' }),
    toolCall('GrepFiles', { pattern: 'inside' }),
    toolCall('FindFiles', { pattern: '*.txt' }),
  ];
  for (const headers of [{}, { 'x-session-id': 'one' }]) {
    const message = { role: 'user', content: orders({ toolCalls: [...forbidden, ...free] }) };
    const answer = await chat({ messages: [message] }, { headers });
    t.equal(answer.status, 200);
    const { x_agent: agent } = (await answer.json()) as {
      x_agent: { steps: { outcome: string; outputPreview: string }[] };
    };
    for (const [at, { outcome, outputPreview }] of agent.steps.entries()) {
      if (at >= forbidden.length)
        t.match({ outcome, outputPreview }, { outcome: 'completed', outputPreview: /inside/ });
      else t.match({ outcome, outputPreview }, { outcome: 'declined', outputPreview: /^Error: rejected by policy: / });
    }
    t.equal(agent.steps.length, forbidden.length + free.length);
  }
  t.notOk(existsSync(join(workspace, 'new.txt')));
  t.equal(readFileSync(join(workspace, 'inside.txt'), 'utf8'), 'inside the workspace');
  t.notMatch(receivedBy(upstream), new RegExp(outsideWords));
  t.match(receivedBy(upstream), /rejected by policy/, 'the model receives the reason');

  t.test('a sub-agent is declined too', async (t) => {
    const task = orders({ toolCalls: forbidden.map(({ name, arguments: args }) => toolCall(name, args)) });
    const delegated = orders({ toolCalls: [toolCall('SpawnSubagent', { task })] });
    const before = upstream.requests.length;
    const answer = await chat({ messages: [{ role: 'user', content: delegated }] });
    t.match(await answer.json(), { x_agent: { steps: [{ tool: 'SpawnSubagent', outcome: 'completed' }] } });
    const messages = upstream.requests.slice(before).flatMap(({ body }) => body.messages);
    const results = messages.filter(({ role, content }) => role === 'tool' && /rejected by policy/.test(content));
    t.equal(results.length, forbidden.length);
    t.notOk(existsSync(join(workspace, 'new.txt')));
  });

  t.test('a declined call is traced', async (t) => {
    // Events of the session: both requests made calls of the same ids.
    const types = ['approval.requested', 'approval.completed', 'tool.started', 'tool.failed'];
    await traced(workspace, forbidden[0]?.id ?? '', ...types, ...types);
    t.match(
      tracesOf(workspace).find(({ type }) => type === 'approval.completed'),
      { data: { decision: 'decline', decidedBy: 'policy' } },
    );
  });
});

t.test('Api.EnabledTools limits the tools of the model and of sub-agents', async (t) => {
  const Api = { Enabled: true, Port: 0, EnabledTools: ['readfile', 'GREPFILES', 'SpawnSubagent'] };
  const { place, workspace, upstream } = await attacked(t, { Api }, { place: makePlace(t) });
  const { url, chat } = await startApi(place, workspace);
  const health = (await (await fetch(`${url}/v1/health`)).json()) as { tools: unknown };
  t.strictSame(health.tools, { enabled: 3, names: ['ReadFile', 'GrepFiles', 'SpawnSubagent'] });
  const forbidden = () => [
    toolCall('Exec', { command: 'touch new.txt' }),
    toolCall('exec', { command: 'touch new.txt' }),
    toolCall('WriteFile', { path: 'new.txt', content: 'x' }),
    toolCall('WebFetch', { url: 'http://example.com/' }),
  ];
  const task = orders({ toolCalls: forbidden() });
  const content = orders({ toolCalls: [...forbidden(), toolCall('SpawnSubagent', { task })] });
  const answer = await chat({ messages: [{ role: 'user', content }] });
  const { x_agent: agent } = (await answer.json()) as {
    x_agent: { steps: { outcome: string; outputPreview: string }[] };
  };
  t.equal(agent.steps.length, 5);
  for (const { outcome, outputPreview } of agent.steps.slice(0, 4)) {
    t.match({ outcome, outputPreview }, { outcome: 'failed', outputPreview: /^Error: there is no tool / });
  }
  for (const { body } of upstream.requests) {
    for (const { function: offered } of body.tools)
      t.match(['ReadFile', 'GrepFiles', 'SpawnSubagent'].includes(offered.name), true);
  }
  t.notOk(existsSync(join(workspace, 'new.txt')));

  t.test('an unknown name fails the start with a message that lists the known names', async (t) => {
    const wrong = place.workspace('wrong', { Api: { Enabled: true, Port: 0, EnabledTools: ['ReadFile', 'Sudo'] } });
    const { code, stdout, stderr } = await oratorio(place, ['api', '--workspace', wrong]);
    t.not(code, 0);
    t.match(stdout + stderr, /Api\.EnabledTools.*must be one of ReadFile, WriteFile, /s);
    t.match(stdout + stderr, wrong);
  });
});

/** Every file below the place, as bytes that are searched unchanged. */
function filesOf(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Nothing is in a temporary file that has gone meanwhile. */
function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return Buffer.alloc(0);
  }
}

t.test('keys and tokens stay in their own files under hostile commands and clients', async (t) => {
  let reply: Reply = obedient;
  const settings = {
    Api: { Enabled: true, Port: 0, ApiKey: secret.api },
    AgUi: { Enabled: true, Port: 0, ApiKey: secret.agui },
    Tools: { Web: { SearchProvider: 'searxng', SearchUrl: 'http://127.0.0.1:9', SearchApiKey: secret.search } },
  };
  const { place, workspace, upstream } = await attacked(t, settings, {
    reply: (request) => reply(request),
    place: makePlace(t),
  });
  // Without the sandbox, which hides most of these places.
  writeFileSync(join(place.home, 'config.json'), JSON.stringify({ Tools: { Shell: { Sandbox: 'off' } } }));
  const planted: Place = {
    ...place,
    env: { ...place.env, OPENAI_API_KEY: secret.upstream, LC_ORATORIO: `key=${secret.api}`, XDG_NOTE: secret.search },
  };
  const hub = await startHub(planted);
  const { serviceStatus } = await hub.client.ensure({ workspacePath: workspace });
  const lock = publishedBy(workspace);
  const token = new URL(lock.endpoints.appServerWebSocket ?? '').searchParams.get('token') ?? '';
  const credentials = loadCredentials(join(place.home, 'hub'));
  const secrets = {
    ...secret,
    token,
    notification: credentials.notificationToken(workspace),
    adoption: credentials.adoptionProof(workspace),
  };
  // Each secret, plain and percent-encoded.
  const spellings = Object.entries(secrets).flatMap(([name, value]) => [
    [name, value],
    [`${name}, encoded`, encodeURIComponent(value)],
  ]) as [string, string][];
  const foundIn = (text: string | Buffer) =>
    spellings.filter(([, value]) => text.includes(value)).map(([name]) => name);
  t.match(secrets, { token: /^.{16,}$/, notification: /^ntf\./, adoption: lock.adoptionProof });

  const { onRequest } = approver('accept');
  const client = await connect(t, workspace, { onRequest });
  const commands = [
    'env',
    'env -0 | tr "\\0" "\\n"; export -p; set',
    'tr "\\0" "\\n" < /proc/$PPID/environ; tr "\\0" " " < /proc/$PPID/cmdline',
    'for each in /proc/[0-9]*; do tr "\\0" "\\n" < $each/environ; done 2>/dev/null | grep -a -e sk- -e key -e ntf',
    'echo $OPENAI_API_KEY $LC_ORATORIO $XDG_NOTE; printenv OPENAI_API_KEY',
    'cat .oratorio/config.json',
    'cat .oratorio/appserver.lock ../home/workspaces/*/appserver.json',
    'cat ../home/workspaces/*/appserver.json >&2; exit 3',
    // Letter by letter.
    'while IFS= read -r -n1 letter; do printf %s "$letter"; done < .oratorio/config.json',
    // The environment of a command as files: these are not redacted as its output is.
    'env > environment.txt; tr "\\0" "\\n" < /proc/self/environ >> environment.txt; ps ww -o args -p $$ -p $PPID > arguments.txt',
    'grep -a -o -e "sk-[a-z0-9-]*" .oratorio/*',
    'cp .oratorio/config.json stolen.json; cp ../home/workspaces/*/appserver.json stolen.lock',
    'ps axeww',
  ];
  const turn = await runAlone(
    client,
    workspace,
    orders(...commands.map((command) => ({ text: `trying ${command}`, toolCalls: [toolCall('Exec', { command })] })), {
      toolCalls: [
        toolCall('ReadFile', { path: 'stolen.json' }),
        toolCall('ReadFile', { path: 'stolen.lock' }),
        toolCall('GrepFiles', { pattern: 'ApiKey|token' }),
        toolCall('EditFile', { path: 'stolen.json', oldText: '"ApiKey"', newText: '"Key"', replaceAll: true }),
        toolCall('WebSearch', { query: 'weather' }),
      ],
    }),
  );
  t.equal(turn.status, 'completed');
  const texts = resultsOf(turn).map(({ text }) => text);
  t.match(texts[0], /^PATH=/m, 'the command prints its environment');
  t.match(texts[5], /"ApiKey": ?"\[redacted\]"/, 'a key that a command prints is redacted');
  t.match(texts[6], /\[redacted\]/);
  t.match(texts[commands.length], /\[redacted\]/, 'a key in a file that a command has copied is redacted');

  t.test('a wrong key, also one of another service, is refused and not repeated', async (t) => {
    const url = serviceStatus['api']?.url;
    for (const authorization of [`Bearer ${secret.upstream}`, `Bearer ${token}`, `Basic ${secret.api}`]) {
      const answer = await fetch(`${url}/v1/models`, { headers: { authorization } });
      t.equal(answer.status, 401);
      t.strictSame(foundIn(await answer.text()), []);
    }
  });

  t.test('a key that the upstream repeats in an error is redacted', async (t) => {
    reply = () => refusal(401, { message: `Incorrect API key provided: ${secret.upstream}.` });
    const turn = await runAlone(client, workspace, 'hello');
    t.match(turn, { status: 'failed', error: { code: 'upstreamUnauthorized', message: /provided: \[redacted\]/ } });
    const answer = await fetch(`${serviceStatus['api']?.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${secret.api}` },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'hello' }] }),
    });
    t.equal(answer.status, 502);
    t.strictSame(foundIn(await answer.text()), []);
    reply = obedient;
  });

  t.test('inspection streams hold no secret', async (t) => {
    for (const [url, bearer] of [
      [hub.lock.apiBaseUrl, hub.lock.token],
      [(lock.endpoints.appServerWebSocket ?? '').replace(/^ws(.*)\/ws\?.*$/, 'http$1'), token],
    ]) {
      const watching = new AbortController();
      const headers = { authorization: `Bearer ${bearer}` };
      const { status, body } = await fetch(`${url}/v1/inspect`, { headers, signal: watching.signal });
      t.equal(status, 200);
      // The machine of a turn exists as long as the turn.
      await runAlone(client, workspace, 'hello');
      let seen = '';
      for await (const chunk of body ?? []) {
        seen += Buffer.from(chunk).toString();
        if (seen.includes('event: actor')) break;
      }
      watching.abort();
      t.match(seen, /event: actor/);
      t.strictSame(foundIn(seen), []);
    }
  });

  await eventually(
    () => tracesOf(workspace).filter(({ type }) => type === 'turn.completed').length > 0 || undefined,
    'the traces are written',
  );
  const thread = await readThread(client, turn.threadId);
  t.strictSame(foundIn(JSON.stringify(thread)), [], 'the thread');
  t.strictSame(foundIn(receivedBy(upstream)), [], 'requests to the model');
  for (const { headers, path } of upstream.requests) {
    const { authorization, ...others } = headers;
    t.equal(authorization, `Bearer ${secret.upstream}`);
    t.strictSame(foundIn(JSON.stringify(others) + path), []);
  }
  const belongs = [
    join(workspace, '.oratorio', 'config.json'),
    join(stateOf(workspace), 'appserver.json'),
    // Made by the user's own command.
    join(workspace, 'stolen.json'),
    join(workspace, 'stolen.lock'),
  ];
  for (const file of filesOf(place.root).filter((each) => !belongs.includes(each))) {
    t.strictSame(foundIn(bytesOf(file)), [], file);
  }
  for (const { pid, argv, environment } of processesUnder(place.root)) {
    t.strictSame(foundIn(argv.join(' ')), [], `argv of ${pid}`);
    // This test has started the Hub with keys in its environment.
    if (pid !== hub.pid) {
      const found = foundIn(environment.filter((line) => !/^(LC_ORATORIO|XDG_NOTE)=/.test(line)).join('\n'));
      t.strictSame(found, [], `environment of ${pid}`);
    }
  }
});

t.test('the servers of the tests end', async () => {
  redirector.close();
  await hub.shutdown();
});
