/** The debugger of actors in a real browser, over real actors: chart, tabs, time travel, recordings. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import t from 'tap';
import { assign, createActor, createMachine } from 'xstate';
import { actorsStage, demo, hasWholeLog, lit, type SceneOptions, select, showTab } from './actors-scene.ts';
import { bringUp, type Workspace } from './backend.ts';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import { shows } from './shows.ts';
import { untilToast } from './toast.ts';

const onPage = await actorsStage();
const files = t.testdirName;

const path = encodeURIComponent(demo);
const eventsOf = (page: Page) => page.locator('.log .step b').allTextContents();
const state = (page: Page) => page.locator('.actor-head .state b').textContent();
const isGone = (page: Page, selector: string) => page.locator(selector).first().waitFor({ state: 'detached' });
/** Draws every state and every word, not only those around the active state. */
const showAll = async (page: Page): Promise<void> => {
  await page.keyboard.press('z');
  await page.locator('.tools button[aria-pressed=true]', { hasText: 'All' }).waitFor();
};
const failProbes = (workspace: Workspace) => {
  for (const error of ['no answer', 'no answer', 'still no answer']) {
    workspace.send({ type: 'PROBE.FAILED', incarnation: workspace.getSnapshot().context.incarnation, error });
  }
};
/** Start, readiness and failure of a server: nine transitions before the page opens. */
const unhealthy: SceneOptions['prepare'] = async (_, [workspace]) => {
  if (!workspace) return;
  await bringUp(workspace);
  failProbes(workspace);
};

onPage('the path taken stays marked, and its last step is the boldest', async (t, { page, workspace }) => {
  await select(page, 'demo');
  await lit(page, 'stopped');
  t.equal(await page.locator('.edge.taken').count(), 0, 'nothing is marked before the first step');
  await bringUp(workspace);
  await lit(page, 'running');
  await hasWholeLog(page, 6);
  const edges = () =>
    page.locator('path.edge.taken').evaluateAll((paths) => paths.map((path) => path.getAttribute('data-edge')).sort());
  await shows(t, 'same', edges, [
    'starting.preparing→starting.proxying',
    'starting.probing→running',
    'starting.proxying→starting.spawning',
    'starting.spawning→starting.probing',
    'starting→starting.preparing',
    '→starting',
  ]);
  await shows(t, 'equal', () => page.locator('path.last').getAttribute('data-edge'), 'starting.probing→running');
  const animation = () => page.locator('path.last').evaluate((path) => getComputedStyle(path).animationName);
  t.equal(await animation(), 'none', 'with reduced motion nothing flashes');
  await page.emulateMedia({ reducedMotion: 'no-preference' });
  t.equal(await animation(), 'flash');
});

onPage(
  'states show their visits and times, and are coloured by them',
  async (t, { page, workspace }) => {
    await page.locator('.chart').waitFor();
    await shows(t, 'match', () => page.locator('[data-count="running"]').textContent(), /^1×/);
    workspace.send({ type: 'PROBE.PASSED', incarnation: 1, idleMs: 0 });
    await page.locator('[data-count="running"]', { hasText: /^2×/ }).waitFor({ state: 'attached' });
    t.equal(await page.locator('[data-count="exited"]').count(), 0, 'a state never entered shows no count');
    await page.keyboard.press('Shift+H');
    const heat = await page
      .locator('.node.heat[data-state="stopped"], .node.heat[data-state="running"]')
      .first()
      .evaluate((node) => (node as SVGElement).style.getPropertyValue('--heat'));
    t.match(heat, /^\d+%$/);
    await showTab(page, 'States');
    const row = page.locator('.states tbody tr', { hasText: 'running' }).first();
    await shows(t, 'match', () => row.locator('td').first().textContent(), '2', 'the table says the same');
  },
  { at: `/actors/${path}`, prepare: unhealthy },
);

