/** `npm run dev` on a copy of this checkout, with real servers and a real browser. */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { securityHeaders } from '../../src/http/index.ts';
import { launchBrowser } from '../browser.ts';
import { copyCheckout, markBuilt, ofSources, processesIn, startScript } from './checkout.ts';

/** Replaces text in a source of the copy. */
function edit(file: string, from: string, to: string): void {
  const text = readFileSync(file, 'utf8');
  if (!text.includes(from)) throw new Error(`${file} does not contain ${from}`);
  writeFileSync(file, text.replace(from, to));
}

/** Commands that `npm run dev` runs, and their imports. */
const commandsOfDev = ['hub', 'init', 'inspect', 'up'];

/** Empties all other commands, so that the command line tool, which the test builds again, has less than half its size. */
function leaveOutCommands(checkout: string): void {
  for (const file of globSync('src/cli/commands*.ts', { cwd: checkout })) {
    const text = readFileSync(join(checkout, file), 'utf8');
    for (const [, name = ''] of text.matchAll(/load: \(\) => import\('\.\/commands\/([\w-]+)\.ts'\)/g)) {
      if (commandsOfDev.includes(name)) continue;
      writeFileSync(join(checkout, 'src/cli/commands', `${name}.ts`), 'export const run = (): number => 1;\n');
    }
  }
  markBuilt(checkout);
}

t.test('a changed component is shown and a changed program is restarted, without a manual step', async (t) => {
  const checkout = copyCheckout(t);
  leaveOutCommands(checkout);
  const dev = startScript(t, checkout, 'dev.ts', '--port', '0', '--dashboard-port', '0');
  const [, hubPage = ''] = await dev.writes(/^Hub {8}(\S+)$/m);
  const [, workspacePage = ''] = await dev.writes(/^Workspace {2}(\S+)$/m);
  await dev.writes(/^Watching/m);

  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  context.setDefaultTimeout(120_000);
  const complaints: string[] = [];
  context.on('console', (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) complaints.push(message.text());
  });
  const page = await context.newPage();
  await page.goto(hubPage);
  await page.locator('.connection.live').waitFor();

  const response = await page.request.get(hubPage);
  for (const [name, value] of securityHeaders)
    t.equal(response.headers()[name], value, `${name} is that of the product`);

  edit(join(checkout, 'src/ui/shell/header.tsx'), '`Oratorio ${', '`Changed-component ${');
  await page.locator('.head', { hasText: 'Changed-component' }).waitFor();
  await page.locator('.connection.live').waitFor();

  const beforeRestart = dev.output().length;
  edit(
    join(checkout, 'src/hub/routes/page.ts'),
    "views: ['now', 'overview', 'threads', 'inbox', 'actors', 'events', 'logs']",
    "views: ['events']",
  );
  await dev.writes(/^Reloaded the page$/m, beforeRestart);
  t.match(dev.output().slice(beforeRestart), 'Restarted the Hub and the agent server');
  await page.waitForFunction(() => document.querySelectorAll('.rail a').length === 1);
  t.match(await page.locator('.rail a').textContent(), 'Events', 'the new Hub answers');

  const workspace = await context.newPage();
  await workspace.goto(workspacePage);
  await workspace.locator('.connection.live').waitFor();
  await workspace.locator('.rail a', { hasText: 'Conversations' }).click();
  await workspace.getByRole('textbox', { name: 'Message' }).fill('Hello?');
  await workspace.getByRole('textbox', { name: 'Message' }).press('Enter');
  await workspace.locator('.row-end', { hasText: 'Done' }).waitFor();
  t.same(complaints, [], 'the content security policy refuses nothing');

  const beforeFault = dev.output().length;
  edit(join(checkout, 'src/ui/shell/header.tsx'), '`Changed-component ${', '`Changed-component ${{');
  await dev.writes(/do not change until/, beforeFault);
  t.match(
    await page.locator('.head').textContent(),
    'Changed-component',
    'a source that cannot be built leaves the page as it was',
  );

  t.equal(await dev.end('SIGTERM'), 0);
  t.same(processesIn(checkout), [], 'no process is left');
});

t.test('Ctrl-C during the start leaves no process', async (t) => {
  const checkout = copyCheckout(t, ofSources);
  // All of it is built in a moment, and no Hub ever serves: the signal arrives during the start, whenever it does.
  writeFileSync(join(checkout, 'src/ui/main.tsx'), "document.title = 'Oratorio';\n");
  writeFileSync(join(checkout, 'src/cli/main.ts'), 'setInterval(() => undefined, 60_000);\n');
  for (const small of ['appserver/main.ts', 'checkpoints/thread-main.ts', 'supervise/redact-main.ts'])
    writeFileSync(join(checkout, 'src', small), 'process.exitCode = 1;\n');
  const dev = startScript(t, checkout, 'dev.ts', '--port', '0', '--dashboard-port', '0');
  await dev.writes(/^Built/m);
  t.equal(await dev.end('SIGINT'), 0);
  t.same(processesIn(checkout), []);
});

t.test('wrong arguments are refused with exit code 2, and --help prints the usage', async (t) => {
  const wrong = startScript(t, root, 'dev.ts', '--port', 'x');
  await wrong.writes(/--port must be a port/);
  t.equal(await wrong.ended, 2);
  const help = startScript(t, root, 'dev.ts', '--help');
  await help.writes(/Usage: npm run dev/);
  t.equal(await help.ended, 0);
});
