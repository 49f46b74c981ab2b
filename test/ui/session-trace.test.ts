/** One session in a real browser: its three views, keys, links, filters, details. */
import type { Locator, Page } from 'playwright-core';
import type { Test } from 'tap';
import { goTo } from './kept-page.ts';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import { clipboard, type Scene, stage } from './sessions-scene.ts';
import { shows } from './shows.ts';
import { ago, bar, minute, prepareThree, row, rows, selectedText, story } from './stories.ts';
import { untilToast } from './toast.ts';

const scene = await stage();

scene(
  'the waterfall draws one bar per pair, a texture per kind, and the sums of a turn',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page }) => {
    await bar(page, 'Run').waitFor();
    const names = () => page.locator('.span-name b').allTextContents();
    await shows(t, 'same', names, ['session.started', 'turn_001', 'Thinking', 'Approval: accept', 'Run', 'Response']);
    await shows(t, 'match', () => bar(page, 'turn_001').textContent(), '1 thinking · 1 response · 1 tool · 1 failed');
    const grid = page.getByRole('treegrid');
    await shows(t, 'ok', () => grid.isVisible());
    await shows(t, 'match', () => bar(page, 'turn_001').getAttribute('aria-expanded'), 'true');
    await shows(t, 'equal', () => bar(page, 'Thinking').getAttribute('aria-level'), '2');
    await shows(t, 'equal', () => bar(page, 'Run').locator('.bar.tool.failed').count(), 1);
    const styles = await page.locator('.bar').evaluateAll((bars) =>
      bars.map((bar) => {
        const { backgroundImage, backgroundColor, clipPath } = getComputedStyle(bar);
        return [bar.className.split(' ')[1], backgroundImage !== 'none', backgroundColor, clipPath !== 'none'];
      }),
    );
    const looks = Object.fromEntries(styles.map(([kind, ...look]) => [kind, look.join()]));
    t.equal(new Set(['thinking', 'response', 'tool', 'approval'].map((kind) => looks[kind])).size, 4);
    const [left, width] = await bar(page, 'Approval')
      .locator('.bar')
      .evaluate((bar) => {
        const { style } = bar as HTMLElement;
        return [Number.parseFloat(style.left), Number.parseFloat(style.width)];
      });
    t.ok(Math.abs((left ?? 0) - 100 / 9) < 0.5 && Math.abs((width ?? 0) - 500 / 9) < 0.5, 'it lies where it was');
    await shows(t, 'match', () => page.locator('.totals').textContent(), /Active time9\.00 s/);
    await page.getByRole('button', { name: 'without waiting for a person (5.00 s)' }).click();
    await shows(t, 'match', () => page.locator('.totals').textContent(), /Active time4\.00 s/);
    await shows(t, 'match', () => bar(page, 'turn_001').textContent(), '4.00 s');
    await shows(t, 'match', () => page.locator('.totals').textContent(), /Tokensnot reported/);
  },
);

