/** The actors of a Hub in a real browser, over real actors, with the content security policy the page is served with. */
import type { Page } from 'playwright-core';
import { actorsStage, demo, hasWholeLog, lit, select } from './actors-scene.ts';
import { bringUp, token } from './backend.ts';
import { shows } from './shows.ts';

const onPage = await actorsStage();

const eventsOf = (page: Page) => page.locator('.log .step b').allTextContents();

onPage('the active state is highlighted, and every step is in the log', async (t, { page, workspace }) => {
  await select(page, 'demo');
  await lit(page, 'stopped');
  await page.keyboard.press('z');
  await bringUp(workspace, { sidecar: 1 });
  await lit(page, 'running');
  await shows(t, 'equal', () => page.locator('.node.active').count(), 1);
  await page.locator('.label.taken', { hasText: 'done(readiness)' }).waitFor({ state: 'attached' });
  await hasWholeLog(page, 9);
  await shows(t, 'same', () => eventsOf(page), [
    'ENSURE',
    'SLOT.CHANGED',
    'SLOT.CLEARED',
    'done(prepare)',
    'SLOT.CHANGED',
    'SLOT.CHANGED',
    'SLOT.READY',
    'PROCESS.SPAWNED',
    'done(readiness)',
  ]);
  await shows(t, 'match', () => page.locator('.facts').textContent(), /PID\s*4242/);
  await shows(
    t,
    'ok',
    () => page.locator('[role=treeitem][aria-level="4"]', { hasText: 'apiProxy' }).isVisible(),
    'the sidecar hangs below its slot',
  );

  workspace.send({ type: 'PROCESS.EXITED', incarnation: 1, exitCode: null, signal: 'SIGKILL', at: 5 });
  await lit(page, 'exited.backingOff');
  await lit(page, 'exited');
  await shows(t, 'match', () => page.locator('.actor-head .state').textContent(), 'exited · backingOff');
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
  t.notMatch(
    await page.locator('.actor-head .facts').textContent(),
    /\bPID\b/,
    'regression: no process id of a dead process',
  );
});

onPage('the token is required, removed from the address and restored after a reload', async (t, { page, backend }) => {
  await page.locator('.connection.live').waitFor();
  t.notMatch(page.url(), token);
  await page.reload();
  await page.locator('.connection.live').waitFor();
  const newcomer = await page.context().browser()?.newContext();
  if (newcomer === undefined) throw new Error('the browser has ended');
  const unauthenticated = await newcomer.newPage();
  unauthenticated.setDefaultTimeout(300_000);
  await unauthenticated.goto(backend.url);
  await unauthenticated.getByText('oratorio inspect').first().waitFor();
  await unauthenticated.goto(`${backend.url}#token=wrong`);
  await unauthenticated.locator('.gate').waitFor();
  await newcomer.close();
  t.notOk(backend.requests.some((request) => request.includes(token)));
});

onPage(
  'start, restart and stop send requests to the Hub; stop needs a confirmation',
  async (t, { page, backend, workspace }) => {
    await select(page, 'demo');
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await lit(page, 'starting');
    await bringUp(workspace);
    await lit(page, 'running');
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('button', { name: 'Keep it' }).click();
    t.notOk(backend.requests.includes('POST /v1/appservers/stop'));
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('button', { name: 'Stop it' }).click();
    await lit(page, 'stopping');
    await page.getByRole('button', { name: 'Restart', exact: true }).click();
    await page.locator('.log .step b', { hasText: 'RESTART' }).waitFor();
    backend.workspaces.delete(demo);
    await page.getByRole('button', { name: 'Restart', exact: true }).click();
    await shows(t, 'match', () => page.getByRole('alert').textContent(), 'No such workspace.');
  },
);

onPage('a cut stream resumes without a lost or duplicate step', async (t, { page, backend, workspace }) => {
  await select(page, 'demo');
  await page.locator('.connection.live').waitFor();
  workspace.send({ type: 'ENSURE' });
  await lit(page, 'starting.spawning');
  backend.cut({ refuse: true });
  await page.locator('.connection.reconnecting').waitFor();
  workspace.send({ type: 'PROCESS.SPAWNED', incarnation: 1, pid: 4242 });
  backend.cut();
  await page.locator('.connection.live').waitFor();
  await lit(page, 'starting.probing');
  await hasWholeLog(page, 5);
  const start = ['ENSURE', 'SLOT.CLEARED', 'done(prepare)', 'SLOT.READY', 'PROCESS.SPAWNED'];
  await shows(t, 'same', () => eventsOf(page), start);

  backend.cut({ forget: true });
  workspace.send({ type: 'STOP', reason: 'user' });
  await lit(page, 'stopping');
  await page.locator('.connection.live').waitFor();
  await hasWholeLog(page, 7);
  const log = await eventsOf(page);
  t.same(log, [...start, 'STOP', 'always'], 'a new Hub sends all records again');
});

