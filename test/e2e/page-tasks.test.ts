/** Tasks of a user on the page, on a laptop and on a phone, each with at most its number of presses. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { eventually, killIfThere, makeWorkspace, quick, startTestHub, temporaryDirectory } from '../hub/harness.ts';
import { axe, overflowsAt, pressable, readToEnd, smallTargets } from '../ui/scene.ts';
import { shows } from '../ui/shows.ts';
import { addressIn, startDemo } from './demo.ts';
import { makePlace } from './harness.ts';

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

async function openPage(t: Test, { width, height }: Screen, path = '/', at = ''): Promise<Page> {
  const context = await browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce' });
  t.teardown(() => context.close());
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  await page.goto(`${apiBaseUrl}${path}#token=${token}${at && `&at=${at}`}`);
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

/** Has the agent of the shop ask for approval. Resolves with the id of the conversation. */
async function ask(t: Test, displayName: string, text: string): Promise<string> {
  const { endpoints } = await hub.record(shop);
  const client = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '', {
    clientInfo: { name: 'oratorio-cli', version: '1' },
  });
  t.teardown(() => client.close());
  const { thread } = (await client.request('thread/start', { displayName })) as { thread: { id: string } };
  await client.request('turn/start', { threadId: thread.id, input: [{ type: 'text', text }] });
  return thread.id;
}

/** A directory that came with untrusted settings. */
function clone(t: Test, name: string): string {
  const path = join(temporaryDirectory(t), name);
  mkdirSync(join(path, '.oratorio'), { recursive: true, mode: 0o700 });
  writeFileSync(join(path, '.oratorio', 'config.json'), '{"Provider":"demo","EndPoint":"http://127.0.0.1:9/v1"}');
  return path;
}

/** Asserts that axe finds nothing, and that each target on a phone has room for a finger. */
async function isUsable(t: Test, page: Page, { name }: Screen): Promise<void> {
  t.same(await axe(page), []);
  if (name === 'phone') t.same(await smallTargets(page, 32, pressable), []);
}