onPage(
  'a clicked state or edge, or its row in the keyboard list, shows its details',
  async (t, { page }) => {
    await page.locator('.node[data-state="unhealthy"] > .name').click({ force: true });
    const card = page.locator('.picked-card');
    await card.waitFor();
    await shows(t, 'match', () => card.textContent(), /unhealthy.*Alive but not answering.*liveness.*isPlaceLost/s);
    t.match(page.url(), 'pick=state%3Aunhealthy');
    await card.getByRole('button', { name: /PROBE.FAILED \[reachesFailureThreshold\]/ }).click();
    await shows(
      t,
      'match',
      () => card.textContent(),
      /running.*→.*unhealthy.*reachesFailureThreshold.*recordUnhealthy.*1 times in the records/s,
    );
    await shows(t, 'equal', () => page.locator('.edge.picked').count(), 1);
    await card.getByRole('button', { name: /PROBE.FAILED$/ }).click();
    await page.locator('.banner', { hasText: 'The past' }).waitFor();
    await page.keyboard.press('l');
    await card.getByRole('button', { name: 'Close' }).click();
    await isGone(page, '.picked-card');
    const possible = () => page.locator('.states .edges').first().textContent();
    await shows(t, 'match', possible, /PROBE.PASSED.*→ running/s, 'the possible events');
    const label = () => page.locator('.pane svg').getAttribute('aria-label');
    await shows(t, 'equal', label, 'Statechart agent-server. Active: unhealthy.');
  },
  { at: `/actors/${path}`, prepare: unhealthy },
);

onPage(
  'possible events are a drawer with owners; the drawing stays where it is in each step, and All shows every word',
  async (t, { page }) => {
    await lit(page, 'unhealthy');
    const figure = page.getByRole('figure', { name: 'Statechart agent-server' });
    const list = figure.getByRole('list', { name: 'What can happen now' });
    t.equal(await list.count(), 0, 'the drawer is closed');
    await figure.getByRole('button', { name: 'Next' }).click();
    await shows(
      t,
      'match',
      () => list.textContent(),
      /PROBE\.PASSED if it is about this process → running note that it answers again; report that it runs in unhealthy/,
    );
    await shows(t, 'match', () => list.locator('[data-edge="unhealthy→running"]').textContent(), 'PROBE.PASSED');
    await shows(t, 'match', () => list.textContent(), 'in every state');
    await page.keyboard.press('o');
    await list.waitFor({ state: 'hidden' });

    const places = () =>
      figure
        .locator('[data-state] > rect, [data-frame] > rect')
        .evaluateAll((boxes) => boxes.map((box) => JSON.stringify(box.getBoundingClientRect())));
    const before = await places();
    t.equal(before.length, 28, 'every state and the machine have a box');
    await page.keyboard.press('[');
    await lit(page, 'running');
    t.same(await places(), before, 'nothing moves when time travel begins');
    for (let step = 0; step < 4; step += 1) await page.keyboard.press('[');
    await lit(page, 'starting.spawning');
    t.same(await places(), before, 'nothing moves from step to step');
    await page.keyboard.press('l');
    await showAll(page);
    await shows(t, 'equal', () => page.locator('.node').count(), 28);
  },
  { at: `/actors/${path}`, prepare: unhealthy, context: { viewport: { width: 1440, height: 900 } } },
);

