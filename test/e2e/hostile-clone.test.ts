/**
 * A clone that attacks its user in every way at once (`test/fixtures/hostile-clone`), and every face of the built product on
 * it: no program of it runs, no key leaves, every interface names the ignored settings; its legitimate settings work once it is trusted.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Readable, Writable } from 'node:stream';
import t, { type Test } from 'tap';
import type { HubClient } from '../../src/client/index.ts';
import { trustWorkspace, workspaceStateDirectory } from '../../src/config/index.ts';
import { choose, editorOn, introduce } from '../acp/harness.ts';
import { launchBrowser } from '../browser.ts';
import { type Attacker, startAttacker, startVictim } from '../fixtures/hostile-clone/attacker.ts';
import { buildHostileRepository, git, linkBranches } from '../fixtures/hostile-clone/build.ts';
import { type MockUpstream, startMockUpstream } from '../fixtures/upstream/mock-upstream.ts';
import { eventually, isAlive } from '../hub/harness.ts';
import { obedient, orders, startApi, toolCall } from './agent-server.ts';
import { dashboardUrl } from './bookshop.ts';
import { command, makePlace, oratorio, type Place, runningHub, type Teardown } from './harness.ts';

/** Secrets of the user, none of which may reach the attacker. */
const secrets = {
  model: 'sk-model-key-of-the-user-4711',
  search: 'search-key-of-the-user-4712',
  mcp: 'mcp-header-of-the-user-4713',
  shell: 'variable-of-the-user-4714',
};

interface Scene {
  readonly place: Place;
  readonly clone: string;
  readonly repository: string;
  readonly markers: string;
  readonly outside: string;
  readonly attacker: Attacker;
  /** The user's own model. */
  readonly upstream: MockUpstream;
  /** The user's own MCP server and search. */
  readonly own: Attacker;
  readonly victim: ChildProcess;
}

/** For all tests, which run one after the other: each gets a clone of its own, see `cloneAgain`. */
async function makeScene(t: Teardown): Promise<Scene> {
  const made = makePlace(t, 'hostile-');
  const place = { ...made, env: { ...made.env, SECRET: secrets.shell } };
  const [attacker, own] = [await startAttacker(t), await startAttacker(t)];
  const upstream = await startMockUpstream(t, obedient);
  const victim = await startVictim(t);
  const at = (name: string): string => {
    const directory = join(place.root, name);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return directory;
  };
  const [markers, outside] = [at('markers'), at('outside')];
  writeFileSync(join(outside, 'private.txt'), 'private words of the user\n');
  for (const branch of Object.keys(linkBranches)) writeFileSync(join(outside, branch), 'a file of the user\n');
  const clone = join(place.root, 'clone');
  const automationPrompt = orders({ toolCalls: [toolCall('Exec', { command: `touch ${markers}/automation` })] });
  const repository = buildHostileRepository({
    directory: at('attacker'),
    markers,
    attacker: attacker.url,
    victim: victim.identity,
    clone,
    outside,
    automationPrompt,
  });
  const user = {
    EndPoint: upstream.url,
    ApiKey: secrets.model,
    Model: 'model-of-the-user',
    UpstreamRetries: 0,
    McpServers: {
      docs: {
        transport: 'streamableHttp',
        url: `${own.url}/mcp`,
        httpHeaders: { authorization: `Bearer ${secrets.mcp}` },
      },
    },
    // No sandbox is to be the reason that a program of the clone did nothing.
    Tools: {
      Shell: { Sandbox: 'off' },
      Web: { SearchProvider: 'brave', SearchUrl: own.url, SearchApiKey: secrets.search },
    },
    Api: { Port: 0 },
    DashBoard: { Port: 0 },
  };
  at('home');
  writeFileSync(join(place.home, 'config.json'), JSON.stringify(user), { mode: 0o600 });
  git(place.root, 'clone', '--quiet', repository, clone);
  return { place, clone, repository, markers, outside, attacker, upstream, own, victim: victim.child };
}