for (const screen of screens) {
  t.test(`${screen.name}: a repository is added, read and trusted with three presses`, async (t) => {
    const page = await openPage(t, screen);
    const hand = new Hand();
    const path = clone(t, `repo-${screen.name}`);
    await hand.press(rail(page).getByRole('button', { name: 'Add a workspace' }));
    await isUsable(t, page, screen);
    await dialog(page).getByRole('textbox', { name: 'Directory' }).fill(path);
    await hand.press(dialog(page).getByRole('button', { name: 'Start' }));
    await dialog(page).getByText('EndPoint  "http://127.0.0.1:9/v1"').waitFor();
    await isUsable(t, page, screen);
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
    await isUsable(t, page, screen);
    t.notOk(await overflowsAt(page, 320), 'it fits a narrow phone');
    await hub.call('POST', '/v1/appservers/stop', { workspacePath: path });
  });

  t.test(`${screen.name}: a workspace that gave up is read without a press and started with one`, async (t) => {
    await giveUp();
    const page = await openPage(t, screen);
    const broken = region(page, 'Broken');
    const row = broken.getByRole('listitem', { name: infra, exact: true });
    await row.getByText(/its process was killed \(SIGKILL\) 2 times/).waitFor();
    await shows(t, 'equal', () => page.getByRole('heading', { level: 1 }).textContent(), 'Now');
    await rail(page).getByRole('link', { name: 'infra, gave up' }).waitFor();
    await shows(t, 'equal', () => page.locator('nav [aria-current=page]').count(), 1, 'one place is current');
    await isUsable(t, page, screen);
    t.same(await smallTargets(page), []);
    const hand = new Hand();
    await hand.press(row.getByRole('link', { name: 'infra' }));
    await page.getByRole('table', { name: 'Crashes' }).waitFor();
    t.equal(hand.presses, 1, 'the ends that led to it');
    await rail(page).getByRole('link', { name: 'infra, gave up' }).waitFor();
    await shows(
      t,
      'equal',
      () => rail(page).locator('[aria-current=page]').getAttribute('aria-label'),
      'infra, gave up',
      'the rail is on the page of each workspace',
    );
    await rail(page).getByRole('link', { name: 'Now' }).click();
    await row.getByRole('button', { name: 'Start again' }).click();
    await eventually(async () => (await hub.record(infra)).state === 'running' || undefined, 'it runs');
    await rowOf(page, infra).waitFor();
    await region(page, 'Quiet').getByRole('listitem', { name: infra }).waitFor();
  });

  t.test(`${screen.name}: an approval calls on every page, and is answered with one press from any`, async (t) => {
    const page = await openPage(t, screen, (await hub.record(infra)).page ?? '/');
    await ask(t, 'asks', `run: touch asked-on-${screen.name}`);
    await rail(page).getByRole('link', { name: 'Inbox, 1 waiting' }).waitFor();
    await rail(page).getByRole('link', { name: 'shop, ready, 1 waiting' }).waitFor();
    await eventually(async () => /^\(1\) /.test(await page.title()) || undefined, 'the title calls');
    const tray = page.getByRole('complementary', { name: 'Waiting request' });
    const card = tray.getByRole('article', { name: 'Approval: shop' });
    await card.getByText(`touch asked-on-${screen.name}`, { exact: true }).waitFor();
    await card.getByText(`you asked: “run: touch asked-on-${screen.name}”`).waitFor();
    await card.getByRole('timer').waitFor();
    t.equal(await page.evaluate(() => document.activeElement?.tagName), 'BODY', 'it takes no focus');
    await shows(t, 'same', () => card.getByRole('button').allTextContents(), [
      'Allow once',
      'Allow this command in this conversation',
      'Decline',
      'Decline and stop',
      'Later',
    ]);
    await isUsable(t, page, screen);
    t.same(await smallTargets(page), []);
    if (screen.name === 'phone')
      for (const button of await card.locator('.answers button').all())
        t.ok(((await button.boundingBox())?.height ?? 0) >= 44, 'a finger hits each button');
    const hand = new Hand();
    await hand.press(card.getByRole('button', { name: 'Allow once' }));
    await page.getByText(/^Allowed on a page, /).waitFor();
    await card.waitFor({ state: 'detached' });
    await eventually(async () => !/^\(/.test(await page.title()) || undefined, 'the title is quiet');
    await eventually(() => existsSync(join(shop, `asked-on-${screen.name}`)) || undefined, 'the command runs');
    t.equal(hand.presses, 1);
  });

  t.test(
    `${screen.name}: a request that is put off stays in the inbox, and one with a danger has no default`,
    async (t) => {
      const page = await openPage(t, screen, (await hub.record(infra)).page ?? '/');
      const threadId = await ask(t, 'deletes', 'run: rm -rf not-there');
      const card = page.getByRole('article', { name: 'Approval: shop' });
      await card.getByText('deletes', { exact: true }).waitFor();
      await shows(t, 'equal', () => card.locator('.answers .main').count(), 0, 'no button stands out');
      await card.getByRole('button', { name: 'Later' }).click();
      await card.waitFor({ state: 'detached' });
      await rail(page).getByRole('link', { name: 'Inbox, 1 waiting' }).click();
      await card.waitFor();
      await shows(t, 'equal', () => card.count(), 1, 'the inbox shows it once');
      await page.goto(`${apiBaseUrl}${shopRecord.page}#/chat/${threadId}`);
      await card.waitFor();
      await shows(t, 'equal', () => card.count(), 1, 'its conversation shows it once');
      await card.getByRole('button', { name: 'Decline', exact: true }).click();
      await card.waitFor({ state: 'detached' });
    },
  );

  t.test(
    `${screen.name}: a file is changed with one press, the change is seen with one, and undone with two`,
    async (t) => {
      const page = await openPage(t, screen, `${shopRecord.page}`);
      await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Conversations' }).click();
      if (screen.name === 'phone') await page.getByRole('link', { name: 'New', exact: true }).click();
      const name = `changed-on-${screen.name}.txt`;
      const hand = new Hand();
      await page.getByRole('textbox', { name: 'Message' }).fill(`write "one line" to ${name}`);
      await hand.press(page.getByRole('button', { name: 'Send' }));
      const card = page.getByRole('article', { name: 'Approval: shop' });
      await card.locator('ins', { hasText: 'one line' }).waitFor();
      // A long path leaves the end of the change below the box: it is read before the press.
      await readToEnd(t, card);
      await hand.press(card.getByRole('button', { name: 'Allow once' }));
      const end = page.locator('.end.completed');
      await end.waitFor();
      t.equal(hand.presses, 2, 'one to send, one for the question');
      t.ok(existsSync(join(shop, name)));

      const reader = new Hand();
      await reader.press(end.getByRole('link', { name: 'Changes' }));
      await page.locator('.file-change', { hasText: name }).getByText('one line').first().waitFor();
      t.equal(reader.presses, 1, 'what it changed');
      await isUsable(t, page, screen);
      await page.goBack();

      const undoer = new Hand();
      await undoer.press(end.getByRole('button', { name: 'Undo' }));
      await dialog(page).getByText(name).waitFor();
      await undoer.press(dialog(page).getByRole('button', { name: 'Undo' }));
      await page.getByRole('status').getByText('1 file restored').waitFor();
      await page.getByRole('button', { name: 'Redo these changes' }).waitFor();
      t.equal(undoer.presses, 2, 'undone, and known to be');
      t.notOk(existsSync(join(shop, name)));
    },
  );

  t.test(`${screen.name}: another workspace is opened in the same view, without a load of the document`, async (t) => {
    const page = await openPage(t, screen, shopRecord.page ?? '/', '/chat');
    const box = page.getByRole('textbox', { name: 'Message' });
    const write = async () => {
      if (screen.name === 'phone') await page.getByRole('link', { name: 'New', exact: true }).click();
      await box.waitFor();
    };
    await write();
    await box.fill('A draft for the shop');
    await page.evaluate(() => Object.assign(window, { isSame: true }));
    const isSame = () => page.evaluate(() => 'isSame' in window);
    const current = (name: string) => rail(page).locator(`[aria-current=page][aria-label^="${name},"]`).waitFor();
    await rail(page)
      .getByRole('link', { name: /^infra,/ })
      .click();
    await current('infra');
    await write();
    const infraPath = (await hub.record(infra)).page;
    await page.waitForURL(({ pathname, hash }) => pathname === infraPath && hash.startsWith('#/chat'));
    await shows(t, 'equal', () => box.inputValue(), '', 'a draft belongs to its workspace');
    t.ok(await isSame());
    await rail(page).getByRole('link', { name: 'Now', exact: true }).click();
    await region(page, 'Quiet').waitFor();
    await page.goBack();
    await current('infra');
    await rail(page)
      .getByRole('link', { name: /^shop,/ })
      .click();
    await current('shop');
    await write();
    await shows(t, 'equal', () => box.inputValue(), 'A draft for the shop');
    await page.locator('.connection.live').waitFor();
    t.ok(await isSame());
  });

  t.test(`${screen.name}: another agent is chosen with at most four presses`, async (t) => {
    const page = await openPage(t, screen, shopRecord.page ?? '/');
    const hand = new Hand();
    await hand.press(page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Settings' }));
    const agent = page.getByRole('region', { name: 'Agent', exact: true });
    const choose = async (name: string) => {
      await agent.getByRole('combobox').selectOption(name);
      await hand.press(agent.getByRole('button', { name: 'Use and restart' }));
      await eventually(async () => {
        const { state, agent } = await hub.record(shop);
        return (state === 'running' && agent?.name === name) || undefined;
      }, `${name} does the turns`);
    };
    await choose('opencode');
    t.ok(hand.presses + 1 <= 4, 'with the press that opens the list');
    await choose('oratorio');
  });

  t.test(
    `${screen.name}: the cost of a conversation is the same in the list of all and in that of its workspace`,
    async (t) => {
      const page = await openPage(t, screen, '/', '/threads');
      const rows = page.getByRole('list', { name: 'Conversations' }).getByRole('listitem');
      await rows.first().waitFor();
      t.notMatch(await page.locator('main').textContent(), /thread_/, 'no conversation has an id as its name');
      await page
        .getByRole('img', { name: /^(?:\d+ % [a-z ]+, )+\d/ })
        .first()
        .waitFor();
      const ended = rows.filter({ hasText: 'Last turn ok' }).first();
      await shows(t, 'equal', () => ended.locator('.cost').textContent(), 'free', 'the demo costs nothing');
      await isUsable(t, page, screen);
      t.notOk(await overflowsAt(page, 320), 'it fits a narrow phone');
      await ended.getByRole('link').click();
      await page.locator('.end').last().getByText('free').waitFor();
    },
  );

  t.test(
    `${screen.name}: a nightly job is made with two presses, and the form names requests that are declined`,
    async (t) => {
      const page = await openPage(t, screen, shopRecord.page ?? '/');
      await page.getByRole('link', { name: 'Automations' }).click();
      const hand = new Hand();
      await hand.press(page.getByRole('button', { name: 'New', exact: true }));
      await dialog(page).getByText('requests for approval are declined').waitFor();
      await isUsable(t, page, screen);
      await dialog(page).getByRole('textbox', { name: 'Prompt' }).fill(`say good night on a ${screen.name}`);
      await dialog(page).getByLabel('Time').fill('02:30');
      await hand.press(dialog(page).getByRole('button', { name: 'Save' }));
      await dialog(page).waitFor({ state: 'detached' });
      await page.getByText(`say good night on a ${screen.name}`).first().waitFor();
      await page.getByText(/02:30/).first().waitFor({ state: 'attached' });
      t.equal(hand.presses, 2);
    },
  );

  t.test(`${screen.name}: one of three findings and an edited summary are published with three presses`, async (t) => {
    const place = makePlace(t, 'oratorio-demo-test-');
    const demo = await startDemo(t, place, 'oratorio backend --demo --open');
    const { width, height } = screen;
    const context = await browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce' });
    t.teardown(() => context.close());
    context.setDefaultTimeout(300_000);
    const page = await context.newPage();
    await page.goto(addressIn(demo.opened).href);
    const hand = new Hand();
    await hand.press(page.getByRole('link', { name: /^Add vouchers/ }));
    const finding = page.getByRole('article', { name: 'The loop runs one step too far' });
    await page.getByRole('button', { name: 'Publish 3 findings' }).waitFor();
    await hand.press(finding.getByRole('button', { name: 'Publish only this…' }));
    await dialog(page).getByRole('textbox').fill('One loop runs too far.');
    await isUsable(t, page, screen);
    await hand.press(dialog(page).getByRole('button', { name: 'Publish 1 finding' }));
    await page.getByText('Published', { exact: true }).first().waitFor();
    const address = await page
      .getByRole('link', { name: /^Add vouchers/ })
      .first()
      .getAttribute('href');
    const published = await (await fetch(address ?? '')).text();
    t.match(published, /One loop runs too far\./);
    t.match(published, /The loop runs one step too far/);
    t.notMatch(published, /A query is built from text/, 'the other findings are not published');
    t.ok(hand.presses <= 4);
    demo.child.kill('SIGINT');
    await demo.ended;
  });

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
