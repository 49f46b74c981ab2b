/** Frame of the views in a real browser: gate, palette, keys, appearance, and the stream that tabs share. */
import type { Page } from 'playwright-core';
import type { EventSummary } from '../../src/protocol/index.ts';
import { goTo } from './kept-page.ts';
import { axe, entrance, overflowsAt, smallTargets, stage } from './scene.ts';
import { shows } from './shows.ts';
import { sessionOf, token } from './workspace-backend.ts';

const scene = await stage();

const live = (page: Page) => page.locator('.connection.live').waitFor();
const rows = (page: Page) => page.locator('.events [role=option]');
const event = (id: number): EventSummary => ({
  id,
  sessionKey: 'thread_1',
  type: 'tool.completed',
  at: '2026-11-21T12:00:00.000Z',
  tool: 'Exec',
  data: {},
});

scene(
  'regression: a tab without a token shows the command of this workspace, and opens with a token',
  { isUnauthenticated: true },
  async (t, { page, backend }) => {
    const main = page.locator('main');
    await main.getByRole('heading', { name: 'This page needs a token' }).waitFor();
    await shows(t, 'match', () => main.textContent(), 'oratorio inspect . --open');
    t.equal(await page.getByLabel('Password').count(), 0, 'no log-in where there is none');
    t.same(await axe(page), []);
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Enter' }).click();
    await main.getByRole('heading', { name: 'This page needs a token' }).waitFor();
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Enter' }).click();
    await live(page);
    t.notMatch(page.url(), token, 'the token is in no address');
    await page.reload();
    await live(page);
    backend.tokens.clear();
    backend.events.cut();
    await main.getByRole('heading', { name: 'This page needs a token' }).waitFor();
    t.notOk(backend.requests.some((request) => request.includes(token)));
  },
);

scene(
  'login by name and password is offered where the server supports it, and logout returns to the gate',
  { isUnauthenticated: true, auth: ['token', 'password'] },
  async (t, { page, backend }) => {
    await page.getByLabel('User name').fill('ada');
    await page.getByLabel('Password').fill('babbage');
    await page.getByRole('button', { name: 'Log in' }).click();
    await shows(t, 'match', () => page.getByRole('alert').textContent(), 'Wrong name or password.');
    await page.getByLabel('Password').fill('lovelace');
    await page.getByRole('button', { name: 'Log in' }).click();
    await live(page);
    await page.getByRole('button', { name: 'Appearance and keys' }).click();
    const loggedOut = page.waitForResponse((response) => response.url().endsWith('/logout'));
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('User name').waitFor();
    await loggedOut;
    t.ok(backend.requests.includes('POST /dashboard/api/logout'));
  },
);

scene(
  'a server that does not answer is reported instead of an endless spinner',
  { at: '/events' },
  async (t, { page, backend }) => {
    await live(page);
    backend.state.failWith = 503;
    await page.reload();
    await page.getByRole('heading', { name: 'The server does not answer' }).waitFor();
    await shows(t, 'match', () => page.getByRole('alert').textContent(), 'The disk is full.');
    backend.state.failWith = undefined;
    await live(page);
  },
);

