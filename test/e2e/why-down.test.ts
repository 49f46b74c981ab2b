/**
 * “Why is it down?”: one broken workspace for each cause, in one Hub. The command line and the first screen of the Hub's page
 * give the reason and what to do, also after the Hub was killed.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { AppServerClient, startThread, startTurn } from '../../src/client/index.ts';
import { trustWorkspace } from '../../src/config/index.ts';
import type { Remedy } from '../../src/protocol/index.ts';
import { launchBrowser } from '../browser.ts';
import { type Action, says, startMockUpstream } from '../fixtures/upstream/mock-upstream.ts';
import { eventually, killIfThere } from '../hub/harness.ts';
import { OddAuthServer } from '../mcp/odd-auth-server.ts';
import { program } from '../programs.ts';
import { shows } from '../ui/shows.ts';
import { type BuiltHub, makePlace, oratorio, oratorioJson, type Place, startHub } from './harness.ts';
import { type Case, checkFaces, openPage } from './trouble.ts';

const refusal = (status: number, message: string): Action[] => [
  { do: 'head', status, headers: { 'content-type': 'application/json' } },
  { do: 'write', bytes: JSON.stringify({ error: { message } }) },
];

/** Runs turns to their end, however they end. */
async function runTurns(hub: BuiltHub, workspacePath: string, count: number): Promise<void> {
  const { endpoints } = await hub.client.ensure({ workspacePath });
  const client = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '');
  try {
    for (let turn = 0; turn < count; turn += 1) {
      const thread = await startThread(client, { workspacePath });
      for await (const _event of await startTurn(client, thread, 'hello'));
    }
  } catch {
    // The test is about the reason: it is asserted where users see it.
  } finally {
    client.close();
  }
}

const record = (hub: BuiltHub, path: string) => hub.client.byWorkspace(path);
/** Waits until the first problem of a workspace has this code. */
const untilProblem = (hub: BuiltHub, path: string, code: string) =>
  eventually(
    async () => (await record(hub, path)).problems[0]?.code === code || undefined,
    `${path} has the problem ${code}`,
  );