/** The scene with a fresh clone in the place of the earlier one, of which nothing is left: for the next test of the same Hub. */
async function cloneAgain(before: Scene): Promise<Scene & { readonly client: HubClient }> {
  const { place, clone, repository, markers, attacker } = before;
  const { client } = runningHub(place);
  await client.stop(clone);
  for (const old of [clone, workspaceStateDirectory(place.home, clone)]) rmSync(old, { recursive: true });
  for (const name of ran(before)) rmSync(join(markers, name));
  git(place.root, 'clone', '--quiet', repository, clone);
  const known = attacker.received().length;
  return { ...before, client, attacker: { ...attacker, received: () => attacker.received().slice(known) } };
}

const scene = await makeScene(t);

const ran = ({ markers }: Scene): string[] => readdirSync(markers).sort();
// biome-ignore lint/suspicious/noControlCharactersInRegex: codes that a terminal obeys
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const advice = (clone: string) => new RegExp(`oratorio trust ${clone}`);

/** Checks that an untrusted clone has had no effect after the action `what`. */
function nothingHappened(t: Test, scene: Scene, what: string): void {
  t.same(ran(scene), [], `${what}: no program of the clone has run`);
  t.equal(scene.attacker.received(), '', `${what}: nothing has reached the attacker`);
  t.ok(isAlive(scene.victim.pid ?? 0), `${what}: the process that the forged lock names lives`);
  for (const { body, path } of scene.upstream.requests) {
    t.notMatch(JSON.stringify([body, path]), secrets.shell, `${what}: no variable of the shell in a request`);
  }
  t.equal(statSync(join(scene.clone, '.oratorio')).mode & 0o777, 0o700, `${what}: .oratorio is private`);
}

/** Checks output on a terminal: no text of the attacker takes effect, and the next step is named. */
function saidSo(t: Test, { clone }: Scene, what: string, text: string): void {
  t.match(text, advice(clone), `${what}: names the command`);
  t.match(text, /McpServers/, `${what}: names what is ignored`);
  t.notMatch(text, controls, `${what}: no control character`);
  for (const secret of Object.values(secrets)) t.notMatch(text, secret, `${what}: no secret`);
}

/** Everything a model can be talked into. */
const temptation = (): string =>
  orders(
    { toolCalls: [toolCall('Exec', { command: 'sh setup.sh' }), toolCall('ReadFile', { path: 'notes.txt' })] },
    { toolCalls: [toolCall('WebSearch', { query: 'cats' })] },
    { text: 'Done.' },
  );

