/** Pages while servers die and restart, and while the CLI or a file changes their data. */
import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import type { Page } from 'playwright-core';
import { dashboardToken } from '../../src/supervise/index.ts';
import { eventually } from '../hub/harness.ts';
import { shows } from '../ui/shows.ts';
import { approver, runTurn } from './agent-server.ts';
import { begin, clientOf, conversations } from './bookshop.ts';
import { followTraces, isBlameless, sessionRow, theatre } from './dashboard-scene.ts';
import { command, oratorio, oratorioJson } from './harness.ts';
import { openAt } from './sweep.ts';

const { scene, end } = theatre();

interface Cut {
  wasCut: Promise<void>;
}

/** Makes the page record by itself that its connection is cut: a poll from outside could miss it. */
const watchForCut = (page: Page) =>
  page.evaluate(() => {
    (globalThis as unknown as Cut).wasCut = new Promise((resolve) => {
      const look = () => {
        if (!document.querySelector('.connection.reconnecting')) return;
        observer.disconnect();
        resolve();
      };
      const observer = new MutationObserver(look);
      observer.observe(document, { subtree: true, childList: true, attributeFilter: ['class'] });
    });
  });
const untilCut = (page: Page) => page.evaluate(() => (globalThis as unknown as Cut).wasCut);

const names = (page: Page) => page.locator('.c-name a').allTextContents();

scene('pages of one server', {}, async (t, stage) => {
  const { connect, workspacePath, open, hub, place, context, watch, ask } = stage;
  await t.test('the Hub page shows the states of kill and recovery in their order', async (t) => {
    const page = await context.newPage();
    const { stdout } = await oratorio(place, ['inspect', '--print-url']);
    await page.goto(`${stdout.trim()}&at=/actors`);
    await page
      .locator('[role=treeitem]', { hasText: basename(workspacePath) })
      .first()
      .click();
    const isLit = (state: string) =>
      page.locator(`.node.active:is([data-state="${state}"], [data-frame="${state}"])`).waitFor({ state: 'attached' });
    await isLit('running');
    const { pid } = await hub.client.byWorkspace(workspacePath);
    const log = page.getByRole('tabpanel');
    process.kill(pid ?? 0, 'SIGKILL');
    await log.getByText('PROCESS.EXITED').first().waitFor();
    await eventually(
      async () => (await hub.client.byWorkspace(workspacePath)).state === 'running' || undefined,
      'the Hub has restarted the server',
    );
    await isLit('running');
    const shown = await eventually(async () => {
      const text = (await log.textContent()) ?? '';
      return text.lastIndexOf('PROCESS.SPAWNED') > text.lastIndexOf('PROCESS.EXITED') ? text : undefined;
    }, 'the log shows the new process after the end of the first');
    const steps = ['PROCESS.EXITED', 'PROCESS.SPAWNED'].map((event) => shown.lastIndexOf(event));
    t.ok(
      steps.every((at) => at >= 0),
      'the log shows the end and the new process',
    );
    t.equal(steps.join(), [...steps].sort((a, b) => a - b).join(), 'in this order');
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText(basename(workspacePath)).first().waitFor();
    await page.close();
    isBlameless(t, watch);
  });

  const client = await connect(approver('accept'));
  await runTurn(client, await begin(client, workspacePath, 'Before'), conversations.thought.ask);
  const [one, other] = [await open('/sessions'), await open('/sessions')];
  const tabs = [one, other];

  await t.test(
    'after kill -9 of the agent server two open tabs reconnect at the same address and show each session once',
    async (t) => {
      for (const tab of tabs) await sessionRow(tab, 'Before').waitFor();
      const address = one.url();

      const { pid } = await hub.client.byWorkspace(workspacePath);
      for (const tab of tabs) await watchForCut(tab);
      process.kill(pid ?? 0, 'SIGKILL');
      for (const tab of tabs) await untilCut(tab);
      for (const tab of tabs) await tab.locator('.connection.live').waitFor();
      const revived = await eventually(async () => {
        const now = await hub.client.byWorkspace(workspacePath);
        return now.state === 'running' && now.pid !== pid ? now : undefined;
      }, 'the Hub has restarted the server');
      t.not(revived.pid, pid);

      const again = await clientOf(t, hub.client, workspacePath, approver('accept'));
      await runTurn(again, await begin(again, workspacePath, 'After'), conversations.thought.ask);
      for (const tab of tabs) {
        await sessionRow(tab, 'After').getByText('Completed').waitFor();
        await shows(t, 'same', async () => (await names(tab)).sort(), ['After', 'Before'], 'each once');
        t.equal(tab.url(), address);
      }
      isBlameless(t, watch);
    },
  );

  await t.test('a job created by the CLI runs from the page, and its result links to its trace', async (t) => {
    await other.close();
    await one.locator('.connection.live').waitFor();
    await openAt(one, '/automations');
    const made = ['cron', 'add', '--workspace', workspacePath, '--daily', '07:30', '--yes', '--name', 'digest'];
    await oratorioJson(place, ...made, conversations.digest.ask);
    await one.getByRole('link', { name: 'digest' }).click();
    await one.getByRole('button', { name: 'Run “digest” now' }).click();
    const drawer = one.getByRole('complementary', { name: 'Selected automation' });
    await drawer.getByText('Since yesterday').waitFor();
    await drawer.getByRole('link', { name: 'Trace' }).click();
    await one.getByRole('heading', { name: 'digest' }).waitFor();
    await one.locator('.bar-row', { hasText: 'Run ls -t src test' }).first().waitFor();
    t.match(one.url(), '#/sessions/');
    isBlameless(t, watch);
  });

  await t.test('saved settings are in the file, and the page requests a restart', async (t) => {
    await openAt(one, '/settings');
    await one.locator('[id="setting-MaxToolCallRounds"]').fill('77');
    await one.getByRole('button', { name: 'Save 1 change' }).click();
    await one.locator('.banner', { hasText: 'Restart to apply' }).waitFor();
    const { workspace } = (await (await ask('/dashboard/api/config')).json()) as { workspace: object };
    t.match(workspace, { MaxToolCallRounds: 77 });
    t.notMatch(await one.content(), 'sk-of-the-bookshop', 'no secret is in the page');
  });
});

