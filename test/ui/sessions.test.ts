/** Sessions in a real browser: the table, one session in its three views, what keys, links and the stream do to them. */
import { readFileSync } from 'node:fs';
import type { Locator, Page } from 'playwright-core';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import { type Backend, story, type Told } from './sessions-backend.ts';
import { clipboard, stage } from './sessions-scene.ts';

const scene = await stage();
const minute = 60_000;
const ago = (ms: number): number => Date.now() - ms;

const row = (page: Page, text: string): Locator => page.locator('.vrow', { hasText: text });
/** A row of the waterfall, by what it is. */
const bar = (page: Page, name: string): Locator =>
  page.locator('.vrow', { has: page.locator('b', { hasText: new RegExp(`^${name}`) }) });
const rows = (page: Page): Locator => page.locator('.vrow');
const lists = (backend: Backend): string[] =>
  backend.requests.filter((request) => /^GET \/DashBoard\/api\/sessions\?/.test(request));
const selectedText = (page: Page) => page.locator('.vrow[aria-selected=true]').textContent();

/** A session in which one turn thought, asked, ran a tool that failed, and answered. */
const turnId = 'turn_001';
function oneTurn(start: number): Told[] {
  return [
    { type: 'session.started', at: start },
    { type: 'turn.started', at: start, turnId },
    { type: 'thinking', at: start + 1_000, turnId, durationMs: 900, data: { text: 'I should look first.' } },
    {
      type: 'approval.requested',
      at: start + 1_000,
      turnId,
      callId: 'c1',
      data: { kind: 'exec', summary: 'rm -rf build' },
    },
    ...[{ type: 'approval.completed', at: start + 6_000, turnId, callId: 'c1', durationMs: 5_000 }].map((told) => ({
      ...told,
      data: { decision: 'accept', decidedBy: 'user' },
    })),
    {
      type: 'tool.started',
      at: start + 6_000,
      turnId,
      callId: 'c1',
      tool: 'Exec',
      data: { arguments: '{"command":"rm -rf build"}' },
    },
    {
      ...{ type: 'tool.failed', at: start + 7_000, turnId, callId: 'c1', tool: 'Exec', durationMs: 1_000 },
      data: { result: `${'No such directory. '.repeat(20)}The needle.`, outcome: 'failed' },
    },
    {
      ...{ type: 'response', at: start + 9_000, turnId, durationMs: 1_500 },
      data: { text: `${'It could not be removed. '.repeat(20)}That is the end.` },
    },
    { type: 'turn.completed', at: start + 9_000, turnId, durationMs: 9_000, data: { status: 'completed' } },
  ];
}

const prepareThree = (backend: Backend) => {
  backend.seed('thread_a', { displayName: 'Alpha', model: 'gpt-test' }, story(ago(60 * minute), 3, 2));
  backend.seed('thread_b', { firstInput: 'What is beta?' }, oneTurn(ago(30 * minute)));
  backend.seed('thread_c', { displayName: 'Gamma' }, [
    { type: 'session.started', at: ago(minute) },
    { type: 'turn.started', at: ago(minute), turnId },
  ]);
};

scene(
  'the table tells of each session what it came to',
  { at: '/sessions', prepare: prepareThree },
  async (t, { page }) => {
    await row(page, 'Alpha').waitFor();
    t.same(
      await page.locator('.c-name a').allTextContents(),
      ['Gamma', 'What is beta?', 'Alpha'],
      'the last active first',
    );
    const cell = (name: string, of: string) => row(page, name).locator(`.c-${of}`).textContent();
    t.match(await cell('Alpha', 'segments'), '6 thinking · 6 response');
    t.match(await cell('Alpha', 'tokens'), '720');
    t.equal(
      await row(page, 'beta').locator('.c-tokens').getAttribute('aria-label'),
      'Tokens: not reported',
      'not none',
    );
    t.match(await cell('beta', 'tools'), '1 1 failed');
    t.match(await cell('beta', 'approvals'), '1 5.00 s');
    t.match(await cell('beta', 'worked'), '9.00 s');
    t.match(await cell('Gamma', 'state'), 'Running');
    const grid = page.getByRole('grid', { name: 'Sessions' });
    t.equal(await grid.getAttribute('aria-rowcount'), '4');
    t.equal(await row(page, 'Alpha').getAttribute('aria-rowindex'), '4');
  },
);

