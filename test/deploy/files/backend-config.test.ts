import fc from 'fast-check';
import t from 'tap';
import { parse } from 'yaml';
import {
  composeFile,
  newBackendConfig,
  overlayFile,
  readBackendConfig,
  withRepository,
} from '../../../src/deploy/files/index.ts';
import { settingsOf } from '../../../src/review/settings/load.ts';
import { configuredRepositories } from '../../../src/review/settings/repositories.ts';

const api = { repository: 'acme/Api', workspacePath: '/workspace/acme__api', autoReview: true };
const web = { repository: 'acme/web', workspacePath: '/workspace/acme__web', autoReview: false };
const answers = { appId: '12345', writesEnabled: false, repositories: [api, web] };

const asBackend = (text: string, env: Readonly<Record<string, string>> = {}) =>
  settingsOf(
    { file: 'oratorio.config.json', env, stateRoot: '/' },
    text.replace(/"PrivateKeyPath": *"[^"]*"/, '"PrivateKeyPath": ""'),
  );

t.test('a new configuration holds the answers, for the backend and for us', (t) => {
  const text = newBackendConfig({ ...answers, installations: [{ owner: 'acme', installationId: 77 }] });
  t.strictSame(readBackendConfig(text), {
    appId: '12345',
    privateKeyPath: '/secrets/github-app.pem',
    endpoint: 'https://api.github.com',
    writesEnabled: false,
    repositories: [api, web],
    installations: [{ owner: 'acme', installationId: 77, instance: 'github.com' }],
  });
  const { settings, warnings } = asBackend(text);
  t.notOk(
    warnings.some((warning) => /unknown key|workspace route|not in GitHub/.test(warning)),
    warnings.join('; '),
  );
  t.match(settings.GitHub, {
    AppId: 12345,
    WritesEnabled: false,
    InstallationProfiles: [{ Owner: 'acme', InstallationId: 77 }],
  });
  t.match(configuredRepositories(settings), [
    { repositoryKey: 'github:github.com/acme/api', workspacePath: api.workspacePath, autoReview: true },
    { repositoryKey: 'github:github.com/acme/web', workspacePath: web.workspacePath, autoReview: false },
  ]);
  t.match(
    readBackendConfig(newBackendConfig({ ...answers, appId: 'Iv23liAbc', endpoint: 'https://ghe.example/api/v3' })),
    { appId: 'Iv23liAbc', endpoint: 'https://ghe.example/api/v3' },
  );
  t.end();
});

t.test('the backend reads the environment of the composition, which overrides its file', (t) => {
  const { environment } = parse(composeFile({ isSelinux: false })).services.backend;
  const overlay = parse(overlayFile({ isSelinux: false })).services.backend;
  const env = { ...environment, ...overlay.environment };
  const { settings, fromEnvironment } = asBackend(newBackendConfig(answers), env);
  t.strictSame(
    [...fromEnvironment.values()].sort(),
    Object.keys(env)
      .filter((name) => name.startsWith('Oratorio__'))
      .sort(),
    'each is a setting',
  );
  t.match(settings, {
    Settings: { Writable: false },
    Server: { Host: '0.0.0.0', Port: 5087 },
    AgentServer: {
      AppServerUrl: 'ws://agent:9100/ws',
      HubDiscoveryEnabled: false,
      WorktreeRoot: '/workspace/.oratorio/worktrees',
    },
  });
  t.end();
});

t.test('a repository is added, and every other character stays', (t) => {
  const text = `{
\t"note": "mine, with \\"quotes\\" and [brackets]",
\t"oratorio": {
\t\t"github": { "repositories": ["acme/Api" ], "AppId" : 7, "Future": [1,  2] },
\t\t"DotCraft": {
\t\t\t"RepositoryWorkspaceRoutes": [
\t\t\t\t{ "project": "github:github.com/Acme/api", "WorkspacePath": "/workspace/acme__api", "Extra": 1 }
\t\t\t]
\t\t}
\t}
}
`;
  const added = withRepository(text, { ...web, autoReview: true });
  t.equal(
    added,
    text
      .replace('["acme/Api" ]', '["acme/Api", "acme/web" ]')
      .replace(
        '"Extra": 1 }\n',
        '"Extra": 1 },\n\t\t\t\t{\n\t\t\t\t\t"Project": "acme/web",\n\t\t\t\t\t"WorkspacePath": "/workspace/acme__web"\n\t\t\t\t}\n',
      )
      .replace(
        '\n\t\t}\n\t}\n}',
        '\n\t\t},\n\t\t"Automation": {\n\t\t\t"AutoReviewRepositories": [\n\t\t\t\t"acme/web"\n\t\t\t]\n\t\t}\n\t}\n}',
      ),
  );
  t.strictSame(readBackendConfig(added).repositories, [
    { ...api, autoReview: false },
    { ...web, autoReview: true },
  ]);
  t.equal(
    withRepository(`\ufeff${added}`, { ...web, autoReview: true }),
    `\ufeff${added}`,
    'behind a byte order mark too',
  );
  t.equal(withRepository(added, { ...web, autoReview: true }), added, 'a second time changes nothing');
  t.end();
});