onPage(
  'a copy of an actor is stepped without a request, asks for unknown values, and is left again',
  async (t, { page, backend }) => {
    await page.getByRole('button', { name: 'Simulate from here' }).click();
    await page.locator('.simulation-banner', { hasText: 'the real actor is not touched' }).waitFor();
    // The rail of workspaces refreshes its facts.
    const sent = () => backend.requests.filter((request) => !/^GET \/v1\/(?:fleet\/appservers|status)$/.test(request));
    const before = sent();
    await page.locator('.sends button', { hasText: 'PROBE.PASSED' }).click();
    await lit(page, 'running');
    await page.getByRole('button', { name: 'Reset' }).click();
    await page.locator('.sends button', { hasText: 'PROCESS.EXITED' }).click();
    await page.locator('.simulation', { hasText: 'which way?' }).waitFor();
    t.same(await axe(page), [], 'axe reports nothing');
    await page.getByRole('button', { name: 'Go to exited', exact: true }).click();
    await page.getByRole('button', { name: 'Go to exited · givenUp' }).click();
    await lit(page, 'exited.givenUp');
    await shows(
      t,
      'match',
      () => page.locator('.simulated-steps').textContent(),
      /1\. PROCESS\.EXITED → exited · deciding/,
    );
    t.same(sent(), before, 'nothing was sent');
    const panel = page.getByRole('region', { name: 'Simulation' });
    await shows(
      t,
      'ok',
      () => panel.evaluate((element) => element.contains(document.activeElement)),
      'the focus is not lost',
    );
    for (const [width, height, chart, list] of [
      [1_120, 700, 350, 300],
      [390, 844, 390, 390],
    ] as const) {
      await page.setViewportSize({ width, height });
      await shows(t, 'equal', () => page.locator('.beside').isVisible(), false, 'the panels of the actor make room');
      const isAtLeast = async (part: Locator, width: number, height: number) => {
        const drawn = await part.boundingBox();
        return drawn !== null && drawn.width >= width && drawn.height >= height;
      };
      await shows(t, 'ok', () => isAtLeast(page.locator('.pane'), chart, 200), `${width} × ${height}: the chart`);
      await shows(t, 'ok', () => isAtLeast(panel, list, 150), `${width} × ${height}: its events`);
      await page.getByRole('button', { name: 'Leave' }).scrollIntoViewIfNeeded();
      t.ok((await overflowsAt(page, width)) === false, 'nothing is pushed sideways');
    }
    await page.setViewportSize({ width: 1_280, height: 720 });
    await page.getByRole('button', { name: 'Leave' }).click();
    await page.locator('.simulate:focus').waitFor();
    await lit(page, 'unhealthy');
    await shows(t, 'equal', () => state(page), 'unhealthy');
  },
  { at: `/actors/${path}`, prepare: unhealthy },
);

onPage('events can be filtered, and show actions and sender', async (t, { page, workspace }) => {
  await select(page, 'demo');
  await bringUp(workspace, { sidecar: 1 });
  await lit(page, 'running');
  await hasWholeLog(page, 9);
  await page.getByLabel('Filter events').fill('spawn');
  await shows(t, 'same', () => eventsOf(page), ['SLOT.READY', 'PROCESS.SPAWNED'], 'by state, action or event');
  await page.getByLabel('Filter events').fill('');
  await showTab(page, 'Sequence');
  await shows(t, 'same', () => page.locator('.lane').allTextContents(), ['outside', 'Hub', 'demo', 'sidecarSlot']);
  await shows(t, 'equal', () => page.locator('.sequence [role=option]').count(), 13);
  await shows(
    t,
    'match',
    () => page.locator('.sequence [role=option]').first().textContent(),
    /outside to .*demo: .*ENSURE/,
  );
  // The parent sends STOP to the slot of its sidecar: a message between two lanes.
  workspace.send({ type: 'STOP', reason: 'user' });
  workspace.send({ type: 'PROCESS.EXITED', incarnation: 1, exitCode: 0, signal: null, at: 5 });
  await page.locator('.sequence [role=option]', { hasText: 'demo to sidecarSlot' }).first().waitFor();
});