scene('without a session the page says how to begin one', { at: '/sessions' }, async (t, { page }) => {
  await page.getByText('No session yet').waitFor();
  t.equal(await page.locator('.empty code').textContent(), 'oratorio chat "hello"');
});

scene(
  'many sessions come a page at a time, as one scrolls',
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
    await row(page, 'Session 0').waitFor();
    t.equal(await page.getByRole('grid').getAttribute('aria-rowcount'), '-1', 'nobody knows yet how many there are');
    t.ok((await rows(page).count()) < 60, 'only what can be seen is in the document');
    t.same(
      lists(backend).filter((request) => request.includes('cursor=')),
      [],
    );
    await page.getByRole('grid').focus();
    for (const last of ['Session 99', 'Session 199', 'Session 249']) {
      await page.keyboard.press('End');
      await row(page, last).waitFor();
      await page.waitForFunction(
        (name) => document.querySelector('[aria-selected=true]')?.textContent?.includes(name),
        last,
      );
    }
    await page.waitForFunction(() => document.querySelector('[role=grid]')?.getAttribute('aria-rowcount') === '251');
    t.equal(lists(backend).filter((request) => request.includes('cursor=')).length, 2);
  },
);

scene(
  'search, filters and a pressed value find sessions, and are in the address',
  { at: '/sessions', prepare: prepareThree },
  async (t, { page, open }) => {
    await row(page, 'Alpha').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('beta');
    await row(page, 'Alpha').waitFor({ state: 'detached' });
    t.match(page.url(), 'q=beta');
    await page.keyboard.press('Escape');
    await row(page, 'Alpha').waitFor();
    await page.getByRole('button', { name: 'With errors' }).click();
    await row(page, 'Gamma').waitFor({ state: 'detached' });
    t.same(await page.locator('.c-name a').allTextContents(), ['What is beta?']);
    await page.getByRole('button', { name: 'With errors' }).click();
    await row(page, 'Gamma').getByRole('button', { name: 'Running' }).click();
    await row(page, 'Alpha').waitFor({ state: 'detached' });
    t.match(page.url(), 'status=running');
    await open('/sessions?status=failed&q=nobody');
    await page.getByText('No session matches').waitFor();
    await page.getByRole('button', { name: 'Show all sessions' }).click();
    await row(page, 'Gamma').waitFor();
  },
);

