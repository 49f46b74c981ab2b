/**
 * One page for the tests of a process, one after another: its renderer process stays, whose start is a large part of a page load,
 * and so do the files of the page with their compiled code, if its servers use one port (`page-server.ts`). All else is reset after a test.
 */
import type { Browser, BrowserContext, BrowserContextOptions, CDPSession, Page } from 'playwright-core';
import type { Test } from 'tap';
import { processTest } from '../../scripts/shared-tap.ts';
import { launchBrowser } from '../browser.ts';
import { type PageWatch, watchPages } from '../page-watch.ts';

export interface WatchedPage extends PageWatch {
  readonly context: BrowserContext;
  readonly page: Page;
}

export interface PageRequest {
  readonly origin: string;
  /** Options beyond those of `Emulated` give the test a context of its own. */
  readonly context?: BrowserContextOptions | undefined;
  /** True when the test changes things that cannot be reset, such as scripts that run before those of the page. */
  readonly isChanged?: boolean | undefined;
}

/** One test, or several by name that share a page, each beginning where the one before it has left the page. */
export type Plays<Scene> = Play<Scene> | Readonly<Record<string, Play<Scene>>>;
type Play<Scene> = (t: Test, scene: Scene) => Promise<void>;

/** Runs the tests of a scene. @param check asserts after each of them that the page did nothing forbidden */
export async function playAll<Scene>(
  t: Test,
  plays: Plays<Scene>,
  scene: Scene,
  check: (t: Test) => void,
): Promise<void> {
  const playOne = async (t: Test, play: Play<Scene>) => {
    await play(t, scene);
    check(t);
  };
  if (typeof plays === 'function') return playOne(t, plays);
  for (const [name, play] of Object.entries(plays)) await t.test(name, (t) => playOne(t, play));
}

/** Goes to another place of the page without loading it, as its links do. */
export async function goTo(page: Page, at: string): Promise<void> {
  // The page takes its token from the fragment after its first frame, which may be later than its load.
  await page.waitForFunction(() => !location.hash.includes('token='));
  await page.evaluate((hash) => {
    location.hash = hash;
  }, at);
}

/** Options that an open page can take. */
type Emulated = Pick<BrowserContextOptions, 'viewport' | 'colorScheme' | 'reducedMotion' | 'forcedColors'>;

const defaults = {
  viewport: { width: 1280, height: 800 },
  reducedMotion: 'reduce',
  colorScheme: 'light',
  forcedColors: 'none',
  locale: 'en-GB',
  timezoneId: 'Europe/Berlin',
  permissions: ['clipboard-read', 'clipboard-write'],
} satisfies BrowserContextOptions;

/** All but `local_storage`, which the page clears itself, in order with its writes. */
const storageTypes = 'indexeddb,cache_storage,service_workers,file_systems,shared_storage,storage_buckets';

/** A page, and its forbidden acts. */
class Watch implements WatchedPage {
  readonly context: BrowserContext;
  readonly page: Page;
  complaints: string[] = [];
  foreign: string[] = [];
  readonly #debugger: CDPSession;
  #origin = '';

  private constructor(context: BrowserContext, page: Page, session: CDPSession) {
    this.context = context;
    this.page = page;
    this.#debugger = session;
  }

  static async open(browser: Browser, options: BrowserContextOptions): Promise<Watch> {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(300_000);
    const page = await context.newPage();
    const watch = new Watch(context, page, await context.newCDPSession(page));
    await watchPages(context, { isOwn: (url) => url.startsWith(watch.#origin), cutsRequests: true }, watch);
    return watch;
  }

  async begin(origin: string, { viewport, ...media }: Emulated): Promise<void> {
    const { page } = this;
    this.#origin = origin;
    this.complaints = [];
    this.foreign = [];
    const { width, height } = page.viewportSize() ?? {};
    if (viewport && (viewport.width !== width || viewport.height !== height)) await page.setViewportSize(viewport);
    await page.emulateMedia(media);
  }

  /** Whether the page is at its origin, whose storage it then can clear. */
  get canBeReset(): boolean {
    return !this.page.isClosed() && new URL(this.page.url()).origin === this.#origin;
  }

  /** Leaves the page as a new one is, but for files of the page that may be stored for ever. */
  async reset(): Promise<void> {
    const { context, page } = this;
    for (const other of context.pages()) if (other !== page) await other.close();
    // Must be the last listener: a page may store something when it is left.
    await page.evaluate(() => {
      addEventListener('pagehide', () => {
        sessionStorage.clear();
        localStorage.clear();
      });
    });
    await page.goto('about:blank');
    await this.#debugger.send('Storage.clearDataForOrigin', { origin: this.#origin, storageTypes });
    await context.unrouteAll();
    await page.unrouteAll();
    await context.clearCookies();
    await page.mouse.move(0, 0);
  }
}

let browser: Promise<Browser> | undefined;
let kept: Watch | undefined;

/** Starts the browser of this process, which the files that share the process share. */
function sharedBrowser(): Promise<Browser> {
  if (!browser) {
    const started = launchBrowser();
    processTest.teardown(async () => (await started).close());
    browser = started;
  }
  return browser;
}

/** Returns a function that gives a test its page. */
export function keptPage(viewport = defaults.viewport) {
  return async function openPage(t: Test, { origin, context, isChanged = false }: PageRequest): Promise<WatchedPage> {
    const { colorScheme, reducedMotion, forcedColors } = { ...defaults, ...context };
    const emulated = { viewport: context?.viewport ?? viewport, colorScheme, reducedMotion, forcedColors };
    const isKept = !isChanged && Object.keys(context ?? {}).every((option) => option in emulated);
    const options = { ...defaults, ...context, ...emulated };
    const watch = (isKept && kept) || (await Watch.open(await sharedBrowser(), options));
    if (isKept) kept = watch;
    await watch.begin(new URL(origin).origin, emulated);
    t.teardown(async () => {
      if (isKept && t.passing() && watch.canBeReset) return watch.reset();
      if (isKept) kept = undefined;
      await watch.context.close();
    });
    return watch;
  };
}
