/** Key, model and agent of a workspace on the page, without a terminal: on a laptop and on a phone. */
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { eventually, makeWorkspace, quick, startTestHub } from '../hub/harness.ts';
import { GuardedServer } from '../mcp/oauth-helpers.ts';
import { fakeKey, startFake } from '../providers/fake.ts';
import { chatFake, chatServices } from '../providers/fakes/chat.ts';
import { axe, overflowsAt, pressable, smallTargets } from '../ui/scene.ts';

const browser = await launchBrowser();
t.teardown(() => browser.close());
const [rules] = chatServices;
if (!rules) throw new Error('there is a service that speaks chat completions');

for (const [screen, width, height] of [
  ['laptop', 1_440, 900],
  ['phone', 390, 844],
] as const) {
  t.test(
    `${screen}: a key is tested, saved and never shown; the model reports each outcome; an agent is chosen`,
    async (t) => {
      const hub = await startTestHub(t);
      const shop = makeWorkspace(t, quick, 'shop');
      const record = await hub.ensure(shop);
      const file = join(hub.home, 'config.json');
      const dialect = chatFake(rules);
      const fake = await startFake(t, dialect);
      const [model = ''] = dialect.models;
      const context = await browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce' });
      t.teardown(() => context.close());
      context.setDefaultTimeout(300_000);
      const page = await context.newPage();
      await page.goto(`${hub.lock.apiBaseUrl}${record.page}#token=${pageToken(hub.home)}&at=/settings`);
      const card = (name: string) => page.getByRole('region', { name, exact: true });
      const dialog = page.getByRole('dialog');
      await card('Model').getByRole('button', { name: 'Test' }).waitFor();
      for (const name of ['Permissions', 'Budget', 'Agent', 'MCP']) await card(name).waitFor();
      t.equal(await page.locator('.settings :is(input, textarea, select):disabled').count(), 0, 'no field is locked');
      t.same(await axe(page), []);
      t.same(await smallTargets(page), []);

      await card('Model').getByRole('button', { name: 'Change the key…' }).click();
      await dialog
        .getByRole('combobox', { name: 'Provider' })
        .selectOption({ label: 'Another OpenAI-compatible service' });
      await dialog.getByRole('textbox', { name: 'Base URL' }).fill(fake.endPoint);
      await dialog.getByRole('textbox', { name: 'Model' }).fill(model);
      await dialog.getByLabel('Key').fill('sk-wrong');
      t.same(await axe(page), []);
      if (width < 600) t.same(await smallTargets(page, 32, pressable), [], 'targets of the form on a phone');
      await dialog.getByRole('button', { name: 'Test and save' }).click();
      await dialog
        .getByRole('alert')
        .getByText(/^Refused: /)
        .waitFor();
      t.notOk(existsSync(file), 'nothing was written');
      await dialog.getByLabel('Key').fill(fakeKey);
      await dialog.getByRole('button', { name: 'Test and save' }).click();
      await dialog.waitFor({ state: 'detached' });
      t.match(JSON.parse(readFileSync(file, 'utf8')), { ApiKey: fakeKey, EndPoint: fake.endPoint, Model: model });
      t.equal(statSync(file).mode & 0o777, 0o600);
      t.notOk((await page.content()).includes(fakeKey), 'the key is not on the page');

      const tested = async (words: RegExp) => {
        await card('Model').getByRole('button', { name: 'Test' }).click();
        await card('Model').getByRole('status').getByText(words).waitFor();
      };
      await tested(/^Answered in \d+ ms/);
      const set = (more: object) =>
        writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...more }));
      set({ Model: 'no-such-model' });
      await tested(/^Unknown model: /);
      set({ Model: model, ApiKey: 'sk-wrong' });
      await tested(/^Refused: /);
      set({ EndPoint: 'http://127.0.0.1:9/v1' });
      await tested(/^Unreachable: /);

      const agent = card('Agent');
      await agent.getByRole('combobox', { name: 'Agent' }).selectOption('opencode');
      await agent.getByRole('button', { name: 'Use and restart' }).click();
      await eventually(async () => {
        const { state, agent } = await hub.record(shop);
        return (state === 'running' && agent?.name === 'opencode') || undefined;
      }, 'the other agent does the turns');
      t.notOk(await overflowsAt(page, 320), 'it fits a narrow phone');
    },
  );
}

t.test('a server that requires a log-in has a button, and a click on the address logs in', async (t) => {
  const guarded = await GuardedServer.start(t);
  const hub = await startTestHub(t);
  const McpServers = { tracker: { transport: 'streamableHttp', url: guarded.url } };
  const shop = makeWorkspace(t, { ...quick, McpServers }, 'shop');
  const record = await hub.ensure(shop);
  await eventually(async () => {
    const { problems } = await hub.record(shop);
    return problems.some(({ code }) => code === 'mcpServerNeedsLogin') || undefined;
  }, 'the server requires a log-in');
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  t.teardown(() => context.close());
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  await page.goto(`${hub.lock.apiBaseUrl}${record.page}#token=${pageToken(hub.home)}&at=/settings`);
  const card = page.getByRole('region', { name: 'MCP', exact: true });
  await card.getByRole('button', { name: 'Log in…' }).click();
  const link = card.getByRole('link', { name: `Open ${new URL(guarded.url).host}` });
  const opened = context.waitForEvent('page');
  await link.click();
  await (await opened).getByText('Logged in. You can close this page.').waitFor();
  await eventually(async () => {
    const { problems } = await hub.record(shop);
    return problems.length === 0 || undefined;
  }, 'the server no longer requires a log-in');
});

t.test(
  'a refused log-in, and a test that fails, repeat neither the key nor the password of the end point',
  async (t) => {
    const hub = await startTestHub(t);
    const secret = 'two-words secret-key';
    for (const body of [
      { provider: 'openai', apiKey: secret },
      { provider: 'openai', apiKey: 'secret-key${HOME}' },
      { provider: 'openai', apiKey: 'secret-key', endPoint: 'http://127.0.0.1:9/v1' },
      { provider: 'other', apiKey: 'secret-key', endPoint: 'file:///etc/passwd' },
      { provider: 'other', apiKey: 'secret-key' },
      { provider: 'openai' },
    ]) {
      const { status, body: answer } = await hub.call('POST', '/v1/model/login', body);
      t.equal(status, 400);
      t.notMatch(JSON.stringify(answer), 'secret-key');
    }
    const quoting = createServer(({ url, headers: { authorization = '' } }, response) => {
      const credentials = Buffer.from(authorization.replace('Basic ', ''), 'base64');
      response.writeHead(Number(url?.match(/\/(\d+)\//)?.[1]));
      response.end(JSON.stringify({ error: { message: `Refused: ${authorization} ${credentials}` } }));
    });
    t.teardown(() => quoting.close());
    await once(quoting.listen(0, '127.0.0.1'), 'listening');
    const { port } = quoting.address() as AddressInfo;
    for (const reply of [200, 401, 404, 500]) {
      const endPoint = `http://ada:secret-word@127.0.0.1:${port}/${reply}/v1`;
      const { status, body: answer } = await hub.call('POST', '/v1/model/login', {
        provider: 'other',
        model: 'm',
        endPoint,
      });
      t.match([status, answer], [200, { file: null, test: { message: /Refused: .*\[redacted\]/ } }], String(reply));
      t.notMatch(
        JSON.stringify(answer),
        new RegExp(`secret-word|${Buffer.from('ada:secret-word').toString('base64')}`),
      );
    }
    t.notOk(existsSync(join(hub.home, 'config.json')), 'nothing was written');
  },
);
