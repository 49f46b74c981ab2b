/** One session in a real browser: live events, gaps, hostile text, many events and exports. */
import { readFileSync } from 'node:fs';
import type { Locator, Page } from 'playwright-core';
import { goTo } from './kept-page.ts';
import type { Backend, EventInput } from './sessions-backend.ts';
import { clipboard, stage } from './sessions-scene.ts';
import { shows } from './shows.ts';
import { ago, bar, minute, oneTurn, prepareThree, row, rows, story, turnId } from './stories.ts';
import { untilToast } from './toast.ts';

const scene = await stage();

/** Texts that the page shows or reads out and that hold a mark which turns text round. */
const turnedTexts = (page: Page) =>
  page.evaluate(() => {
    const named = [...document.querySelectorAll('[title], [aria-label]')].flatMap((each) => [
      each.getAttribute('title') ?? '',
      each.getAttribute('aria-label') ?? '',
    ]);
    return [document.body.textContent ?? '', ...named].filter((text) => /[\u202a-\u202e\u2066-\u2069]/.test(text));
  });

const hostile =
  '\u202E<img src="https://evil.example/x.png" onerror="window.stolen=1"><script>window.stolen=1</script>[a](https://evil.example)';
scene(
  'markup of a model or a tool is shown as text',
  {
    at: '/sessions?peek=thread_x',
    prepare: (backend) =>
      backend.seed('thread_x', { displayName: hostile, model: hostile }, [
        { type: 'session.started', at: ago(minute), data: { displayName: hostile } },
        { type: 'turn.started', at: ago(minute), turnId: hostile },
        { type: 'response', at: ago(minute), turnId: hostile, durationMs: 5, data: { text: hostile } },
        {
          type: 'tool.started',
          at: ago(minute),
          turnId: hostile,
          callId: hostile,
          tool: hostile,
          data: { arguments: hostile },
        },
        { type: hostile, at: ago(minute), data: { [hostile]: hostile } },
      ]),
  },
  async (t, { page }) => {
    await row(page, 'evil.example').waitFor();
    const mention = (part: Locator) => part.getByText('evil.example').first();
    for (const [at, shown] of [
      ['/sessions?peek=thread_x', page.locator('.peek')],
      ['/sessions/thread_x', mention(page.getByRole('treegrid'))],
      ['/sessions/thread_x?view=log', mention(page.getByRole('grid', { name: 'Thoughts, messages' }))],
      ['/sessions/thread_x?view=list', mention(page.getByRole('grid', { name: 'Events' }))],
      ['/overview', mention(page.getByRole('region', { name: 'Recent events', exact: true }))],
    ] as const) {
      await goTo(page, at);
      await shown.waitFor();
      if (at.includes('thread_x?')) await page.locator('.drawer').waitFor({ state: 'detached' });
      if (at.includes('thread_x')) {
        await rows(page).last().click();
        await page.locator('.drawer').first().waitFor();
      }
      t.equal(await page.locator('img, iframe, object, embed, .vlist script, a[href*=evil]').count(), 0, at);
      t.same(await turnedTexts(page), [], `${at}: no mark turns text round`);
      await shows(t, 'equal', () => page.evaluate(() => (window as unknown as { stolen?: number }).stolen), undefined);
    }
  },
);

scene(
  'regression: the waterfall of a running turn that is opened from the list shows its newest row, with 2 rows as with 30',
  {
    at: '/sessions',
    prepare: (backend) => {
      backend.seed('thread_few', { displayName: 'Few' }, begun());
      backend.seed('thread_many', { displayName: 'Many' }, [...story(ago(10 * minute), 6, 6), ...begun()]);
    },
  },
  async (t, { page }) => {
    for (const name of ['Few', 'Many']) {
      await goTo(page, '/sessions');
      await row(page, name).dblclick();
      await bar(page, 'Run').last().waitFor();
      const list = page.locator('.waterfall .vlist');
      await shows(
        t,
        'equal',
        () =>
          list.evaluate((box) => {
            const last = [...box.querySelectorAll('.bar-row:not(.axis-row)')].at(-1)?.getBoundingClientRect();
            const seen = box.getBoundingClientRect();
            return last !== undefined && last.top >= seen.top && last.bottom <= seen.bottom + 1;
          }),
        true,
      );
      const surplus = () =>
        list.evaluate((box) => {
          const rows = box.querySelector('.vlist-all')?.getBoundingClientRect().height ?? 0;
          return box.scrollHeight - Math.max(box.clientHeight, rows + 29);
        });
      await shows(t, 'ok', async () => (await surplus()) <= 0, `${name}: nothing below the last row`);
    }
  },
);

