/** Overview in a real browser: of one workspace, and of a Hub with many workspaces. */
import type { Locator, Page } from 'playwright-core';
import type { Test } from 'tap';
import type { AppServerRecord } from '../../src/protocol/index.ts';
import { goTo } from './kept-page.ts';
import { recordOf } from './records.ts';
import { axe, overflowsAt, smallTargets } from './scene.ts';
import type { Backend } from './sessions-backend.ts';
import { stage } from './sessions-scene.ts';
import { shows } from './shows.ts';
import { ago, minute, row, story } from './stories.ts';

const scene = await stage();
const part = (page: Page, name: string): Locator => page.getByRole('region', { name, exact: true });

/** Asserts that the page in its present state, but not in its present width, has no findings, and fits a phone. */
const fits = async (t: Test, page: Page): Promise<void> => {
  t.same(await axe(page), []);
  t.same(await smallTargets(page), []);
  t.notOk(await overflowsAt(page, 360));
  t.same(await axe(page), []);
  await page.setViewportSize({ width: 1280, height: 800 });
};

const fill = (backend: Backend) => {
  backend.seed('thread_a', { displayName: 'Alpha', model: 'gpt-test' }, story(ago(10 * minute), 3, 2));
  backend.state.modules = [
    { name: 'threads', state: 'running' },
    { name: 'mcp', state: 'degraded', reason: 'One of two servers is down.', facts: { servers: 2 } },
    { name: 'api', state: 'running', url: 'http://127.0.0.1:9/v1?token=of-the-api' },
    { name: 'agui', state: 'disabled', reason: 'Switched off in the settings.' },
    { name: 'provider', state: 'failed', reason: 'No key. Set Provider.ApiKey.' },
  ];
};

