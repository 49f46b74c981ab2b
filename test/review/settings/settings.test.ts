import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createLogger } from '../../../src/log/index.ts';
import {
  changeSettings,
  configuredRepositories,
  diagnosticsOf,
  loadSettings,
  SettingsError,
  SettingsSource,
} from '../../../src/review/settings/index.ts';
import { quiet } from '../store/databases.ts';

function place(t: Test, content?: unknown, env: Record<string, string> = {}) {
  const stateRoot = mkdtempSync(join(tmpdir(), 'oratorio-settings-'));
  t.teardown(() => rmSync(stateRoot, { recursive: true, force: true }));
  const file = join(stateRoot, 'oratorio.config.json');
  const text = typeof content === 'string' ? content : JSON.stringify(content, null, 2);
  if (content !== undefined) writeFileSync(file, text);
  return { file, env, stateRoot };
}

/** Problems, as one text. */
function problemOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof SettingsError) return error.message;
    throw error;
  }
  return 'nothing';
}

t.test('without a file the defaults hold', async (t) => {
  const { settings, hasFile, warnings } = loadSettings(place(t));
  t.notOk(hasFile);
  t.equal(settings.Server.Port, 5087);
  t.equal(settings.Review.OnPush, 'incremental');
  t.match(warnings.join(), /the webhook answers 503/);
});

t.test('keys are accepted in any case and by older names; unknown ones are reported and ignored', async (t) => {
  const { settings, warnings } = loadSettings(
    place(t, {
      $schema: 'x',
      oratorio: {
        $schema: 'x',
        github: { REPOSITORIES: ['o/r'], Colour: 'red', installationprofiles: [{ owner: 'o', INSTALLATIONID: 4 }] },
        dotcraft: { repositoryWorkspaceRoutes: [{ project: 'github:github.com/O/R', workspacePath: '/w' }] },
        Nonsense: { a: 1 },
      },
    }),
  );
  t.same(settings.GitHub.InstallationProfiles, [
    { Instance: 'github.com', Owner: 'o', InstallationId: 4, Source: 'manual' },
  ]);
  t.match(configuredRepositories(settings), [{ repositoryKey: 'github:github.com/o/r', workspacePath: '/w' }]);
  t.match(warnings.join('\n'), /unknown key GitHub\.Colour[\s\S]*unknown key Nonsense/);
});

t.test('the environment overrides the file, lists by number', async (t) => {
  const { settings, warnings, fromEnvironment } = loadSettings(
    place(
      t,
      { Oratorio: { GitHub: { Repositories: ['a/a', 'b/b'] }, Review: { MaxFindings: 3 } } },
      {
        Oratorio__Settings__Writable: 'false',
        ORATORIO__GITHUB__REPOSITORIES__1: 'c/c',
        Oratorio__GitHub__Repositories__2: 'd/d',
        Oratorio__GitHub__InstallationProfiles__0__Owner: 'o',
        Oratorio__GitHub__InstallationProfiles__0__InstallationId: '12',
        Oratorio__GitHub__AppId: '7',
        Oratorio__Review__MaxFindings: '9',
        Oratorio__DotCraft__RunTimeoutSeconds: '60',
        Oratorio__Nothing__Here: 'x',
        ORATORIO_SERVICE_TOKEN: 'tok-en',
        HOME: '/x',
      },
    ),
  );
  t.equal(settings.Settings.Writable, false);
  t.same(settings.GitHub.Repositories, ['a/a', 'c/c', 'd/d']);
  t.match(settings.GitHub.InstallationProfiles, [{ Owner: 'o', InstallationId: 12 }]);
  t.match([settings.GitHub.AppId, settings.Review.MaxFindings], ['7', 9]);
  t.equal(settings.AgentServer.RunTimeoutSeconds, 60);
  t.equal(settings.Server.ServiceToken, 'tok-en');
  t.equal(fromEnvironment.get('GitHub.Repositories.1'), 'ORATORIO__GITHUB__REPOSITORIES__1');
  t.match(warnings.join('\n'), /Oratorio__Nothing__Here: there is no such setting/);
});