scene(
  'the table is live: only the touched session is fetched, new ones come, deleted ones go',
  { at: '/sessions', prepare: prepareThree },
  async (t, { page, backend }) => {
    await page.locator('.connection.live').waitFor();
    await row(page, 'Alpha').waitFor();
    const before = lists(backend).length;
    backend.tell('thread_a', [{ type: 'turn.started', turnId: 'turn_004' }]);
    await row(page, 'Alpha').filter({ hasText: 'Running' }).waitFor();
    await page.waitForFunction(() => document.querySelector('.vrow .c-name')?.textContent === 'Alpha');
    backend.seed('thread_d', { displayName: 'Delta' }, []);
    backend.tell('thread_d', [{ type: 'session.started' }]);
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

scene(
  'a session can be looked into beside the list, with the keyboard alone',
  { at: '/sessions', prepare: prepareThree },
  async (t, { page }) => {
    await row(page, 'Alpha').waitFor();
    await page.keyboard.press('j');
    t.match(await selectedText(page), 'Gamma');
    t.equal(await page.locator('.peek').count(), 0);
    await page.keyboard.press('o');
    await page.locator('.peek h2', { hasText: 'Gamma' }).waitFor();
    await page.keyboard.press('j');
    await page.locator('.peek h2', { hasText: 'beta' }).waitFor();
    await page.locator('.last-events li').first().waitFor();
    t.match(await page.locator('.last-events li').first().textContent(), /turn\.completed/);
    await page.keyboard.press('k');
    await page.locator('.peek h2', { hasText: 'Gamma' }).waitFor();
    await page.waitForURL(/peek=thread_c/);
    await page.keyboard.press('Escape');
    await page.locator('.peek').waitFor({ state: 'detached' });
    await page.keyboard.press('Enter');
    await page.locator('h1', { hasText: 'Gamma' }).waitFor();
    await page.goBack();
    await row(page, 'Alpha').waitFor();
  },
);

const remove = async (page: Page, name: string) => {
  await row(page, name).locator('.c-segments').click();
  await page.locator('.peek').getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete trace' }).click();
  await row(page, name).waitFor({ state: 'detached' });
};

scene(
  'a trace is deleted after it was asked for, and after eight seconds in which that can be taken back',
  { at: '/sessions', prepare: prepareThree, hasClock: true },
  async (t, { page, backend }) => {
    const deletions = () => backend.requests.filter((request) => request.startsWith('DELETE'));
    await row(page, 'Alpha').waitFor();
    await row(page, 'Alpha').locator('.c-segments').click();
    await page.keyboard.press('Delete');
    t.match(await page.locator('dialog').textContent(), 'The conversation itself stays');
    await page.getByRole('button', { name: 'Keep it' }).click();
    await remove(page, 'Alpha');
    t.same(deletions(), []);
    await page.getByRole('button', { name: 'Undo' }).click();
    await row(page, 'Alpha').waitFor();
    await page.clock.fastForward(10_000);
    t.same(deletions(), [], 'it was taken back');

    await remove(page, 'Alpha');
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('link', { name: 'Sessions', exact: true }).click();
    await row(page, 'Gamma').waitFor();
    t.equal(await row(page, 'Alpha').count(), 0, 'also for whoever comes back');
    const deleted = page.waitForRequest((request) => request.method() === 'DELETE');
    await page.clock.fastForward(8_000);
    await deleted;
    t.same(deletions(), ['DELETE /api/sessions/thread_a']);

    await row(page, 'beta').waitFor();
    await remove(page, 'beta');
    backend.tell('thread_b', [{ type: 'turn.started', turnId: 'turn_002' }]);
    await page.clock.fastForward(8_000);
    await page.getByText('was not deleted: a turn runs in it').waitFor();
    await row(page, 'beta').waitFor();
  },
);

scene(
  'whoever deletes all types how many they are; what runs is kept, and told',
  { at: '/sessions', prepare: prepareThree },
  async (t, { page, backend }) => {
    await row(page, 'Alpha').waitFor();
    await page.getByRole('button', { name: 'Delete all…' }).click();
    const confirm = page.getByRole('button', { name: 'Delete all traces' });
    await page.getByText('The traces of 3 sessions').waitFor();
    await page.getByRole('textbox', { name: 'Type 3' }).fill('4');
    t.ok(await confirm.isDisabled());
    await page.getByRole('textbox', { name: 'Type 3' }).fill('3');
    await confirm.click();
    await page.getByText('2 traces deleted. 1 session kept, because a turn runs.').waitFor();
    t.same(await page.locator('.c-name a').allTextContents(), ['Gamma']);
    t.ok(backend.requests.includes('DELETE /api/sessions'));
  },
);

scene(
  'where nothing may be changed the reason is at the button',
  { at: '/sessions?peek=thread_b', prepare: prepareThree, readOnly: 'No agent server runs here.' },
  async (t, { page }) => {
    await page.locator('.peek').waitFor();
    for (const name of ['Delete all…', 'Delete…']) {
      const button = page.getByRole('button', { name, exact: true });
      t.ok(await button.isDisabled());
      t.equal(await button.getAttribute('title'), 'No agent server runs here.');
    }
  },
);

scene(
  'the waterfall: pairs are one bar, each kind has its texture, a turn tells its sums',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page }) => {
    await bar(page, 'Exec').waitFor();
    const names = await page.locator('.what b').allTextContents();
    t.same(names, ['session.started', 'turn_001', 'Thinking', 'Approval: accept', 'Exec', 'Response']);
    t.match(await bar(page, 'turn_001').textContent(), '1 thinking · 1 response · 1 tools · 1 failed');
    const grid = page.getByRole('treegrid');
    t.ok(await grid.isVisible());
    t.match(await bar(page, 'turn_001').getAttribute('aria-expanded'), 'true');
    t.equal(await bar(page, 'Thinking').getAttribute('aria-level'), '2');
    t.equal(await bar(page, 'Exec').locator('.bar.tool.failed').count(), 1);
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
    t.match(await page.locator('.totals').textContent(), /Worked9\.00 s/);
    await page.getByRole('button', { name: 'without waiting for a person (5.00 s)' }).click();
    t.match(await page.locator('.totals').textContent(), /Worked4\.00 s/);
    t.match(await bar(page, 'turn_001').textContent(), '4.00 s');
    t.match(await page.locator('.totals').textContent(), /Tokensnot reported/);
  },
);

