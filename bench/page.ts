import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import * as v from 'valibot';
import { build } from 'vite';
import { weighPage } from '../scripts/page-budget.ts';
import { launchBrowser } from '../test/browser.ts';
import { recordOf } from '../test/ui/records.ts';
import { token as hubToken, startBackend } from '../test/ui/sessions-backend.ts';
import { type Benchmark, type Context, firstLine, type Peer, type Result, startPeer } from './harness.ts';
import { act, look, startNowRows } from './page-acts.ts';
import { browserProbes } from './page-probes.ts';
import { type HubFigures, type LiveFigures, type Opening, type Paint, report } from './page-report.ts';
import { nodePeer } from './servers.ts';

const longEvents = 50_000;
const liveRate = 200;
const workspaces = 1_000;
/** Workspaces with all their facts, and how long the page is watched then. */
const recorded = 200;
const watchMs = 5_000;
const scrollSteps = 120;
const viewport = { width: 1280, height: 800 };

/** A tab that has seen nothing of the page yet. */
async function freshTab(browser: Browser, slowdown = 1): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext({ viewport });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  await page.addInitScript(browserProbes);
  // From the very beginning: the overview.
  await page.addInitScript(() => void probes.whenSeen('.home .part'));
  if (slowdown > 1) {
    const devtools = await context.newCDPSession(page);
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
  }
  return { context, page };
}

const address = (port: number, at: string): string =>
  `http://127.0.0.1:${port}/DashBoard#token=bench-token-0123456789&at=${at}`;

/** From the beginning of the navigation until there is something to see, and until the overview is there. */
async function paint(browser: Browser, port: number, slowdown: number): Promise<Paint> {
  const { context, page } = await freshTab(browser, slowdown);
  await page.goto(address(port, '/overview'));
  await page.waitForFunction(() => probes.whenSeen('.home .part') !== undefined);
  const found = await page.evaluate(() => ({
    firstMs: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN,
    readyMs: probes.whenSeen('.home .part') ?? Number.NaN,
  }));
  await context.close();
  return found;
}

/** From the list to a long session: until its first rows are there, and all of it; then through it from top to bottom. */
async function openLong(browser: Browser, port: number, view: string): Promise<Opening> {
  const { context, page } = await freshTab(browser);
  await page.goto(address(port, '/sessions'));
  await page.locator('.session-row').nth(2).waitFor();
  const opened = await page.evaluate(
    async ([at, count]) => {
      const loading = probes.watchFrames();
      const from = performance.now();
      location.hash = at;
      await probes.until(() => document.querySelector('.trace .vrow'));
      const rowsMs = performance.now() - from;
      await probes.until(() => (document.querySelector('.totals')?.textContent ?? '').includes('Events'));
      await probes.until(() => Number(document.querySelector('.vlist')?.getAttribute('aria-rowcount')) > count);
      return { rowsMs, allMs: performance.now() - from, loadFrameMs: loading.end().longestMs };
    },
    [`#/sessions/long?view=${view}`, view === 'list' ? longEvents : longEvents * 0.7] as const,
  );
  const scrolled = await page.evaluate(async (steps) => {
    await probes.frames(10);
    const list = document.querySelector('.vlist') as HTMLElement;
    const watch = probes.watchFrames();
    for (let step = 1; step <= steps; step += 1) {
      list.scrollTop = ((list.scrollHeight - list.clientHeight) * step) / steps;
      await probes.frames(1);
    }
    return { scrollFrameMs: watch.end().longestMs, nodes: document.querySelectorAll('*').length };
  }, scrollSteps);
  await context.close();
  return { ...opened, ...scrolled };
}

/** From the list to a session of fifty tools, until all of it is read and its tree is drawn. */
async function openTools(browser: Browser, port: number): Promise<number> {
  const { context, page } = await freshTab(browser);
  await page.goto(address(port, '/sessions'));
  await page.locator('.session-row').nth(2).waitFor();
  const ms = await page.evaluate(async () => {
    const from = performance.now();
    location.hash = '#/sessions/tools?view=waterfall';
    await probes.until(() => document.querySelector('.totals')?.textContent?.includes('Events'));
    await probes.until(() => document.querySelectorAll('.trace .vrow').length > 2);
    return performance.now() - from;
  });
  await context.close();
  return ms;
}

const Made = v.object({ events: v.number() });