t.test('an error names the place, the key and the expected form, and never the present value', async (t) => {
  const value = 'hunter2-secret';
  const cases: readonly (readonly [unknown, Record<string, string>, RegExp])[] = [
    [`{"Oratorio": {"GitHub": {"WebhookSecret": "${value}",}}}`, {}, /JSON without comments/],
    ['[]', {}, /a JSON object, but is a list/],
    [{ Oratorio: [] }, {}, /Oratorio must be an object, but is a list/],
    [{ Oratorio: { GitHub: value } }, {}, /GitHub must be an object, but is a string/],
    [{ Oratorio: { GitHub: [] } }, {}, /GitHub must be an object, but is a list/],
    [{ Oratorio: { GitHub: { WebhookSecret: [value] } } }, {}, /GitHub\.WebhookSecret must be a text, but is a list/],
    [{ Oratorio: { Review: { MaxFindings: value } } }, {}, /Review\.MaxFindings must be a whole number from 1 to 200/],
    [{ Oratorio: { Review: { MaxFindings: 0 } } }, {}, /Review\.MaxFindings must be a whole number from 1 to 200/],
    [{ Oratorio: { Review: { OnPush: value } } }, {}, /Review\.OnPush/],
    [
      { Oratorio: { AgentServer: { Agent: value } } },
      {},
      /AgentServer\.Agent must be "oratorio": nothing keeps an external agent from reading other files/,
    ],
    [{ Oratorio: { GitHub: { Repositories: ['a/b', value] } } }, {}, /GitHub\.Repositories\.1 must be a repository/],
    [{ Oratorio: { GitHub: { Repositories: ['a/..'] } } }, {}, /GitHub\.Repositories\.0 must be a repository/],
    [
      { Oratorio: { AgentServer: { RepositoryWorkspaceRoutes: [{ Project: 'a/b', WorkspacePath: 'rel' }] } } },
      {},
      /RepositoryWorkspaceRoutes\.0\.WorkspacePath must be an absolute path/,
    ],
    [
      {},
      { Oratorio__Review__MaxFindings: value },
      /environment variable Oratorio__Review__MaxFindings: .*a whole number/,
    ],
    [{}, { Oratorio__Settings__Writable: value }, /Settings\.Writable must be true or false/],
    [{}, { Oratorio__GitHub__Repositories__3: 'a/b' }, /a list without gaps/],
    [
      {},
      { Oratorio__GitHub__WebhookSecretFile: '/nowhere/x' },
      /GitHub\.WebhookSecret must be a readable file.*ENOENT/,
    ],
  ];
  for (const [content, env, expected] of cases) {
    const message = problemOf(() => loadSettings(place(t, content, env)));
    t.match(message, expected);
    t.notMatch(message, value);
  }
});

t.test('secrets come from files, without the line break at their end', async (t) => {
  const where = place(t, { Oratorio: { GitHub: { WebhookSecretFile: 'hook', PrivateKeyPath: 'key.pem', AppId: 1 } } });
  writeFileSync(join(where.stateRoot, 'hook'), 'from a file\n');
  writeFileSync(join(where.stateRoot, 'key.pem'), 'line one\nline two\n');
  chmodSync(join(where.stateRoot, 'key.pem'), 0o644);
  const loaded = loadSettings(where);
  t.equal(loaded.settings.GitHub.WebhookSecret, 'from a file');
  t.equal(loaded.settings.GitHub.PrivateKey, 'line one\nline two');
  t.match(loaded.warnings.join(), /key\.pem: everybody can read this secret/);
  const env = { Oratorio__GitHub__PrivateKey: 'a\\nb', Oratorio__GitHub__WebhookSecret: 'plain' };
  const over = loadSettings({ ...where, env }).settings.GitHub;
  t.same([over.PrivateKey, over.WebhookSecret], ['a\nb', 'plain'], 'what is set plainly wins');
});

t.test('a change of the file is taken in whole; a broken file keeps the last settings and is reported', async (t) => {
  const where = place(t, { Oratorio: { Review: { MaxFindings: 3 }, GitHub: { WebhookSecretFile: 'hook' } } });
  writeFileSync(join(where.stateRoot, 'hook'), 'one');
  const log: string[] = [];
  const logger = createLogger({
    name: 'test',
    level: 'info',
    pretty: false,
    stream: { write: (line) => log.push(line) },
  });
  const source = new SettingsSource({ place: where, logger, debounceMs: 5, pollMs: 50 });
  // A watcher does not keep a process alive.
  const alive = setInterval(() => {}, 1_000);
  t.teardown(() => {
    clearInterval(alive);
    source.close();
  });
  const next = () =>
    new Promise<readonly [readonly string[], readonly string[]]>((resolve) => {
      const end = source.subscribe(({ changed, restartNeededFor }) => {
        end();
        resolve([changed, restartNeededFor]);
      });
    });
  const before = source.current;
  let change = next();
  writeFileSync(where.file, JSON.stringify({ Oratorio: { Review: { MaxFindings: 4 }, Server: { Port: 1 } } }));
  t.same(await change, [['Server.Port', 'GitHub.WebhookSecret', 'Review.MaxFindings'], ['Server.Port']]);
  t.equal(before.Review.MaxFindings, 3, 'who holds the old ones has all of the old ones');
  t.same(source.restartNeededFor, ['Server.Port']);

  writeFileSync(where.file, '{"Oratorio": {"Review": {"MaxFindings": "many"}}}');
  t.notOk(source.reload());
  rmSync(where.file);
  t.notOk(source.reload());
  t.match(source.problem?.message, /is gone/);
  t.equal(source.current.Review.MaxFindings, 4);
  t.match(diagnosticsOf(source).problem, /is gone/);
  t.match(log.join(''), /the previous ones remain in effect/);

  change = next();
  source.subscribe(() => {
    throw new Error('a listener that throws');
  });
  writeFileSync(where.file, JSON.stringify({ Oratorio: { GitHub: { WebhookSecretFile: 'hook' } } }));
  await change;
  t.equal(source.problem, undefined);
  change = next();
  writeFileSync(join(where.stateRoot, 'hook'), 'two');
  t.same(await change, [['GitHub.WebhookSecret'], []], 'the file of a secret is followed too');
  t.equal(source.current.GitHub.WebhookSecret, 'two');
  t.notMatch(log.join(''), /"(one|two)"/);
});

