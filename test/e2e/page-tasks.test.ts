/** Tasks of a user on the page, on a laptop and on a phone, each with at most its number of presses. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { eventually, killIfThere, makeWorkspace, quick, startTestHub, temporaryDirectory } from '../hub/harness.ts';
import { axe, overflowsAt, smallTargets } from '../ui/scene.ts';

const hub = await startTestHub(t);
const shop = makeWorkspace(t, { ...quick, Provider: 'demo' }, 'shop');
const shopRecord = await hub.ensure(shop);
const infra = makeWorkspace(
  t,
  { Provider: 'demo', Supervision: { BackoffBaseMs: 20, MaxRestarts: 1, WithinSeconds: 3_600 } },
  'infra',
);
await hub.ensure(infra);
const token = pageToken(hub.home);
const browser = await launchBrowser();
t.teardown(() => browser.close());
const { apiBaseUrl } = hub.lock;

const screens = [
  { name: 'laptop', width: 1_440, height: 900 },
  { name: 'phone', width: 390, height: 844 },
] as const;
type Screen = (typeof screens)[number];

/** Counts presses on the page. */
class Hand {
  presses = 0;
  async press(target: Locator): Promise<void> {
    this.presses += 1;
    await target.click();
  }
}

async function openPage(t: Test, { width, height }: Screen, path = '/'): Promise<Page> {
  const context = await browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce' });
  t.teardown(() => context.close());
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  await page.goto(`${apiBaseUrl}${path}#token=${token}`);
  await page.locator('.connection.live').waitFor();
  return page;
}

const rail = (page: Page) => page.getByRole('navigation', { name: 'Workspaces' });
const region = (page: Page, name: string) => page.getByRole('region', { name, exact: true });
const rowOf = (page: Page, path: string) => page.getByRole('listitem', { name: path, exact: true });
const dialog = (page: Page) => page.getByRole('dialog');

async function giveUp(): Promise<void> {
  for (;;) {
    const { phase, pid, state } = await hub.record(infra);
    if (phase === 'exited.givenUp') return;
    if (state === 'running' && pid !== null) killIfThere(pid);
    await eventually(async () => {
      const now = await hub.record(infra);
      return now.phase === 'exited.givenUp' || (now.state === 'running' && now.pid !== pid) || undefined;
    }, 'the end of its process');
  }
}

/** A directory that came with untrusted settings. */
function clone(t: Test, name: string): string {
  const path = join(temporaryDirectory(t), name);
  mkdirSync(join(path, '.oratorio'), { recursive: true, mode: 0o700 });
  writeFileSync(join(path, '.oratorio', 'config.json'), '{"Provider":"demo","EndPoint":"http://127.0.0.1:9/v1"}');
  return path;
}