scene(
  'the keyboard walks, folds, finds failures and turns, zooms; the address brings it all back',
  {
    at: '/sessions/thread_a',
    prepare: (backend) => backend.seed('thread_a', { displayName: 'Alpha' }, story(ago(minute), 9, 4)),
  },
  async (t, { page, open }) => {
    await bar(page, 'turn_001').waitFor();
    const key = (name: string) => page.keyboard.press(name);
    await key('j');
    await key('j');
    t.match(await selectedText(page), 'turn_001');
    await key('k');
    t.match(await selectedText(page), 'session.started');
    await key('e');
    const failed = await selectedText(page);
    t.match(failed, 'command');
    t.equal(await page.locator('.vrow[aria-selected=true] .bar.failed').count(), 1);
    await key('e');
    t.not(await selectedText(page), failed);
    await key('Shift+E');
    t.equal(await selectedText(page), failed);
    await key(']');
    t.match(await selectedText(page), 'turn_00');
    await key('[');
    await key('o');
    t.equal(await page.locator('.vrow[aria-selected=true]').getAttribute('aria-expanded'), 'false');
    await key('ArrowRight');
    t.equal(await page.locator('.vrow[aria-selected=true]').getAttribute('aria-expanded'), 'true');
    await key('ArrowDown');
    t.match(await selectedText(page), 'Thinking');
    await key('w');
    await page.waitForURL(/zoom=\d+-\d+/);
    await key('f');
    const fitted = page.url();
    await page.waitForURL((url) => url.href !== fitted);
    await key('d');
    await key('s');
    await page.waitForURL(/event=\d+/);
    await page.waitForTimeout(300);
    const address = page.url().replace(/^.*#/, '');
    await open(address);
    await page.locator('.vrow[aria-selected=true]').waitFor();
    t.match(await selectedText(page), 'Thinking');
    t.ok(page.url().endsWith(address), 'a link is what one sees');
    await key('f');
    await key('f');
    await page.waitForURL((url) => !url.href.includes('zoom='));
    await key('2');
    await page.getByRole('grid', { name: 'What was thought' }).waitFor();
    await key('3');
    await page.getByRole('grid', { name: 'Events' }).waitFor();
    await page.waitForURL(/view=list/);
    t.match(await selectedText(page), 'thinking', 'the same event is selected in every view');
    await key('Escape');
    await page.locator('.detail').waitFor({ state: 'detached' });
  },
);

scene(
  'drawing over the map or the axis shows that stretch; a double click shows everything again',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page }) => {
    await bar(page, 'Exec').waitFor();
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
    t.equal(await bar(page, 'Thinking').locator('.beyond.before').count(), 1, 'what is not in sight says where it is');
    await draw('.axis', 0.5, 1);
    await page.waitForURL(/zoom=6\d{3}-8\d{3}/);
    await page.locator('.minimap').dblclick();
    await page.waitForURL((url) => !url.href.includes('zoom='));
    t.equal(await page.locator('.beyond').count(), 0);
  },
);