onPage(
  'the tree supports filter, keys and links, and follows new and ended actors',
  async (t, { page, backend, workspaces }) => {
    const items = page.locator('[role=treeitem] b');
    await page.locator('[role=treeitem]', { hasText: 'gamma' }).waitFor();
    await shows(t, 'same', () => items.allTextContents(), ['Hub', 'alpha', 'beta', 'gamma']);
    await page.keyboard.press('/');
    await page.keyboard.type('bet');
    await shows(t, 'same', () => items.allTextContents(), ['Hub', 'beta'], 'a match is shown below its parents');
    await page.keyboard.press('Escape');
    await select(page, 'alpha');
    await page.keyboard.press('ArrowDown');
    await shows(t, 'equal', () => page.locator('.actor-head h1').textContent(), 'beta');
    t.match(page.url(), '#/actors/%2Fw%2Fbeta');
    await page.keyboard.press('ArrowLeft');
    await shows(t, 'equal', () => page.locator('.actor-head h1').textContent(), 'Hub');
    await page.keyboard.press('End');
    await shows(t, 'equal', () => page.locator('.actor-head h1').textContent(), 'gamma');
    await page.goto(`${backend.url}#/actors/%2Fw%2Falpha`);
    await page.locator('.actor-head h1', { hasText: 'alpha' }).waitFor();
    workspaces[1]?.stop();
    const ended = page.locator('[role=treeitem].ended', { hasText: 'beta' });
    await ended.waitFor();
    await shows(
      t,
      'equal',
      () => ended.getAttribute('aria-level'),
      '2',
      'an ended actor is shown below the others for a while',
    );
    await shows(t, 'match', () => page.locator('.side-foot').textContent(), '3 living, 1 ended');
    backend.add('/w/delta');
    await page.locator('[role=treeitem]', { hasText: 'delta' }).waitFor();
    await page.keyboard.press('?');
    await page.locator('dialog').waitFor({ state: 'visible' });
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'hidden' });
  },
  { workspaces: ['/w/alpha', '/w/beta', '/w/gamma'] },
);

onPage(
  'without a workspace the page shows the command that adds one',
  async (t, { page }) => {
    await page.locator('.hint').waitFor();
    await shows(t, 'match', () => page.locator('.hint').textContent(), 'oratorio up --init <dir>');
    await lit(page, 'serving.steady');
  },
  { workspaces: [] },
);

onPage('the chart can be fitted, zoomed by key and wheel, and dragged', async (t, { page }) => {
  await select(page, 'demo');
  const percent = async () => Number.parseInt((await page.locator('.tools output').textContent()) ?? '', 10);
  await lit(page, 'stopped');
  const fitted = await percent();
  await page.keyboard.press('+');
  await shows(t, 'ok', async () => (await percent()) > fitted);
  await page.mouse.move(600, 500);
  await page.mouse.wheel(0, -300);
  await page.waitForFunction(
    (before) => Number.parseInt(document.querySelector('.tools output')?.textContent ?? '', 10) > before,
    fitted * 1.3,
  );
  const place = () => page.locator('.scene').evaluate((scene) => (scene as SVGElement).style.transform);
  const before = await place();
  await page.mouse.down();
  await page.mouse.move(650, 540, { steps: 3 });
  await page.mouse.up();
  t.not(await place(), before);
  await page.keyboard.press('f');
  await page.waitForFunction(
    (wanted) => Number.parseInt(document.querySelector('.tools output')?.textContent ?? '', 10) === wanted,
    fitted,
  );
});

onPage('texts have a contrast of 4.5:1, light and dark', async (t, { page }) => {
  await page.locator('.connection.live').waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const ratios = await page.evaluate(() => {
      const resolve = (name: string): number[] => {
        const probe = document.createElement('i');
        probe.style.color = `var(--${name})`;
        document.body.append(probe);
        const canvas = new OffscreenCanvas(1, 1).getContext('2d');
        if (!canvas) throw new Error('no canvas');
        canvas.fillStyle = getComputedStyle(probe).color;
        canvas.fillRect(0, 0, 1, 1);
        probe.remove();
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
      };
      const light = (name: string): number => {
        const [r = 0, g = 0, b = 0] = resolve(name).map((value) => {
          const part = value / 255;
          return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const front = ['text', 'soft', 'accent', 'neutral', 'progress', 'ok', 'warn', 'danger'];
      return front.flatMap((name) =>
        ['page', 'panel', 'accent-wash'].map((back) => {
          const [a, b] = [light(name), light(back)];
          return { name: `${name} on ${back}`, ratio: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) };
        }),
      );
    });
    t.same(
      ratios.filter(({ ratio }) => ratio < 4.5),
      [],
      colorScheme,
    );
  }
});
