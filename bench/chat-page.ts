import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchBrowser } from '../test/browser.ts';
import { type AgentServer, startAgentServer } from './agent-server.ts';
import { type Benchmark, type Context, median, type Result, startPeer, wait } from './harness.ts';
import { makeTalk } from './long-thread.ts';
import { browserProbes, type FrameFigures, timerProbe } from './page-probes.ts';
import { nodePeer } from './servers.ts';

/** Questions with their answers: 10,000 messages. */
const turns = 5_000;
const tokensPerSecond = 200;
const viewport = { width: 1440, height: 900 };
const pageDirectory = join(import.meta.dirname, '..', 'dist', 'ui');

/** Bytes by gzip of the scripts and styles that the page needs before its first view. */
function firstCode(): number {
  const html = readFileSync(join(pageDirectory, 'index.html'), 'utf8');
  const files = [...html.matchAll(/(?:src|href)="\.\/([^"]+\.(?:js|css))"/g)].map(([, file]) => file ?? '');
  return files.reduce((sum, file) => sum + gzipSync(readFileSync(join(pageDirectory, file))).byteLength, 0);
}

const addressOf = ({ dashboard }: AgentServer, at: string): string =>
  `${dashboard.origin}/DashBoard#${new URLSearchParams({ token: dashboard.token, at })}`;

interface Tab {
  readonly context: BrowserContext;
  readonly page: Page;
}

async function openTab(browser: Browser): Promise<Tab> {
  const context = await browser.newContext({ viewport });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  await page.addInitScript(browserProbes);
  await page.addInitScript(timerProbe);
  return { context, page };
}

/** From the beginning of the navigation until a message can be written. */
async function firstUse(browser: Browser, server: AgentServer): Promise<number> {
  const { context, page } = await openTab(browser);
  await page.goto(addressOf(server, '/chat'));
  const ms = await page.evaluate(async () => {
    await probes.until(() => document.querySelector('.composer textarea') && document.querySelector('.threads li'));
    return performance.now();
  });
  await context.close();
  return ms;
}

interface Opening {
  readonly openMs: number;
  readonly nodes: number;
  readonly up: FrameFigures;
  readonly down: FrameFigures;
  /** Scrolling to the top of the loaded rows, again and again, until all rows are loaded. */
  readonly toBeginning: FrameFigures;
  /** Height of the loaded rows. */
  readonly pixels: number;
}

/** From the list of threads to the last answer of the long thread; then up through it for so many frames, down again, and to its beginning. */
async function openLong(browser: Browser, server: AgentServer, threadId: string, steps: number): Promise<Opening> {
  const { context, page } = await openTab(browser);
  await page.goto(addressOf(server, '/chat'));
  await page.locator('.threads li').first().waitFor();
  const found = await page.evaluate(
    async ([threadId, steps]) => {
      await probes.frames(20);
      const from = performance.now();
      location.hash = `#/chat/${threadId}`;
      await probes.until(() => {
        const log = document.querySelector('.log');
        return log?.querySelector('.row-end') && log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      });
      const openMs = performance.now() - from;
      await probes.frames(20);
      const log = document.querySelector('.log') as HTMLElement;
      const scroll = async (byPx: number) => {
        const watch = probes.watchFrames();
        for (let step = 0; step < steps; step += 1) {
          log.scrollTop += byPx;
          await probes.frames(1);
        }
        return watch.end();
      };
      const up = await scroll(-400);
      const nodes = document.querySelectorAll('*').length;
      const down = await scroll(400);
      const watch = probes.watchFrames();
      while (!log.textContent?.includes('Question 1:')) {
        log.scrollTop = 0;
        await probes.frames(1);
      }
      return { openMs, up, down, toBeginning: watch.end(), nodes, pixels: log.scrollHeight };
    },
    [threadId, steps] as const,
  );
  await context.close();
  return found;
}

interface Streaming {
  /** Shares of a core: the renderer's process, and its main thread in tasks. */
  readonly process: number;
  readonly mainThread: number;
  readonly chars: number;
}

/** A turn whose answer comes at 200 tokens a second, from its third second on. */
async function stream(browser: Browser, server: AgentServer, seconds: number): Promise<Streaming> {
  const { context, page } = await openTab(browser);
  const whole = await browser.newBrowserCDPSession();
  const own = await context.newCDPSession(page);
  await own.send('Performance.enable');
  await page.goto(addressOf(server, '/chat'));
  await page.getByRole('textbox', { name: 'Message' }).fill('Write for a while.');
  await page.getByRole('textbox', { name: 'Message' }).press('Enter');
  await page.locator('.answer').first().waitFor();
  await wait(2_000);
  const cpu = async () => {
    const { processInfo } = await whole.send('SystemInfo.getProcessInfo');
    const { metrics } = await own.send('Performance.getMetrics');
    const renderers = processInfo.filter(({ type }) => type === 'renderer');
    return {
      at: performance.now() / 1_000,
      process: renderers.reduce((sum, { cpuTime }) => sum + cpuTime, 0),
      mainThread: metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN,
    };
  };
  const before = await cpu();
  await wait((seconds - 4) * 1_000);
  const after = await cpu();
  await page.locator('.row-end').first().waitFor();
  const chars = await page.evaluate(() => document.querySelector('.answer')?.textContent?.length ?? 0);
  await context.close();
  await whole.detach();
  const took = after.at - before.at;
  return {
    chars,
    process: (after.process - before.process) / took,
    mainThread: (after.mainThread - before.mainThread) / took,
  };
}

