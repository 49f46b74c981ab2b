/** The table of sessions in a real browser: search, preview, deletion and live updates. */
import type { Page } from 'playwright-core';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import type { Backend } from './sessions-backend.ts';
import { stage } from './sessions-scene.ts';
import { shows } from './shows.ts';
import { ago, minute, prepareThree, row, rows, selectedText } from './stories.ts';

const scene = await stage();

/** Resolves when the first requests of the table are answered: a new filter would abort them. */
const settled = async (page: Page, name: string) => {
  await page.locator('.connection.live').waitFor();
  await row(page, name).waitFor();
  await page.getByRole('button', { name: 'With errors' }).click();
  await row(page, name).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'With errors' }).click();
  await row(page, name).waitFor();
};

const lists = (backend: Backend): string[] =>
  backend.requests.filter((request) => /^GET \/DashBoard\/api\/sessions\?/.test(request));

scene(
  'a table of three sessions',
  { at: '/sessions', prepare: prepareThree },
  {
    'the table shows the outcome of each session': async (t, { page }) => {
      await row(page, 'Alpha').waitFor();
      await shows(
        t,
        'same',
        () => page.locator('.c-name a').allTextContents(),
        ['Gamma', 'What is beta?', 'Alpha'],
        'the last active first',
      );
      const cell = (name: string, of: string) => row(page, name).locator(`.c-${of}`).textContent();
      await shows(t, 'match', () => cell('Alpha', 'cost'), 'price unknown');
      await shows(t, 'match', () => cell('Alpha', 'tokens'), '720');
      await shows(
        t,
        'equal',
        () => row(page, 'beta').locator('.c-tokens').getAttribute('aria-label'),
        'Tokens: not reported',
        'not none',
      );
      await shows(t, 'match', () => cell('beta', 'tools'), '1 1 failed');
      await shows(t, 'match', () => cell('beta', 'approvals'), '1 5.00 s');
      await shows(t, 'match', () => cell('beta', 'worked'), '9.00 s');
      await shows(t, 'match', () => cell('Gamma', 'state'), 'Running');
      const grid = page.getByRole('grid', { name: 'Traces' });
      await shows(t, 'equal', () => grid.getAttribute('aria-rowcount'), '4');
      await shows(t, 'equal', () => row(page, 'Alpha').getAttribute('aria-rowindex'), '4');
    },
    'a session can be previewed beside the list by keyboard alone': async (t, { page }) => {
      await row(page, 'Alpha').waitFor();
      await page.keyboard.press('j');
      await shows(t, 'match', () => selectedText(page), 'Gamma');
      t.equal(await page.locator('.peek').count(), 0);
      await page.keyboard.press('o');
      await page.locator('.peek h2', { hasText: 'Gamma' }).waitFor();
      await page.keyboard.press('j');
      await page.locator('.peek h2', { hasText: 'beta' }).waitFor();
      await page.locator('.last-events li').first().filter({ hasText: 'turn.completed' }).waitFor();
      await shows(t, 'match', () => page.locator('.last-events li').first().textContent(), /turn\.completed/);
      await page.keyboard.press('k');
      await page.locator('.peek h2', { hasText: 'Gamma' }).waitFor();
      await page.waitForURL(/peek=thread_c/);
      await page.keyboard.press('Escape');
      await page.keyboard.press('Enter');
      await page.locator('h1', { hasText: 'Gamma' }).waitFor();
      await page.goBack();
      await row(page, 'Alpha').waitFor();
      t.notMatch(page.url(), 'peek=', 'the closed peek stays closed');
      await shows(t, 'equal', () => page.locator('.peek').count(), 0);
    },
    'search, filters and a clicked value find sessions, and are in the address': async (t, { page, open }) => {
      await row(page, 'Alpha').waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type('beta');
      await row(page, 'Alpha').waitFor({ state: 'detached' });
      await page.waitForURL(/q=beta/);
      await page.keyboard.press('Escape');
      await row(page, 'Alpha').waitFor();
      await page.getByRole('button', { name: 'With errors' }).click();
      await row(page, 'Gamma').waitFor({ state: 'detached' });
      await shows(t, 'same', () => page.locator('.c-name a').allTextContents(), ['What is beta?']);
      await page.getByRole('button', { name: 'With errors' }).click();
      await row(page, 'Gamma').getByRole('button', { name: 'Running' }).click();
      await row(page, 'Alpha').waitFor({ state: 'detached' });
      await page.waitForURL(/status=running/);
      await open('/sessions?status=failed&q=nobody');
      await page.getByText('No trace matches').waitFor();
      await page.getByRole('button', { name: 'Show all traces' }).click();
      await row(page, 'Gamma').waitFor();
    },
  },
);

