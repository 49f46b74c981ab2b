import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import * as v from 'valibot';
import { build } from 'vite';
import { budget, type PageWeight, weighPage } from '../scripts/page-budget.ts';
import { launchBrowser } from '../test/browser.ts';
import { recordOf } from '../test/ui/records.ts';
import { token as hubToken, startBackend } from '../test/ui/sessions-backend.ts';
import {
  type Benchmark,
  type Check,
  type Context,
  firstLine,
  median,
  type Peer,
  type Result,
  startPeer,
} from './harness.ts';
import { browserProbes, type FrameFigures } from './page-probes.ts';
import { nodePeer } from './servers.ts';

const longEvents = 50_000;
const liveRate = 200;
const workspaces = 1_000;
/** Workspaces with all their facts, and how long the page is watched then. */
const recorded = 200;
const watchMs = 5_000;
const scrollSteps = 120;
const kibibyte = 1024;
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

interface Paint {
  readonly firstMs: number;
  readonly readyMs: number;
}

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

interface Opening {
  readonly rowsMs: number;
  readonly allMs: number;
  readonly loadFrameMs: number;
  readonly scrollFrameMs: number;
  readonly nodes: number;
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

const Made = v.object({ events: v.number() });

interface LiveFigures extends FrameFigures {
  readonly events: number;
  readonly shown: number;
  readonly heapMiB: number;
  readonly grownMiB: number;
}

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

interface HubFigures {
  readonly listMs: number;
  readonly endMs: number;
  readonly tasksOver50: number;
  readonly longestTaskMs: number;
}

/** A Hub with many workspaces: until its list is there, and from there to its last row and back. */
async function openHub(browser: Browser, pageDirectory: string): Promise<HubFigures> {
  const backend = await startBackend(pageDirectory, { kind: 'hub', checks: false });
  const pathOf = (index: number) => `/w/project-${String(index).padStart(4, '0')}`;
  for (let index = 0; index < workspaces; index += 1) backend.actor(pathOf(index), ['running'], { pid: 1_000 + index });
  const model = { name: 'gpt-x', provider: 'openai', host: 'api.openai.com' };
  for (let index = 0; index < recorded; index += 1)
    backend.state.records.push(
      recordOf(pathOf(index), { model, pendingApprovals: index % 7, restartCount: index % 5 }),
    );
  const { context, page } = await freshTab(browser);
  try {
    await page.goto(`${backend.url}#token=${hubToken}&at=/overview`);
    await page.waitForFunction(
      (count) => Number(document.querySelector('.vlist')?.getAttribute('aria-rowcount')) > count,
      workspaces,
      { polling: 'raf' },
    );
    const listMs = await page.evaluate(() => performance.now());
    const endMs = await page.evaluate(async () => {
      const list = document.querySelector('.vlist') as HTMLElement;
      const from = performance.now();
      list.scrollTop = list.scrollHeight;
      await probes.until(() => [...document.querySelectorAll('.vrow b')].at(-1)?.textContent?.includes('0999'));
      return performance.now() - from;
    });
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
    const live = await watchLive(browser, peer, quick ? 8 : long ? 600 : 60);
    await peer.stop();
    if (live.shown !== live.events) throw new Error(`${live.events} events happened, ${live.shown} are shown`);
    return report({ weight, normal, slowed, openings, lists, hubs, live });
  } finally {
    await browser.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

interface Found {
  readonly weight: PageWeight;
  readonly normal: readonly Paint[];
  readonly slowed: readonly Paint[];
  readonly openings: readonly Opening[];
  readonly lists: readonly Opening[];
  readonly hubs: readonly HubFigures[];
  readonly live: LiveFigures;
}

function report({ weight, normal, slowed, openings, lists, hubs, live }: Found): Result {
  const of = <T>(found: readonly T[], key: (each: T) => number) => median(found.map(key));
  const openingRow = (name: string, found: readonly Opening[]) => [
    ...[name, of(found, (each) => each.rowsMs), of(found, (each) => each.allMs)],
    ...[
      of(found, (each) => each.loadFrameMs),
      of(found, (each) => each.scrollFrameMs),
      of(found, (each) => each.nodes),
    ],
  ];
  const checks: readonly Check[] = [
    { what: 'first contentful paint', measured: of(normal, (each) => each.firstMs), atMost: 200, unit: ' ms' },
    {
      what: 'first contentful paint, CPU 4 × slower',
      measured: of(slowed, (each) => each.firstMs),
      atMost: 500,
      unit: ' ms',
    },
    { what: '50 000 events: first rows', measured: of(openings, (each) => each.rowsMs), atMost: 300, unit: ' ms' },
    {
      what: '50 000 events: longest frame while scrolling',
      measured: Math.max(
        of(openings, (each) => each.scrollFrameMs),
        of(lists, (each) => each.scrollFrameMs),
      ),
      atMost: 50,
      unit: ' ms',
    },
    { what: '200 events/s: frames over 100 ms', measured: live.over100, atMost: 0 },
    { what: '200 events/s: heap that stays', measured: live.grownMiB, atMost: 20, unit: ' MiB' },
    { what: '1 000 workspaces: list is there', measured: of(hubs, (each) => each.listMs), atMost: 1_000, unit: ' ms' },
    {
      what: '1 000 workspaces, 200 change at once: tasks over 50 ms once the list is there',
      measured: of(hubs, (each) => each.tasksOver50),
      atMost: 0,
    },
    {
      what: 'scripts before the first view (brotli)',
      measured: weight.initialScripts / kibibyte,
      atMost: budget.initialScripts / kibibyte,
      unit: ' KiB',
    },
    {
      what: 'everything that is fetched (brotli)',
      measured: weight.everything / kibibyte,
      atMost: budget.everything / kibibyte,
      unit: ' KiB',
    },
  ];
  return {
    tables: [
      {
        title: 'Opening the page, milliseconds (median)',
        columns: ['', 'first contentful paint', 'overview is there'],
        rows: [
          ['full speed', of(normal, (each) => each.firstMs), of(normal, (each) => each.readyMs)],
          ['CPU 4 × slower', of(slowed, (each) => each.firstMs), of(slowed, (each) => each.readyMs)],
        ],
      },
      {
        title: 'A session of 50 000 events, milliseconds (median)',
        columns: ['view', 'first rows', 'all events', 'longest frame while loading', 'while scrolling', 'nodes'],
        rows: [openingRow('waterfall', openings), openingRow('list', lists)],
      },
      {
        title: '200 events a second in a session that is watched',
        columns: [
          'events',
          'frames',
          'longest frame, ms',
          'frames over 100 ms',
          'long tasks over 100 ms',
          'heap at the end, MiB',
          'grown, MiB',
        ],
        rows: [[live.events, live.frames, live.longestMs, live.over100, live.longTasks, live.heapMiB, live.grownMiB]],
      },
      {
        title: '1 000 workspaces, milliseconds (median)',
        columns: ['list is there', 'to its last row', 'tasks over 50 ms in 5 s after it', 'longest of them'],
        rows: [
          [
            of(hubs, (each) => each.listMs),
            of(hubs, (each) => each.endMs),
            of(hubs, (each) => each.tasksOver50),
            of(hubs, (each) => each.longestTaskMs),
          ],
        ],
      },
    ],
    checks,
    notes: [
      'A real Chromium, headless and without a graphics card, on the same machine as the server. The Dashboard is the real one over a real database; a stand-in for the Hub lists the 1 000 workspaces.',
    ],
  };
}

export const page: Benchmark = { name: 'page', title: 'The page in a browser', run };