scene(
  'keys and palette',
  { at: '/events' },
  {
    'the palette finds commands by a few letters, and sessions': async (t, { page, backend }) => {
      await live(page);
      backend.state.sessions = [sessionOf('thread_7', 'fugue in d minor')];
      await page.keyboard.press('Control+k');
      const palette = page.getByRole('dialog', { name: 'Search and commands' });
      await palette.waitFor();
      t.same(await axe(page), []);
      await page.keyboard.type('goaut');
      const first = palette.getByRole('option').first();
      await shows(t, 'match', () => first.textContent(), /Go to automations.*gt/);
      await page.keyboard.press('Enter');
      await palette.waitFor({ state: 'detached' });
      await page.getByRole('heading', { name: 'Automations' }).waitFor();
      t.match(page.url(), '#/automations');
      await shows(t, 'match', () => page.title(), /^Automations · demo · Oratorio$/);

      await page.keyboard.press('Control+k');
      await shows(
        t,
        'match',
        () => palette.getByRole('option').first().textContent(),
        'Go to automations',
        'what was used last comes first',
      );
      await page.keyboard.type('fugue');
      await palette.getByRole('option', { name: 'fugue in d minor' }).waitFor();
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('Enter');
      await palette.waitFor({ state: 'detached' });
      t.match(page.url(), '#/sessions/thread_7');

      await page.keyboard.press('Control+k');
      await page.keyboard.type('qqqq');
      await palette.getByText('No results').waitFor();
      await page.keyboard.press('Escape');
      await palette.waitFor({ state: 'detached' });
    },
    'regression: what the palette finds by whole words stands before scattered letters, also for a fast Enter': async (
      t,
      { page, backend },
    ) => {
      await live(page);
      backend.state.sessions = [sessionOf('thread_8', 'infra is down')];
      const palette = page.getByRole('dialog', { name: 'Search and commands' });
      await page.keyboard.press('Control+k');
      await page.keyboard.type('infra');
      await palette.getByRole('option', { name: 'infra is down' }).waitFor();
      const titles = await palette.getByRole('option').allTextContents();
      t.match(titles[0], 'infra is down');
      t.match(titles.slice(1), [/Switch the density/], 'its letters are in the title, far apart');
      await page.keyboard.press('Control+a');
      await page.keyboard.insertText('infra');
      await page.keyboard.press('Enter');
      await palette.waitFor({ state: 'detached' });
      t.match(page.url(), '#/sessions/thread_8');
    },
    'a key pressed while a view appears is not lost': async (t, { page }) => {
      await goTo(page, '/events');
      await page.getByRole('heading', { name: 'Events', exact: true }).waitFor();
      await page.evaluate(() => {
        const observer = new MutationObserver(() => {
          if (document.querySelector('main h1')?.textContent !== 'Logs') return;
          observer.disconnect();
          document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }));
        });
        observer.observe(document.body, { childList: true, subtree: true });
      });
      await page.locator('.rail a[href="#/logs"]').click();
      await page.getByRole('heading', { name: 'Logs' }).waitFor();
      await page.waitForFunction(() => document.activeElement?.getAttribute('aria-label') === 'Search the log');
      await shows(t, 'equal', () => page.getByLabel('Search the log').inputValue(), '');
    },
    'regression: the focus that a key moves in a view that was fetched before stays there': async (t, { page }) => {
      await goTo(page, '/events');
      await page.getByRole('heading', { name: 'Events', exact: true }).waitFor();
      const focused = await page.evaluate(
        () =>
          new Promise<string | null>((resolve) => {
            const observer = new MutationObserver(() => {
              if (document.querySelector('main h1')?.textContent !== 'Logs') return;
              observer.disconnect();
              document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }));
              // The title comes with the last effects of the frame.
              new MutationObserver(() => {
                setTimeout(() => resolve(document.activeElement?.getAttribute('aria-label') ?? null));
              }).observe(document.head, { childList: true, characterData: true, subtree: true });
            });
            observer.observe(document.body, { childList: true, subtree: true });
            location.hash = '/logs';
          }),
      );
      t.equal(focused, 'Search the log');
    },
    'key sequences work except while typing, are listed, and can be disabled': async (t, { page }) => {
      await goTo(page, '/events');
      await page.getByRole('heading', { name: 'Events', exact: true }).waitFor();
      // Both at once: the second key of a sequence does not have long.
      await Promise.all([page.keyboard.press('g'), page.keyboard.press('l')]);
      await page.getByRole('heading', { name: 'Logs' }).waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type('g e?');
      await shows(t, 'equal', () => page.getByLabel('Search the log').inputValue(), 'g e?', 'what is typed is text');
      t.equal(await page.getByRole('dialog').count(), 0);
      await page.keyboard.press('Escape');
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      const sheet = page.getByRole('dialog', { name: 'Keys' });
      await sheet.waitFor();
      await shows(t, 'match', () => sheet.textContent(), /Go to logs/);
      await shows(t, 'match', () => sheet.textContent(), /Wrap long lines/, 'keys of the view are in it');
      t.same(await axe(page), []);
      await sheet.getByLabel('Single letters are shortcuts').uncheck();
      await page.keyboard.press('Escape');
      await sheet.waitFor({ state: 'detached' });
      await page.keyboard.press('g');
      await page.keyboard.press('e');
      await page.keyboard.press('?');
      t.match(page.url(), '#/logs');
      t.equal(await page.getByRole('dialog').count(), 0);
      await page.keyboard.press('Control+k');
      await page.getByRole('dialog', { name: 'Search and commands' }).waitFor();
    },
  },
);

