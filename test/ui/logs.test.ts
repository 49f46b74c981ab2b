/** The logs view: of an agent server by number, of the Hub's processes as text. */
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import t from 'tap';
import type { LogLine } from '../../src/protocol/index.ts';
import { rowsOfText, search, textOf } from '../../src/ui/views/logs/lines.ts';
import { recordOf } from './records.ts';
import { axe, overflowsAt, stage } from './scene.ts';
import { shows } from './shows.ts';

const scene = await stage();

const lines = (page: Page) => page.locator('.logs .line');
const line = (seq: number, level: string, msg: string, fields = {}): LogLine => ({
  seq,
  at: '2026-11-21T12:00:00.000Z',
  level,
  name: 'agent',
  msg,
  fields,
});

t.test('a log line is parsed as a record, any other line is shown unchanged', async (t) => {
  const rows = rowsOfText(
    '{"at":"2026-11-21T12:00:00Z","level":"warn","name":"hub","msg":"slow","ms":12}\nplain text\r\n{"no":"record"}\n{broken\n',
  );
  t.same(rows, [
    { key: 0, at: '2026-11-21T12:00:00Z', level: 'warn', name: 'hub', text: 'slow {"ms":12}' },
    { key: 1, text: 'plain text' },
    { key: 2, text: '{"no":"record"}' },
    { key: 3, text: '{broken' },
  ]);
  t.same(
    search(rows, 'error', '').map(({ key }) => key),
    [1, 2, 3],
    'a line without a level is always shown',
  );
  t.same(
    search(rows, 'debug', 'SLOW').map(({ key }) => key),
    [0],
  );
  t.same(rowsOfText(''), []);
  t.equal(rows.map(textOf)[0], '2026-11-21T12:00:00Z WARN hub slow {"ms":12}');
});

scene(
  'new lines appear without a reload, and can be filtered by level and text, wrapped and saved',
  {
    at: '/logs',
    prepare: (backend) => {
      backend.state.logs = [line(1, 'info', 'hello'), line(2, 'warn', 'disk is nearly full', { freeMb: 12 })];
    },
  },
  async (t, { page, backend }) => {
    await lines(page).nth(1).waitFor();
    t.same(await axe(page), []);
    backend.state.logs = [...backend.state.logs, line(3, 'error', `went wrong ${'x'.repeat(4000)}`)];
    await lines(page).nth(2).waitFor();
    t.ok(backend.requests.filter((request) => request === 'GET /dashboard/api/logs').length > 1);
    const list = page.locator('.logs .vlist');
    const isWide = () => list.evaluate((box) => box.scrollWidth > box.clientWidth);
    await page.locator('.vlist.wraps').waitFor();
    t.equal(await isWide(), false, 'long lines are whole');
    await page.keyboard.press('w');
    await shows(t, 'equal', () => isWide(), true);
    await page.getByLabel('Lowest level').selectOption('error');
    await page.locator('.count', { hasText: '1 of 3' }).waitFor();
    t.match(page.url(), 'level=error');
    await page.getByLabel('Lowest level').selectOption('debug');
    await page.keyboard.press('/');
    await page.getByLabel('Search the log').pressSequentially('nearly');
    await page.locator('.count', { hasText: '1 of 3' }).waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save' }).click(),
    ]);
    t.equal(
      await readFile(await file.path(), 'utf8'),
      '2026-11-21T12:00:00.000Z WARN agent disk is nearly full {"freeMb":12}\n',
    );
  },
);

scene(
  'a failed request shows its error and keeps the lines',
  {
    at: '/logs',
    prepare: (backend) => {
      backend.state.logs = [line(1, 'info', 'hello')];
    },
  },
  async (t, { page, backend }) => {
    await lines(page).first().waitFor();
    backend.state.failWith = 503;
    await page.getByRole('alert').getByText('The disk is full.').waitFor();
    await shows(t, 'equal', () => lines(page).count(), 1);
    backend.state.failWith = undefined;
    await page.getByRole('alert').waitFor({ state: 'detached' });
  },
);

scene(
  'regression: on a Hub the log begins with the workspace in trouble; workspace, process and output can be chosen',
  {
    kind: 'hub',
    at: '/logs',
    prepare: (backend) => {
      const gaveUp = { code: 'gaveUp', what: 'Gave up.', where: null, next: null };
      backend.state.appservers = [
        recordOf('/w/alpha'),
        recordOf('/w/beta', { problems: [gaveUp] }),
        recordOf('/w/gamma'),
      ];
      backend.state.output = { 'server stderr': 'from the server\n', 'sidecar stdout': 'from the sidecar\n' };
    },
  },
  async (t, { page }) => {
    await lines(page).getByText('from the server').waitFor();
    const workspace = page.getByLabel('Workspace', { exact: true });
    await shows(t, 'equal', () => workspace.inputValue(), '/w/beta');
    await page.getByLabel('Process').selectOption('sidecar');
    await page.getByRole('heading', { name: 'Nothing was written yet' }).waitFor();
    await page.getByLabel('Output').selectOption('stdout');
    await lines(page).getByText('from the sidecar').waitFor();
    await workspace.selectOption('/w/alpha');
    await page.waitForURL(/path=/);
    t.match(decodeURIComponent(page.url()), 'path=/w/alpha');
    t.same(await axe(page), []);
    t.notOk(await overflowsAt(page, 390));
    const height = async () => (await page.locator('.logs .strip').boundingBox())?.height ?? Number.NaN;
    await shows(t, 'ok', async () => (await height()) < 150, 'a phone has three rows of controls');
  },
);

scene('a Hub without workspaces shows the command that adds one', { kind: 'hub', at: '/logs' }, async (t, { page }) => {
  await page.getByRole('heading', { name: 'No workspace yet' }).waitFor();
  await shows(t, 'match', () => page.locator('main').textContent(), 'oratorio up --init <dir>');
});