scene('without a session the page shows a command to begin with', { at: '/sessions' }, async (t, { page }) => {
  await page.getByText('No trace yet').waitFor();
  await shows(t, 'equal', () => page.locator('.empty code').textContent(), 'oratorio chat "hello"');
});

scene(
  'sessions are loaded page by page while scrolling',
  {
    at: '/sessions',
    prepare: (backend) => {
      for (let index = 0; index < 250; index += 1) {
        backend.seed(`thread_${index}`, { displayName: `Session ${index}` }, [
          { type: 'session.started', at: ago(index * minute) },
        ]);
      }
    },
  },
  async (t, { page, backend }) => {
    await settled(page, 'Session 0');
    await shows(
      t,
      'equal',
      () => page.getByRole('grid').getAttribute('aria-rowcount'),
      '-1',
      'nobody knows yet how many there are',
    );
    t.ok((await rows(page).count()) < 60, 'only what can be seen is in the document');
    t.same(
      lists(backend).filter((request) => request.includes('cursor=')),
      [],
    );
    await page.getByRole('grid').focus();
    for (const [last, known] of [
      ['Session 99', '200+'],
      ['Session 199', '250'],
      ['Session 249', '250'],
    ] as const) {
      await page.keyboard.press('End');
      await row(page, last).waitFor();
      await page.waitForFunction(
        (name) => document.querySelector('[aria-selected=true]')?.textContent?.includes(name),
        last,
      );
      // The key moves to the last loaded row, so the next page has to be loaded first.
      await page.locator('.filter-bar .count', { hasText: known }).waitFor();
    }
    await page.waitForFunction(() => document.querySelector('[role=grid]')?.getAttribute('aria-rowcount') === '251');
    t.equal(lists(backend).filter((request) => request.includes('cursor=')).length, 2);
  },
);

scene(
  'a changed session alone is fetched again; new ones appear, deleted ones disappear',
  { at: '/sessions', prepare: prepareThree },
  async (t, { page, backend }) => {
    await settled(page, 'Alpha');
    const before = lists(backend).length;
    backend.emit('thread_a', [{ type: 'turn.started', turnId: 'turn_004' }]);
    await row(page, 'Alpha').filter({ hasText: 'Running' }).waitFor();
    await page.waitForFunction(() => document.querySelector('.vrow .c-name')?.textContent === 'Alpha');
    backend.seed('thread_d', { displayName: 'Delta' }, []);
    backend.emit('thread_d', [{ type: 'session.started' }]);
    await row(page, 'Delta').waitFor();
    t.equal(lists(backend).length, before, 'the list itself is not fetched again');
    backend.sessions.delete('thread_b');
    backend.events.send([['session.deleted', JSON.stringify({ sessionKey: 'thread_b' })]]);
    await row(page, 'beta').waitFor({ state: 'detached' });

    backend.events.cut({ refuse: true });
    backend.record('thread_a', [{ type: 'turn.completed', turnId: 'turn_004', data: { status: 'failed' } }]);
    backend.events.cut({ forget: true });
    await row(page, 'Alpha').filter({ hasText: 'Failed' }).waitFor();
  },
);

const remove = async (page: Page, name: string) => {
  await row(page, name).locator('.c-turns').click();
  await page.locator('.peek').getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete trace' }).click();
  await row(page, name).waitFor({ state: 'detached' });
};

/** Stops the clock of the page, so that the eight seconds do not pass during the actions of the test. */
const stop = async (page: Page) => page.clock.pauseAt((await page.evaluate(() => Date.now())) + 5_000);

