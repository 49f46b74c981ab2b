/** The page of a real Hub in a real browser, while real agent servers start, die and come back. */
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { launchBrowser } from '../browser.ts';
import { eventually, isAlive } from '../hub/harness.ts';
import { watchPages } from '../page-watch.ts';
import { unusedPort } from '../ports.ts';
import { shows } from '../ui/shows.ts';
import { answerOf, type BuiltHub, makePlace, oratorio, type Place, say, startHub } from './harness.ts';

let browser: Browser;

interface Scene {
  readonly place: Place;
  readonly hub: BuiltHub;
  readonly page: Page;
}

type Play = (t: Test, scene: Scene) => Promise<void>;

const place = makePlace(t, 'projects-');
let shared: BuiltHub;
t.before(async () => {
  [browser, shared] = await Promise.all([launchBrowser(), startHub(place)]);
});

/** Plays on the page of the Hub of all tests that need none of their own. */
function onPage(name: string, play: Play): void {
  t.test(name, (t) => playOn(t, { place, hub: shared }, play));
}

/**
 * Opens the statecharts at the address that `oratorio inspect` prints, or there those of a workspace. The test fails for a
 * script error or a request to another origin.
 */
async function playOn(t: Test, { place, hub }: Omit<Scene, 'page'>, play: Play, workspace?: string): Promise<void> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    colorScheme: 'light',
  });
  t.teardown(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(300_000);
  const { complaints, foreign } = await watchPages(context, { isOwn: (url) => url.startsWith(hub.lock.apiBaseUrl) });
  page.on('console', (message) => {
    if (message.type() === 'warning') complaints.push(message.text());
  });
  page.on('requestfailed', (request) => {
    // A reload aborts the requests under way; none may fail for another reason.
    const error = request.failure()?.errorText;
    if (error !== 'net::ERR_ABORTED') complaints.push(`${request.url()} ${error}`);
  });
  await page.addInitScript(watchPage);
  const { stdout } = await oratorio(place, ['inspect', ...(workspace ? [workspace] : []), '--print-url']);
  await page.goto(workspace ? stdout.trim() : `${stdout.trim()}&at=%2Factors`);
  await page.locator('.connection.live').waitFor();
  await page.locator('.actors').waitFor();
  await play(t, { place, hub, page });
  t.same(complaints, [], 'no script error, no violation of the content security policy, no failed request');
  t.same(foreign, [], 'no request to another origin');
  await page.goto('about:blank');
}

/** Runs in the page: records each active leaf state. */
function watchPage(): void {
  const page = globalThis as unknown as { lit: string[]; flashed: string[] };
  page.lit = [];
  page.flashed = [];
  const look = () => {
    const active = [...document.querySelectorAll<SVGElement>('.node.active')].map(
      (node) => node.dataset['state'] ?? node.dataset['frame'] ?? '',
    );
    const innermost = active.reduce((longest, state) => (state.length > longest.length ? state : longest), '');
    if (innermost !== '' && innermost !== page.lit.at(-1)) page.lit.push(innermost);
    for (const label of document.querySelectorAll('.label.taken .event')) {
      const event = label.textContent ?? '';
      if (!page.flashed.includes(event)) page.flashed.push(event);
    }
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributeFilter: ['class'] });
}

const litSoFar = (page: Page) => page.evaluate(() => [...(globalThis as unknown as { lit: string[] }).lit]);
const flashedSoFar = (page: Page) => page.evaluate(() => [...(globalThis as unknown as { flashed: string[] }).flashed]);
const eventsOf = (page: Page) => page.locator('.log .step b').allTextContents();
const forget = (page: Page) =>
  page.evaluate(() => {
    const scope = globalThis as unknown as { lit: string[]; flashed: string[] };
    scope.lit.length = 0;
    scope.flashed.length = 0;
  });
const isLit = (page: Page, state: string) =>
  page.locator(`.node.active:is([data-state="${state}"], [data-frame="${state}"])`).waitFor({ state: 'attached' });
const select = (page: Page, name: string) => page.locator('[role=treeitem]', { hasText: name }).first().click();
const tab = (page: Page, name: string) => page.getByRole('tab', { name }).click();
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

/** Whether `states` lit up in this order, others between them or not. */
function inOrder(seen: readonly string[], states: readonly string[]): boolean {
  let from = 0;
  return states.every((state) => {
    const at = seen.findIndex((each, index) => index >= from && (each === state || each.startsWith(`${state}.`)));
    from = at + 1;
    return at >= 0;
  });
}