const live = (backend: Backend) =>
  backend.seed('thread_l', { displayName: 'Live' }, [...story(ago(10 * minute), 6, 6), ...begun()]);
const begun = (): EventInput[] => [
  { type: 'turn.started', at: ago(5_000), turnId: 'turn_100' },
  { type: 'tool.started', at: ago(4_000), turnId: 'turn_100', callId: 'run', tool: 'Exec', data: { arguments: '{}' } },
];
const thought = (text: string): EventInput => ({
  type: 'thinking',
  turnId: 'turn_100',
  durationMs: 10,
  data: { text },
});

scene(
  'an open call is drawn until its end arrives; the list follows new events only at its end',
  { at: '/sessions/thread_l', prepare: live },
  async (t, { page, backend }) => {
    await page.locator('.connection.live').waitFor();
    await bar(page, 'turn_100').locator('.bar.ghost').waitFor();
    t.notMatch(await bar(page, 'turn_100').textContent(), /\b0 [a-z]/, 'regression: a kind without spans is left out');
    await shows(t, 'match', () => page.locator('.vrow .bar.tool.ghost').count(), 1);
    const first = await bar(page, 'turn_100').locator('.number').first().textContent();
    await page.waitForFunction(
      (before) =>
        [...document.querySelectorAll('.vrow')].some(
          (each) => each.textContent?.includes('turn_100') && !each.textContent.includes(before ?? ''),
        ),
      first,
    );
    backend.emit('thread_l', [
      {
        type: 'tool.completed',
        turnId: 'turn_100',
        callId: 'run',
        tool: 'Exec',
        durationMs: 4_000,
        data: { result: 'done' },
      },
    ]);
    await page.locator('.bar.tool.ghost').waitFor({ state: 'detached' });
    backend.emit('thread_l', [thought('the newest thought')]);
    await row(page, 'the newest thought').waitFor();

    await page.locator('.bars').evaluate((list) => list.scrollTo(0, 0));
    await bar(page, 'turn_001').waitFor();
    backend.emit('thread_l', [thought('one'), thought('two'), thought('three')]);
    const button = page.getByRole('button', { name: '3 new events' });
    await button.waitFor();
    t.equal(await page.locator('.bars').evaluate((list) => list.scrollTop), 0, 'the scroll position stays');
    await button.click();
    await row(page, 'three').waitFor();
    await button.waitFor({ state: 'detached' });
    await page
      .getByRole('status')
      .filter({ hasText: /new events?/ })
      .waitFor({ state: 'attached' });
  },
);

scene(
  'a pause fixes the list and loses no event; a gap in the stream is filled',
  { at: '/sessions/thread_l?view=list', prepare: live },
  async (t, { page, backend }) => {
    await page.locator('.connection.live').waitFor();
    await row(page, 'turn_100').first().waitFor();
    // Once the second is shown, the request that the page makes for a new stream is answered too.
    for (const text of ['before the pause 1', 'before the pause 2']) {
      backend.emit('thread_l', [thought(text)]);
      await row(page, text).waitFor();
    }
    await page.keyboard.press('p');
    await page.getByRole('button', { name: /^Resume/ }).waitFor();
    backend.emit('thread_l', [thought('while paused 1'), thought('while paused 2')]);
    await page.getByRole('button', { name: 'Resume (2 events waiting)' }).waitFor();
    t.equal(await row(page, 'while paused').count(), 0);
    await page.keyboard.press('p');
    await row(page, 'while paused 2').waitFor();

    backend.events.cut({ refuse: true });
    await page.locator('.connection.reconnecting').waitFor();
    backend.record('thread_l', [thought('while cut off')]);
    backend.events.cut({ forget: true });
    await row(page, 'while cut off').waitFor();
    backend.emit('thread_l', [thought('after it')]);
    await row(page, 'after it').waitFor();
    const count = Number((await page.getByRole('grid').getAttribute('aria-rowcount')) ?? 0) - 1;
    t.equal(count, backend.sessions.get('thread_l')?.events.length, 'each once');
  },
);

