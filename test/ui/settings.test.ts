/** The settings view: a form over the real schema of the configuration. */
import type { Page } from 'playwright-core';
import t from 'tap';
import { hookEvents, settingsJsonSchema } from '../../src/config/index.ts';
import { faultOf, issuesOf, kindOf, type Schema, search, sectionsOf } from '../../src/ui/views/settings/model.ts';
import { axe, stage } from './scene.ts';
import { shows } from './shows.ts';
import { untilToast } from './toast.ts';
import type { WorkspaceBackend } from './workspace-backend.ts';

const scene = await stage();

const field = (page: Page, keyPath: string) =>
  page.locator('.field', { has: page.getByTitle(keyPath, { exact: true }) });
const control = (page: Page, keyPath: string) => page.locator(`[id="setting-${keyPath}"]`);

function fill({ state }: WorkspaceBackend): void {
  state.config = {
    ...state.config,
    effective: {
      Model: 'gpt-x',
      ApiKey: { set: true },
      MaxToolCallRounds: 50,
      StreamUpstream: true,
      Tools: { Web: { AllowedHosts: ['docs.internal'] } },
      Telemetry: { Headers: { Authorization: { set: true } } },
      McpServers: { files: { transport: 'stdio', command: 'files' } },
    },
    workspace: { MaxToolCallRounds: 50 },
    user: { Model: 'gpt-x' },
    places: { ApiKey: '/home/me/.oratorio/config.json:4' },
  };
}

t.test('the form has a control for every setting of the schema except lists of objects and maps', async (t) => {
  const sections = sectionsOf((await settingsJsonSchema()) as Schema);
  const settings = sections.flatMap((section) => section.settings);
  t.equal(sections[0]?.title, 'General');
  t.ok(sections.some(({ title }) => title === 'Tools › Shell'));
  t.ok(settings.length > 60);
  t.same(
    settings.filter(({ kind }) => kind === 'other').map(({ keyPath }) => keyPath),
    [
      'Providers',
      'Models',
      'McpServers',
      'Hosts',
      'Permissions.Rules',
      'Agent.Env',
      ...hookEvents.map((event) => `Hooks.${event}`),
      'Telemetry.Headers',
    ],
  );
  t.equal(new Set(settings.map(({ keyPath }) => keyPath)).size, settings.length);
  t.ok(search(sections, 'sandbox commands auto').flatMap((section) => section.settings).length === 1);
});

t.test('a setting has a kind, and a value is checked against its schema', async (t) => {
  t.equal(kindOf({ type: 'string', writeOnly: true }), 'secret');
  t.equal(kindOf({ enum: ['a', 'b'], type: 'string' }), 'choice');
  t.equal(kindOf({ type: 'array', items: { type: 'object' } }), 'other');
  t.equal(kindOf({}), 'other');
  const setting = {
    keyPath: 'A',
    title: 'A',
    kind: 'number' as const,
    schema: { type: 'integer', minimum: 1, maximum: 9 },
  };
  t.equal(faultOf(setting, 5), undefined);
  t.equal(faultOf(setting, null), undefined, 'removing a value is always valid');
  t.match(faultOf(setting, 10), '1 to 9');
  t.match(faultOf(setting, 1.5), 'whole');
  t.match(faultOf(setting, Number.NaN), 'number');
  const { byPath, rest } = issuesOf(
    {
      issues: [
        { path: 'api.port', message: 'must be less' },
        { path: 'X', message: 'no' },
      ],
    },
    ['Api.Port'],
  );
  t.equal(byPath.get('Api.Port'), 'must be less');
  t.same(rest, ['X: no']);
  t.same(issuesOf({}, []).rest, []);
});