/** Watches a session in which a lot happens, from its end. */
async function watchLive(browser: Browser, peer: Peer, seconds: number): Promise<LiveFigures> {
  const { context, page } = await freshTab(browser);
  const devtools = await context.newCDPSession(page);
  const heapMiB = async () => {
    await devtools.send('HeapProfiler.collectGarbage');
    const { usedSize } = await devtools.send('Runtime.getHeapUsage');
    return usedSize / 2 ** 20;
  };
  await page.goto(address(peer.port, '/sessions/live'));
  await page.locator('.connection.live').waitFor();
  await page.locator('.trace .vrow').first().waitFor();
  const before = await heapMiB();
  await page.evaluate(() => {
    probes.running = probes.watchFrames();
  });
  const printed = firstLine(peer.child, (seconds + 60) * 1000);
  peer.child.stdin?.write(`live ${liveRate} ${seconds}\n`);
  const { events } = v.parse(Made, JSON.parse(await printed));
  const newest = await page.evaluate(() => probes.frames(30).then(() => probes.running?.end()));
  await page.getByRole('button', { name: 'List' }).click();
  await page.waitForFunction(
    (count) => Number(document.querySelector('.vlist')?.getAttribute('aria-rowcount')) > count,
    events,
  );
  const shown = Number(await page.locator('.vlist').getAttribute('aria-rowcount')) - 1;
  const after = await heapMiB();
  await context.close();
  if (!newest) throw new Error('the frames were not watched');
  return { ...newest, events, shown, heapMiB: after, grownMiB: after - before };
}

/** A Hub with many workspaces: until its list is there, and from there to its last row and back. */
async function openHub(browser: Browser, pageDirectory: string): Promise<HubFigures> {
  const backend = await startBackend(pageDirectory, { kind: 'hub', checks: false });
  const pathOf = (index: number) => `/w/project-${String(index).padStart(4, '0')}`;
  for (let index = 0; index < workspaces; index += 1) backend.actor(pathOf(index), ['running'], { pid: 1_000 + index });
  const model = { name: 'gpt-x', provider: 'openai', host: 'api.openai.com' };
  for (let index = 0; index < workspaces; index += 1) {
    const facts = index < recorded ? { model, pendingApprovals: index % 7, restartCount: index % 5 } : {};
    backend.state.records.push(recordOf(pathOf(index), facts));
  }
  const { context, page } = await freshTab(browser);
  try {
    await page.goto(`${backend.url}#token=${hubToken}&at=/overview`);
    await page.waitForFunction(
      (count) => Number(document.querySelector('.vlist')?.getAttribute('aria-rowcount')) > count,
      workspaces,
      { polling: 'raf' },
    );
    const listMs = await page.evaluate(() => performance.now());
    const endMs = await page.evaluate(async (count) => {
      const list = document.querySelector('.vlist') as HTMLElement;
      const from = performance.now();
      list.scrollTop = list.scrollHeight;
      await probes.until(() => document.querySelector(`.vrow[aria-rowindex="${count + 1}"]`));
      return performance.now() - from;
    }, workspaces);
    // The ages change each second, and the facts are asked for again after each change.
    await page.evaluate(() => {
      probes.running = probes.watchFrames();
    });
    await page.waitForTimeout(watchMs / 2);
    for (let index = 0; index < recorded; index += 1)
      backend.actor(pathOf(index), ['unhealthy'], { pid: 1_000 + index });
    await page.waitForTimeout(watchMs / 2);
    const watched = await page.evaluate(() => probes.running?.end());
    if (!watched) throw new Error('the frames were not watched');
    return { listMs, endMs, tasksOver50: watched.tasksOver50, longestTaskMs: watched.longestTaskMs };
  } finally {
    await context.close();
    await backend.close();
  }
}

async function run({ quick, rounds, long }: Context): Promise<Result> {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-page-'));
  const pageDirectory = join(directory, 'page');
  const dataDirectory = join(directory, 'data');
  mkdirSync(dataDirectory);
  const browser = await launchBrowser();
  try {
    await build({
      configFile: join(import.meta.dirname, '../src/ui/vite.config.ts'),
      logLevel: 'error',
      build: { outDir: pageDirectory, emptyOutDir: true },
    });
    const peer = await startPeer(nodePeer('dashboard.ts', pageDirectory, dataDirectory, String(longEvents)));
    const weight = weighPage(pageDirectory);
    const paints = Math.max(rounds, quick ? 3 : 7);
    const times = async <T>(count: number, measure: () => Promise<T>): Promise<T[]> => {
      const found: T[] = [];
      for (let round = 0; round < count; round += 1) found.push(await measure());
      return found;
    };
    // The very first tab pays for the start of the browser's own processes.
    await paint(browser, peer.port, 1);
    const normal = await times(paints, () => paint(browser, peer.port, 1));
    const slowed = await times(paints, () => paint(browser, peer.port, 4));
    const openings = await times(rounds, () => openLong(browser, peer.port, 'waterfall'));
    const lists = await times(rounds, () => openLong(browser, peer.port, 'list'));
    const hubs = await times(rounds, () => openHub(browser, pageDirectory));
    const trees = await times(rounds, () => openTools(browser, peer.port));
    const live = await watchLive(browser, peer, quick ? 8 : long ? 600 : 60);
    await peer.stop();
    const looks = await times(rounds, () => look(browser, pageDirectory));
    const rows = await startNowRows();
    const acts = await times(rounds, () => act(browser, rows)).finally(() => rows.stop());
    if (live.shown !== live.events) throw new Error(`${live.events} events happened, ${live.shown} are shown`);
    return report({ weight, normal, slowed, openings, lists, hubs, live, trees, looks, acts });
  } finally {
    await browser.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

export const page: Benchmark = { name: 'page', title: 'The page in a browser', run };