const cases: readonly Case[] = [
  {
    name: 'crashes',
    state: 'gave up',
    what: /crashes is down: its process was killed \(SIGKILL\) 2 times in .* The Hub gave up; the limit is 2 in 60 min\./,
    next: /oratorio up \S+crashes/,
  },
  {
    name: 'badconfig',
    state: 'broken',
    what: /config\.json.*MaxToolCallRounds must be/,
    next: /edit MaxToolCallRounds in \S+config\.json:1, then: oratorio restart/,
  },
  {
    name: 'badkey',
    state: 'failing',
    what: /127\.0\.0\.1:\d+ refuses the key.*401/,
    next: /edit ApiKey in \S+badkey\/.oratorio\/config\.json:\d+, then: oratorio restart/,
  },
  {
    name: 'nomodel',
    state: 'failing',
    what: /404: no such model.*2 turns/,
    next: /edit Model in \S+nomodel\/.oratorio\/config\.json:\d+ .*oratorio model list/,
  },
  {
    name: 'nomcp',
    state: 'degraded',
    what: /1 of 1 MCP servers is down \(docs/,
    next: /edit McpServers\.docs in \S+config\.json:\d+, then: oratorio restart/,
  },
  {
    name: 'nologin',
    state: 'degraded',
    what: /The MCP server tracker wants you to log in\./,
    next: /oratorio mcp login tracker --workspace \S+nologin/,
  },
  { name: 'oddtool', state: 'ready', what: /tool bad is left out: inputSchema\.type must/, next: /oratorio logs/ },
  { name: 'fulldisk', state: 'failing', what: /cannot be saved/, next: /df -h/ },
  { name: 'untrusted', state: 'restricted', what: /Restricted: EndPoint is ignored/, next: /oratorio trust/ },
  { name: 'portstolen', state: 'ready', what: /Port \d+ was not free/, next: /ss -ltnp/ },
];

/** Breaks one workspace for each case. */
async function breakAll(t: Test, place: Place, hub: BuiltHub): Promise<void> {
  const upstream = await startMockUpstream(t, (request) => {
    if (request.body?.model === 'missing') return refusal(404, 'no such model');
    return request.headers.authorization === 'Bearer right-key' ? says(request, 'Hello.') : refusal(401, 'wrong key');
  });
  const through = { EndPoint: upstream.url, ApiKey: 'key-of-a-test', UpstreamRetries: 0 };
  const restart = { Supervision: { MaxRestarts: 1, WithinSeconds: 3_600, BackoffBaseMs: 20 } };
  const started = async (name: string, config = {}) => {
    const path = place.workspace(name, config);
    await hub.client.ensure({ workspacePath: path });
    return path;
  };

  const crashes = await started('crashes', restart);
  for (let kill = 0; kill < 2; kill += 1) {
    const { pid } = await eventually(async () => {
      const now = await record(hub, crashes);
      return now.state === 'running' ? now : undefined;
    }, 'the server runs');
    killIfThere(pid ?? 0);
    await eventually(async () => (await record(hub, crashes)).pid !== pid || undefined, 'the server has ended');
  }
  await untilProblem(hub, crashes, 'gaveUp');

  const badConfig = place.workspace('badconfig');
  writeFileSync(join(badConfig, '.oratorio', 'config.json'), '{"MaxToolCallRounds": "many"}');
  await t.rejects(hub.client.ensure({ workspacePath: badConfig }), /MaxToolCallRounds/);

  await runTurns(hub, place.workspace('badkey', { ...through, Model: 'gpt-x' }), 1);
  await runTurns(hub, place.workspace('nomodel', { ...through, Model: 'missing' }), 1);
  await runTurns(hub, join(place.root, 'nomodel'), 1);
  const docs = { transport: 'stdio', command: join(place.root, 'no-such-program') };
  await started('nomcp', { McpServers: { docs } });
  const odd = {
    transport: 'stdio',
    command: process.execPath,
    args: [program('test/fixtures/mcp/stdio-server.mjs'), '2025', 'odd'],
  };
  await started('oddtool', { McpServers: { odd } });
  const guarded = await OddAuthServer.start(t);
  await started('nologin', { McpServers: { tracker: { transport: 'streamableHttp', url: guarded.url } } });

  const fullDisk = await started('fulldisk');
  const { pid } = await record(hub, fullDisk);
  execFileSync('prlimit', ['--pid', String(pid), '--fsize=0:']);
  await runTurns(hub, fullDisk, 1);

  const untrusted = join(place.root, 'untrusted');
  mkdirSync(join(untrusted, '.oratorio'), { recursive: true });
  writeFileSync(join(untrusted, '.oratorio', 'config.json'), '{"EndPoint": "https://attacker.example/v1"}');
  await hub.client.ensure({ workspacePath: untrusted });

  const stolen = await started('portstolen');
  const port = Number(new URL((await record(hub, stolen)).endpoints['dashboard'] ?? '').port);
  await hub.client.stop(stolen);
  const thief = createServer().listen(port, '127.0.0.1');
  await once(thief, 'listening');
  t.teardown(() => thief.close());
  await hub.client.ensure({ workspacePath: stolen });

  for (const [name, code] of [
    ['badkey', 'upstreamUnauthorized'],
    ['nomodel', 'upstreamRejected'],
    ['nomcp', 'mcpServerDown'],
    ['nologin', 'mcpServerNeedsLogin'],
    ['fulldisk', 'storageFailed'],
    ['portstolen', 'portMoved'],
  ] as const) {
    await untilProblem(hub, join(place.root, name), code);
  }
}

/** Edits of the places that remedies name. */
const edits: Readonly<Record<string, (config: Record<string, unknown>) => Record<string, unknown>>> = {
  badconfig: () => ({}),
  badkey: (config) => ({ ...config, ApiKey: 'right-key' }),
  nomodel: (config) => ({ ...config, Model: 'gpt-x', ApiKey: 'right-key' }),
  nomcp: (config) => ({ ...config, McpServers: {} }),
};

/** Edits the place that a remedy names. */
function edit(t: Test, place: Place, name: string, remedy: Remedy | undefined): void {
  if (remedy?.act !== 'editSetting') return;
  const path = join(place.root, name);
  t.equal(remedy.file, join(path, '.oratorio', 'config.json'), `${name}: the file that holds the value`);
  const text = name === 'badconfig' ? '{}' : readFileSync(remedy.file, 'utf8');
  writeFileSync(remedy.file, JSON.stringify(edits[name]?.(JSON.parse(text)), null, 2));
  trustWorkspace({ home: place.home, workspace: path });
}

/** Carries out the remedy of the first problem: edits the place that it names, and runs its command. */
async function repair(t: Test, place: Place, hub: BuiltHub, name: string): Promise<void> {
  const path = join(place.root, name);
  const [problem] = (await record(hub, path)).problems;
  const remedy = problem?.remedy as Remedy | undefined;
  edit(t, place, name, remedy);
  const [, command = ''] = /(?:^|, then: )oratorio (.+)$/.exec(problem?.next ?? '') ?? [];
  // At a terminal, the command shows the settings and asks.
  const agreed = remedy?.act === 'trust' ? ['--yes'] : [];
  const { code, stderr } = await oratorio(place, [...command.split(' '), ...agreed]);
  t.equal(code, 0, `${name}: oratorio ${command} ${stderr}`);
  if (name === 'badkey' || name === 'nomodel') await runTurns(hub, path, 1);
  await eventually(
    async () => (await record(hub, path)).problems.every(({ code }) => code !== problem?.code) || undefined,
    `the problem ${problem?.code} of ${name} is gone`,
  );
}

t.test('regression: command line and page name each cause and the next step, before and after kill -9', async (t) => {
  const place = makePlace(t);
  const hub = await startHub(place);
  await breakAll(t, place, hub);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await openPage(browser, place);
  await checkFaces(t, place, page, cases);
  await page.close();

  const doctor = await oratorio(place, ['doctor', join(place.root, 'oddtool')]);
  t.match(doctor.stdout, /tool bad is left out: inputSchema\.type must[\s\S]*tool mended is offered in part/);

  const loggedOut = await oratorio(place, ['doctor', join(place.root, 'nologin')]);
  t.match(loggedOut.stdout, /it wants you to log in[\s\S]*oratorio mcp login tracker --workspace \S+nologin/);

  const crashed = join(place.root, 'crashes');
  const { incident } = await record(hub, crashed);
  t.match((await oratorio(place, ['doctor', crashed])).stdout, incident?.what ?? 'no report');
  const report = (await oratorio(place, ['inspect', crashed])).stdout;
  t.match(report, incident?.what ?? 'no report');
  t.match(
    report,
    /When +Lived +Ended by +Last line +Log\n(?: +\d\d:\d\d:\d\d +[\d.]+ \w+ +SIGKILL .*stderr\.log, byte \d+\n){2}/,
  );
  const listed: { displayName: string; incident: unknown }[] = await oratorioJson(place, 'list');
  t.same(listed.find(({ displayName }) => displayName === 'crashes')?.incident, incident);

  const inspected = await oratorio(place, ['inspect', join(place.root, 'badkey')]);
  t.match(inspected.stdout, /state +failing[\s\S]*trouble +.*refuses the key[\s\S]*→ edit ApiKey in/);
  t.match(inspected.stdout, /model +gpt-x at 127\.0\.0\.1:\d+\n +last turn +key refused, \d+ \w ago/);
  t.notMatch(inspected.stdout + JSON.stringify(await oratorioJson(place, 'list')), 'key-of-a-test');

  await hub.kill('SIGKILL');
  const next = await startHub(place);
  for (const name of ['badkey', 'nomcp']) {
    await eventually(
      async () => (await record(next, join(place.root, name))).state === 'running' || undefined,
      `${name} is adopted`,
    );
  }
  const adopted = await record(next, join(place.root, 'nomcp'));
  t.match(
    adopted.serviceStatus['dashboard'],
    { state: 'running', url: /^http:/ },
    'an adopted server has its services',
  );
  await checkFaces(t, place, await openPage(browser, place), cases);

  await t.test('regression: the remedy of each problem removes it', async (t) => {
    for (const name of ['crashes', 'badconfig', 'badkey', 'nomodel', 'nomcp', 'untrusted'])
      await repair(t, place, next, name);
  });
  await next.shutdown();
});

/** Button of the remedy in the band *Broken*, for each cause. */
const buttons: Readonly<Record<string, string>> = {
  crashes: 'Start again',
  badconfig: 'Restart',
  badkey: 'Restart',
  nomodel: 'Restart',
  nomcp: 'Restart',
  untrusted: 'Review and trust…',
};

t.test('regression: each cause is a row in Broken, and the one main button there removes it', async (t) => {
  const place = makePlace(t);
  const hub = await startHub(place);
  await breakAll(t, place, hub);
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await openPage(browser, place, '/now');
  const broken = page.getByRole('region', { name: 'Broken' });
  const rowOf = (name: string) => broken.getByRole('listitem', { name: join(place.root, name), exact: true });
  for (const { name, what } of cases.filter(({ state }) => state !== 'ready'))
    await shows(t, 'match', () => rowOf(name).textContent(), what, `${name} is broken, with its reason`);
  for (const [name, label] of Object.entries(buttons)) {
    const path = join(place.root, name);
    const [problem] = (await record(hub, path)).problems;
    const main = rowOf(name).locator('.main');
    await shows(t, 'same', () => main.allTextContents(), [label], `${name} has one main button`);
    edit(t, place, name, problem?.remedy as Remedy | undefined);
    await main.click();
    if (label === 'Review and trust…') await page.getByRole('button', { name: 'Trust and restart' }).click();
    if (name === 'badkey' || name === 'nomodel') {
      await eventually(
        async () => (await record(hub, path)).configChanged === false || undefined,
        `${name} has its new settings`,
      );
      await runTurns(hub, path, 1);
    }
    await rowOf(name).waitFor({ state: 'detached' });
  }
  const { pid } = await record(hub, join(place.root, 'fulldisk'));
  execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:']);
  await runTurns(hub, join(place.root, 'fulldisk'), 1);
  await rowOf('fulldisk').waitFor({ state: 'detached' });
  await hub.shutdown();
});