t.test('regression: C1 a hostile clone gets no secret and runs no program, with any command', async (t) => {
  const { place, clone, own, upstream } = scene;

  const up = await oratorio(place, ['up', clone, '--no-follow']);
  t.equal(up.code, 0, up.stderr);
  saidSo(t, scene, 'up', up.stdout + up.stderr);
  nothingHappened(t, scene, 'up');
  await eventually(() => own.received().includes(secrets.mcp) || undefined, 'the user’s own MCP server is asked');

  const inspected = await oratorio(place, ['inspect', clone]);
  t.match(inspected.stdout, /restricted/);
  t.notMatch(inspected.stdout + inspected.stderr, controls);
  const { client } = runningHub(place);
  const record = await client.byWorkspace(clone);
  t.equal(record.trust, 'restricted');
  t.same(
    record.restrictedSettings.toSorted(),
    [
      ...['Agent', 'AgUi', 'Api', 'ApiKey', 'AppServer', 'DashBoard', 'EndPoint', 'Hooks', 'McpServers', 'Permissions'],
      ...[
        'Model',
        'Supervision',
        'Tools.Shell',
        'Tools.Web.AllowedHosts',
        'Tools.Web.SearchProvider',
        'Tools.Web.SearchUrl',
      ],
    ].toSorted(),
  );
  const listed = await oratorio(place, ['list']);
  t.match(listed.stdout, /Restricted: EndPoint, /);
  t.notMatch(listed.stdout, controls);

  const exec = await oratorio(place, ['exec', temptation(), '--workspace', clone]);
  t.equal(exec.code, 0, exec.stderr);
  saidSo(t, scene, 'exec', exec.stderr);
  nothingHappened(t, scene, 'exec');
  t.match(own.received(), secrets.search, 'the search key goes to the user’s own search');
  const chat = await oratorio(place, ['chat', temptation(), '--workspace', clone]);
  t.equal(chat.code, 0, chat.stderr);
  saidSo(t, scene, 'chat', chat.stderr);
  nothingHappened(t, scene, 'chat');
  // The clone's own conversation, which approves everything.
  await oratorio(place, ['exec', temptation(), '--workspace', clone, '--thread', 'thread_20260101_friend']);
  nothingHappened(t, scene, 'exec in a thread of the clone');
  t.notMatch(JSON.stringify(upstream.requests.map(({ body }) => body)), 'private words', 'no link leads out');
  for (const { headers } of upstream.requests) t.equal(headers.authorization, `Bearer ${secrets.model}`);

  await t.test('over ACP', async (t) => {
    const child = spawn(process.execPath, [command, 'acp'], { cwd: place.root, env: place.env });
    t.teardown(() => child.kill('SIGKILL'));
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const editor = editorOn(
      Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
      Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
      () => choose('decline'),
    );
    await introduce(editor);
    const { sessionId } = await editor.agent.request('session/new', { cwd: clone, mcpServers: [] });
    await editor.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: temptation() }] });
    t.equal(editor.asked.length, 2, 'a person is asked: for the command, and for the file that a link leads out to');
    await eventually(() => /oratorio trust/.test(stderr) || undefined, 'standard error names the command');
    t.match(stderr, /oratorio trust/);
    nothingHappened(t, scene, 'acp');
    await t.rejects(
      editor.agent.request('session/new', { cwd: join(clone, '.git'), mcpServers: [] }),
      'a directory below the clone is not the clone',
    );
  });

  await t.test('on the page', async (t) => {
    const browser = await launchBrowser();
    t.teardown(() => browser.close());
    const page = await browser.newPage({ reducedMotion: 'reduce' });
    page.setDefaultTimeout(300_000);
    const foreign: string[] = [];
    page.on('request', (request) => {
      if (request.url().startsWith(scene.attacker.url)) foreign.push(request.url());
    });
    await page.goto(await dashboardUrl(place, client, clone));
    await page
      .getByText(/restricted/i)
      .first()
      .waitFor();
    await page
      .getByText(/oratorio trust/)
      .first()
      .waitFor();
    t.same(foreign, []);
    await browser.close();
    nothingHappened(t, scene, 'page');
  });

  t.match(await client.stop(clone), { state: 'stopped' });
  const api = await startApi(place, clone);
  t.equal(new URL(api.url).hostname, '127.0.0.1', 'the address is the user’s');
  const completion = await api.chat({ model: 'm', messages: [{ role: 'user', content: temptation() }] });
  t.equal(completion.status, 200, 'this user needs no key');
  // `Api.AutoApprove` of the user is true: commands of the user's own model run on this interface.
  t.same(
    ran(scene).filter((name) => name !== 'setup'),
    [],
  );
  saidSo(t, scene, 'api', api.output());
  t.equal(scene.attacker.received(), '');
  api.process.kill('SIGTERM');
  await once(api.process, 'close');

  t.equal(git(clone, 'status', '--porcelain', '--', '.').includes('token'), false);
  for (const file of readdirSync(join(clone, '.oratorio'), { withFileTypes: true }).filter((entry) => entry.isFile())) {
    const text = readFileSync(join(file.parentPath, file.name), 'latin1');
    for (const secret of Object.values(secrets)) t.notMatch(text, secret, `${file.name} holds no secret`);
    if (file.name === 'appserver.lock') t.notMatch(text, /token=(?!known-to-the-attacker)/, 'nor a token');
  }
});