scene(
  'keys select, fold, zoom and find failures and turns; the address restores the view',
  {
    at: '/sessions/thread_a',
    prepare: (backend) => backend.seed('thread_a', { displayName: 'Alpha' }, story(ago(minute), 9, 4)),
  },
  async (t, { page, open }) => {
    await bar(page, 'turn_001').waitFor();
    const key = (name: string) => page.keyboard.press(name);
    await key('j');
    await key('j');
    await shows(t, 'match', () => selectedText(page), 'turn_001');
    await key('k');
    await shows(t, 'match', () => selectedText(page), 'session.started');
    await key('e');
    await shows(t, 'match', () => selectedText(page), 'Read step 3');
    const failed = await selectedText(page);
    await shows(t, 'equal', () => page.locator('.vrow[aria-selected=true] .bar.failed').count(), 1);
    await key('e');
    await shows(t, 'ok', async () => (await selectedText(page)) !== failed, 'the next failure is selected');
    await key('Shift+E');
    await shows(t, 'equal', () => selectedText(page), failed);
    await key(']');
    await shows(t, 'match', () => selectedText(page), 'turn_00');
    await key('[');
    await key('o');
    await shows(t, 'equal', () => page.locator('.vrow[aria-selected=true]').getAttribute('aria-expanded'), 'false');
    await key('ArrowRight');
    await shows(t, 'equal', () => page.locator('.vrow[aria-selected=true]').getAttribute('aria-expanded'), 'true');
    await key('ArrowDown');
    await shows(t, 'match', () => selectedText(page), 'Thinking');
    await key('w');
    await page.waitForURL(/zoom=\d+-\d+/);
    const zoomed = page.url();
    await key('f');
    await page.waitForURL((url) => url.href !== zoomed);
    const fitted = page.url();
    await key('d');
    await key('s');
    await page.waitForFunction((before) => {
      const id = document.querySelector('.vrow[aria-selected=true]')?.id.split('-').at(-1);
      return location.href !== before && new URLSearchParams(location.hash.split('?')[1]).get('event') === id;
    }, fitted);
    const address = page.url().replace(/^.*#/, '');
    await open(address);
    await page.locator('.vrow[aria-selected=true]').waitFor();
    await shows(t, 'match', () => selectedText(page), 'Thinking');
    t.ok(page.url().endsWith(address), 'a link is what one sees');
    await key('f');
    await key('f');
    await page.waitForURL((url) => !url.href.includes('zoom='));
    await key('2');
    await page.getByRole('grid', { name: 'Thoughts, messages' }).waitFor();
    await key('3');
    await page.getByRole('grid', { name: 'Events' }).waitFor();
    await page.waitForURL(/view=list/);
    await shows(t, 'match', () => selectedText(page), 'thinking', 'the same event is selected in every view');
    await key('Escape');
    await page.locator('.detail').waitFor({ state: 'detached' });
  },
);

scene(
  'a drag over the map or the axis zooms to that range; a double click resets it',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page }) => {
    await bar(page, 'Run').waitFor();
    const draw = async (selector: string, from: number, to: number) => {
      const box = await page.locator(selector).boundingBox();
      if (!box) throw new Error(`no ${selector}`);
      await page.mouse.move(box.x + box.width * from, box.y + box.height / 2);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * ((from + to) / 2), box.y + box.height / 2);
      await page.locator('.brush').waitFor();
      await page.mouse.move(box.x + box.width * to, box.y + box.height / 2);
      await page.mouse.up();
    };
    await draw('.minimap', 0.5, 0.9);
    await page.waitForURL(/zoom=4\d{3}-8\d{3}/);
    await shows(
      t,
      'equal',
      () => bar(page, 'Thinking').locator('.beyond.before').count(),
      1,
      'what is not in sight says where it is',
    );
    await draw('.axis', 0.5, 1);
    await page.waitForURL(/zoom=6\d{3}-8\d{3}/);
    await page.locator('.minimap').dblclick();
    await page.waitForURL((url) => !url.href.includes('zoom='));
    await shows(t, 'equal', () => page.locator('.beyond').count(), 0);
  },
);

scene(
  'filters can be typed, clicked, removed and dimmed, and find texts that only the server has',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page, open }) => {
    const names = () => page.locator('.span-name b').allTextContents();
    await bar(page, 'Run').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('type:tool.failed');
    await page.keyboard.press('Enter');
    await bar(page, 'Response').waitFor({ state: 'detached' });
    await shows(t, 'same', () => names(), ['turn_001', 'Run'], 'with its turn');
    await shows(t, 'match', () => page.locator('.filter-bar .count').textContent(), '1 match');
    await page.getByRole('button', { name: 'Dim others' }).click();
    await bar(page, 'Response').waitFor();
    await shows(t, 'ok', () => bar(page, 'Response').evaluate((element) => element.classList.contains('dim')));
    await page.getByRole('button', { name: 'Dim others' }).click();
    await page.getByRole('textbox', { name: 'Filter this trace' }).focus();
    await page.keyboard.press('Backspace');
    await bar(page, 'Response').waitFor();

    await page.getByRole('textbox').fill('dur=1');
    await page.keyboard.press('Enter');
    await shows(t, 'match', () => page.getByRole('alert').textContent(), 'dur>2s');
    await page.getByRole('textbox').fill('"the needle"');
    await page.keyboard.press('Enter');
    await bar(page, 'Response').waitFor({ state: 'detached' });
    await bar(page, 'Run').waitFor();
    await shows(t, 'same', () => names(), ['turn_001', 'Run'], 'the page itself has only the beginning of that text');
    await page.getByRole('button', { name: 'Remove filter "the needle"' }).click();
    await page.getByRole('button', { name: 'Slow' }).click();
    await bar(page, 'Run').waitFor({ state: 'detached' });
    await shows(t, 'match', () => names(), ['turn_001', 'Approval: accept']);
    await page.waitForURL(/q=dur/);

    await open('/sessions/thread_b?view=list');
    await row(page, 'tool.started').getByRole('button', { name: 'Exec' }).click();
    await row(page, 'turn.started').waitFor({ state: 'detached' });
    await shows(t, 'equal', () => rows(page).count(), 2);
    await row(page, 'tool.failed').locator('.number').first().click();
    await page.locator('.detail').getByRole('button', { name: 'Filter by type:tool.failed' }).click();
    await row(page, 'tool.started').waitFor({ state: 'detached' });
    t.match(decodeURIComponent(page.url()), /q=tool:Exec|view=list/);
  },
);