onPage(
  'the chart shows the states of ensure, kill -9, back-off and restart in their order',
  async (t, { place, hub, page }) => {
    const workspacePath = place.workspace('atelier', { Supervision: { BackoffBaseMs: 5000 } });
    await isLit(page, 'serving.steady');
    await page.getByRole('button', { name: 'Simulate from here' }).waitFor();
    t.ok(await page.evaluate(() => document.activeElement === document.body), 'opening the page moves no focus');
    await shows(t, 'match', () => page.locator('.hint').textContent(), 'oratorio up');
    await hub.client.ensure({ workspacePath, startIfMissing: false });
    const ensured = hub.client.ensure({ workspacePath });
    await select(page, 'atelier');
    const { pid } = await ensured;
    await isLit(page, 'running');
    await shows(t, 'same', () => page.locator('[role=treeitem] b').allTextContents(), ['Hub', 'atelier']);
    await shows(
      t,
      'equal',
      () => page.locator('[role=treeitem]', { hasText: 'atelier' }).locator('.badge').textContent(),
      'running',
    );
    await shows(t, 'match', () => page.locator('.facts').textContent(), `PID${pid}`);
    await shows(t, 'ok', async () => (await litSoFar(page)).includes('running'));

    // All words are on their arrows then, those of taken ones too.
    await page.keyboard.press('z');
    await forget(page);
    process.kill(pid ?? 0, 'SIGKILL');
    await eventually(
      async () => inOrder(await litSoFar(page), ['exited.backingOff', 'running']) || undefined,
      'it backs off, then it runs',
    );
    await isLit(page, 'running');
    const seen = await litSoFar(page);
    t.ok(inOrder(seen, ['exited.backingOff', 'starting', 'running']), seen.join(' → '));
    const revived = await hub.client.byWorkspace(workspacePath);
    await shows(t, 'match', () => page.locator('.facts').textContent(), `PID${revived.pid}`);
    t.not(revived.pid, pid);
    const story = /PROCESS\.EXITED.*after\(backoff\).*PROCESS\.SPAWNED.*done\(readiness\)/;
    await eventually(async () => story.test((await eventsOf(page)).join(' ')) || undefined, 'the log tells all of it');
    await shows(t, 'match', async () => (await eventsOf(page)).join(' '), story);
    const flashed = await flashedSoFar(page);
    for (const event of ['PROCESS.EXITED', 'PROCESS.SPAWNED', 'done(readiness)']) t.ok(flashed.includes(event), event);

    await page.keyboard.press('c');
    await shows(t, 'match', () => page.locator('[data-count="running"]').textContent(), /^2× /, 'it was up twice');
    await tab(page, 'Why');
    await page.locator('.panel > .why li', { hasText: 'PROCESS.EXITED' }).waitFor();
    await shows(
      t,
      'match',
      () => page.locator('.panel > .why').textContent(),
      /It was running.*PROCESS\.EXITED → exited.*after\(backoff\).*done\(readiness\) → running.*So it is running/s,
    );
    await tab(page, 'Events');
    await forget(page);
    await page.keyboard.press('[');
    await page.locator('.banner', { hasText: 'The past' }).waitFor();
    await page.getByLabel('Moment').fill('0');
    await isLit(page, 'stopped');
    const { length } = await page.locator('.log .vrow.later').all();
    for (let step = 0; step < length; step += 1) {
      await page.keyboard.press(']');
      await page.waitForFunction(
        (wanted) => document.querySelector<HTMLInputElement>('.scrubber input')?.value === wanted,
        String(step + 1),
      );
    }
    const again = await litSoFar(page);
    t.ok(inOrder(again, ['starting', 'running', 'exited.backingOff', 'starting', 'running']), again.join(' → '));
    t.ok(isAlive(revived.pid ?? 0), 'looking back did nothing to it');
  },
);

onPage(
  'the page starts, restarts and stops a server, and keeps its session after a reload',
  async (t, { place, hub, page }) => {
    const workspacePath = place.workspace('sonata');
    const first = await hub.client.ensure({ workspacePath });
    await select(page, 'sonata');
    await isLit(page, 'running');
    await forget(page);
    // A command that ignores SIGTERM delays the end of the server until the page has drawn `stopping`.
    const client = await AppServerClient.connect(first.endpoints['appServerWebSocket'] ?? '', {
      onRequest: () => ({ decision: 'accept' }),
    });
    t.teardown(() => client.close());
    await say(client, workspacePath, "run: trap '' TERM; touch begun; while :; do sleep 0.1; done");
    await eventually(() => existsSync(join(workspacePath, 'begun')) || undefined, 'the command runs');
    await press(page, 'Restart');
    await eventually(async () => inOrder(await litSoFar(page), ['stopping', 'running']) || undefined, 'it restarts');
    const second = await eventually(async () => {
      const now = await hub.client.byWorkspace(workspacePath);
      return now.state === 'running' && now.pid !== first.pid ? now : undefined;
    }, 'another process runs');
    t.notOk(isAlive(first.pid ?? 0));

    await press(page, 'Stop');
    await press(page, 'Keep it');
    t.ok(isAlive(second.pid ?? 0), 'nothing is stopped before it is confirmed');
    await press(page, 'Stop');
    await press(page, 'Stop it');
    await isLit(page, 'stopped');
    t.notOk(isAlive(second.pid ?? 0));
    await press(page, 'Start');
    await isLit(page, 'running');

    t.notMatch(page.url(), hub.lock.token);
    await page.reload();
    await page.locator('.connection.live').waitFor();
    await isLit(page, 'running');
    await shows(t, 'equal', () => page.locator('.actor-head h1').textContent(), 'sonata', 'what was selected still is');
    t.notMatch(await page.content(), hub.lock.token);
  },
);

