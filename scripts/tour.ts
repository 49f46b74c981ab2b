/**
 * Records the two-minute tour: a real Hub, a real agent server and a real review backend on the demo model, in a browser.
 *
 *   npm run build && node scripts/tour.ts [directory]      default: docs/images
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { AppServerClient } from '../src/client/index.ts';
import { command, oratorio, type Place, type Teardown } from '../test/e2e/harness.ts';
import { allowAskingForNotices, type Studio, withStudio } from './camera.ts';
import { Film } from './film.ts';

const laptop = { width: 1_120, height: 740 };
const phone = { width: 390, height: 740 };

async function open(browser: Browser, viewport: typeof laptop, address: string): Promise<Page> {
  const context = await browser.newContext({
    viewport,
    colorScheme: 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
  });
  context.setDefaultTimeout(60_000);
  await context.addInitScript(allowAskingForNotices);
  const page = await context.newPage();
  await page.goto(address);
  await page.locator('.connection.live').waitFor();
  return page;
}

const button = (of: Page | Locator, name: string): Locator => of.getByRole('button', { name, exact: true }).first();

/** Shows where, then presses. */
async function press(film: Film, page: Page, target: Locator, caption: string, seconds = 3): Promise<void> {
  await target.waitFor();
  await target.scrollIntoViewIfNeeded();
  await film.shot(page, caption, seconds, target);
  await target.click();
}

/** Words in the composer, an approval with the exact command, its result, and the way back. */
async function chat(film: Film, page: Page): Promise<void> {
  const composer = page.getByRole('textbox', { name: 'Message' });
  await page.getByLabel('Model').waitFor();
  await composer.fill('write hours.txt: Monday to Friday, 9 to 18 then run: wc -w hours.txt');
  await film.shot(page, 'Chat: say what to do. (The model here is the demo model: offline, no AI.)', 5, composer);
  await composer.press('Enter');
  const undo = button(page, 'Undo');
  const allow = button(page, 'Allow once');
  const captions = [
    'A change waits for you: shown whole, with the scope of each answer.',
    'The next one asks for itself.',
  ];
  for (const caption of captions) {
    await allow.or(undo).first().waitFor();
    if (await undo.isVisible()) break;
    await press(film, page, allow, caption, 5);
    await allow.waitFor({ state: 'detached' });
  }
  await undo.waitFor();
  await page.getByRole('region', { name: 'Run wc -w hours.txt' }).getByRole('button', { expanded: false }).click();
  await page.mouse.move(0, 0);
  await film.shot(page, 'Tool cards show the command, its duration and its output.', 5);
  await page.getByRole('tab', { name: 'Changes' }).click();
  await page.locator('.file-change').first().waitFor();
  await film.shot(page, 'Lenses beside the messages: the changes of a turn, to keep or to revert …', 5);
  await page.getByRole('tab', { name: 'Trace' }).click();
  await page.locator('.bar-row').first().waitFor();
  await film.shot(page, '… its trace, with the time, tokens and cost of each round …', 5);
  await page.getByRole('tab', { name: 'Chart' }).click();
  await page.locator('.edge.taken').first().waitFor({ state: 'attached' });
  await film.shot(page, '… and its states: the path that the turn took, with counts.', 6);
  await page.getByRole('tab', { name: 'Chart' }).click();
  await press(film, page, undo, 'Every turn can be taken back, whichever tool changed the files.', 4);
  const dialog = page.getByRole('dialog');
  await press(film, page, button(dialog, 'Undo'), 'It asks first, and never overwrites your later changes.', 5);
  await dialog.waitFor({ state: 'hidden' });
  await film.shot(page, 'The files are back in their state before the turn.', 4);
}

/** A waiting turn as a statechart, and the effect of another event on a copy of it. */
async function chart(film: Film, page: Page): Promise<void> {
  await page.evaluate(() => {
    location.hash = '/actors';
  });
  // The waiting request stands above the view.
  await button(page, 'Later').click();
  await page.locator('[role=treeitem]', { hasText: 'awaitingApproval' }).first().click();
  await page.locator('.node.active[data-state$="awaitingApproval"]').waitFor({ state: 'attached' });
  await film.shot(page, 'Everything is a statechart that you can watch: this turn waits for an approval.', 7);
  await press(film, page, button(page, 'Simulate from here'), 'What if? Step a copy; the real turn is not touched.', 5);
  const panel = page.getByRole('region', { name: 'Simulation' });
  await panel.waitFor();
  await film.shot(page, 'Any event can be sent to the copy.', 4);
  const full = panel.getByRole('button', { name: 'STORAGE.FAILED' });
  await press(film, page, full, 'What would a full disk do to it now?', 4);
  await film.shot(page, 'It shows where the event leads, and which actions would run.', 6);
  await button(page, 'Leave').click();
}