scene(
  'filters: typed, pressed, taken away, dimmed; texts are found also where only the server has them',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page, open }) => {
    const names = () => page.locator('.what b').allTextContents();
    await bar(page, 'Exec').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('type:tool.failed');
    await page.keyboard.press('Enter');
    await bar(page, 'Response').waitFor({ state: 'detached' });
    t.same(await names(), ['turn_001', 'Exec'], 'with the turn it belongs to');
    t.match(await page.locator('.filter-bar .count').textContent(), '1 match');
    await page.getByRole('button', { name: 'Dim others' }).click();
    await bar(page, 'Response').waitFor();
    t.ok(await bar(page, 'Response').evaluate((element) => element.classList.contains('dim')));
    await page.getByRole('button', { name: 'Dim others' }).click();
    await page.getByRole('textbox', { name: 'Filter this session' }).focus();
    await page.keyboard.press('Backspace');
    await bar(page, 'Response').waitFor();

    await page.getByRole('textbox').fill('dur=1');
    await page.keyboard.press('Enter');
    t.match(await page.getByRole('alert').textContent(), 'dur>2s');
    await page.getByRole('textbox').fill('"the needle"');
    await page.keyboard.press('Enter');
    await bar(page, 'Response').waitFor({ state: 'detached' });
    await bar(page, 'Exec').waitFor();
    t.same(await names(), ['turn_001', 'Exec'], 'the page itself has only the beginning of that text');
    await page.getByRole('button', { name: 'Remove filter "the needle"' }).click();
    await page.getByRole('button', { name: 'Slow' }).click();
    await bar(page, 'Exec').waitFor({ state: 'detached' });
    t.match(await names(), ['turn_001', 'Approval: accept']);
    await page.waitForURL(/q=dur/);

    await open('/sessions/thread_b?view=list');
    await row(page, 'tool.started').getByRole('button', { name: 'Exec' }).click();
    await row(page, 'turn.started').waitFor({ state: 'detached' });
    t.equal(await rows(page).count(), 2);
    await row(page, 'tool.failed').locator('.number').first().click();
    await page.locator('.detail').getByRole('button', { name: 'Filter by type:tool.failed' }).click();
    await row(page, 'tool.started').waitFor({ state: 'detached' });
    t.match(decodeURIComponent(page.url()), /q=tool:Exec|view=list/);
  },
);

scene(
  'details: whole texts, the event as it was recorded, copies without the token',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page, backend }) => {
    await bar(page, 'Exec').locator('.what').click();
    await page.locator('.detail pre', { hasText: 'The needle.' }).waitFor();
    t.match(await page.locator('.detail .fact-list').textContent(), /Took1\.00 s.*TypeTool|Took1\.00 s/);
    t.same(
      await page.locator('.whole h3 code').allTextContents(),
      ['tool.started', 'tool.failed'],
      'both ends of the call',
    );
    await page.locator('.whole').first().getByText('As it was recorded').click();
    await page.locator('.json').first().getByText('arguments').waitFor();
    await page.locator('.whole').last().getByRole('button', { name: 'JSON' }).click();
    await page.getByText('Event copied.').waitFor();
    const copied = JSON.parse(await clipboard(page)) as { type: string; data: { result: string } };
    t.match(copied, { type: 'tool.failed', data: { result: /needle/ } });
    await page.locator('.whole').last().getByRole('button', { name: 'curl' }).click();
    await page.getByText('Command copied.').waitFor();
    const command = await clipboard(page);
    t.match(command, `${backend.origin}/DashBoard/api/sessions/thread_b/events/`);
    t.notMatch(command, backend.token);
    await page.locator('.whole').last().getByRole('button', { name: 'Link' }).click();
    await page.getByText('Link copied.').waitFor();
    t.match(await clipboard(page), /#\/sessions\/thread_b\?.*event=\d+/);

    const path = `GET /dashboard/api/sessions/thread_b/events/${backend.sessions.get('thread_b')?.events[2]?.id}`;
    backend.state.failures.set(path, { status: 500, code: 'storageFailed', message: 'The disk cannot be read.' });
    await bar(page, 'Thinking').locator('.what').click();
    await page.getByText('This event could not be fetched: The disk cannot be read.').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.detail pre', { hasText: 'I should look first.' }).waitFor();
  },
);