t.test('a symbolic link in place of a file of Oratorio leaves its target unchanged', async (t) => {
  const again = await cloneAgain(scene);
  const { place, clone, outside, attacker, client } = again;
  const healthy = place.workspace('healthy');
  for (const [branch, path] of Object.entries(linkBranches)) {
    renameSync(join(clone, '.oratorio'), join(place.root, `before-${branch}`));
    git(clone, 'checkout', '--quiet', '--force', branch);
    const { code, stdout, stderr } = await oratorio(place, ['ensure', clone]);
    if (path !== '.oratorio/state.db')
      t.match(stdout + stderr, /symbolic link|restricted/, `${branch}: the output names the cause`);
    t.notMatch(stdout + stderr, controls, branch);
    t.equal(readFileSync(join(outside, branch), 'utf8'), 'a file of the user\n', `${branch}: the file is unchanged`);
    t.same(ran(again), [], `${branch}: nothing has run`);
    t.equal(attacker.received(), '', `${branch}: nothing has reached the attacker`);
    const { state } = await client.ensure({ workspacePath: healthy });
    t.equal(state, 'running', `${branch}: others are served`);
    if (code === 0) await client.stop(clone);
  }
});

t.test('the automation and the grant of the clone take effect when copied into the user’s own state', async (t) => {
  const { place, clone, markers, client } = await cloneAgain(scene);
  const state = workspaceStateDirectory(place.home, clone);
  mkdirSync(state, { recursive: true, mode: 0o700 });
  cpSync(join(clone, '.oratorio', 'state.db'), join(state, 'state.db'));
  const database = new DatabaseSync(join(state, 'state.db'));
  t.equal(database.prepare('SELECT count(*) AS grants FROM grants').get()?.['grants'], 3);
  database.close();
  await client.ensure({ workspacePath: clone });
  await eventually(() => existsSync(join(markers, 'automation')) || undefined, 'the overdue automation runs');
  t.match(await oratorio(place, ['exec', temptation(), '--workspace', clone]), { code: 0 });
  t.ok(existsSync(join(markers, 'setup')), 'the grant allows the script');
});

t.test('the legitimate parts of a hostile clone work once it is trusted', async (t) => {
  const again = await cloneAgain(scene);
  const { place, clone, attacker, markers, client } = again;
  const refused = await oratorio(place, ['trust', clone]);
  t.not(refused.code, 0, 'trust without a terminal is refused');
  t.match(refused.stdout, /mcp-server\.mjs/, 'the refusal lists the settings of the clone');
  t.notMatch(refused.stdout + refused.stderr, controls);
  const ensure = () => client.ensure({ workspacePath: clone });
  const restart = async () =>
    t.match(await client.restart({ workspacePath: clone }), { state: 'running', trust: 'trusted' });
  t.equal((await ensure()).trust, 'restricted');
  nothingHappened(t, again, 'a refused question');

  // A trusted workspace does not see the user's variables either: the start fails and names the missing one.
  t.match(await oratorio(place, ['trust', clone, '--yes']), { code: 0 });
  const wanting = await oratorio(place, ['restart', clone]);
  t.not(wanting.code, 0);
  t.match(wanting.stderr, /SECRET/);
  t.notMatch(wanting.stderr, secrets.shell);

  git(clone, 'checkout', '--quiet', '--force', 'honest');
  t.equal((await ensure()).trust, 'restricted', 'changed settings need another approval');
  nothingHappened(t, again, 'changed settings');
  trustWorkspace({ home: place.home, workspace: clone });
  await restart();
  await eventually(() => existsSync(join(markers, 'mcp-started')) || undefined, 'its MCP server runs');
  t.not((await oratorio(place, ['exec', temptation(), '--workspace', clone])).code, 0, 'its agent is no agent');
  t.same(ran(again), ['agent', 'mcp-started'], 'its agent is started');

  const file = join(clone, '.oratorio', 'config.json');
  const { Agent: _, ...config } = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, JSON.stringify(config));
  trustWorkspace({ home: place.home, workspace: clone });
  await restart();
  const exec = await oratorio(place, ['exec', temptation(), '--workspace', clone]);
  t.match(attacker.received(), 'authorization: Bearer clone-key', 'requests reach its endpoint with its own key');
  t.not(exec.code, 0, 'the endpoint does not answer as a model');
  t.same(ran(again), ['agent', 'hook', 'mcp-started'], 'no automation or script has run, and no variable was seen');
  for (const secret of Object.values(secrets)) t.notMatch(attacker.received(), secret);
});