scene(
  'theme and density apply from the first paint, in every tab',
  { at: '/events' },
  async (t, { page, context, backend }) => {
    await live(page);
    const background = (of: Page) => of.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await shows(t, 'equal', () => background(page), 'rgb(245, 247, 249)');
    await page.getByRole('button', { name: 'Appearance and keys' }).click();
    await page.getByLabel('Dark').check();
    await page.getByLabel('Comfortable').check();
    await shows(t, 'equal', () => background(page), 'rgb(15, 18, 22)');
    await page.keyboard.press('Escape');
    const other = await context.newPage();
    const painted = other.evaluate(() => document.documentElement.dataset['theme']);
    await painted;
    await other.goto(entrance(backend, '/logs'), { waitUntil: 'commit' });
    await other.waitForSelector('#app', { state: 'attached' });
    await shows(t, 'equal', () => other.evaluate(() => document.documentElement.dataset['theme']), 'dark');
    await other.getByRole('heading', { name: 'Logs' }).waitFor();
    await other.keyboard.press('Control+k');
    await other.keyboard.type('theme');
    await other.keyboard.press('Enter');
    await page.waitForFunction(() => document.documentElement.dataset['theme'] === 'system');
    await shows(t, 'equal', () => background(page), 'rgb(245, 247, 249)', 'what one tab chooses, the others show');
  },
);

scene(
  'six tabs share one stream, and another tab reads when the reader closes',
  { at: '/events' },
  async (t, { page, context, backend }) => {
    await live(page);
    const tabs = [page];
    for (let tab = 1; tab < 6; tab += 1) {
      const next = await context.newPage();
      await next.goto(entrance(backend, '/events'));
      await live(next);
      tabs.push(next);
    }
    t.equal(backend.events.readers.size, 1);
    t.equal(backend.events.opened, 1);
    backend.trace(event(1));
    for (const tab of tabs) await rows(tab).first().waitFor();
    await page.close();
    const others = tabs.slice(1);
    backend.trace(event(2));
    for (const tab of others) await rows(tab).nth(1).waitFor();
    backend.trace(event(3));
    for (const tab of others) {
      await rows(tab).nth(2).waitFor();
      await shows(t, 'equal', () => rows(tab).count(), 3, 'nothing lost, nothing twice');
    }
    t.equal(backend.events.readers.size, 1);
  },
);

scene(
  'a cut stream resumes, and one of a restarted server begins again with a gap; both are shown',
  { at: '/events' },
  async (t, { page, backend }) => {
    await live(page);
    backend.trace(event(1));
    await rows(page).first().waitFor();
    backend.events.cut({ refuse: true });
    await page.locator('.connection.reconnecting').first().waitFor();
    await page.getByText(/data from \d\d:\d\d:\d\d/).waitFor();
    backend.trace(event(2));
    backend.events.cut();
    await rows(page).nth(1).waitFor();
    await live(page);
    await shows(t, 'equal', () => rows(page).count(), 2);
    backend.events.cut({ forget: true });
    await page.locator('.event.gap').waitFor();
    backend.trace(event(3));
    await rows(page).nth(3).waitFor();
  },
);