onPage(
  'the tabs show the snapshot, its differences and the cause of a state',
  async (t, { page, workspace }) => {
    await hasWholeLog(page, 9);
    await showTab(page, 'Snapshot');
    await page.locator('td.kind').first().waitFor();
    const lines = await page.locator('td.kind').evaluateAll((cells) =>
      cells.map((cell) => {
        const text = document.createRange();
        text.selectNodeContents(cell);
        return text.getClientRects().length;
      }),
    );
    t.same([...new Set(lines)], [1], 'regression: no kind is broken into two lines');
    await shows(t, 'match', () => page.locator('.snapshot table').textContent(), /Probe failures3number/);
    await shows(t, 'equal', () => page.locator('.state-tree .leaf').textContent(), 'unhealthy');
    await showTab(page, 'Diff');
    const changes = () => page.locator('.changes li').allInnerTexts();
    await shows(t, 'match', async () => (await changes()).join('|'), /−.*running\|\+.*unhealthy/s);
    await shows(t, 'match', () => page.locator('.diff tr.changed', { hasText: 'Probe failures' }).textContent(), /23$/);
    await page.getByLabel('From step').fill('1');
    await page.getByLabel('From step').press('Enter');
    await page.locator('.diff tr.added', { hasText: 'PID' }).waitFor();
    await shows(t, 'match', () => page.locator('.diff tr.added', { hasText: 'PID' }).textContent(), /added.*4242/s);
    await page.getByRole('button', { name: 'Follow', exact: true }).last().click();
    await showTab(page, 'Why');
    const why = () => page.locator('.panel > .why').textContent();
    await shows(
      t,
      'match',
      () => why(),
      /^Not answering because it did not answer, the third time in a row\. ?It was running .*PROBE\.FAILED \(3rd in a row\) → unhealthy because too many answers are missing in a row/,
    );
    workspace.send({ type: 'PROCESS.EXITED', incarnation: 1, exitCode: null, signal: 'SIGKILL', at: 5 });
    await page.locator('.panel > .why', { hasText: /PROCESS\.EXITED.*So it is exited · backingOff/s }).waitFor();
    await shows(
      t,
      'match',
      () => why(),
      /^Restarting because the process ended with SIGKILL\..*unhealthy.*PROCESS\.EXITED → exited · deciding.*So it is exited · backingOff/s,
    );
  },
  { at: `/actors/${path}`, prepare: unhealthy },
);

onPage(
  'an event for an ended actor is a dead letter, and a crash shows its error',
  async (t, { page, backend, workspace }) => {
    await select(page, 'demo');
    workspace.stop();
    await page.locator('.row.ended', { hasText: 'demo' }).waitFor();
    workspace.send({ type: 'ENSURE' });
    await page.locator('[role=tab] .count-of', { hasText: '1' }).waitFor();
    await showTab(page, 'Dead letters');
    await shows(t, 'match', () => page.locator('.letters tbody tr').textContent(), /ENSURE.*demo.*outside/s);

    const failing = createActor(
      createMachine({
        id: 'fragile',
        initial: 'whole',
        states: {
          whole: {
            on: {
              PUSH: {
                actions: assign(() => {
                  throw new Error('it broke, token=sk-secret');
                }),
              },
            },
          },
        },
      }),
    );
    failing.subscribe({ error: () => {} });
    backend.recorder.observe(failing, { id: 'fragile', parent: 'hub', machine: 'fragile', title: 'fragile' });
    failing.start();
    await select(page, 'fragile');
    await page.locator('.no-chart', { hasText: 'There is no chart of fragile' }).waitFor();
    failing.send({ type: 'PUSH' });
    await page.locator('.crash').waitFor();
    await shows(t, 'match', () => page.locator('.crash').textContent(), /it broke/);
    t.notMatch(await page.content(), 'sk-secret');
    await page.locator('.row.ended', { hasText: 'fragile' }).locator('.badge', { hasText: 'crashed' }).waitFor();
  },
);