for (const screen of screens) {
  t.test(`${screen.name}: a repository is added, read and trusted with three presses`, async (t) => {
    const page = await openPage(t, screen);
    const hand = new Hand();
    const path = clone(t, `repo-${screen.name}`);
    await hand.press(rail(page).getByRole('button', { name: 'Add a workspace' }));
    t.same(await axe(page), []);
    await dialog(page).getByRole('textbox', { name: 'Directory' }).fill(path);
    await hand.press(dialog(page).getByRole('button', { name: 'Start' }));
    await dialog(page).getByText('EndPoint  "http://127.0.0.1:9/v1"').waitFor();
    t.same(await axe(page), []);
    await region(page, 'Broken').waitFor();
    const unread = await hub.call('POST', '/v1/trust', { workspacePath: path, revision: 'of another question' });
    t.match([unread.status, unread.body], [409, { error: { code: 'trustRefused' } }]);
    const relative = await hub.call('POST', '/v1/workspaces', { path: 'repo' });
    t.match([relative.status, relative.body], [400, { error: { code: 'invalidRequest' } }]);
    await hand.press(dialog(page).getByRole('button', { name: 'Trust and restart' }));
    await dialog(page).waitFor({ state: 'detached' });
    await eventually(async () => {
      const { state, trust, restrictedSettings } = await hub.record(path);
      return (state === 'running' && trust === 'trusted' && restrictedSettings.length === 0) || undefined;
    }, 'it runs trusted');
    await region(page, 'Quiet').getByRole('listitem', { name: path }).waitFor();
    t.ok(hand.presses <= 4);
    t.same(await axe(page), []);
    t.notOk(await overflowsAt(page, 320), 'it fits a narrow phone');
    await hub.call('POST', '/v1/appservers/stop', { workspacePath: path });
  });

  t.test(`${screen.name}: a workspace that gave up is read without a press and started with one`, async (t) => {
    await giveUp();
    const page = await openPage(t, screen);
    const broken = region(page, 'Broken');
    const row = broken.getByRole('listitem', { name: infra, exact: true });
    await row.getByText(/its process was killed \(SIGKILL\) 2 times/).waitFor();
    t.equal(await page.getByRole('heading', { level: 1 }).textContent(), 'Now');
    await rail(page).getByRole('link', { name: 'infra, gave up' }).waitFor();
    t.equal(await page.locator('nav [aria-current=page]').count(), 1, 'one place is current');
    t.same(await axe(page), []);
    t.same(await smallTargets(page), []);
    const hand = new Hand();
    await hand.press(row.getByRole('link', { name: 'infra' }));
    await page.getByRole('table', { name: 'Crashes' }).waitFor();
    t.equal(hand.presses, 1, 'the ends that led to it');
    await rail(page).getByRole('link', { name: 'infra, gave up' }).waitFor();
    t.equal(
      await rail(page).locator('[aria-current=page]').getAttribute('aria-label'),
      'infra, gave up',
      'the rail is on the page of each workspace',
    );
    await rail(page).getByRole('link', { name: 'Now' }).click();
    await row.getByRole('button', { name: 'Start again' }).click();
    await eventually(async () => (await hub.record(infra)).state === 'running' || undefined, 'it runs');
    await rowOf(page, infra).waitFor();
    await region(page, 'Quiet').getByRole('listitem', { name: infra }).waitFor();
  });

  t.test(`${screen.name}: an approval calls on every page, and is answered with two presses from any`, async (t) => {
    const page = await openPage(t, screen, (await hub.record(infra)).page ?? '/');
    const client = await AppServerClient.connect(shopRecord.endpoints['appServerWebSocket'] ?? '', {
      clientInfo: { name: 'oratorio-cli', version: '1' },
    });
    t.teardown(() => client.close());
    const { thread } = (await client.request('thread/start', { displayName: 'asks' })) as { thread: { id: string } };
    const input = [{ type: 'text', text: `run: touch asked-on-${screen.name}` }];
    await client.request('turn/start', { threadId: thread.id, input });
    const link = rail(page).getByRole('link', { name: 'Inbox, 1 waiting' });
    await link.waitFor();
    await rail(page).getByRole('link', { name: 'shop, ready, 1 waiting' }).waitFor();
    await eventually(async () => /^\(1\) /.test(await page.title()) || undefined, 'the title calls');
    const hand = new Hand();
    await hand.press(link);
    await page.locator('.request').getByText(`touch asked-on-${screen.name}`).waitFor();
    await hand.press(page.locator('.request').getByRole('button', { name: 'Allow once' }));
    await page.getByText(/^Allowed on a page, /).waitFor();
    await eventually(async () => !/^\(/.test(await page.title()) || undefined, 'the title is quiet');
    t.equal(hand.presses, 2);
  });

  t.test(
    `${screen.name}: a nightly job is made with two presses, and the form names requests that are declined`,
    async (t) => {
      const page = await openPage(t, screen, shopRecord.page ?? '/');
      await page.getByRole('link', { name: 'Automations' }).click();
      const hand = new Hand();
      await hand.press(page.getByRole('button', { name: 'New', exact: true }));
      await dialog(page).getByText('requests for approval are declined').waitFor();
      t.same(await axe(page), []);
      await dialog(page).getByRole('textbox', { name: 'Prompt' }).fill(`say good night on a ${screen.name}`);
      await dialog(page).getByLabel('Time').fill('02:30');
      await hand.press(dialog(page).getByRole('button', { name: 'Save' }));
      await dialog(page).waitFor({ state: 'detached' });
      await page.getByText(`say good night on a ${screen.name}`).first().waitFor();
      await page.getByText(/02:30/).first().waitFor({ state: 'attached' });
      t.equal(hand.presses, 2);
    },
  );

  t.test(`${screen.name}: the palette of a workspace finds workspaces, their acts and conversations`, async (t) => {
    const page = await openPage(t, screen, shopRecord.page ?? '/');
    const open = async (text: string) => {
      await page.getByRole('button', { name: /^Search and commands/ }).click();
      await dialog(page).getByRole('combobox').fill(text);
    };
    await open('restart');
    await dialog(page)
      .getByRole('option', { name: /Restart infra/ })
      .waitFor();
    await dialog(page)
      .getByRole('option', { name: /Restart shop/ })
      .waitFor();
    await page.keyboard.press('Escape');
    await open('asks');
    await dialog(page)
      .getByRole('option', { name: /Conversation.*asks.*shop/ })
      .first()
      .waitFor();
    await page.keyboard.press('Escape');
    await open('infra');
    await page.keyboard.press('Enter');
    const { page: infraPage } = await hub.record(infra);
    await page.waitForURL(({ pathname }) => pathname === infraPage);
  });
}