scene(
  'the overview shows modules, sums, sessions, events and pending approvals',
  { at: '/overview', prepare: fill },
  async (t, { page, backend }) => {
    await part(page, 'Modules').waitFor();
    const modules = () => part(page, 'Modules').textContent();
    await shows(t, 'match', modules, /mcpDegradedOne of two servers is down\.Servers 2/i);
    await shows(t, 'match', modules, /providerFailedNo key\. Set Provider\.ApiKey\./i);
    t.notMatch(await modules(), 'of-the-api', 'addresses without their key');
    const sums = () => part(page, 'All time').textContent();
    await shows(t, 'match', sums, /Tokens600 in · 120 out/);
    await shows(t, 'match', () => page.locator('.status .pill').textContent(), 'Ready');
    await shows(t, 'match', () => page.locator('.home .strip').textContent(), /Model gpt-test/);
    await page.locator('.connection.live').waitFor();

    const summaries = () => backend.requests.filter((request) => request.includes('/summary')).length;
    const before = summaries();
    const begun = Date.now();
    backend.state.activeTurns = 2;
    backend.state.pendingApprovals = 1;
    backend.seed('thread_b', { displayName: 'Beta' }, []);
    backend.emit('thread_b', [
      { type: 'session.started' },
      { type: 'response', durationMs: 3, data: { text: 'A fresh word.' } },
    ]);
    await part(page, 'Recent events').getByText('A fresh word.').waitFor();
    await page.getByText('1 approval pending').waitFor();
    const answer = page.getByRole('link', { name: 'Answer in the chat' });
    await shows(t, 'equal', () => answer.getAttribute('href'), '#/chat', 'regression: the answer opens in the chat');
    await shows(t, 'match', () => page.locator('.home .strip').textContent(), '2 turns running');
    await part(page, 'Recent conversations').getByText('Beta').waitFor();
    const kept = async () => Number(/Events kept(\d+)/.exec((await sums()) ?? '')?.[1]);
    const earlier = await kept();
    for (let index = 0; index < 50; index += 1) backend.emit('thread_b', [{ type: 'thinking', durationMs: 1 }]);
    await shows(t, 'equal', async () => (await kept()) >= earlier + 50, true);
    // The page also asks every 15 s automatically, which a slow machine may take.
    const idle = Math.floor((Date.now() - begun) / 15_000);
    t.ok(summaries() - before <= 4 + idle, `many events, few requests: ${summaries() - before}`);
    await part(page, 'Recent events').getByText('A fresh word.').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Show running turns' }).click();
    await page.waitForURL(/#\/sessions\?.*status=running/);
  },
);

scene(
  'the overview of a workspace',
  { at: '/overview', prepare: fill },
  {
    'it has no findings of axe in light and dark, and fits a phone': async (t, { page }) => {
      await page.locator('.part').first().waitFor();
      await fits(t, page);
    },
    'an event links to its place in its session': async (t, { page }) => {
      const link = part(page, 'Recent events')
        .getByRole('link', { name: /turn\.completed/ })
        .first();
      await link.click();
      await page.waitForURL(/#\/sessions\/thread_a\?event=\d+/);
      await page.locator('.detail h2', { hasText: 'turn_003' }).waitFor();
      await shows(t, 'match', () => page.locator('.detail h2').textContent(), 'turn_003');
    },
  },
);

scene('a workspace without sessions shows a command to begin with', { at: '/overview' }, async (t, { page }) => {
  await page.getByText('No conversation yet').waitFor();
  await shows(
    t,
    'equal',
    () => part(page, 'Recent conversations').locator('code').textContent(),
    'oratorio chat "hello"',
  );
  const counters = part(page, 'All time').locator('dt');
  await shows(t, 'same', () => counters.allTextContents(), [], 'regression: counters without a value are left out');
});

scene(
  'lost trace events and a failed request are shown, and known data stays',
  { at: '/overview', prepare: (backend) => Object.assign(backend.state, { droppedEvents: 3 }) },
  async (t, { page, backend }) => {
    await page.getByText('3 trace events could not be written').waitFor();
    await page.locator('.connection.live').waitFor();
    // Once this text is shown, the request of the new connection is answered and cannot consume the failure below.
    backend.state.droppedEvents = 4;
    await page.getByText('4 trace events could not be written').waitFor();
    const path = 'GET /dashboard/api/summary';
    backend.state.failures.set(path, { status: 500, code: 'storageFailed', message: 'The database cannot be read.' });
    backend.emit('thread_b', [{ type: 'session.started' }]);
    await page.getByText('The database cannot be read.').waitFor();
    await shows(t, 'ok', () => part(page, 'Modules').isVisible(), 'known data stays');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('The database cannot be read.').waitFor({ state: 'detached' });
  },
);

scene(
  'regression: C1 a restricted workspace lists its ignored settings and the command that trusts it',
  {
    at: '/overview',
    prepare: (backend) =>
      Object.assign(backend.state, { restrictedSettings: ['EndPoint', '<img src=x onerror=alert(1)>'] }),
  },
  async (t, { page }) => {
    const banner = page.locator('.banner.warn');
    await banner.waitFor();
    await shows(
      t,
      'match',
      () => banner.textContent(),
      /Restricted: EndPoint, <img src=x onerror=alert\(1\)> are ignored/,
    );
    await shows(t, 'equal', () => banner.locator('code').textContent(), 'oratorio trust /home/ada/projects/demo');
    t.equal(await page.locator('img[src="x"]').count(), 0, 'foreign text is text');
    t.same(await axe(page), []);
  },
);

const few = (backend: Backend) => {
  backend.state.records = [
    recordOf('/w/alpha', { pendingApprovals: 2, page: '/w/k3v7q2xw5m4ajd4e/' }),
    recordOf('/w/beta', {
      state: 'exited',
      pid: null,
      exitCode: 137,
      lastError: 'It was killed.',
      recentStderr: 'Out of memory, again.',
      restartCount: 5,
    }),
    recordOf('/w/gamma', { state: 'stopped', phase: 'stopped', pid: null }),
    recordOf('/w/known', { state: 'stopped', phase: 'stopped', pid: null }),
  ];
};

const killed = {
  ...{ at: new Date(ago(minute)).toISOString(), pid: 4243, livedMs: 1_600, exitCode: null, signal: 'SIGKILL' },
  ...{ stopReason: null, error: null, lastLine: 'listening', log: { file: '/logs/stderr.log', offset: 1 } },
};

const restriction = {
  ...{ code: 'restricted', what: 'Restricted: McpServers is ignored until you trust the workspace.', where: null },
  ...{ next: `oratorio trust '/w/it'\\''s'` },
} as const;

scene(
  'regression: C1 a Hub names its restricted workspaces',
  {
    kind: 'hub',
    at: '/overview',
    prepare: (backend) => {
      few(backend);
      backend.state.records = [
        recordOf('/w/alpha'),
        recordOf("/w/it's", { trust: 'restricted', restrictedSettings: ['McpServers'], problems: [restriction] }),
      ];
    },
  },
  async (t, { page }) => {
    const restricted = row(page, "it's");
    await restricted.getByText('Restricted: McpServers is ignored').waitFor();
    await shows(t, 'equal', () => restricted.locator('code').textContent(), restriction.next);
    t.equal(await page.getByText('McpServers is ignored').count(), 1, 'regression: once');
    t.ok(await restricted.locator('.pill.warn').isVisible(), 'regression: it is never green');
  },
);

scene(
  'a Hub shows every workspace with its state, those that wait for a person first, then failed ones',
  { kind: 'hub', at: '/overview', prepare: few },
  async (t, { page, backend }) => {
    await row(page, 'alpha').waitFor();
    await row(page, 'known').waitFor();
    await row(page, 'gamma').waitFor();
    await row(page, 'beta').waitFor();
    const names = () => page.locator('.vrow b').allTextContents();
    await shows(t, 'same', () => names(), ['alpha', 'beta', 'gamma', 'known']);
    await shows(t, 'match', () => row(page, 'beta').textContent(), 'It was killed.');
    await shows(t, 'match', () => page.locator('.home .strip').textContent(), /Hub 0\.1\.0 · process 77/);
    backend.state.hubPid = 78;
    backend.actor('/w/known', ['stopped']);
    await shows(
      t,
      'match',
      () => page.locator('.home .strip').textContent(),
      /process 78/,
      'regression: shows the process of a new Hub',
    );

    const started = page.waitForResponse(/\/ensure$/);
    await row(page, 'beta').getByRole('button', { name: 'Start' }).click();
    await started;
    t.ok(backend.requests.includes('POST /v1/appservers/ensure'));
    t.same(backend.bodies, [{ workspacePath: '/w/beta' }]);
    backend.actor('/w/beta', ['starting', 'starting.spawning'], {});
    await row(page, 'beta').getByText('Starting', { exact: true }).waitFor();
    backend.actor('/w/beta', ['running'], { pid: 99 });
    await row(page, 'beta').getByText('Ready').waitFor();

    await row(page, 'alpha').getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Keep it' }).click();
    t.notOk(backend.requests.includes('POST /v1/appservers/stop'));
    await row(page, 'alpha').getByRole('button', { name: 'Stop' }).click();
    const asked = page.waitForRequest(/\/stop$/);
    await page.getByRole('button', { name: 'Stop it' }).click();
    await asked;
    await row(page, 'alpha').getByRole('button', { name: 'Restart' }).click();
    backend.state.failures.set('POST /v1/appservers/restart', {
      status: 409,
      code: 'busy',
      message: 'It is being stopped.',
    });
    await row(page, 'beta').getByRole('button', { name: 'Restart' }).click();
    await page.getByText('It is being stopped.').waitFor();
  },
);

scene(
  'a Hub with a few workspaces',
  { kind: 'hub', at: '/overview?workspace=/w/beta', prepare: few },
  {
    'the overview has no findings of axe in light and dark, and fits a phone': async (t, { page }) => {
      const facts = page.locator('.drawer');
      await facts.first().waitFor();
      await fits(t, page);
      await goTo(page, '/overview');
      await facts.waitFor({ state: 'detached' });
    },
    'the page of a workspace is one press away, in the list and in the rail': async (t, { page }) => {
      const waiting = row(page, 'alpha').getByRole('link', { name: '2 approvals waiting' });
      await shows(t, 'equal', () => waiting.getAttribute('href'), '#/inbox', 'what waits is answered there');
      const open = row(page, 'alpha').getByRole('link', { name: 'Open' });
      await shows(t, 'equal', () => open.getAttribute('href'), '/w/k3v7q2xw5m4ajd4e/');
      const rail = page.getByRole('navigation', { name: 'Workspaces' });
      const tile = rail.getByRole('link', { name: 'alpha, ready, 2 waiting' });
      await shows(t, 'equal', () => tile.getAttribute('href'), '/w/k3v7q2xw5m4ajd4e/');
      await rail.getByRole('link', { name: 'beta, failed' }).waitFor();
      t.ok(((await rail.boundingBox())?.width ?? 99) <= 60);
    },
    'the details of a workspace open by key and by address, and hold no secret': async (t, { page, open }) => {
      await row(page, 'alpha').waitFor();
      await page.keyboard.press('j');
      const facts = page.locator('.drawer');
      await facts.getByText('Switched off in the settings.').waitFor();
      await page.keyboard.press('j');
      await facts.getByText('Out of memory, again.').waitFor();
      await shows(t, 'match', () => facts.textContent(), /It was killed/);
      await page.keyboard.press('k');
      await facts.getByText('Switched off in the settings.').waitFor();
      t.notMatch(await facts.textContent(), 'secret-of-it');
      await shows(t, 'match', () => facts.textContent(), 'ws://127.0.0.1:1/');
      await shows(t, 'ok', () => facts.getByRole('link', { name: 'Show its state chart' }).isVisible());
      await page.waitForURL(/workspace=%2Fw%2Falpha/);
      await page.keyboard.press('Escape');
      await facts.waitFor({ state: 'detached' });
      await open('/overview?workspace=/w/beta&state=trouble');
      await facts.getByText('Out of memory, again.').waitFor();
      await shows(t, 'same', () => page.locator('.vrow b').allTextContents(), ['beta']);
      await page.getByRole('button', { name: /^Trouble/ }).click();
      await row(page, 'alpha').waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type('gam');
      await row(page, 'alpha').waitFor({ state: 'detached' });
      await page.keyboard.type('zzz');
      await page.getByText('No workspace matches').waitFor();
    },
  },
);

const refused = {
  code: 'upstreamUnauthorized',
  what: 'api.openai.com refuses the key: The upstream answered 401 (6 turns in a row)',
  where: 'api.openai.com',
  next: 'oratorio login',
};
const failedTurn = {
  status: 'failed' as const,
  endedAt: new Date(ago(12_000)).toISOString(),
  code: 'upstreamUnauthorized',
  message: 'The upstream answered 401.',
};
const changed = {
  ...{ code: 'configChanged', what: 'The configuration has changed: restart to apply.', where: null },
  next: 'oratorio restart /w/edited',
};
const model = { name: 'gpt-x', provider: 'openai', host: 'api.openai.com' };

scene(
  'regression: a running workspace whose turns fail is failing, with reason and command; so is one that gave up before this Hub',
  {
    kind: 'hub',
    at: '/overview',
    prepare: (backend) => {
      backend.state.records = [
        recordOf('/w/shop', {
          health: 'failing',
          problems: [refused, changed, changed],
          lastTurn: failedTurn,
          failuresInARow: 6,
          model,
        }),
        recordOf('/w/edited', {
          agent: { kind: 'acp', name: 'pi', version: '0.0.34', state: 'busy', approvals: 'none' },
          configChanged: true,
          problems: [changed],
        }),
        recordOf('/w/infra', {
          ...{ state: 'stopped', phase: 'stopped', pid: null, restartCount: 5 },
          serviceStatus: {
            dashboard: { state: 'exited', url: `http://127.0.0.1:1/${'DashBoard'.repeat(20)}`, reason: null },
          },
          problems: [
            {
              ...{ code: 'gaveUp', what: 'Gave up after 6 failures within 120 s (last: SIGKILL).', where: null },
              next: 'oratorio logs /w/infra',
            },
          ],
        }),
      ];
      backend.state.exits = [
        killed,
        { ...killed, at: new Date(ago(0)).toISOString(), signal: null, stopReason: 'user' },
      ];
    },
  },
  async (t, { page, backend }) => {
    const textOf = (name: string) => () => row(page, name).textContent();
    await row(page, 'shop').getByText('Failing').waitFor();
    await shows(t, 'match', textOf('shop'), /401 ×6, \d+ \w+ ago.*refuses the key.*→ oratorio login/);
    await shows(
      t,
      'match',
      textOf('shop'),
      /→ oratorio login \+2 more problems/,
      'regression: counts the other problems',
    );
    await shows(t, 'match', textOf('shop'), /gpt-x at api\.openai\.com/);
    await shows(
      t,
      'match',
      textOf('infra'),
      /Gave up 5 restarts.*Gave up after 6 failures.*→ oratorio logs \/w\/infra/,
    );
    const chip = row(page, 'edited').locator('.c-model .pill');
    await shows(t, 'equal', () => chip.textContent(), 'pi 0.0.34 (busy, does not ask)');
    await shows(t, 'match', () => chip.getAttribute('title'), /cannot be steered.*\n.*\n.*only checkpoints protect/);
    t.equal(
      await chip.evaluate((pill) => getComputedStyle(pill).textOverflow),
      'ellipsis',
      'regression: a cut is marked',
    );
    const restart = row(page, 'edited').getByRole('button', { name: 'Restart to apply' });
    const { height = 0 } = (await restart.boundingBox()) ?? {};
    t.ok(height < 32, 'regression: on one line');
    t.not(await restart.evaluate((button) => getComputedStyle(button).borderTopColor), 'rgba(0, 0, 0, 0)', 'a button');
    await restart.click();
    await shows(t, 'match', async () => backend.requests.join(), 'POST /v1/appservers/restart');
    await page.getByRole('button', { name: 'Trouble 2' }).waitFor();

    await page.setViewportSize({ width: 390, height: 844 });
    for (const text of [/refuses the key/, /oratorio login/, /Gave up after 6 failures/]) {
      const isShown = async () => {
        const box = await page.getByText(text).first().boundingBox();
        return box && box.x >= 0 && box.x + box.width <= 391;
      };
      await shows(t, 'ok', isShown, `a phone shows ${text} in its width`);
    }
    await shows(t, 'ok', () => row(page, 'infra').getByRole('button', { name: 'Start' }).isVisible(), 'and the action');
    const isCut = (cell: Element) => cell.scrollWidth > cell.clientWidth;
    await shows(t, 'equal', () => row(page, 'infra').locator('.c-state').evaluate(isCut), false, 'and the whole state');
    t.notOk(await overflowsAt(page, 390));
    await page.setViewportSize({ width: 1280, height: 800 });

    await row(page, 'infra').locator('b').click();
    const facts = page.locator('.drawer');
    const crashes = facts.getByRole('table', { name: 'Crashes' });
    await crashes.getByText('SIGKILL').waitFor();
    for (const cell of ['.c-model', '.c-turn', '.c-trouble'])
      await shows(
        t,
        'ok',
        () => row(page, 'shop').locator(cell).isVisible(),
        `regression: the facts leave ${cell} in the list`,
      );
    await shows(t, 'match', () => crashes.textContent(), /1\.6 sSIGKILLlistening/);
    await shows(t, 'equal', () => crashes.getByRole('row').count(), 2, 'a stop on request is no crash');
    const text = (await facts.textContent()) ?? '';
    t.equal(text.split('Gave up after 6 failures').length, 2, 'the reason once');
    t.notMatch(text, 'by hand');
    t.match(text, /Process–/, 'no pid of a process that has ended');
    t.notOk(await facts.locator('.scroll').evaluate(isCut), 'nothing runs out of it');
    await shows(
      t,
      'match',
      () => facts.getByRole('link', { name: 'Show its log' }).getAttribute('href'),
      'logs?path=%2Fw%2Finfra',
    );
  },
);

scene(
  'regression: the overview of a workspace is never better than its last turns',
  {
    at: '/overview',
    prepare: (backend) => {
      fill(backend);
      backend.state.modules.push({
        name: 'automations',
        state: 'running',
        facts: { next: '2026-11-22T08:06:09.783Z' },
      });
      backend.state.condition = {
        ...{
          health: 'failing',
          problems: [refused],
          lastTurn: failedTurn,
          failuresInARow: 6,
          model,
          agent: null,
          sandbox: null,
        },
      };
    },
  },
  async (t, { page }) => {
    const status = () => page.locator('.home .strip').textContent();
    await shows(t, 'match', () => page.locator('.status .pill').textContent(), 'Failing');
    await shows(t, 'match', status, /Model gpt-x at api\.openai\.com/);
    await shows(t, 'match', status, /Last turn 401 ×6/);
    const banner = page.locator('.banner.danger');
    await shows(t, 'match', () => banner.textContent(), /refuses the key/);
    await shows(t, 'equal', () => banner.locator('code').textContent(), 'oratorio login');
    const modules = () => part(page, 'Modules').textContent();
    await shows(t, 'match', modules, /Next Sun.*2026.*\(Europe\/Berlin\)/, 'regression: a time is written once');
    t.notMatch(await modules(), '09.783Z');
    t.notMatch(await part(page, 'All time').textContent(), /Compactions/, 'a counter at zero tells nothing');
    t.same(await axe(page), []);
    t.notOk(await overflowsAt(page, 390));
  },
);

const listDamaged = { code: 'listDamaged', what: 'The list of workspaces was damaged.', where: '/h/appservers.json' };
const historyLost = { code: 'historyLost', what: 'The history begins again.', where: '/h/state.db' };

scene(
  'a damaged list of workspaces and a lost history are shown with the command that ends the report',
  {
    kind: 'hub',
    at: '/overview',
    prepare: (backend) => {
      backend.state.hubProblems = [{ ...listDamaged, next: 'rm /h/appservers.json.damaged-*' }];
      backend.state.records = [
        recordOf('/w/shop', { problems: [{ ...historyLost, next: 'rm /h/state.db.damaged-*' }] }),
        recordOf('/w/whole'),
      ];
    },
  },
  async (t, { page }) => {
    const banner = page.locator('.banner.warn');
    await shows(t, 'match', () => banner.textContent(), /The list of workspaces was damaged\./);
    await shows(t, 'equal', () => banner.locator('code').textContent(), 'rm /h/appservers.json.damaged-*');
    await row(page, 'shop').click();
    const facts = page.locator('.drawer');
    await shows(t, 'match', () => facts.textContent(), /The history begins again\..*rm \/h\/state\.db\.damaged-\*/);
    await row(page, 'whole').click();
    await shows(t, 'match', () => facts.textContent(), /\/w\/whole/);
    t.notMatch(await facts.textContent(), /history|damaged/, 'positive control: a whole history is not reported');
    t.same(await axe(page), []);
  },
);

scene(
  'a Hub without workspaces shows the command that adds one',
  { kind: 'hub', at: '/overview' },
  async (t, { page }) => {
    await page.getByText('No workspace yet').waitFor();
    await shows(t, 'equal', () => page.locator('.empty code').textContent(), 'oratorio up --init <dir>');
    const box = await page.locator('.empty').boundingBox();
    t.ok(box && box.height < 300, `regression: it is as high as its text: ${box?.height}`);
  },
);

/** Workspaces with everything that a record can say: model, last turn, problem with a command, approvals, a restriction. */
const crowd = (backend: Backend) => {
  for (let index = 0; index < 1_000; index += 1) {
    const path = `/w/project-${String(index).padStart(4, '0')}`;
    const rest = index % 10 === 0 && ({ state: 'stopped', phase: 'stopped', pid: null } as const);
    const facts = index < 200 && {
      ...{ model, pendingApprovals: index % 70 === 1 ? 1 : 0, restartCount: index % 5 },
      ...(index % 10 === 1 && { health: 'failing', problems: [refused], lastTurn: failedTurn, failuresInARow: 6 }),
      ...(index % 20 === 2 && { trust: 'restricted', restrictedSettings: ['EndPoint'] }),
    };
    backend.state.records.push(recordOf(path, { ...facts, ...rest } as Partial<AppServerRecord>));
  }
};

scene(
  'of a thousand workspaces, 200 of them with all their facts, few rows are in the document, and all can be reached and are updated',
  { kind: 'hub', at: '/overview', prepare: crowd },
  async (t, { page, backend }) => {
    await page.waitForFunction(() => document.querySelector('[role=grid]')?.getAttribute('aria-rowcount') === '1001');
    await row(page, 'project-0001').getByText('refuses the key').waitFor();
    const size = () => page.evaluate(() => document.querySelectorAll('*').length);
    t.ok((await page.locator('.vrow').count()) < 60);
    t.ok((await size()) < 2_000, `${await size()} elements`);
    await shows(t, 'match', () => page.locator('.filter-bar').textContent(), /Trouble 20.*Ready 880.*Stopped 100/);
    await page.getByRole('grid').focus();
    await page.keyboard.press('End');
    await row(page, 'project-0990').waitFor();
    backend.actor('/w/project-0990', ['unhealthy'], { lastError: 'It does not answer.' });
    await page.setViewportSize({ width: 1280, height: 1_600 });
    await page.keyboard.press('Home');
    await row(page, 'project-0990').getByText('Not answering').waitFor();
    await page.getByRole('button', { name: /^Trouble/ }).click();
    await page.waitForFunction(() => document.querySelector('[role=grid]')?.getAttribute('aria-rowcount') === '22');
    await page.setViewportSize({ width: 390, height: 844 });
    await row(page, 'project-0001').getByRole('button', { name: 'Restart' }).waitFor();
    t.ok((await size()) < 2_000, `${await size()} elements on a phone`);
    t.notOk(await overflowsAt(page, 390));
  },
);