/** Runs in the page: names of the navigation that are cut, or stand too close to the next one. */
function touchingLabels(rail: HTMLElement | SVGElement): string[] {
  const labels = [...rail.querySelectorAll('a span')];
  return labels.flatMap((label, index) => {
    const next = labels[index + 1];
    const gap = next ? next.getBoundingClientRect().left - label.getBoundingClientRect().right : 99;
    return gap < 6 || label.scrollWidth > label.clientWidth ? [`${label.textContent}: ${gap}`] : [];
  });
}

scene('every view is a landmark, fits 320 px, and has targets of 24 px', { at: '/overview' }, async (t, { page }) => {
  await live(page);
  await shows(t, 'equal', () => page.locator('main').count(), 1);
  await page.keyboard.press('Tab');
  await shows(t, 'equal', () => page.evaluate(() => document.activeElement?.textContent), 'Skip to Overview');
  await page.keyboard.press('Enter');
  await shows(t, 'equal', () => page.evaluate(() => document.activeElement?.tagName), 'MAIN');
  for (const view of ['events', 'logs', 'automations', 'settings']) {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.locator(`.rail a[href="#/${view}"]`).click();
    await page.locator(`.rail a[href="#/${view}"][aria-current=page]`).waitFor();
    await page.locator('main h1').waitFor();
    await shows(
      t,
      'equal',
      () => page.evaluate(() => document.activeElement?.tagName),
      'MAIN',
      `${view}: the focus arrives`,
    );
    t.same(await smallTargets(page), [], view);
    t.equal(await overflowsAt(page, 320), false, `${view} at 320 px`);
    await page.setViewportSize({ width: 390, height: 844 });
    await shows(
      t,
      'same',
      () => page.locator('.rail').evaluate(touchingLabels),
      [],
      `${view}: no names touch or are cut on a phone`,
    );
    await shows(t, 'ok', () => page.locator('.rail').isVisible());
  }
});

scene(
  'no animation runs with reduced motion, and forced colours have no findings of axe',
  { at: '/events', context: { forcedColors: 'active' } },
  async (t, { page, backend }) => {
    await live(page);
    backend.trace(event(1));
    await rows(page).first().waitFor();
    t.equal(
      await page.evaluate(() => document.getAnimations().filter(({ playState }) => playState === 'running').length),
      0,
    );
    t.same(await axe(page), []);
  },
);

scene(
  'the page of the Hub has its own views, and shows the command for the others',
  { kind: 'hub', at: '/settings' },
  async (t, { page }) => {
    await page.getByRole('heading', { name: 'Settings: not on this page' }).waitFor();
    await shows(t, 'match', () => page.locator('main').textContent(), 'oratorio inspect <workspace> --open');
    await shows(t, 'same', () => page.locator('.rail a').allTextContents(), ['Overview', 'Actors', 'Events', 'Logs']);
    await page.waitForFunction(() => document.title.includes('Hub'));
    await shows(t, 'match', () => page.title(), 'Hub');
  },
);

scene(
  'a view that fails or cannot be fetched leaves the rest of the page usable',
  { at: '/events', complains: /is not iterable|Cannot read|null/ },
  async (t, { page, context, backend }) => {
    await live(page);
    backend.state.automations = { ...backend.state.automations, cron: null as never };
    await page.locator('.rail a[href="#/automations"]').click();
    await page.getByRole('heading', { name: 'This view has failed' }).waitFor();
    backend.state.automations = { ...backend.state.automations, cron: [] };
    await page.getByRole('button', { name: 'Show it again' }).click();
    await page.getByRole('heading', { name: 'Nothing runs by itself yet' }).waitFor();

    await context.route('**/assets/sessions-*.js', (route) => route.abort());
    await page.locator('.rail a[href="#/sessions"]').click();
    await page.getByRole('heading', { name: 'This view could not be fetched' }).waitFor();
    await page.locator('.rail a[href="#/events"]').click();
    await page.getByRole('heading', { name: 'Events', exact: true }).waitFor();
    await shows(t, 'ok', () => page.locator('.connection.live').isVisible());
  },
);