scene(
  'every kind of setting shows its value and origin, and can be saved',
  { at: '/settings', prepare: fill },
  async (t, { page, backend }) => {
    await control(page, 'Model').waitFor();
    t.same(await axe(page), []);
    await shows(t, 'equal', () => control(page, 'Model').inputValue(), 'gpt-x');
    await shows(t, 'match', () => field(page, 'Model').textContent(), 'your settings');
    await shows(t, 'match', () => field(page, 'MaxToolCallRounds').textContent(), 'this workspace');
    await shows(t, 'match', () => field(page, 'Tools.Shell.TimeoutMs').textContent(), 'default · after restart');
    await shows(t, 'equal', () => control(page, 'Tools.Shell.TimeoutMs').textContent(), '120000');
    await shows(t, 'equal', () => control(page, 'ApiKey').textContent(), 'set', 'a secret is never shown');
    await shows(t, 'match', () => field(page, 'ApiKey').textContent(), '/home/me/.oratorio/config.json:4');
    t.equal(await page.locator('.settings :is(input, textarea, select):disabled').count(), 0, 'no field is locked');
    await shows(t, 'match', () => control(page, 'McpServers').textContent(), '"stdio"');

    await control(page, 'Model').fill('gpt-y');
    await control(page, 'MaxToolCallRounds').fill('60');
    await control(page, 'StreamUpstream').uncheck();
    await control(page, 'EnabledTools').fill('ReadFile\n\n Exec ');
    for (const keyPath of ['ApiKey', 'EndPoint', 'Tools.Shell.Sandbox', 'Tools.Web.AllowedHosts', 'Api.AutoApprove']) {
      await shows(
        t,
        'equal',
        () => control(page, keyPath).evaluate(({ tagName }) => tagName),
        'OUTPUT',
        `${keyPath} gives rights`,
      );
      await shows(t, 'match', () => field(page, keyPath).textContent(), / Locked \(1\)/);
    }
    const notes = page.getByRole('list', { name: 'Locked settings' }).getByRole('listitem');
    await shows(t, 'match', () => notes.nth(0).textContent(), /^Locked \(1\) .*it gives rights.*oratorio trust/);
    const usersAlone = await notes
      .filter({ hasText: 'only your own config.json decides it' })
      .locator('b')
      .textContent();
    await shows(t, 'match', () => field(page, 'Telemetry.Headers').textContent(), ` ${usersAlone}`);
    const said = (await page.locator('.view.settings').allTextContents()).join('').split('it gives rights').length - 1;
    t.equal(said, 1, 'what holds for many settings is said once');
    await page.getByRole('button', { name: 'Save 4 changes' }).waitFor();
    const saved = untilToast(page, 'Settings saved.');
    await page.keyboard.press('Control+s');
    await saved;
    t.same(backend.bodies, [
      {
        method: 'PUT',
        path: '/dashboard/api/config',
        ifMatch: '"r1"',
        body: {
          set: {
            Model: 'gpt-y',
            MaxToolCallRounds: 60,
            StreamUpstream: false,
            EnabledTools: ['ReadFile', 'Exec'],
          },
        },
      },
    ]);
    await page.locator('.banner', { hasText: 'Restart to apply' }).waitFor();
    await field(page, 'Model').locator('.origin', { hasText: 'this workspace' }).waitFor();
    await shows(t, 'match', () => field(page, 'Model').textContent(), 'this workspace');
  },
);

scene(
  'an invalid value blocks the save; an error of the server is shown at its field',
  { at: '/settings', prepare: fill },
  async (t, { page, backend }) => {
    await control(page, 'MaxToolCallRounds').fill('0');
    await shows(t, 'match', () => field(page, 'MaxToolCallRounds').textContent(), 'This must be 1 to 10000.');
    await shows(t, 'equal', () => page.getByRole('button', { name: 'Save 1 change' }).isDisabled(), true);
    await field(page, 'MaxToolCallRounds').getByRole('button', { name: 'Undo' }).click();
    backend.state.configIssues = [{ path: 'Model', message: 'must be a known model' }];
    await control(page, 'Model').fill('nonsense');
    await page.getByRole('button', { name: 'Save 1 change' }).click();
    await field(page, 'Model').getByText('must be a known model').waitFor();
    await shows(t, 'equal', () => control(page, 'Model').getAttribute('aria-invalid'), 'true');
    t.same(await axe(page), []);
    await shows(t, 'equal', () => control(page, 'Model').inputValue(), 'nonsense', 'the typed value stays');
  },
);

scene(
  'a file changed by another program is not overwritten; after reading it again the save succeeds',
  { at: '/settings', prepare: fill },
  async (t, { page, backend }) => {
    await control(page, 'Model').fill('gpt-z');
    const theirs = { MaxToolCallRounds: 51 };
    const { effective } = backend.state.config;
    backend.state.config = {
      ...{ ...backend.state.config, revision: 'r2', workspace: theirs },
      effective: { ...effective, ...theirs },
    };
    await page.getByRole('button', { name: 'Save 1 change' }).click();
    await page.getByRole('alert').getByText('The file has changed meanwhile').waitFor();
    await page.getByRole('button', { name: 'Read the file again' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    // The file has been read once its new value is shown.
    await page.waitForFunction(
      () => (document.getElementById('setting-MaxToolCallRounds') as HTMLInputElement | null)?.value === '51',
    );
    await shows(t, 'equal', () => control(page, 'Model').inputValue(), 'gpt-z');
    const saved = untilToast(page, 'Settings saved.');
    await page.getByRole('button', { name: 'Save 1 change' }).click();
    await saved;
  },
);

scene(
  'a setting of the workspace can be removed from its file',
  { at: '/settings', prepare: fill },
  async (t, { page, backend }) => {
    await field(page, 'MaxToolCallRounds').getByRole('button', { name: 'Reset' }).click();
    await shows(t, 'equal', () => control(page, 'MaxToolCallRounds').inputValue(), '100', 'what will hold without it');
    const saved = untilToast(page, 'Settings saved.');
    await page.getByRole('button', { name: 'Save 1 change' }).click();
    await saved;
    t.match(backend.bodies.at(-1)?.body, { set: { MaxToolCallRounds: null } });
  },
);

scene(
  'read-only settings can be read and searched, and show the reason',
  {
    at: '/settings',
    prepare: (backend) => {
      fill(backend);
      backend.state.config = { ...backend.state.config, readOnly: 'the file is no JSON object' };
    },
  },
  async (t, { page }) => {
    await page.getByText('the file is no JSON object').waitFor();
    await shows(t, 'equal', () => control(page, 'Model').textContent(), 'gpt-x');
    await page.keyboard.press('/');
    await page.keyboard.type('compaction context');
    await control(page, 'Model').waitFor({ state: 'detached' });
    await shows(t, 'equal', () => control(page, 'Compaction.ContextWindow').textContent(), '0');
    t.same(await axe(page), []);
  },
);
