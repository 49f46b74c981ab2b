/** Pages of a real Hub and agent server in a real browser. A test fails for a script error or a request to another origin. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import type { AppServerClientOptions } from '../../src/client/index.ts';
import type { EventPage, TraceEvent } from '../../src/protocol/index.ts';
import { launchBrowser } from '../browser.ts';
import { type PageWatch, watchPages } from '../page-watch.ts';
import { type Bookshop, clientOf, dashboardUrl, makeBookshop } from './bookshop.ts';
import { type BuiltHub, makePlace, type Place, startHub } from './harness.ts';

export interface DashboardScene extends Bookshop {
  readonly place: Place;
  readonly hub: BuiltHub;
  readonly context: BrowserContext;
  readonly watch: PageWatch;
  /** Opens the dashboard in a tab of its own, at this view. */
  open(at?: string): Promise<Page>;
  connect(options?: AppServerClientOptions): ReturnType<typeof clientOf>;
  /** Asks the agent server's dashboard, as its page does. */
  ask(path: string, init?: RequestInit): Promise<Response>;
}

/** Starts the browser and the Hub of a test file; its last test must be `end()`, because both keep the process alive. */
export function theatre() {
  const place = makePlace(t, 'dashboard-');
  let browser: Browser;
  let hub: BuiltHub;
  let scenes = 0;
  t.before(async () => {
    [browser, hub] = await Promise.all([launchBrowser(), startHub(place)]);
  });
  return {
    /** Plays in a workspace of its own. */
    scene(
      name: string,
      config: Parameters<Place['workspace']>[1],
      play: (t: Test, scene: DashboardScene) => Promise<void>,
    ) {
      t.test(name, async (t) => {
        scenes += 1;
        const shop = await makeBookshop(t, place, {
          config: { Supervision: { BackoffBaseMs: 200 }, ...config },
          name: `bookshop-${scenes}`,
        });
        const { workspacePath } = shop;
        await hub.client.ensure({ workspacePath });
        const context = await browser.newContext({
          viewport: { width: 1280, height: 800 },
          reducedMotion: 'reduce',
          locale: 'en-GB',
        });
        t.teardown(() => context.close());
        context.setDefaultTimeout(300_000);
        const watch = await watchPages(context, {
          isOwn: (url) => /^http:\/\/127\.0\.0\.1:\d+\//.test(url),
          cutsRequests: true,
        });
        const open = async (at = '') => {
          const page = await context.newPage();
          await page.goto(await dashboardUrl(place, hub.client, workspacePath, at));
          return page;
        };
        const connect = (options?: AppServerClientOptions) => clientOf(t, hub.client, workspacePath, options);
        const ask = async (path: string, init: RequestInit = {}) => {
          const { origin, hash } = new URL(await dashboardUrl(place, hub.client, workspacePath));
          return fetch(`${origin}${path}`, {
            ...init,
            headers: { authorization: `Bearer ${new URLSearchParams(hash.slice(1)).get('token')}` },
          });
        };
        await play(t, { ...shop, place, hub, context, watch, open, connect, ask });
        isBlameless(t, watch);
        await context.close();
        await hub.client.stop(workspacePath);
      });
    },
    end: () => {
      t.test('the browser and the Hub end', async () => {
        await Promise.all([browser.close(), hub.shutdown()]);
      });
    },
  };
}

/** Checks that no page of a scene has done anything forbidden so far. */
export const isBlameless = (t: Test, { complaints, foreign }: PageWatch): void => {
  t.same([...complaints, ...foreign], [], 'no script error, no violation of the policy, no request to another origin');
};

/** All events of a session, as the dashboard's API has them. */
export async function eventsOf({ ask }: DashboardScene, sessionKey: string): Promise<EventPage> {
  const answer = await ask(`/DashBoard/api/sessions/${encodeURIComponent(sessionKey)}/events?limit=500`);
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as EventPage;
}

/** Reads the event stream from now on. `until` resolves with all traces when they fit. */
export async function followTraces(t: Test, { ask }: DashboardScene) {
  const abort = new AbortController();
  t.teardown(() => abort.abort());
  const answer = await ask('/api/events/stream', { signal: abort.signal });
  const body = answer.body?.pipeThrough(new TextDecoderStream());
  if (!answer.ok || !body) throw new Error(`the stream was answered ${answer.status}`);
  const reader = body.getReader();
  let text = '';
  const seen: TraceEvent[] = [];
  return {
    seen,
    async until(fits: (seen: readonly TraceEvent[]) => boolean): Promise<readonly TraceEvent[]> {
      while (!fits(seen)) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`the stream has ended; seen: ${seen.map(({ type }) => type)}`);
        const blocks = `${text}${value}`.split('\n\n');
        text = blocks.pop() ?? '';
        seen.push(...blocks.flatMap(traceIn));
      }
      return seen;
    },
  };
}

function traceIn(block: string): TraceEvent[] {
  const data = block.split('\n').flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : []));
  const parsed = data.length === 0 ? {} : JSON.parse(data.join('\n'));
  return 'sessionKey' in parsed && 'type' in parsed ? [parsed] : [];
}

/** The row of a session in the table. */
export const sessionRow = (page: Page, name: string) => page.locator('.session-row', { hasText: name });