scene(
  'details show full texts and the recorded event; copies hold no token',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page, backend }) => {
    await bar(page, 'Run').locator('.span-name').click();
    await page.locator('.detail pre', { hasText: 'The needle.' }).waitFor();
    await shows(
      t,
      'match',
      () => page.locator('.detail .fact-list').textContent(),
      /Took1\.00 s.*TypeTool|Took1\.00 s/,
    );
    await page.locator('.whole').nth(1).waitFor();
    await shows(
      t,
      'same',
      () => page.locator('.whole h3 code').allTextContents(),
      ['tool.started', 'tool.failed'],
      'both ends of the call',
    );
    await page.locator('.whole').first().getByText('Raw event').click();
    await page.locator('.json').first().getByText('arguments').waitFor();
    const eventCopied = untilToast(page, 'Event copied.');
    await page.locator('.whole').last().getByRole('button', { name: 'JSON' }).click();
    await eventCopied;
    const copied = JSON.parse(await clipboard(page)) as { type: string; data: { result: string } };
    t.match(copied, { type: 'tool.failed', data: { result: /needle/ } });
    const commandCopied = untilToast(page, 'Command copied.');
    await page.locator('.whole').last().getByRole('button', { name: 'curl' }).click();
    await commandCopied;
    const command = await clipboard(page);
    t.match(command, `${backend.origin}/DashBoard/api/sessions/thread_b/events/`);
    t.notMatch(command, backend.token);
    const linkCopied = untilToast(page, 'Link copied.');
    await page.locator('.whole').last().getByRole('button', { name: 'Link' }).click();
    await linkCopied;
    await shows(t, 'match', () => clipboard(page), /#\/sessions\/thread_b\?.*event=\d+/);

    const path = `GET /dashboard/api/sessions/thread_b/events/${backend.sessions.get('thread_b')?.events[2]?.id}`;
    backend.state.failures.set(path, { status: 500, code: 'storageFailed', message: 'The disk cannot be read.' });
    await bar(page, 'Thinking').locator('.span-name').click();
    await page.getByText('This event could not be fetched: The disk cannot be read.').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.detail pre', { hasText: 'I should look first.' }).waitFor();
  },
);

scene(
  'the log shows answers in full and opens calls on demand',
  { at: '/sessions/thread_b?view=log', prepare: prepareThree },
  async (t, { page }) => {
    await page.getByText('That is the end.').waitFor();
    t.equal(await page.getByText('The needle.').count(), 0);
    await bar(page, 'Run').getByRole('button', { name: 'All of it' }).click();
    await page.getByText('The needle.').waitFor();
    await bar(page, 'Run').getByRole('button', { name: 'Less' }).click();
    await shows(t, 'equal', () => page.getByText('The needle.').count(), 0);
    await shows(t, 'match', () => bar(page, 'Approval').textContent(), /exec · rm -rf build\s*accept by user/);
    const gaps = () =>
      rows(page).evaluateAll((all) => {
        const boxes = all.map((each) => each.getBoundingClientRect());
        return boxes.slice(1).map(({ top }, index) => Math.abs(top - (boxes[index]?.bottom ?? 0)));
      });
    const fits = async () => (await gaps()).every((gap) => gap < 2);
    await shows(t, 'ok', fits, 'rows of different heights do not overlap');
    await bar(page, 'Response').click();
    await shows(t, 'equal', () => bar(page, 'Response').getAttribute('aria-selected'), 'true');
    await shows(t, 'equal', () => page.getByRole('grid').getAttribute('aria-rowcount'), '6');
  },
);

scene(
  'the views of a session with a selected event',
  { at: '/sessions', prepare: prepareThree },
  Object.fromEntries(
    (
      [
        ['the waterfall', '', (page) => page.getByRole('treegrid')],
        ['the log', 'view=log&', (page) => page.getByRole('grid', { name: 'Thoughts, messages' })],
        ['the list', 'view=list&q=type:tool&', (page) => page.getByRole('grid', { name: 'Events' })],
      ] satisfies [string, string, (page: Page) => Locator][]
    ).map(([name, query, view]) => [
      `${name} has no findings of axe in light and dark, and fits a phone`,
      async (t: Test, { page, backend }: Scene) => {
        const id = backend.sessions.get('thread_b')?.events.find(({ type }) => type === 'tool.failed')?.id;
        await page.setViewportSize({ width: 1280, height: 800 });
        await goTo(page, `/sessions/thread_b?${query}event=${id}`);
        await view(page).waitFor();
        await page.locator('.detail pre').first().waitFor();
        t.same(await axe(page), []);
        t.same(await smallTargets(page), []);
        t.notOk(await overflowsAt(page, 360));
        t.same(await axe(page), []);
      },
    ]),
  ),
);