/** Everything that needs a person, first. */
async function now(film: Film, page: Page): Promise<void> {
  await page.locator('.request').nth(1).locator('button:enabled').first().waitFor();
  await film.shot(page, 'Now: requests first, then running, broken and quiet workspaces.', 6);
}

/** Two workspaces wait, in one inbox; one of them is answered. */
async function inbox(film: Film, page: Page): Promise<void> {
  await page.locator('.request').nth(1).locator('button:enabled').first().waitFor();
  const request = page.locator('.request', { hasText: 'npm publish' });
  await film.shot(page, 'The approvals of all workspaces in one inbox, on your phone, too.', 6);
  await press(
    film,
    page,
    request.getByRole('button', { name: 'Allow once' }),
    'Each request is decided exactly once.',
    4,
  );
  await request.getByText(/^Allowed on a page, /).waitFor();
  await film.shot(page, 'Every decision is recorded, with its place and time.', 5);
}

/** The review of the bundled repository, from the queue to the published review. */
async function review(film: Film, { browser, place, t }: Studio): Promise<void> {
  const address = await startDemo(t, place);
  const page = await open(browser, laptop, address);
  const link = page.getByRole('link', { name: /^Add vouchers/ });
  const row = page.getByRole('row').filter({ has: link });
  await film.shot(page, 'oratorio backend --demo reviews a pull request automatically.', 6, row);
  await link.click();
  const publish = button(page, 'Publish 3 findings');
  await publish.waitFor();
  await button(page, 'Cancel').waitFor({ state: 'detached' });
  await film.shot(page, 'Findings wait as a draft: accept, edit or skip each of them.', 8);
  await page.getByRole('article').nth(2).scrollIntoViewIfNeeded();
  await film.shot(page, 'Each stands at its lines; a sure fix becomes a suggestion that can be applied.', 8);
  await press(film, page, publish, 'Nothing is written to the pull request before you publish.', 5);
  await press(film, page, page.getByRole('dialog').getByRole('button', { name: 'Publish' }), 'It asks once more.', 4);
  await page.getByText('Published', { exact: true }).first().waitFor();
  await film.shot(page, 'Published once, also after a crash in between.', 5);
}

async function startDemo(t: Teardown, place: Place): Promise<string> {
  const child = spawn(process.execPath, [command, 'backend', '--demo', '--print-url'], {
    cwd: place.root,
    env: { ...place.env, ORATORIO_LOG: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(async () => {
    const ended = once(child, 'close');
    child.kill('SIGINT');
    await ended;
  });
  let printed = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    printed += String(chunk);
    const [found] = /http:\S+#token=\S+/.exec(printed) ?? [];
    if (found) return found;
  }
  throw new Error(`The demo ended: ${printed}`);
}

/** Begins a turn that waits for an approval. */
async function ask({ t, hub }: Studio, workspacePath: string, name: string, command: string): Promise<void> {
  const { endpoints } = await hub.client.ensure({ workspacePath });
  const client = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '', {
    clientInfo: { name: 'tour', version: '1' },
  });
  t.teardown(() => client.close());
  const { thread } = (await client.request('thread/start', { displayName: name })) as {
    thread: { id: string };
  };
  await client.request('turn/start', {
    threadId: thread.id,
    input: [{ type: 'text', text: `run: ${command}` }],
  });
}

await withStudio(async (studio) => {
  const { browser, hub, place, directory } = studio;
  const workspacePath = place.workspace('bookshop', { Provider: 'demo' });
  const record = await hub.client.ensure({ workspacePath });
  const { stdout } = await oratorio(place, ['inspect', '--print-url']);
  const [origin = '', token = ''] = stdout.trim().split('/#token=');
  const film = await Film.begin(browser, laptop);
  await film.title('Oratorio', 'A coding agent in every workspace, and a view of the work of each.', 5);
  const page = await open(browser, laptop, `${origin}${record.page}#token=${token}&at=/chat`);
  await chat(film, page);
  await ask(studio, workspacePath, 'Publish 1.4.0', 'npm publish --tag latest --dry-run');
  await chart(film, page);
  const weather = place.workspace('weather', { Provider: 'demo' });
  await ask(studio, weather, 'Newest forecast', 'curl -O https://weather.example/today.json');
  await now(film, await open(browser, laptop, `${origin}/#token=${token}&at=/now`));
  await inbox(film, await open(browser, phone, `${origin}/#token=${token}&at=/inbox`));
  await review(film, studio);
  await film.title('Try it', 'npm start  ·  oratorio chat  ·  oratorio backend --demo', 5);
  film.end(join(directory, 'tour.png'));
});