t.test('the shown settings have no secret', async (t) => {
  const secret = 'sh-sh-sh';
  const { file, ...rest } = place(t, {
    Oratorio: {
      Server: { ServiceToken: secret },
      Storage: { ConnectionString: `postgres://u:${secret}@h/d` },
      GitHub: { WebhookSecret: secret, WebhookSecretPrevious: secret, PrivateKey: secret },
      AgentServer: { AppServerToken: secret, AppServerUrl: `ws://u:${secret}@h/ws?token=${secret}` },
    },
  });
  const source = new SettingsSource({ place: { file, ...rest }, logger: quiet });
  t.teardown(() => source.close());
  const shown = diagnosticsOf(source);
  t.notMatch(JSON.stringify(shown), secret);
  t.match(shown.settings, { GitHub: { WebhookSecret: { set: true } }, AgentServer: { AppServerUrl: 'ws://h/ws' } });
});

t.test('a change over the API must be allowed, valid and of the present revision, and is audited', async (t) => {
  const text = '{\n    "oratorio": {\n        "review": { "maxFindings": 3 },\n        "Strange": 1\n    }\n}\n';
  const where = place(t, text);
  const source = new SettingsSource({ place: where, logger: quiet });
  t.teardown(() => source.close());
  const events: unknown[] = [];
  const store = {
    publish: async (kind: string, data: unknown) => {
      events.push([kind, data]);
    },
  };
  const change = (set: Record<string, unknown>, baseRevision = source.loaded.revision) =>
    changeSettings(source, { baseRevision, set, address: '::1' }, { store, logger: quiet });
  const code = (wanted: string) => ({ code: wanted });

  await t.rejects(change({ 'Review.MaxFindings': 4 }, 'other'), code('configurationRevisionMismatch'));
  for (const [path, value] of [
    ['Review.MaxFindings', 0],
    ['Review.Nothing', 1],
    ['Review', {}],
    ['__proto__.x', 1],
    ['GitHub.WebhookSecret', 'x'],
    ['GitHub.Repositories', ['no name']],
  ] as const)
    await t.rejects(change({ [path]: value }), code('configurationValidationFailed'), path);
  await t.rejects(change({ 'Settings.Writable': true }), code('configurationOfDeployment'));
  t.equal(readFileSync(where.file, 'utf8'), text, 'what is refused changes nothing');
  t.same(events, []);

  const done = await change({ 'review.maxfindings': 4, 'GitHub.Handle': 'reviewer' });
  t.match(done, { changed: ['GitHub.Handle', 'Review.MaxFindings'], restartNeededFor: [] });
  t.equal(source.current.Review.MaxFindings, 4);
  t.equal(done.revision, source.loaded.revision);
  t.match(readFileSync(where.file, 'utf8'), /"maxFindings": 4[\s\S]*"Strange": 1/);
  t.match(events, [
    ['source.changed', { what: 'settings', changed: ['GitHub.Handle', 'Review.MaxFindings'], by: '::1' }],
  ]);

  writeFileSync(where.file, '{');
  source.reload();
  const { createHash } = await import('node:crypto');
  const revision = createHash('sha256').update('{').digest('base64url').slice(0, 22);
  await t.rejects(change({ 'Review.MaxFindings': 5 }, revision), code('configurationValidationFailed'));

  const closed = place(t, {}, { Oratorio__Settings__Writable: 'false' });
  const readOnly = new SettingsSource({ place: closed, logger: quiet });
  t.teardown(() => readOnly.close());
  const request = { baseRevision: readOnly.loaded.revision, set: { 'Review.MaxFindings': 4 }, address: '::1' };
  await t.rejects(changeSettings(readOnly, request, { store, logger: quiet }), code('configWritesForbidden'));
});