t.test('only missing settings of a repository are added', (t) => {
  const text = newBackendConfig(answers);
  t.equal(withRepository(text, { ...api, repository: 'ACME/api', autoReview: false }), text, 'in any case of letters');
  const reviewed = withRepository(text, { ...web, autoReview: true });
  t.strictSame(readBackendConfig(reviewed).repositories, [api, { ...web, autoReview: true }]);
  const every = text.replace('[\n        "acme/Api"\n      ]', '["*"]');
  t.ok(every.includes('["*"]'));
  t.equal(withRepository(every, { ...web, autoReview: true }), every, 'all are reviewed already');
  t.match(withRepository('{}', api), /"Project": "acme\/Api"/);
  t.end();
});

t.test('a checkout belongs to one repository, and a repository has one', (t) => {
  const text = newBackendConfig(answers);
  t.throws(() => withRepository(text, { ...web, repository: 'acme/other' }), {
    code: 'invalidInput',
    message: '/workspace/acme__web is the checkout of another repository, acme/web.',
  });
  t.throws(() => withRepository(text, { ...web, workspacePath: '/workspace/elsewhere' }), {
    code: 'invalidInput',
    message: 'acme/web has its checkout at /workspace/acme__web already.',
  });
  t.throws(() => newBackendConfig({ ...answers, repositories: [api, { ...web, workspacePath: api.workspacePath }] }), {
    code: 'invalidInput',
  });
  t.throws(() => withRepository(text, { ...web, repository: 'no repository' }), { code: 'invalidInput' });
  t.end();
});

t.test('a setting that the deployment cannot use is refused by its key, without its value', (t) => {
  const inside = (settings: unknown) => JSON.stringify({ Oratorio: settings });
  const cases: readonly (readonly [text: string, message: RegExp])[] = [
    ['', /oratorio\.config\.json is not JSON/],
    ['{"Oratorio": hunter2}', /is not JSON/],
    ['[]', /must be a JSON object/],
    ['{"Oratorio": "hunter2"}', /Oratorio must be an object/],
    [inside({ GitHub: 'hunter2' }), /GitHub must be an object/],
    [inside({ GitHub: { Repositories: 'hunter2' } }), /GitHub\.Repositories must be a list of texts/],
    [inside({ GitHub: { Repositories: [1] } }), /GitHub\.Repositories\.0 must be a text/],
    [inside({ GitHub: { Repositories: ['hunter2'] } }), /GitHub\.Repositories\.0 must be a repository/],
    [inside({ github: { writesenabled: 'hunter2' } }), /GitHub\.WritesEnabled must be true or false/],
    [inside({ GitHub: { Endpoint: 'hunter2' } }), /GitHub\.Endpoint must be an http or https URL/],
    [inside({ AgentServer: { RepositoryWorkspaceRoutes: [{}] } }), /RepositoryWorkspaceRoutes\.0\.Project/],
    [
      inside({ GitHub: { InstallationProfiles: [{ Owner: 'a', InstallationId: 0 }] } }),
      /InstallationId must be a whole/,
    ],
  ];
  for (const [text, message] of cases) {
    t.throws(() => readBackendConfig(text), { code: 'invalidInput', message }, text);
    try {
      readBackendConfig(text);
    } catch (error) {
      t.notOk(String(error).includes('hunter2'));
    }
  }
  t.end();
});

t.test('adding a repository changes nothing else of a document in any layout', (t) => {
  const repository = fc.stringMatching(/^[a-z]{1,4}\/[a-z]{1,4}$/);
  const other = fc.jsonValue({ maxDepth: 2 });
  const document = fc.record({
    $schema: other,
    Oratorio: fc.record(
      {
        GitHub: fc.record(
          { Repositories: fc.array(repository, { maxLength: 3 }), Future: other },
          { requiredKeys: [] },
        ),
        Review: other,
        AgentServer: fc.record({ RepositoryWorkspaceRoutes: fc.constant([]), Other: other }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    ),
  });
  const indent = fc.constantFrom(undefined, 2, '\t');
  fc.assert(
    fc.property(document, indent, fc.boolean(), (given, space, isCrlf) => {
      const written = JSON.stringify(given, null, space);
      const text = isCrlf ? written.replaceAll('\n', '\r\n') : written;
      const after = JSON.parse(withRepository(text, { ...api, repository: 'new/repo' }));
      const { GitHub, AgentServer, Automation, ...rest } = after.Oratorio;
      t.strictSame(GitHub, {
        ...given.Oratorio.GitHub,
        Repositories: [...(given.Oratorio.GitHub?.Repositories ?? []), 'new/repo'],
      });
      t.strictSame(AgentServer, {
        ...given.Oratorio.AgentServer,
        RepositoryWorkspaceRoutes: [{ Project: 'new/repo', WorkspacePath: api.workspacePath }],
      });
      t.strictSame(Automation, { AutoReviewRepositories: ['new/repo'] });
      const { GitHub: _, AgentServer: __, ...before } = JSON.parse(written).Oratorio;
      t.strictSame(rest, before);
      t.strictSame(after.$schema, JSON.parse(written).$schema);
    }),
    { numRuns: 200 },
  );
  t.end();
});
