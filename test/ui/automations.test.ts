/** The automations view: schedules, runs and actions. */
import type { Locator, Page } from 'playwright-core';
import type { Automation, AutomationRun } from '../../src/protocol/index.ts';
import { goTo } from './kept-page.ts';
import { axe, stage } from './scene.ts';
import { shows } from './shows.ts';
import { untilToast } from './toast.ts';
import type { WorkspaceBackend } from './workspace-backend.ts';

const scene = await stage();

const run = (runId: string, status: AutomationRun['status'], more: Partial<AutomationRun> = {}): AutomationRun => ({
  runId,
  automationId: 'a1',
  scheduledFor: '2026-11-21T06:30:00.000Z',
  startedAt: '2026-11-21T06:30:01.000Z',
  status,
  trigger: 'schedule',
  attempt: 1,
  coalesced: 1,
  durationMs: 42_000,
  ...more,
});

const automation = (id: string, name: string, more: Partial<Automation> = {}): Automation => ({
  id,
  kind: 'cron',
  name,
  prompt: `Please look at ${name}.`,
  schedule: { kind: 'daily', time: '07:30', timeZone: 'Asia/Tokyo' },
  scheduleText: 'Every day at 07:30',
  enabled: true,
  binding: { mode: 'new' },
  deleteAfterRun: false,
  state: 'waiting',
  nextRunAt: new Date(Date.now() + 3 * 3_600_000 + 30 * 60_000).toISOString(),
  upcoming: [1, 2, 3, 4, 5].map((day) => new Date(Date.now() + day * 86_400_000).toISOString()),
  failures: 0,
  recentRuns: [],
  createdAt: '2026-11-01T00:00:00.000Z',
  updatedAt: '2026-11-01T00:00:00.000Z',
  version: 1,
  ...more,
});

const runs = [
  run('r3', 'failed', { error: { code: 'turnFailed', message: 'The provider is not reachable.' }, attempt: 2 }),
  run('r2', 'completed', { threadId: 'thread_9', turnId: 'turn_4', result: 'All is well.' }),
  run('r1', 'missed', { coalesced: 3 }),
];

function fill(backend: WorkspaceBackend): void {
  backend.state.runs = runs;
  backend.state.automations = {
    ...backend.state.automations,
    cron: [
      automation('a1', 'morning report', { recentRuns: runs }),
      automation('a2', 'weekly review', { enabled: false, state: 'paused' }),
    ],
    tasks: [automation('b1', 'tidy up', { kind: 'task', state: 'running', recentRuns: [run('r9', 'running')] })],
    countsByState: { running: 1, waiting: 1, paused: 1 },
  };
}

const row = (page: Page, name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name }) });