/** Shortest pause of a timer that runs in a page in which nothing happens; Infinity without any. */
async function idle(browser: Browser, server: AgentServer, at: string, seconds: number): Promise<number> {
  const { context, page } = await openTab(browser);
  await page.goto(addressOf(server, at));
  await page.locator('.connection.live').waitFor();
  await page.locator('main h1').first().waitFor();
  await wait(2_000);
  const shortest = await page.evaluate(async (ms) => {
    timers.watch();
    await timers.pause(ms);
    return timers.shortest();
  }, seconds * 1_000);
  await context.close();
  return shortest;
}

async function run({ rounds }: Context): Promise<Result> {
  const seconds = 9;
  const upstream = await startPeer(nodePeer('typing-upstream.ts', String(tokensPerSecond), String(seconds)));
  let threadId = '';
  const server = await startAgentServer({
    config: {
      ...{ EndPoint: `http://127.0.0.1:${upstream.port}/v1`, ApiKey: 'bench', Model: 'typing' },
      DashBoard: { Port: 0 },
    },
    prepare: (workspacePath, stateDirectory) => {
      threadId = makeTalk(workspacePath, stateDirectory, turns);
    },
  });
  const browser = await launchBrowser();
  try {
    // The first tab pays for the start of the browser's processes.
    await firstUse(browser, server);
    const uses: number[] = [];
    const openings: Opening[] = [];
    const streams: Streaming[] = [];
    for (let round = 0; round < rounds; round += 1) {
      uses.push(await firstUse(browser, server));
      openings.push(await openLong(browser, server, threadId, 300));
      streams.push(await stream(browser, server, seconds));
    }
    const idles = [await idle(browser, server, '/overview', 5), await idle(browser, server, `/chat/${threadId}`, 5)];
    return report({ uses, openings, streams, idles });
  } finally {
    await browser.close();
    await server.stop();
    await upstream.stop();
  }
}

interface Found {
  readonly uses: readonly number[];
  readonly openings: readonly Opening[];
  readonly streams: readonly Streaming[];
  /** Shortest timers of the Overview and of the chat. */
  readonly idles: readonly number[];
}

const ways = [
  ['up', 'scrolled up, 400 px a frame'],
  ['down', 'scrolled down, 400 px a frame'],
  ['toBeginning', 'to the beginning, from page to page'],
] as const;

function report({ uses, openings, streams, idles }: Found): Result {
  const of = <T>(found: readonly T[], key: (each: T) => number) => median(found.map(key));
  const tasks = of(openings, (each) => ways.reduce((sum, [way]) => sum + each[way].tasksOver50, 0));
  const code = firstCode() / 1024;
  return {
    tables: [
      {
        title: 'A thread of 10 000 messages (median)',
        columns: ['', 'ms', 'pixels', 'longest task over 50 ms', 'tasks over 50 ms', 'longest frame, ms', 'nodes'],
        rows: [
          ['opened at its end', of(openings, ({ openMs }) => openMs), '', '', '', '', ''],
          ...ways.map(([way, name]) => [
            name,
            '',
            way === 'toBeginning' ? of(openings, ({ pixels }) => pixels) : '',
            ...[
              of(openings, (each) => each[way].longestTaskMs),
              of(openings, (each) => each[way].tasksOver50),
              of(openings, (each) => each[way].longestMs),
              of(openings, ({ nodes }) => nodes),
            ],
          ]),
        ],
      },
      {
        title: `An answer of ${tokensPerSecond} tokens a second (median)`,
        columns: ['core, renderer’s process', 'core, main thread', 'characters'],
        rows: [
          [
            of(streams, ({ process }) => process),
            of(streams, ({ mainThread }) => mainThread),
            of(streams, ({ chars }) => chars),
          ],
        ],
      },
    ],
    checks: [
      { what: '10 000 messages: opened', measured: of(openings, ({ openMs }) => openMs), atMost: 500, unit: ' ms' },
      { what: '10 000 messages: tasks over 50 ms while scrolling', measured: tasks, atMost: 0 },
      {
        what: '200 tokens/s: share of a core in the page',
        measured: of(streams, ({ process }) => process),
        atMost: 0.1,
      },
      { what: 'first code (gzip)', measured: code, atMost: 60, unit: ' KiB' },
      { what: 'a message can be written', measured: of(uses, (ms) => ms), atMost: 400, unit: ' ms' },
      { what: 'idle page: shortest timer', measured: Math.min(60_000, ...idles), atLeast: 1_000, unit: ' ms' },
    ],
    notes: [
      'A real Chromium, headless and without a graphics card, on the same machine as the agent server. A share of a core counts all threads of the renderer: scripts, layout, rasterization.',
    ],
  };
}

export const chatPage: Benchmark = { name: 'chat-page', title: 'Chat in the page', run };