scene(
  'the log reads from top to bottom, long answers whole, calls opened on demand',
  { at: '/sessions/thread_b?view=log', prepare: prepareThree },
  async (t, { page }) => {
    await page.getByText('That is the end.').waitFor();
    t.equal(await page.getByText('The needle.').count(), 0);
    await bar(page, 'Exec').getByRole('button', { name: 'All of it' }).click();
    await page.getByText('The needle.').waitFor();
    await bar(page, 'Exec').getByRole('button', { name: 'Less' }).click();
    t.equal(await page.getByText('The needle.').count(), 0);
    t.match(await bar(page, 'Approval').textContent(), /exec · rm -rf build\s*accept by user/);
    const heights = await rows(page).evaluateAll((all) => all.map((each) => each.getBoundingClientRect()));
    for (const [index, box] of heights.entries()) {
      const next = heights[index + 1];
      if (next) t.ok(Math.abs(next.top - box.bottom) < 2, 'rows of different heights do not overlap');
    }
    await bar(page, 'Response').click();
    t.equal(await bar(page, 'Response').getAttribute('aria-selected'), 'true');
    t.equal(await page.getByRole('grid').getAttribute('aria-rowcount'), '6');
  },
);

const hostile =
  '<img src="https://evil.example/x.png" onerror="window.stolen=1"><script>window.stolen=1</script>[a](https://evil.example)';