const login = { DashBoard: { Username: 'margaret', Password: 'correct horse' } };

scene('the dashboard opens with name and password, and refuses a wrong password', login, async (t, stage) => {
  const { context, hub, workspacePath } = stage;
  const { endpoints } = await hub.client.byWorkspace(workspacePath);
  const page = await context.newPage();
  await page.goto(endpoints['dashboard'] ?? '');
  await page.getByLabel('Name').fill('margaret');
  const password = page.getByLabel('Password');
  await password.fill('wrong');
  await password.press('Enter');
  await page.getByText('The name or the password is wrong.').waitFor();
  await password.fill('correct horse');
  await password.press('Enter');
  await page.locator('.connection.live').waitFor();
  await page.locator('input[type=password]').waitFor({ state: 'detached' });
  t.equal(await page.locator('input[type=password]').count(), 0);
});

scene(
  'the viewer shows the sessions of a workspace without a server, read-only',
  { Supervision: { Restart: 'never' } },
  async (t, stage) => {
    const { place, hub, connect, context, workspacePath } = stage;
    const client = await connect(approver('accept'));
    const traces = await followTraces(t, stage);
    await runTurn(client, await begin(client, workspacePath, 'Long ago'), conversations.thought.ask);
    // Traces are written after the items of a turn: the kill must come after the last of them.
    await traces.until((seen) => seen.some(({ type }) => type === 'turn.completed'));
    const { pid, canonicalWorkspacePath } = await hub.client.byWorkspace(workspacePath);
    process.kill(pid ?? 0, 'SIGKILL');
    await eventually(
      async () => (await hub.client.byWorkspace(workspacePath)).state === 'exited' || undefined,
      'the Hub has seen it end',
    );
    const viewer = spawn(process.execPath, [command, 'dashboard', '--workspace', workspacePath, '--port', '0'], {
      cwd: place.root,
      env: place.env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    viewer.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [address] = await eventually(
      () => /http:\/\/\S+/.exec(output) ?? undefined,
      () => `its address: ${output}`,
    );
    const page = await context.newPage();
    await page.goto(`${address}#token=${dashboardToken(place.home, canonicalWorkspacePath)}&at=/sessions`);
    await sessionRow(page, 'Long ago').getByText('Completed').waitFor();
    await page.getByRole('button', { name: 'Delete all…', disabled: true }).waitFor();
    await shows(t, 'ok', () => page.getByRole('button', { name: 'Delete all…' }).isDisabled());
    const headers = { authorization: `Bearer ${dashboardToken(place.home, canonicalWorkspacePath)}` };
    const refused = await fetch(new URL('/api/sessions', address), { method: 'DELETE', headers });
    t.ok(refused.status >= 400, `${refused.status}`);
    await page.close();
    viewer.kill('SIGTERM');
    await eventually(() => viewer.exitCode ?? undefined, 'the viewer ends');
    t.equal(viewer.exitCode, 0);
  },
);

end();