scene(
  'jobs and tasks',
  { at: '/automations', prepare: fill },
  {
    'jobs and tasks show state, schedule, next run, last runs and error': async (t, { page }) => {
      const first = row(page, 'morning report');
      await first.waitFor();
      t.same(await axe(page), []);
      const text = () => first.textContent();
      await shows(t, 'match', text, 'Waiting');
      await shows(t, 'match', text, 'Every day at 07:30');
      await shows(t, 'match', text, 'in 3 h');
      await shows(t, 'match', text, 'GMT+9', 'in the zone of the schedule');
      await shows(t, 'match', text, 'The provider is not reachable.');
      await first.getByRole('img', { name: '3 runs: 1 failed, 1 completed, 1 missed' }).waitFor();
      await shows(t, 'match', () => row(page, 'weekly review').textContent(), 'Off');
      await shows(t, 'match', () => row(page, 'tidy up').textContent(), 'Running');
      await page.getByText('3 in all, 1 running').waitFor();
      const rightOf = (at: Locator) => at.evaluate((element) => element.getBoundingClientRect().right);
      const heading = page.getByRole('columnheader', { name: 'Last runs' });
      const runs = first.getByRole('img', { name: /runs/ });
      t.ok(Math.abs((await rightOf(heading)) - (await rightOf(runs))) < 16, 'the last runs are below their heading');
      await page.keyboard.press('/');
      await page.keyboard.type('weekly');
      await first.waitFor({ state: 'detached' });
      // Clears the filter, then leaves it.
      await page.keyboard.press('Escape');
      await first.waitFor();
      await page.keyboard.press('Escape');
    },
    'a selected automation shows its prompt, next runs and each run with its session': async (t, { page }) => {
      await goTo(page, '/automations/a1');
      const drawer = page.getByRole('complementary', { name: 'Selected automation' });
      await drawer.getByText('Please look at morning report.').waitFor();
      await shows(t, 'equal', () => drawer.locator('.upcoming li').count(), 5);
      await drawer.getByText('The provider is not reachable.').waitFor();
      await shows(t, 'match', () => drawer.textContent(), 'attempt 2');
      await shows(t, 'match', () => drawer.textContent(), 'stands for 3 due times');
      await shows(
        t,
        'equal',
        () => drawer.getByRole('link', { name: 'Trace' }).getAttribute('href'),
        '#/sessions/thread_9?turn=turn_4',
      );
      t.same(await axe(page), []);
      await page.keyboard.press('Escape');
      await drawer.waitFor({ state: 'detached' });
      t.match(page.url(), /#\/automations$/);
    },
    'a refused action shows the message of the server and leaves the row unchanged': async (t, { page, backend }) => {
      await row(page, 'morning report').waitFor();
      backend.state.failWith = 503;
      const refused = untilToast(page, 'The disk is full.');
      await page.getByRole('button', { name: 'Run “morning report” now' }).click();
      await refused;
      await page.locator('.banner').getByText('The disk is full.').waitFor();
      await shows(t, 'match', () => row(page, 'morning report').textContent(), 'Waiting', 'the row is unchanged');
      backend.state.failWith = undefined;
      // Not `click()`, which waits for a stable button: the page retries by itself and may remove the banner first.
      await page.locator('.banner').evaluateAll(([banner]) => banner?.querySelector('button')?.click());
      await page.locator('.banner').waitFor({ state: 'detached' });
    },
  },
);

scene(
  'an automation can be run, disabled and refreshed, and deleted after a confirmation',
  { at: '/automations', prepare: fill },
  async (t, { page, backend }) => {
    await page.getByRole('button', { name: 'Run “morning report” now' }).click();
    await row(page, 'morning report').getByText('Running').waitFor();
    await page.getByRole('switch', { name: 'Run “weekly review” on schedule', checked: false }).click();
    await row(page, 'weekly review').getByText('Waiting').waitFor();
    await page.getByRole('switch', { name: 'Run “weekly review” on schedule', checked: true }).waitFor();
    t.match(backend.bodies.at(-1), { path: '/dashboard/api/automations/a2/enable', body: { enabled: true } });
    const refreshed = untilToast(page, 'Schedules reloaded.');
    await page.keyboard.press('r');
    await refreshed;

    await page.getByRole('button', { name: 'Delete “weekly review”' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete “weekly review”?' });
    await shows(
      t,
      'match',
      () => dialog.textContent(),
      'The conversations of its runs stay',
      'the dialog names what is retained',
    );
    t.same(await axe(page), []);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    t.notOk(backend.requests.some((request) => request.startsWith('DELETE')));
    await page.getByRole('button', { name: 'Delete “weekly review”' }).click();
    await dialog.getByRole('button', { name: 'Delete it' }).click();
    await row(page, 'weekly review').waitFor({ state: 'detached' });
    t.ok(backend.requests.includes('DELETE /dashboard/api/automations/a2'));
  },
);

scene('without automations the page shows the command that adds one', { at: '/automations' }, async (t, { page }) => {
  await page.getByRole('heading', { name: 'Nothing runs by itself yet' }).waitFor();
  await shows(t, 'match', () => page.locator('main').textContent(), 'oratorio cron add');
  t.same(await axe(page), []);
});

scene(
  'a read-only page disables actions and shows the reason',
  { at: '/automations', readOnly: 'This is a viewer.', prepare: fill },
  async (t, { page }) => {
    await row(page, 'morning report').waitFor();
    await page.getByText('This is a viewer.').waitFor();
    await shows(t, 'equal', () => page.getByRole('button', { name: 'Run “morning report” now' }).isDisabled(), true);
    await shows(t, 'equal', () => page.getByRole('button', { name: 'Delete “morning report”' }).isDisabled(), true);
  },
);

scene(
  'a table of thousands of schedules stays usable',
  {
    at: '/automations',
    prepare: (backend) => {
      const cron = Array.from({ length: 5_000 }, (_, index) => automation(`a${index}`, `job ${index}`));
      backend.state.automations = { ...backend.state.automations, cron };
    },
  },
  async (t, { page }) => {
    await row(page, 'job 199').waitFor();
    t.equal(await page.getByRole('link', { name: 'job 200', exact: true }).count(), 0);
    await page.keyboard.press('/');
    await page.keyboard.type('job 4999');
    await row(page, 'job 4999').waitFor();
  },
);
