/**
 * Takes the pictures of `docs/images/`: a real Hub, real agent servers, a workspace with a history, the API of a review backend,
 * and a browser.
 *
 *   npm run build && node scripts/screenshots.ts [directory]      default: docs/images
 */
import type { Page } from 'playwright-core';
import type { AppServerClient, HubClient } from '../src/client/index.ts';
import { runTurn } from '../test/e2e/agent-server.ts';
import { begin, type Conversation, clientOf, conversations, dashboardUrl, makeBookshop } from '../test/e2e/bookshop.ts';
import { oratorio, type Place, type Teardown } from '../test/e2e/harness.ts';
import { type Picture, takePictures, withStudio } from './camera.ts';
import { furnishReviews, reviewPictures } from './screenshots-review.ts';

/** A turn that is being asked about, one that has failed, jobs that have run: as after some hours of work. */
async function furnish(t: Teardown, place: Place, hub: HubClient) {
  const { workspacePath } = await makeBookshop(t, place, { paceMs: 25, config: { Api: { Enabled: true } } });
  await hub.ensure({ workspacePath });
  await furnishHub(place, hub);
  const client = await clientOf(t, hub, workspacePath, { onRequest: answerApproval });
  const talk = async (name: string, ...about: readonly Conversation[]) => {
    const id = await begin(client, workspacePath, name);
    for (const each of about) await runTurn(client, id, conversations[each].ask);
    return id;
  };
  for (const args of jobs) await oratorio(place, ['cron', 'add', '--workspace', workspacePath, ...args]);
  await oratorio(place, [
    'task',
    'add',
    '--workspace',
    workspacePath,
    conversations.thought.ask,
    '--name',
    'stock list',
  ]);
  await oratorio(place, ['cron', 'run', 'digest', '--wait', '--workspace', workspacePath]);
  await oratorio(place, ['cron', 'run', 'archive', '--wait', '--workspace', workspacePath]);
  await oratorio(place, ['cron', 'run', 'digest', '--wait', '--workspace', workspacePath]);
  const chatId = await talk('Release notes', 'notes');
  await talk('Refunds', 'missing');
  await talk('Archive of orders', 'refused');
  await talk('Stock list', 'thought', 'digest');
  const sessionId = await talk('The missing cent', 'voucher', 'notes', 'missing', 'voucher');
  await askForever(client, await begin(client, workspacePath, 'Publish 1.4.0'));
  return { workspacePath, sessionId, chatId };
}

const jobs: readonly (readonly string[])[] = [
  ['--daily', '07:30', '--tz', 'Europe/Berlin', '--yes', '--name', 'digest', conversations.digest.ask],
  ['--cron', '0 9 * * MON-FRI', '--tz', 'Europe/Berlin', '--name', 'stand-up', conversations.notes.ask],
  ['--every', '6h', '--name', 'archive', conversations.refused.ask],
  ['--every', '15m', '--name', 'stock', '--disabled', conversations.thought.ask],
];

/** Answers take a moment; a publication gets no answer at all. */
async function answerApproval(_: string, params: unknown): Promise<unknown> {
  if (JSON.stringify(params).includes('npm publish')) return new Promise(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 400));
  return { decision: 'accept' };
}

/** Begins a turn that waits for a decision. */
async function askForever(client: AppServerClient, threadId: string): Promise<void> {
  const asked = new Promise<void>((resolve) => {
    client.onNotification(({ method, params }) => {
      if (method === 'item/approval/requested' || JSON.stringify(params).includes('npm publish')) resolve();
    });
  });
  await client.request('turn/start', { threadId, input: [{ type: 'text', text: conversations.publish.ask }] });
  await asked;
}

const patient = { BackoffBaseMs: 600_000, BackoffCapMs: 600_000, UnhealthyGraceMs: 600_000 };

/** Workspaces in several states: running, silent, crashed and waiting, ended, stopped. */
async function furnishHub(place: Place, hub: HubClient): Promise<void> {
  const nervous = { ...patient, ProbeIntervalMs: 100, ProbeTimeoutMs: 100 };
  const settings = {
    gazette: nervous,
    lighthouse: patient,
    orchard: { ...patient, Restart: 'never' },
    weather: patient,
  };
  const started = Object.entries(settings).map(async ([name, Supervision]) => {
    const workspacePath = place.workspace(name, { Supervision });
    const { pid } = await hub.ensure({ workspacePath });
    return [name, { workspacePath, pid: pid ?? 0 }] as const;
  });
  const { gazette, lighthouse, orchard, weather } = Object.fromEntries(await Promise.all(started));
  if (!gazette || !lighthouse || !orchard || !weather) throw new Error('Not every workspace was started.');
  process.kill(gazette.pid, 'SIGSTOP');
  process.kill(lighthouse.pid, 'SIGKILL');
  process.kill(orchard.pid, 'SIGKILL');
  await hub.stop(weather.workspacePath);
}

const picturesOf = (sessionId: string, chatId: string): readonly Picture[] => [
  { name: 'overview', at: '/overview', prepare: (page) => page.getByText('Publish 1.4.0').first().waitFor() },
  {
    name: 'chat',
    at: `/chat/${chatId}`,
    prepare: (page) => page.locator('.row-end').first().waitFor(),
  },
  { name: 'sessions', at: '/sessions', prepare: (page) => page.getByText('The missing cent').first().waitFor() },
  {
    name: 'trace',
    at: `/sessions/${sessionId}`,
    prepare: async (page) => {
      await page.locator('.bar-row', { hasText: 'Exec' }).first().click();
      await page.locator('.detail pre').first().waitFor();
    },
  },
  {
    name: 'actors',
    at: '/actors',
    prepare: async (page) => {
      await page.locator('[role=treeitem]', { hasText: 'awaitingApproval' }).first().click();
      await page.locator('.node.active[data-state$="awaitingApproval"]').waitFor({ state: 'attached' });
    },
  },
  {
    name: 'automations',
    at: '/automations',
    prepare: (page) => page.getByText('digest').first().click(),
  },
  { name: 'settings', at: '/settings', prepare: (page) => page.getByText('Model', { exact: true }).first().waitFor() },
  { name: 'events', at: '/events', prepare: (page) => page.getByText('tool.completed').first().waitFor() },
  { name: 'logs', at: '/logs', prepare: (page) => page.locator('.line').first().waitFor() },
];

async function lookAtFailure(page: Page): Promise<void> {
  await page.locator('[role=treeitem]', { hasText: 'lighthouse' }).first().click();
  await page.locator('.node.active[data-state^="exited"]').first().waitFor({ state: 'attached' });
}

await withStudio(async (studio) => {
  const { t, place, hub } = studio;
  const { workspacePath, sessionId, chatId } = await furnish(t, place, hub.client);
  const { stdout } = await oratorio(place, ['inspect', '--print-url']);
  const reviews = await furnishReviews(t);
  await takePictures(studio, picturesOf(sessionId, chatId), (at) => dashboardUrl(place, hub.client, workspacePath, at));
  await takePictures(studio, reviewPictures(reviews), reviews.address);
  await takePictures(
    studio,
    [
      { name: 'hub', at: '/actors', prepare: lookAtFailure },
      { name: 'inbox', at: '/inbox', prepare: (page) => page.locator('.request button:enabled').first().waitFor() },
    ],
    (at) => `${stdout.trim()}&at=${at}`,
  );
});