scene(
  'exports as JSON lines and Chrome trace contain full texts',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page, backend }) => {
    await bar(page, 'Run').waitFor();
    const saved = async (name: string) => {
      await page.locator('.menu summary').click();
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()]);
      await page.locator('.menu summary').click();
      return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
    };
    const lines = await saved('Save as JSON lines');
    t.equal(lines.name, 'thread_b.jsonl');
    t.same(
      lines.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
      backend.sessions.get('thread_b')?.events,
    );
    const chrome = await saved('Save as Chrome trace');
    t.equal(chrome.name, 'thread_b.trace.json');
    const { traceEvents } = JSON.parse(chrome.text) as {
      traceEvents: { name: string; ph: string; args: { result?: string } }[];
    };
    t.match(
      traceEvents.find(({ name }) => name === 'Exec'),
      { ph: 'X', args: { result: /The needle/ } },
    );
    await page.locator('.menu summary').click();
    const commandCopied = untilToast(page, 'Command copied.');
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await commandCopied;
    t.notMatch(await clipboard(page), backend.token);
    const eventsCopied = untilToast(page, '9 events copied.');
    await page.getByRole('button', { name: 'Copy as JSON' }).click();
    await eventsCopied;
    await shows(t, 'equal', async () => (JSON.parse(await clipboard(page)) as unknown[]).length, 9);
  },
);

scene(
  'a session links to its relatives; coarse traces, unknown events and missing sessions are shown as such',
  {
    at: '/sessions/child',
    prepare: (backend) => {
      backend.seed('parent', { displayName: 'Parent' }, oneTurn(ago(minute)));
      backend.seed('child', { displayName: 'Child', parentSessionKey: 'parent' }, [
        { type: 'response', at: ago(minute), turnId, data: { text: 'All that was said.' } },
        { type: 'weather.changed', at: ago(minute), data: { sun: true } },
      ]);
    },
  },
  async (t, { page, backend, open }) => {
    await row(page, 'weather.changed').waitFor();
    await shows(t, 'match', () => row(page, 'weather.changed').textContent(), '{"sun":true}');
    await page.getByText('coarse trace').waitFor();
    await page.getByRole('link', { name: 'Sub-agent of parent' }).click();
    await page.locator('h1', { hasText: 'Parent' }).waitFor();
    await page.getByRole('link', { name: 'Sub-agent: Child' }).click();
    await page.locator('h1', { hasText: 'Child' }).waitFor();
    await open('/sessions/nobody');
    await page.getByText('There is no trace of this conversation').waitFor();
    backend.seed('nobody', {}, []);
    await page.locator('.connection.live').waitFor();
    backend.emit('nobody', [{ type: 'session.started' }]);
    await bar(page, 'session.started').waitFor();
    backend.sessions.delete('nobody');
    backend.events.send([['session.deleted', JSON.stringify({ sessionKey: 'nobody' })]]);
    await page.getByText('This trace has just been deleted').waitFor();
    await shows(t, 'equal', () => rows(page).count(), 1, 'the shown rows stay');
  },
);

scene(
  'of fifty thousand events the first appear at once, all can be reached, and few nodes are in the document',
  {
    at: '/sessions/huge',
    checks: false,
    prepare: (backend) => backend.seed('huge', { displayName: 'Huge' }, story(ago(60 * minute), 100, 100)),
  },
  async (t, { page, backend }) => {
    const count = backend.sessions.get('huge')?.events.length ?? 0;
    t.ok(count > 50_000);
    await bar(page, 'turn_001').waitFor();
    await page.getByRole('button', { name: 'List' }).click();
    await page.waitForFunction(
      (all) => document.querySelector('[role=grid]')?.getAttribute('aria-rowcount') === String(all + 1),
      count,
    );
    await page.getByRole('grid').focus();
    await page.keyboard.press('End');
    await page.waitForFunction(() => document.querySelector('[aria-selected=true]')?.textContent?.includes('turn_100'));
    t.ok((await page.evaluate(() => document.querySelectorAll('*').length)) < 1_500);

    await page.locator('.connection.live').waitFor();
    const more = Array.from(
      { length: 2_000 },
      (_, index): EventInput => ({ type: 'thinking', durationMs: 1, data: { index } }),
    );
    for (let batch = 0; batch < 5; batch += 1) backend.emit('huge', more);
    await page.getByText(/The newest .* events are shown; older ones were let go/).waitFor();
    const kept = Number(await page.getByRole('grid').getAttribute('aria-rowcount'));
    t.ok(kept > 30_000 && kept < 60_000, `${kept} are kept`);
  },
);