scene(
  'what a model or a tool writes is text, whatever it looks like',
  {
    at: '/sessions',
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
  async (t, { page, open }) => {
    await row(page, 'evil.example').waitFor();
    for (const at of [
      '/sessions?peek=thread_x',
      '/sessions/thread_x',
      '/sessions/thread_x?view=log',
      '/sessions/thread_x?view=list',
      '/overview',
    ]) {
      await open(at);
      await page.getByText('evil.example').first().waitFor();
      if (at.includes('thread_x?') || at.endsWith('thread_x')) {
        await rows(page).last().click();
        await page.locator('.drawer').first().waitFor();
      }
      t.equal(await page.locator('img, iframe, object, embed, .vlist script, a[href*=evil]').count(), 0, at);
      t.equal(await page.evaluate(() => (window as unknown as { stolen?: number }).stolen), undefined);
    }
  },
);

const live = (backend: Backend) =>
  backend.seed('thread_l', { displayName: 'Live' }, [...story(ago(10 * minute), 6, 6), ...begun()]);
const begun = (): Told[] => [
  { type: 'turn.started', at: ago(5_000), turnId: 'turn_100' },
  { type: 'tool.started', at: ago(4_000), turnId: 'turn_100', callId: 'run', tool: 'Exec', data: { arguments: '{}' } },
];
const thought = (text: string): Told => ({ type: 'thinking', turnId: 'turn_100', durationMs: 10, data: { text } });

scene(
  'what runs is a ghost until its end comes; new events follow only who looks at the end',
  { at: '/sessions/thread_l', prepare: live },
  async (t, { page, backend }) => {
    await page.locator('.connection.live').waitFor();
    await bar(page, 'turn_100').locator('.bar.ghost').waitFor();
    t.match(await page.locator('.vrow .bar.tool.ghost').count(), 1);
    const first = await bar(page, 'turn_100').locator('.number').textContent();
    await page.waitForFunction(
      (before) =>
        [...document.querySelectorAll('.vrow')].some(
          (each) => each.textContent?.includes('turn_100') && !each.textContent.includes(before ?? ''),
        ),
      first,
    );
    backend.tell('thread_l', [
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
    backend.tell('thread_l', [thought('the newest thought')]);
    await row(page, 'the newest thought').waitFor();

    await page.locator('.bars').evaluate((list) => list.scrollTo(0, 0));
    await bar(page, 'turn_001').waitFor();
    backend.tell('thread_l', [thought('one'), thought('two'), thought('three')]);
    const button = page.getByRole('button', { name: '3 new events' });
    await button.waitFor();
    t.equal(await page.locator('.bars').evaluate((list) => list.scrollTop), 0, 'who reads is left in peace');
    await button.click();
    await row(page, 'three').waitFor();
    await button.waitFor({ state: 'detached' });
  },
);

scene(
  'paused, nothing moves and nothing is lost; a gap in the stream is filled',
  { at: '/sessions/thread_l?view=list', prepare: live },
  async (t, { page, backend }) => {
    await page.locator('.connection.live').waitFor();
    await row(page, 'turn_100').first().waitFor();
    await page.keyboard.press('p');
    await page.getByRole('button', { name: /^Go on/ }).waitFor();
    backend.tell('thread_l', [thought('while paused 1'), thought('while paused 2')]);
    await page.getByRole('button', { name: 'Go on (2 events waiting)' }).waitFor();
    t.equal(await row(page, 'while paused').count(), 0);
    await page.keyboard.press('p');
    await row(page, 'while paused 2').waitFor();

    backend.events.cut({ refuse: true });
    await page.locator('.connection.reconnecting').waitFor();
    backend.record('thread_l', [thought('while cut off')]);
    backend.events.cut({ forget: true });
    await row(page, 'while cut off').waitFor();
    backend.tell('thread_l', [thought('after it')]);
    await row(page, 'after it').waitFor();
    const count = Number((await page.getByRole('grid').getAttribute('aria-rowcount')) ?? 0) - 1;
    t.equal(count, backend.sessions.get('thread_l')?.events.length, 'each once');
  },
);

scene(
  'exports: JSON lines and a Chrome trace with whole texts, made of the same API',
  { at: '/sessions/thread_b', prepare: prepareThree },
  async (t, { page, backend }) => {
    await bar(page, 'Exec').waitFor();
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
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByText('Command copied.').waitFor();
    t.notMatch(await clipboard(page), backend.token);
    await page.getByRole('button', { name: 'Copy as JSON' }).click();
    await page.getByText('9 events copied.').waitFor();
    t.equal((JSON.parse(await clipboard(page)) as unknown[]).length, 9);
  },
);

scene(
  'relatives, older recorders, events of tomorrow, sessions that are not there',
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
    t.match(await row(page, 'weather.changed').textContent(), '{"sun":true}');
    await page.getByText('coarse trace').waitFor();
    await page.getByRole('link', { name: 'Sub-agent of parent' }).click();
    await page.locator('h1', { hasText: 'Parent' }).waitFor();
    await page.getByRole('link', { name: 'Sub-agent: Child' }).click();
    await page.locator('h1', { hasText: 'Child' }).waitFor();
    await open('/sessions/nobody');
    await page.getByText('There is no trace of this session').waitFor();
    backend.seed('nobody', {}, []);
    await page.locator('.connection.live').waitFor();
    backend.tell('nobody', [{ type: 'session.started' }]);
    await bar(page, 'session.started').waitFor();
    backend.sessions.delete('nobody');
    backend.events.send([['session.deleted', JSON.stringify({ sessionKey: 'nobody' })]]);
    await page.getByText('This trace has just been deleted').waitFor();
    t.equal(await rows(page).count(), 1, 'what is shown stays');
  },
);

scene(
  'fifty thousand events: the first rows at once, all of them in the end, few nodes in the document',
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
  },
);

for (const [name, at, ready] of [
  ['the table', '/sessions?peek=thread_b', '.last-events li'],
  ['the waterfall', '/sessions/thread_b?event=EVENT', '.detail pre'],
  ['the log', '/sessions/thread_b?view=log&event=EVENT', '.detail pre'],
  ['the list', '/sessions/thread_b?view=list&q=type:tool&event=EVENT', '.detail pre'],
] as const) {
  scene(
    `${name}: nothing for axe to find, in light and dark, and it fits a telephone`,
    { at: '/sessions', prepare: prepareThree },
    async (t, { page, backend, open }) => {
      const id = backend.sessions.get('thread_b')?.events.find(({ type }) => type === 'tool.failed')?.id;
      await open(at.replace('EVENT', String(id)));
      await page.locator(ready).first().waitFor();
      t.same(await axe(page), []);
      t.same(await smallTargets(page), []);
      t.notOk(await overflowsAt(page, 360));
      t.same(await axe(page), []);
    },
  );
}

scene(
  'the dialogs: nothing for axe to find',
  { at: '/sessions?peek=thread_b', prepare: prepareThree },
  async (t, { page }) => {
    await page.locator('.last-events li').first().waitFor();
    await page.keyboard.press('Delete');
    await page.locator('dialog').waitFor();
    t.same(await axe(page), []);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Delete all…' }).click();
    await page.getByText('The traces of 3 sessions').waitFor();
    t.same(await axe(page), []);
  },
);