/** Minimal sidecar, which answers `GET /models`. */
async function sidecar({ root }: Place) {
  const port = await unusedPort();
  const binaryPath = join(root, 'proxy.mjs');
  const configPath = join(root, 'proxy.json');
  const script = `import { createServer } from 'node:http';
    createServer((_, response) => response.end('{"data":[]}')).listen(${port}, '127.0.0.1');`;
  writeFileSync(binaryPath, `#!${process.execPath}\n${script}\n`);
  writeFileSync(configPath, '{}');
  chmodSync(binaryPath, 0o755);
  return { enabled: true, binaryPath, configPath, endpoint: `http://127.0.0.1:${port}`, apiKey: 'sk-of-the-sidecar' };
}

/** Brings workspaces into different states, one of them when `begin` has resolved. */
async function makeStates({ place, hub }: Pick<Scene, 'place' | 'hub'>, begin: () => Promise<void>): Promise<void> {
  const patient = { BackoffBaseMs: 600_000, BackoffCapMs: 600_000, UnhealthyGraceMs: 600_000 };
  const nervous = { ...patient, ProbeIntervalMs: 100, ProbeTimeoutMs: 100 };
  const settings = {
    atelier: patient,
    ballad: nervous,
    cadenza: patient,
    divertimento: { ...patient, Restart: 'never' },
    etude: patient,
    fugue: patient,
  };
  const apiProxy = await sidecar(place);
  const started = Object.entries(settings).map(async ([name, Supervision]) => {
    const workspacePath = place.workspace(name, { Supervision });
    const record = await hub.client.ensure({ workspacePath, ...(name === 'atelier' && { apiProxy }) });
    return [name, { workspacePath, pid: record.pid ?? 0 }] as const;
  });
  const { ballad, cadenza, divertimento, etude } = Object.fromEntries(await Promise.all(started));
  if (!ballad || !cadenza || !divertimento || !etude) throw new Error('not all were started');
  process.kill(ballad.pid, 'SIGSTOP');
  process.kill(divertimento.pid, 'SIGKILL');
  await hub.client.stop(etude.workspacePath);
  await begin();
  process.kill(cadenza.pid, 'SIGKILL');
}

const statesOfAll = {
  atelier: 'running',
  apiProxy: 'running',
  ballad: 'unhealthy',
  cadenza: 'exited',
  divertimento: 'exited',
  etude: 'stopped',
  fugue: 'running',
};

t.test('the page shows many workspaces in their states, light and dark', async (t) => {
  const place = makePlace(t, 'projects-');
  const hub = await startHub(place);
  await playOn(t, { place, hub }, async (t, { page }) => {
    const watchOne = () => select(page, 'cadenza');
    // The first page sees the states arise, the second one finds them.
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      if (colorScheme === 'light') await makeStates({ place, hub }, watchOne);
      else {
        await page.reload();
        await page.locator('.connection.live').waitFor();
        await watchOne();
      }
      await isLit(page, 'exited.backingOff');
      for (const [name, state] of Object.entries(statesOfAll)) {
        const badge = page.locator('[role=treeitem]', { hasText: name }).locator('.badge');
        await badge.filter({ hasText: new RegExp(`^${state}$`) }).waitFor();
      }
      t.pass(`the tree shows each in its state, ${colorScheme}`);
    }
  });
  await hub.shutdown();
});

t.test('the page of a workspace shows a turn that awaits approval, runs tools and ends', async (t) => {
  const workspacePath = place.workspace('toccata');
  const { endpoints } = await shared.client.ensure({ workspacePath });
  const showsTurn = async (t: Test, { page }: Scene) => {
    await page.getByText('No turn runs in this workspace').waitFor();
    let approve: (answer: unknown) => void = () => undefined;
    const approved = new Promise((resolve) => {
      approve = resolve;
    });
    const client = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '', { onRequest: () => approved });
    t.teardown(() => client.close());
    const turn = await say(client, workspacePath, 'run: touch done; echo it is done');
    await isLit(page, 'working.awaitingApproval');
    await shows(
      t,
      'match',
      async () => (await page.locator('[role=treeitem] b').allTextContents()).join(),
      /run: touch done; echo it is done/,
    );
    await page.locator('.facts', { hasText: /pending1/i }).waitFor({ state: 'attached' });
    await shows(t, 'match', () => page.locator('.facts').textContent(), /pending1/i);
    approve({ decision: 'accept' });
    await shows(t, 'match', () => answerOf(turn), /it is done/);
    await page.locator('.row.ended .badge', { hasText: 'completed' }).waitFor();
  };
  await playOn(t, { place, hub: shared }, showsTurn, workspacePath);
});

// The root test ends with the process, and an open browser keeps the process alive: so this is a test, the last one.
t.test('the browser and the Hub end', async () => {
  await Promise.all([browser.close(), shared.shutdown()]);
});