scene(
  'a confirmed deletion of a trace can be undone for eight seconds',
  { at: '/sessions', prepare: prepareThree, hasClock: true },
  async (t, { page, backend }) => {
    const deletions = () => backend.requests.filter((request) => request.startsWith('DELETE'));
    await row(page, 'Alpha').waitFor();
    await row(page, 'Alpha').locator('.c-turns').click();
    await page.keyboard.press('Delete');
    await shows(t, 'match', () => page.locator('dialog').textContent(), 'The conversation itself stays');
    await page.getByRole('button', { name: 'Keep it' }).click();
    await stop(page);
    await remove(page, 'Alpha');
    t.same(deletions(), []);
    await page.getByRole('button', { name: 'Undo' }).click();
    await row(page, 'Alpha').waitFor();
    await page.clock.resume();
    await page.clock.fastForward(10_000);
    t.same(deletions(), [], 'the deletion was undone');

    const deleted = page.waitForResponse((response) => response.request().method() === 'DELETE');
    await remove(page, 'Alpha');
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('link', { name: 'Traces', exact: true }).click();
    await row(page, 'Gamma').waitFor();
    t.equal(await row(page, 'Alpha').count(), 0, 'the row stays hidden after a return to the view');
    await page.clock.fastForward(8_000);
    await deleted;
    t.same(deletions(), ['DELETE /api/sessions/thread_a']);

    await row(page, 'beta').waitFor();
    await stop(page);
    await remove(page, 'beta');
    backend.emit('thread_b', [{ type: 'turn.started', turnId: 'turn_002' }]);
    await page.clock.resume();
    await page.clock.fastForward(8_000);
    await page.getByText('was not deleted: a turn runs in it').waitFor();
    await row(page, 'beta').waitFor();
  },
);

scene(
  'deletion of all traces needs their number typed; a session with an active turn is retained',
  { at: '/sessions', prepare: prepareThree },
  async (t, { page, backend }) => {
    await row(page, 'Alpha').waitFor();
    await page.getByRole('button', { name: 'Delete all…' }).click();
    const confirm = page.getByRole('button', { name: 'Delete all traces' });
    await page.getByText('The traces of 3 conversations').waitFor();
    await page.getByRole('textbox', { name: 'Type 3' }).fill('4');
    await shows(t, 'ok', () => confirm.isDisabled());
    await page.getByRole('textbox', { name: 'Type 3' }).fill('3');
    await confirm.click();
    await page.getByText('2 traces deleted. 1 trace kept, because a turn runs.').waitFor();
    await row(page, 'Alpha').waitFor({ state: 'detached' });
    await shows(t, 'same', () => page.locator('.c-name a').allTextContents(), ['Gamma']);
    t.ok(backend.requests.includes('DELETE /api/sessions'));
  },
);

scene(
  'on a read-only page disabled buttons show the reason',
  { at: '/sessions?peek=thread_b', prepare: prepareThree, readOnly: 'No agent server runs here.' },
  async (t, { page }) => {
    await page.locator('.peek').waitFor();
    for (const name of ['Delete all…', 'Delete…']) {
      const button = page.getByRole('button', { name, exact: true });
      await shows(t, 'ok', () => button.isDisabled());
      await shows(t, 'equal', () => button.getAttribute('title'), 'No agent server runs here.');
    }
  },
);

scene(
  'a table beside a preview',
  { at: '/sessions?peek=thread_b', prepare: prepareThree },
  {
    'the table has no findings of axe in light and dark, and fits a phone': async (t, { page }) => {
      await page.locator('.last-events li').first().waitFor();
      t.same(await axe(page), []);
      t.same(await smallTargets(page), []);
      t.notOk(await overflowsAt(page, 360));
      t.same(await axe(page), []);
    },
    'the dialogs have no findings of axe': async (t, { page }) => {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.locator('.last-events li').first().waitFor();
      await page.keyboard.press('Delete');
      await page.locator('dialog').waitFor();
      t.same(await axe(page), []);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Delete all…' }).click();
      await page.getByText('The traces of 3 conversations').waitFor();
      t.same(await axe(page), []);
    },
  },
);