onPage(
  'time travel of an actor by key, slider and click sends no event and loses no record',
  async (t, { page, backend, workspace }) => {
    await shows(t, 'equal', () => state(page), 'unhealthy');
    await hasWholeLog(page, 9);
    await page.locator('.node.active[data-state="unhealthy"]').waitFor({ state: 'attached' });
    const before = backend.requests.filter((request) => !request.startsWith('GET')).length;
    await page.keyboard.press('ArrowLeft');
    await page.locator('.banner', { hasText: 'The past' }).waitFor();
    await lit(page, 'running');
    await shows(t, 'equal', () => page.locator('.doings').count(), 0, 'the past cannot be acted on');
    for (let step = 0; step < 4; step += 1) await page.keyboard.press('[');
    await lit(page, 'starting.spawning');
    await shows(
      t,
      'equal',
      () => page.locator('[role=treeitem][aria-selected=true] .badge').textContent(),
      'starting',
      'the tree too',
    );
    await showTab(page, 'Snapshot');
    t.notMatch(await page.locator('.snapshot table').textContent(), '4242', 'it had no process yet');
    await showTab(page, 'Events');
    await shows(t, 'equal', () => page.locator('.vrow.later').count(), 5, 'what came after is dim');
    await shows(
      t,
      'equal',
      () => page.locator('path.last').getAttribute('data-edge'),
      'starting.proxying→starting.spawning',
      'the step that led here is the boldest',
    );

    workspace.send({ type: 'PROCESS.EXITED', incarnation: 1, exitCode: null, signal: 'SIGKILL', at: 5 });
    await page.locator('.banner', { hasText: /records have come since/ }).waitFor();
    await shows(t, 'equal', () => state(page), 'starting · spawning', 'the present does not break in');
    await page.keyboard.press(']');
    await lit(page, 'starting.probing');
    await page.getByLabel('Moment').fill('0');
    await lit(page, 'stopped');
    await shows(t, 'equal', () => page.getByRole('button', { name: 'Step back' }).isDisabled(), true);
    await page.locator('.log .vrow', { hasText: 'SLOT.READY' }).click();
    await lit(page, 'starting.spawning');
    // The recording plays for a few seconds only, so the page itself watches for it.
    const playing = page.waitForFunction(() => document.querySelector('button[aria-label="Pause"]'));
    await page.keyboard.press('p');
    await playing;
    await lit(page, 'unhealthy');
    await page.getByRole('button', { name: 'Play' }).waitFor();
    await page.getByRole('button', { name: 'Live' }).click();
    await isGone(page, '.banner');
    await lit(page, 'exited.backingOff');
    await hasWholeLog(page, 11);
    await shows(t, 'match', async () => (await eventsOf(page)).join(), 'PROCESS.EXITED');
    const after = backend.requests.filter((request) => !request.startsWith('GET')).length;
    t.equal(after, before, 'not one request but reads');
  },
  { at: `/actors/${path}`, prepare: unhealthy },
);

onPage(
  'time travel of all actors shows the tree of one moment',
  async (t, { page, workspaces }) => {
    const badge = (name: string) => page.locator('[role=treeitem]', { hasText: name }).locator('.badge').textContent();
    const [alpha, beta] = workspaces;
    if (!alpha || !beta) throw new Error('two are needed');
    await bringUp(alpha);
    await page.locator('[role=treeitem]', { hasText: 'alpha' }).locator('.badge', { hasText: 'running' }).waitFor();
    await bringUp(beta);
    await page.locator('[role=treeitem]', { hasText: 'beta' }).locator('.badge', { hasText: 'running' }).waitFor();
    await page.getByRole('button', { name: 'All actors' }).click();
    await page.locator('.banner', { hasText: 'The whole tree' }).waitFor();
    const slider = page.getByLabel('Moment');
    for (let step = 0; step < 40 && (await badge('beta')) !== 'stopped'; step += 1)
      await page.keyboard.press('ArrowLeft');
    await shows(t, 'equal', () => badge('beta'), 'stopped');
    await shows(t, 'equal', () => badge('alpha'), 'running');
    await shows(t, 'match', () => slider.getAttribute('aria-valuetext'), /\d\d:\d\d:\d\d.* sidecarSlot SLOT\.PROVE/);
    await page.waitForURL(/at=\d+/);
    await page.keyboard.press('Escape');
    await page.locator('[role=treeitem]', { hasText: 'beta' }).locator('.badge', { hasText: 'running' }).waitFor();
    await page.waitForURL((url) => !url.hash.includes('at='));
  },
  { workspaces: ['/w/alpha', '/w/beta'] },
);

