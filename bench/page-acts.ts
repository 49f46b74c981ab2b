/** Acts of a person on the page: Now, another workspace, a request that arrives, another actor, time travel, the palette. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import * as v from 'valibot';
import { AppServerClient } from '../src/client/index.ts';
import { pageToken } from '../src/supervise/index.ts';
import { bringUp, token as standInToken, startBackend } from '../test/ui/backend.ts';
import { median } from './harness.ts';
import { makePlace, startHub } from './hub.ts';
import { browserProbes, type FrameFigures } from './page-probes.ts';

const viewport = { width: 1280, height: 800 };
const workspaces = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'] as const;
/** Transitions of the actor that is looked back at, and how often another actor is chosen. */
const steps = 500;
const choices = 12;

const Ensured = v.object({ page: v.string(), endpoints: v.record(v.string(), v.string()) });
type Ensured = v.InferOutput<typeof Ensured>;

/** Milliseconds of each act. */
export interface Acts {
  readonly nowMs: number;
  readonly switchMs: number;
  readonly requestMs: number;
}

async function openTab(browser: Browser, seen: readonly string[]): Promise<Page> {
  const context = await browser.newContext({ viewport });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  await page.addInitScript(browserProbes);
  await page.addInitScript((selectors) => {
    for (const selector of selectors) probes.whenSeen(selector);
  }, seen);
  return page;
}

/** Resolves when the element is seen, with the milliseconds from the beginning of the navigation. */
async function seenAt(page: Page, selector: string): Promise<number> {
  await page.waitForFunction((each) => probes.whenSeen(each) !== undefined, selector);
  return page.evaluate((each) => probes.whenSeen(each) ?? Number.NaN, selector);
}

/** A real Hub whose eight workspaces run. */
export async function startNowRows() {
  const place = makePlace();
  const hub = await startHub(place);
  const records: Ensured[] = [];
  for (const name of workspaces) {
    const workspacePath = place.workspace(name);
    writeFileSync(join(workspacePath, '.oratorio', 'config.json'), '{"Provider":"demo"}\n', { mode: 0o600 });
    const { status, text } = await hub.request('POST', '/v1/appservers/ensure', { workspacePath });
    if (status !== 200) throw new Error(`ensure: ${status} ${text}`);
    records.push(v.parse(Ensured, JSON.parse(text)));
  }
  const address = (path: string, at: string) =>
    `http://127.0.0.1:${hub.port}${path}#${new URLSearchParams({ token: pageToken(place.home), at })}`;
  return {
    hub,
    records,
    address,
    async stop() {
      await hub.stop();
      place.remove();
    },
  };
}
type NowRows = Awaited<ReturnType<typeof startNowRows>>;

/** Eight rows of *Now*. */
const allRows = '.now .band li:nth-of-type(8)';
const chatOf = (name: string) =>
  `.frame:has(.tiles [aria-current="page"][aria-label^="${name},"]) .composer textarea:not([disabled])`;
const request = '.frame:has(.tiles .badge) .request-card';

/** Opens *Now*, goes from one workspace to another, and lets an agent ask there. */
export async function act(browser: Browser, rows: NowRows): Promise<Acts> {
  const page = await openTab(browser, [allRows, chatOf('two'), request]);
  await page.goto(rows.address('/', '/now'));
  const nowMs = await seenAt(page, allRows);
  await page.goto(rows.address(rows.records[0]?.page ?? '', '/chat'));
  await seenAt(page, chatOf('one'));
  await page.evaluate(() => probes.frames(30));
  const pressed = await page.evaluate(() => {
    document.querySelector<HTMLElement>('.tiles [aria-label^="two,"]')?.click();
    return performance.timeOrigin + performance.now();
  });
  await page.waitForURL(({ pathname }) => pathname === rows.records[1]?.page);
  const there = await seenAt(page, chatOf('two'));
  const switchMs = (await page.evaluate(() => performance.timeOrigin)) + there - pressed;
  const requestMs = await askFor(page, rows);
  await page.context().close();
  return { nowMs, switchMs, requestMs };
}

/** From the start of a turn of the demo model until its question has a card, a badge and a number in the title. */
async function askFor(page: Page, { records }: NowRows): Promise<number> {
  const client = await AppServerClient.connect(records[1]?.endpoints['appServerWebSocket'] ?? '', {
    clientInfo: { name: 'bench', version: '1' },
  });
  const { thread } = v.parse(
    v.object({ thread: v.object({ id: v.string() }) }),
    await client.request('thread/start', {}),
  );
  const from = Date.now();
  const input = [{ type: 'text', text: 'run: touch asked' }];
  const { turn } = v.parse(
    v.object({ turn: v.object({ id: v.string() }) }),
    await client.request('turn/start', { threadId: thread.id, input }),
  );
  const shown = await page.evaluate(async (selector) => {
    await probes.until(() => document.querySelector(selector) && document.title.startsWith('(1)'));
    return Date.now();
  }, request);
  await client.request('turn/interrupt', { threadId: thread.id, turnId: turn.id });
  await page.evaluate(() => probes.until(() => !document.title.startsWith('(')));
  client.close();
  return shown - from;
}

