/**
 * Takes the pictures of `docs/images/`: a real Hub, real agent servers, a second machine over ssh, a workspace with a history, the
 * API of a review backend, and a browser.
 *
 *   npm run build && node scripts/screenshots.ts [directory]      default: docs/images
 */
import type { Page } from 'playwright-core';
import type { AppServerClient, HubClient } from '../src/client/index.ts';
import { runTurn } from '../test/e2e/agent-server.ts';
import { begin, type Conversation, clientOf, conversations, makeBookshop } from '../test/e2e/bookshop.ts';
import { oratorio, oratorioJson, type Place, type Teardown } from '../test/e2e/harness.ts';
import { type Machines, makeMachines } from '../test/e2e/ssh-machine.ts';
import { eventually } from '../test/hub/harness.ts';
import { type Picture, takePictures, withStudio } from './camera.ts';
import { furnishReviews, reviewPictures } from './screenshots-review.ts';

/** Workspace with a waiting request, a failed turn and finished ones, as after some hours of work. */
async function furnish(t: Teardown, place: Place, hub: HubClient) {
  const config = {
    Models: { 'folio-large': { Price: { input: 3, output: 15 } } },
    Compaction: { AutoCompactEnabled: false },
  };
  const { workspacePath } = await makeBookshop(t, place, { paceMs: 25, config });
  await hub.ensure({ workspacePath });
  await furnishHub(place, hub);
  const client = await clientOf(t, hub, workspacePath, { onRequest: answerApproval });
  const talk = async (name: string, ...about: readonly Conversation[]) => {
    const id = await begin(client, workspacePath, name);
    for (const each of about) await runTurn(client, id, conversations[each].ask);
    return id;
  };
  await talk('Release notes', 'notes');
  await talk('Refunds', 'missing');
  await talk('Archive of orders', 'refused');
  await talk('Stock list', 'thought', 'digest');
  const threadId = await talk('The missing cent', 'voucher');
  await askForever(client, await begin(client, workspacePath, 'Publish 1.4.0'));
  return { workspacePath, threadId };
}

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
const quickProbes = { ...patient, ProbeIntervalMs: 100, ProbeTimeoutMs: 100 };
const persistent = { BackoffBaseMs: 50, BackoffCapMs: 50, MaxRestarts: 2, WithinSeconds: 3_600 };

/** Workspaces in several states: running, silent, given up, stopped. */
async function furnishHub(place: Place, hub: HubClient): Promise<void> {
  const settings = { gazette: quickProbes, lighthouse: persistent, weather: patient };
  const started = Object.entries(settings).map(async ([name, Supervision]) => {
    const workspacePath = place.workspace(name, { Supervision });
    const { pid } = await hub.ensure({ workspacePath });
    return [name, { workspacePath, pid: pid ?? 0 }] as const;
  });
  const { gazette, lighthouse, weather } = Object.fromEntries(await Promise.all(started));
  if (!gazette || !lighthouse || !weather) throw new Error('Not every workspace was started.');
  process.kill(gazette.pid, 'SIGSTOP');
  await hub.stop(weather.workspacePath);
  await killUntilGivenUp(hub, lighthouse.workspacePath);
}

async function killUntilGivenUp(hub: HubClient, workspacePath: string): Promise<void> {
  for (;;) {
    const { state, phase, pid } = await eventually(async () => {
      const record = await hub.byWorkspace(workspacePath);
      return record.state === 'running' || record.phase === 'exited.givenUp' ? record : undefined;
    }, 'the server runs, or was given up');
    if (phase === 'exited.givenUp') return;
    if (state === 'running' && pid) process.kill(pid, 'SIGKILL');
    await eventually(async () => (await hub.byWorkspace(workspacePath)).pid !== pid || undefined, 'the end is noticed');
  }
}

/** Adds the second machine, with a workspace. */
async function addMachine({ here, there, program }: Machines): Promise<void> {
  const workspacePath = there.workspace('atlas', { Provider: 'demo' });
  await oratorio(here, ['hosts', 'add', 'ssh://box', '--name', 'studio', '--program', program, '--json']);
  await oratorioJson(here, 'up', `studio:${workspacePath}`);
}

const waiting = (page: Page) => page.locator('.request button:enabled').first().waitFor();
/** Closes the card above the view. */
const later = (page: Page) => page.getByRole('button', { name: 'Later' }).click();

async function chooseWaitingTurn(page: Page): Promise<void> {
  await later(page);
  await page.locator('[role=treeitem]', { hasText: 'awaitingApproval' }).first().click();
  await page.locator('.node.active[data-state$="awaitingApproval"]').waitFor({ state: 'attached' });
}

const hubPictures: readonly Picture[] = [
  { name: 'now', at: '/now', prepare: waiting },
  { name: 'inbox', at: '/inbox', prepare: waiting },
  { name: 'phone', at: '/now', isOnPhone: true, prepare: waiting },
];

const bookshopPictures = (threadId: string): readonly Picture[] => [
  {
    name: 'trace',
    at: `/chat/${threadId}?lens=trace`,
    prepare: async (page) => {
      await later(page);
      await page.locator('.bar-row', { hasText: 'src/total.js' }).last().click();
    },
  },
  {
    name: 'changes',
    at: `/chat/${threadId}?lens=changes`,
    prepare: async (page) => {
      await later(page);
      await page.locator('.file-change').first().waitFor();
    },
  },
  {
    name: 'chart',
    at: `/chat/${threadId}?lens=chart`,
    prepare: async (page) => {
      await later(page);
      await page.locator('.edge.taken').first().waitFor({ state: 'attached' });
    },
  },
  { name: 'actors', at: '/actors', prepare: chooseWaitingTurn },
  { name: 'phone-chart', at: '/actors', isOnPhone: true, prepare: chooseWaitingTurn },
];

const whyPictures: readonly Picture[] = [
  {
    name: 'why',
    at: '/overview',
    prepare: async (page) => {
      await page.getByRole('table', { name: 'Crashes' }).waitFor();
      await later(page);
    },
  },
];

let machines: Machines | undefined;
await withStudio(
  async (studio) => {
    const { t, place, hub } = studio;
    // The user's file gets the host: a workspace that started before would report a changed configuration.
    if (machines) await addMachine(machines);
    const { workspacePath, threadId } = await furnish(t, place, hub.client);
    const { stdout } = await oratorio(place, ['inspect', '--print-url']);
    const [origin = '', token = ''] = stdout.trim().split('/#token=');
    const addressIn = (path: string | null) => (at: string) =>
      `${origin}${path ?? '/'}#${new URLSearchParams({ token, at })}`;
    const pageOf = async (path: string) => (await hub.client.byWorkspace(path)).page ?? null;
    await takePictures(studio, hubPictures, addressIn('/'));
    await takePictures(studio, bookshopPictures(threadId), addressIn(await pageOf(workspacePath)));
    const lighthouse = workspacePath.replace(/[^/]+$/, 'lighthouse');
    await takePictures(studio, whyPictures, addressIn(await pageOf(lighthouse)));
    const reviews = await furnishReviews(t);
    await takePictures(studio, reviewPictures(reviews), reviews.address);
  },
  async (t) => {
    machines = await makeMachines(t);
    return machines.here;
  },
);
