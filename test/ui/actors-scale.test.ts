/** Many actors and many records: the document is bounded, and no record is lost. */
import { actorsStage, demo, lit, showTab } from './actors-scene.ts';
import { bringUp } from './backend.ts';
import { axe } from './scene.ts';
import { shows } from './shows.ts';

const onPage = await actorsStage();

const many = Array.from({ length: 1000 }, (_, index) => `/srv/crowd/workspace-${String(index).padStart(4, '0')}`);

onPage(
  'with a thousand workspaces the tree renders the visible rows, finds each and updates all',
  async (t, { page, backend, workspaces }) => {
    const items = page.locator('[role=treeitem]');
    await page.locator('.side-foot', { hasText: '1001 living' }).waitFor();
    t.ok((await items.count()) < 80, `${await items.count()} rows are in the document`);
    await shows(t, 'equal', () => items.nth(1).getAttribute('aria-setsize'), '1000');
    await page.getByRole('tree').focus();
    await page.keyboard.press('End');
    await items.filter({ hasText: 'workspace-0999' }).waitFor();
    await page.locator('.actor-head h1', { hasText: 'workspace-0999' }).waitFor();
    t.ok((await items.count()) < 80);

    for (const workspace of workspaces.slice(100, 400)) workspace.send({ type: 'ENSURE' });
    await page.locator('.filter-pill.progress b', { hasText: /^300$/ }).waitFor();
    await page.locator('.filter-pill.progress').click();
    await items.nth(1).filter({ hasText: 'workspace-0100' }).waitFor();
    await shows(t, 'equal', () => items.nth(1).getAttribute('aria-setsize'), '300');
    await page.getByLabel('Filter actors').fill('0250');
    await items.nth(1).filter({ hasText: 'workspace-0250' }).waitFor();
    await shows(t, 'equal', () => items.count(), 2);
    await page.keyboard.press('Escape');
    await page.locator('.filter-pill.progress').click();
    await page.getByLabel('Order of actors').selectOption('time');
    await page.getByRole('tree').focus();
    await page.keyboard.press('Home');
    await items
      .nth(1)
      .filter({ hasText: /workspace-0[123]/ })
      .waitFor();
    backend.workspaces.get(many[7] ?? '')?.stop();
    await page.locator('.side-foot', { hasText: '1000 living, 1 ended' }).waitFor();
    await page.getByRole('button', { name: 'All actors' }).click();
    await page.locator('.banner', { hasText: 'The whole tree' }).waitFor();
    // Each workspace begins with its slot.
    await page.getByLabel('Moment').fill('1000');
    await page.locator('.side-foot', { hasText: /^[4-7]\d\d living/ }).waitFor();
    await shows(t, 'equal', () => page.locator('.filter-pill.progress').isVisible(), false, 'none was starting then');
    t.same(await axe(page), []);
  },
  { workspaces: many },
);

onPage(
  'of thousands of records each is counted, the log is bounded, and a burst is drawn a few times',
  async (t, { page, workspace }) => {
    await bringUp(workspace);
    await lit(page, 'running');
    await page.evaluate(() => {
      const scope = globalThis as unknown as { draws: number };
      scope.draws = 0;
      const head = document.querySelector('.log .panel-tools');
      if (head) {
        new MutationObserver(() => {
          scope.draws += 1;
        }).observe(head, { subtree: true, childList: true, characterData: true });
      }
    });
    const burst = 1500;
    for (let sent = 0; sent < burst; sent += 1) workspace.send({ type: 'PROBE.PASSED', incarnation: 1, idleMs: 0 });
    const total = burst + 6;
    await page.locator('.log .panel-tools', { hasText: `500 of ${total}` }).waitFor();
    const draws = await page.evaluate(() => (globalThis as unknown as { draws: number }).draws);
    t.ok(draws < burst / 10, `${draws} draws for ${burst} records`);
    t.ok((await page.locator('.log .vrow').count()) < 80, 'rows in the document');
    await page.getByText(`${total - 500} older not held`).waitFor();
    await page.locator('.log .vrow .number', { hasText: String(total) }).waitFor();
    await showTab(page, 'Sequence');
    t.ok((await page.locator('.sequence .vrow').count()) < 80);

    // Two hundred a second, a while: looked back at meanwhile, nothing moves; then all is there.
    await page.keyboard.press('[');
    await page.locator('.banner', { hasText: 'The past' }).waitFor();
    for (let tick = 0; tick < 30; tick += 1) {
      for (let sent = 0; sent < 20; sent += 1) workspace.send({ type: 'PROBE.PASSED', incarnation: 1, idleMs: 0 });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await page.locator('.banner', { hasText: '600 records have come since' }).waitFor();
    await page.keyboard.press('l');
    await showTab(page, 'Events');
    await page.locator('.log .panel-tools', { hasText: `500 of ${total + 600}` }).waitFor();
  },
  { at: `/actors/${encodeURIComponent(demo)}` },
);