onPage(
  'a link opens actor, tab, step and state, also after a reload',
  async (t, { page }) => {
    await page.locator('.picked-card', { hasText: 'done(prepare)' }).waitFor();
    await lit(page, 'starting.spawning');
    await shows(t, 'match', () => page.locator('.banner').textContent(), 'The past');
    await page.reload();
    await lit(page, 'starting.spawning');
    await page.locator('.picked-card').waitFor();
    await page.keyboard.press('l');
    await lit(page, 'unhealthy');
    await page.waitForURL((url) => !url.hash.includes('step='));
    await page.keyboard.press('1');
    await page.keyboard.press('ArrowLeft');
    await page.waitForURL(/step=8/);
    t.match(page.url(), /#\/actors\/%2Fhome%2Fada%2Fprojects%2Fdemo\?tab=events&pick=[^&]+&step=8$/);
  },
  { at: `/actors/${path}?tab=states&step=4&pick=state:starting.preparing`, prepare: unhealthy },
);

onPage(
  'a recording can be saved, opened, stepped through and closed; an invalid file is refused',
  async (t, { page, workspace }) => {
    await lit(page, 'unhealthy');
    await hasWholeLog(page, 9);
    const log = await eventsOf(page);
    t.equal(log.length, 9);
    await page.locator('summary', { hasText: 'Export' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save everything as a recording' }).click(),
    ]);
    t.match(download.suggestedFilename(), /^recording-\d{8}-\d{6}\.json$/);
    const saved = join(files, 'saved.json');
    await download.saveAs(saved);
    workspace.send({ type: 'STOP', reason: 'user' });
    await lit(page, 'stopping');

    const open = (file: string) => page.locator('input[type=file]').setInputFiles(file);
    await open(saved);
    await page.locator('.banner', { hasText: 'Recording' }).waitFor();
    await lit(page, 'unhealthy');
    await shows(t, 'same', () => eventsOf(page), log);
    await shows(t, 'equal', () => page.locator('.doings').count(), 0, 'a recording cannot be acted on');
    await page.keyboard.press('ArrowLeft');
    await lit(page, 'running');
    await page.getByRole('button', { name: 'End', exact: true }).click();
    await lit(page, 'unhealthy');
    await page.getByRole('button', { name: 'Close the recording' }).click();
    await lit(page, 'stopping');

    const bad = join(files, 'bad.json');
    const text = JSON.parse(readFileSync(saved, 'utf8')) as { json: { charts: { width: unknown }[] } };
    for (const chart of text.json.charts) chart.width = '<b>';
    writeFileSync(bad, JSON.stringify(text));
    await open(bad);
    await shows(
      t,
      'match',
      () => page.getByRole('alert').textContent(),
      /cannot be opened: charts\[0\]\.width is not a number/,
    );
    await lit(page, 'stopping');
  },
  { at: `/actors/${path}`, prepare: unhealthy },
);

onPage(
  'the chart is copied as Mermaid with the active state marked, and as SVG',
  async (t, { page }) => {
    await hasWholeLog(page, 9);
    const copied = async (name: string, what: string) => {
      await page.locator('summary', { hasText: 'Export' }).click();
      const isCopied = untilToast(page, `${what} copied.`);
      await page.getByRole('button', { name }).click();
      await isCopied;
      return page.evaluate(() => navigator.clipboard.readText());
    };
    const mermaid = await copied('Copy the chart as Mermaid', 'Mermaid');
    t.match(mermaid, /^stateDiagram-v2/);
    const [, marked = ''] = /^ {2}class (\S+) active$/m.exec(mermaid) ?? [];
    t.equal(marked, 's_unhealthy');
    t.match(mermaid, `as ${marked}\n`, 'a state that is in the diagram');
    const svg = await copied('Copy the chart as SVG', 'SVG');
    t.match(svg, /^<svg xmlns=/);
    t.match(svg, /class="atomic active"><title>Alive but not answering/);
    const records = JSON.parse(await copied('Copy the records of this actor as JSON', 'Records')) as { type: string }[];
    t.same(
      records.map(({ type }) => type),
      ['actor', ...Array.from({ length: 9 }, () => 'transition')],
    );
    t.match(
      await copied('Copy the stream of records as curl', 'Command'),
      /^curl -H "authorization: Bearer \$ORATORIO_TOKEN" .*inspect/,
    );
  },
  {
    at: `/actors/${path}`,
    prepare: unhealthy,
    context: { permissions: ['clipboard-read', 'clipboard-write'] },
  },
);

onPage(
  'tree, tabs, chart and time can be used by keyboard alone; palette and help list the keys',
  async (t, { page }) => {
    const focusOn = async (selector: string) => {
      for (let press = 0; press < 60; press += 1) {
        await page.keyboard.press('Tab');
        if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
      }
      throw new Error(`${selector} cannot be reached with Tab`);
    };
    const current = () =>
      page.evaluate(() => {
        const id = document.querySelector('[role=tree]')?.getAttribute('aria-activedescendant');
        return document.getElementById(id ?? '')?.querySelector('b')?.textContent;
      });
    await lit(page, 'unhealthy');
    await hasWholeLog(page, 9);
    await focusOn('[role=tree]');
    await page.keyboard.press('Home');
    await shows(t, 'equal', () => current(), 'Hub');
    await page.keyboard.press('ArrowLeft');
    await shows(t, 'equal', () => page.locator('[role=treeitem]').count(), 1, 'closed');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await shows(t, 'equal', () => current(), 'demo');
    await lit(page, 'unhealthy');
    await focusOn('[role=tab]');
    await page.keyboard.press('ArrowRight');
    await page.locator('.sequence').waitFor();
    await page.keyboard.press('End');
    await page.locator('.letters').waitFor();
    await focusOn('[role=tabpanel]');
    await focusOn('[aria-label="Step back"]');
    await page.keyboard.press('Enter');
    await lit(page, 'running');
    await focusOn('[aria-label="Moment"]');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await lit(page, 'unhealthy');
    await page.keyboard.press('b');
    await page.locator('.diff').waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('whole chart');
    await page.keyboard.press('Enter');
    await page.locator('.tools button[aria-pressed=true]', { hasText: 'Fit' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('demo');
    await page.locator('.palette [role=option]', { hasText: 'Actor' }).first().waitFor();
    await page.keyboard.press('Escape');
    await isGone(page, '.palette');
    await page.keyboard.press('?');
    for (const words of ['Step back', 'Show possible events', 'Return to the present', 'Show why of the actor']) {
      await shows(t, 'match', () => page.locator('dialog').textContent(), words);
    }
  },
  { at: `/actors/${path}`, prepare: unhealthy },
);

onPage(
  'regression: a screen of 1440 pixels shows every tab of an actor whole',
  async (t, { page }) => {
    await lit(page, 'unhealthy');
    const cut = () => page.locator('.tabs').evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
    await shows(t, 'equal', cut, 0);
  },
  { at: `/actors/${path}`, prepare: unhealthy, context: { viewport: { width: 1_440, height: 900 } } },
);

onPage(
  'axe reports nothing in any tab, live, in the past and in a menu, in both themes; targets are large enough',
  async (t, { page }) => {
    await lit(page, 'unhealthy');
    await hasWholeLog(page, 9);
    let part: string | undefined;
    for (const name of ['Events', 'Sequence', 'States', 'Snapshot', 'Diff', 'Why', 'Dead letters']) {
      await showTab(page, name);
      t.same(await axe(page, part), [], name);
      t.same(await smallTargets(page), [], name);
      part = '.tabs, [role=tabpanel]';
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await page.keyboard.press('Shift+H');
    await page.keyboard.press('[');
    await page.locator('.banner').waitFor();
    await page.locator('summary', { hasText: 'Export' }).click();
    t.same(await axe(page), [], 'the past, heat, the menu');
    for (const width of [1000, 760, 360, 320]) {
      t.notOk(await overflowsAt(page, width), `nothing is pushed sideways at ${width} px`);
    }
    await page.keyboard.press('l');
    await page.locator('.pane svg').scrollIntoViewIfNeeded();
    await shows(t, 'ok', () => page.locator('.pane svg').isVisible(), 'the chart can be reached on a phone');
    await page.keyboard.press('l');
    await page.setViewportSize({ width: 390, height: 844 });
    const height = async () => ((await page.locator('.pane').boundingBox())?.height ?? 0) / 844;
    await shows(t, 'ok', async () => (await height()) >= 0.6, 'regression: on a phone the chart is the screen');
  },
  { at: `/actors/${path}`, prepare: unhealthy },
);