export interface Looks {
  /** From the choice of an actor until its chart is drawn: the first of its machine, and the next ones. */
  readonly firstChartMs: number;
  readonly nextChartMs: number;
  /** Figures of `steps` steps of time travel, one in each frame. */
  readonly travel: FrameFigures;
  readonly travelFps: number;
  readonly scriptMs: number;
  /** Longest of the palette's answers to a key. */
  readonly paletteMs: number;
}

/** Chooses actors, looks back through the steps of one, and types into the palette; over real machines of a stand-in for the Hub. */
export async function look(browser: Browser, pageDirectory: string): Promise<Looks> {
  const backend = await startBackend(pageDirectory);
  const paths = Array.from({ length: 200 }, (_, index) => `/w/project-${String(index).padStart(3, '0')}`);
  const actors = paths.map((path) => backend.add(path));
  const [first] = actors;
  if (!first) throw new Error('there is an actor');
  await bringUp(first);
  const { incarnation } = first.getSnapshot().context;
  for (let step = 0; step < steps; step += 2) {
    first.send({ type: 'PROBE.FAILED', incarnation, error: 'no answer' });
    first.send({ type: 'PROBE.PASSED', incarnation, idleMs: 0 });
  }
  const page = await openTab(browser, []);
  try {
    await page.goto(`${backend.url}#token=${standInToken}&at=/actors`);
    await page.locator('[role=treeitem]').nth(5).waitFor();
    await page.evaluate(() => probes.frames(30));
    // The page has chosen the first workspace, whose chart is that of all workspaces.
    const firstChartMs = await choose(page, 0);
    const next: number[] = [];
    for (let index = 2; index < 2 + choices; index += 1) next.push(await choose(page, index));
    await page.goto(`${backend.url}#/actors/${encodeURIComponent(paths[0] ?? '')}`);
    await page.locator('.scrubber input:enabled').waitFor();
    const travelled = await travel(page);
    const paletteMs = await type(page);
    return { firstChartMs, nextChartMs: median(next), ...travelled, paletteMs };
  } finally {
    await page.context().close();
    await backend.close();
  }
}

/** Chooses the row of the tree; the chart of another actor stays until the new one is drawn. */
const choose = (page: Page, index: number): Promise<number> =>
  page.evaluate(async (at) => {
    const row = document.querySelectorAll<HTMLElement>('[role=treeitem]')[at];
    const chart = () => document.querySelector('.chart svg[role="img"]');
    const before = chart();
    const from = performance.now();
    row?.click();
    await probes.until(() => {
      const svg = chart();
      return svg !== before && svg?.querySelector('.node.active');
    });
    const took = performance.now() - from;
    await probes.frames(5);
    return took;
  }, index);

async function travel(page: Page): Promise<Pick<Looks, 'travel' | 'travelFps' | 'scriptMs'>> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable');
  const script = async () => {
    const { metrics } = await devtools.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'ScriptDuration')?.value ?? Number.NaN;
  };
  const before = await script();
  const found = await page.evaluate(async (count) => {
    const input = document.querySelector<HTMLInputElement>('.scrubber input');
    await probes.frames(30);
    const watch = probes.watchFrames();
    const from = performance.now();
    for (let step = 0; step < count; step += 1) {
      dispatchEvent(new KeyboardEvent('keydown', { key: '[', bubbles: true }));
      await probes.frames(1);
    }
    const tookMs = performance.now() - from;
    return { frames: watch.end(), tookMs, position: Number(input?.value) };
  }, steps);
  const scriptMs = ((await script()) - before) * 1_000;
  if (found.position > 1) throw new Error(`the position after ${steps} steps is ${found.position}`);
  return { travel: found.frames, travelFps: (steps / found.tookMs) * 1_000, scriptMs: scriptMs / steps };
}

const type = (page: Page): Promise<number> =>
  page.evaluate(async () => {
    document.querySelector<HTMLElement>('button[aria-label^="Search and commands"]')?.click();
    await probes.until(() => document.querySelector('.palette input'));
    const input = document.querySelector<HTMLInputElement>('.palette input');
    if (!input) throw new Error('no palette');
    let longest = 0;
    for (const letter of 'project-017') {
      const from = performance.now();
      input.value += letter;
      input.dispatchEvent(new InputEvent('input', { bubbles: true }));
      await probes.frames(1);
      longest = Math.max(longest, performance.now() - from);
      await probes.frames(20);
    }
    return longest;
  });
