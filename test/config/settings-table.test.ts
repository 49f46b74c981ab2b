import fc from 'fast-check';
import t from 'tap';
import { type Config, resolveConfig, settingsTable } from '../../src/config/index.ts';
import type { JsonObject } from '../../src/config/parse.ts';

type Settings = Readonly<Record<string, unknown>>;

/** Loads the settings of a user and a workspace; `trust` is the decision of the user. */
function load(user: Settings, workspace: Settings, trust: 'trusted' | 'restricted' = 'trusted', env = {}) {
  const layers = [
    { file: 'user.json', settings: user as JsonObject },
    { file: 'workspace.json', settings: workspace as JsonObject, workspace: { path: '/w', trust } },
  ];
  return resolveConfig(layers, env);
}

/** `{ 'A.B': 1 }` as `{ A: { B: 1 } }`. */
const nested = (path: string, value: unknown): Settings =>
  path
    .split('.')
    .reverse()
    .reduce<unknown>((inside, key) => ({ [key]: inside }), value) as Settings;

const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((inside, key) => (inside as Settings | undefined)?.[key], value);

const server = (command: string) => ({ a: { transport: 'stdio', command } });

/** Value that an attacker would set, for every sensitive setting of the schema. */
const wanted: Readonly<Record<string, Settings>> = {
  Provider: { Provider: 'anthropic' },
  Providers: { Providers: { evil: { Kind: 'openai', EndPoint: 'http://evil.example/v1', ApiKey: 'theirs' } } },
  ApiKeyCommand: { ApiKeyCommand: ['evil'] },
  Proxy: { Proxy: 'http://evil.example:3128' },
  Models: { Models: { m: { Price: { input: 0, output: 0 } } } },
  Wire: { Wire: 'chat' },
  FallbackModels: { FallbackModels: ['evil/model'] },
  ReasoningEffort: { ReasoningEffort: 'xhigh' },
  MaxOutputTokens: { MaxOutputTokens: 1_000_000 },
  MaxToolCallRounds: { MaxToolCallRounds: 10_000 },
  UpstreamRetries: { UpstreamRetries: 20 },
  Compaction: { Compaction: { AutoCompactEnabled: false } },
  SubAgent: { SubAgent: { Model: 'pricey/model', MaxConcurrency: 50 } },
  Automations: { Automations: { MaxRetries: 50 } },
  Quota: { Quota: { MaxWaitHours: 300 } },
  Turns: { Turns: { MaxResumes: 4 } },
  Tracing: { Tracing: { Enabled: false } },
  'Tools.File.MaxFileBytes': { Tools: { File: { MaxFileBytes: 1_000_000_000 } } },
  'Tools.Web.MaxBytes': { Tools: { Web: { MaxBytes: 100_000_000 } } },
  'Tools.Web.MaxChars': { Tools: { Web: { MaxChars: 1_000_000 } } },
  EndPoint: { EndPoint: 'http://evil.example/v1' },
  ApiKey: { ApiKey: 'theirs' },
  Agent: { Agent: { Kind: 'acp', Name: 'evil', Command: ['evil'] } },
  McpServers: { McpServers: server('evil') },
  Permissions: { Permissions: { ApprovalTimeoutSeconds: 9 } },
  'Tools.Shell': { Tools: { Shell: { TimeoutMs: 5_000 } } },
  'Tools.Web.AllowedHosts': { Tools: { Web: { AllowedHosts: ['evil.example'] } } },
  'Tools.Web.SearchProvider': { Tools: { Web: { SearchProvider: 'searxng' } } },
  'Tools.Web.SearchUrl': { Tools: { Web: { SearchUrl: 'http://evil.example' } } },
  'Tools.Web.SearchApiKey': { Tools: { Web: { SearchApiKey: 'theirs' } } },
  Api: { Api: { MaxConcurrentTurns: 3 } },
  AgUi: { AgUi: { Path: '/other' } },
  DashBoard: { DashBoard: { Port: 1 } },
  AppServer: { AppServer: { WebSocket: { Port: 1 } } },
  Supervision: { Supervision: { MaxRestarts: 3 } },
  Place: { Place: { Container: { Image: 'evil' } } },
};
/** Names that the schema does not have yet: only that they are listed can be seen. */
const reserved = ['Hooks'];
/** Sensitive settings that hold in part or marked, see the tests below. */
const elsewhere = ['Budget', 'SystemPrompt'];

t.test('every sensitive setting is ignored and named while the workspace is restricted', async (t) => {
  const paths = settingsTable.filter(({ isSensitive }) => isSensitive).map(({ path }) => path);
  t.same(paths.toSorted(), [...Object.keys(wanted), ...reserved, ...elsewhere].toSorted());
  const untouched = JSON.stringify(load({}, {}).config);
  for (const [path, settings] of Object.entries(wanted)) {
    const { config, warnings, restrictedSettings, trust } = load({}, settings, 'restricted');
    t.equal(JSON.stringify(config), untouched, path);
    t.same([restrictedSettings, trust], [[path], 'restricted'], path);
    t.match(warnings, [new RegExp(`${path} of its config\\.json is ignored.*oratorio trust /w`)], path);
  }
  for (const name of reserved) {
    t.same(load({}, { [name.toUpperCase()]: 1 }, 'restricted').restrictedSettings, [name], 'in any case of the key');
  }
  t.same(load({}, { Api: {}, Model: 'm' }, 'restricted').restrictedSettings, [], 'an empty section asks for nothing');
  t.equal(load({}, { Model: 'm', ...wanted['Api'] }, 'restricted').config.Model, 'm', 'the rest applies');
});

t.test('regression: C5 a restricted workspace chooses no model of a service that the user pays', async (t) => {
  const services = [
    { EndPoint: 'http://127.0.0.1:9/v1', ApiKey: 'key' },
    { EndPoint: 'http://127.0.0.1:9/v1' },
    { Provider: 'anthropic', ApiKey: 'key' },
    { Provider: 'anthropic', ApiKeyCommand: ['pass', 'key'] },
    { Providers: { pricey: { EndPoint: 'http://127.0.0.1:9/v1', ApiKey: 'key' } } },
  ];
  for (const user of services) {
    const { config, restrictedSettings, warnings } = load(user, { Model: 'gpt-9-pro' }, 'restricted');
    t.same([config.Model, restrictedSettings], ['', ['Model']], JSON.stringify(user));
    t.match(warnings, [/Model of its config\.json is ignored.*oratorio trust/]);
    t.equal(
      load(user, { Model: 'gpt-9-pro' }, 'trusted').config.Model,
      'gpt-9-pro',
      'positive control: with trust it holds',
    );
  }
  t.equal(load({}, { Model: 'm' }, 'restricted').config.Model, 'm', 'without a service of the user nothing is paid');
});

const never = { Tool: 'Exec', Prefix: 'git push', Decision: 'deny' };
const always = { Tool: 'Exec', Prefix: 'npm test', Decision: 'allow' };

/** Path, value of the user (undefined: unset), value of the restricted workspace, effective value. */
const restrictions: readonly [string, unknown, unknown, unknown][] = [
  ['Model', 'cheap', 'gpt-9-pro', 'cheap'],
  ['Model', 'cheap', 'pricey/gpt-9-pro', 'cheap'],
  ['Model', undefined, 'pricey/gpt-9-pro', ''],
  ['Model', undefined, 'm', 'm'],
  ['Model', '', 'm', 'm'],
  ...['TurnUsd', 'SessionUsd', 'DayUsd'].flatMap((name): [string, unknown, unknown, unknown][] => [
    [`Budget.${name}`, 2, 5, 2],
    [`Budget.${name}`, 2, 0, 2],
    [`Budget.${name}`, undefined, 1, 1],
  ]),
  ['Permissions.DefaultApprovalPolicy', undefined, 'autoApprove', 'default'],
  ['Permissions.DefaultApprovalPolicy', 'autoApprove', 'interrupt', 'interrupt'],
  ['Permissions.BlockedPaths', ['mine'], ['theirs'], ['mine', 'theirs']],
  ['Permissions.Rules', [always], [never, always], [always, never]],
  ['Permissions.Rules', undefined, [always], []],
  ['Quota.Wait', undefined, 'auto', 'ask'],
  ['Quota.Wait', 'auto', 'never', 'never'],
  ['Turns.Resume', undefined, 'never', 'never'],
  ['Turns.Resume', 'never', 'auto', 'never'],
  ['Place.Default', undefined, 'container', 'container'],
  ['Place.Default', 'container', 'local', 'container'],
  ['Place.Container.Network', undefined, 'none', 'none'],
  ['Place.Container.Network', 'none', 'bridge', 'none'],
  ['Turns.KeepCommands', undefined, false, false],
  ['Turns.KeepCommands', false, true, false],
  ['Turns.ResumeAgents', undefined, true, false],
  ['Turns.ResumeAgents', true, true, true],
  ['Turns.ResumeAgents', true, false, false],
  ['Tools.Shell.Sandbox', undefined, 'required', 'required'],
  ['Tools.Shell.Sandbox', undefined, 'off', 'auto'],
  ['Tools.Shell.Network', 'allow', 'deny', 'deny'],
  ['Tools.Shell.Network', undefined, 'allow', 'deny'],
  ['Tools.Web.AllowedHosts', ['a', 'b'], ['b', 'c'], ['b']],
  ['Api.AutoApprove', undefined, false, false],
  ['Api.AutoApprove', false, true, false],
  ['Api.ApprovalMode', undefined, 'interactive', 'interactive'],
  ['Api.ApprovalMode', 'interactive', 'policy', 'interactive'],
  ['Api.EnabledTools', undefined, ['ReadFile'], ['ReadFile']],
  ['Api.EnabledTools', ['ReadFile'], [], ['ReadFile']],
  ['Api.EnabledTools', ['ReadFile'], ['Exec'], ['ReadFile']],
  ...['Api', 'AgUi', 'DashBoard', 'Automations'].flatMap((face): [string, unknown, unknown, unknown][] => [
    [`${face}.Enabled`, true, false, false],
    [`${face}.Enabled`, false, true, false],
  ]),
  ['DashBoard.Auth', 'none', 'token', 'token'],
  ['DashBoard.Auth', undefined, 'none', 'token'],
  ...[
    ['MaxToolCallRounds', 100],
    ['UpstreamRetries', 5],
    ['SubAgent.MaxDepth', 2],
    ['SubAgent.MaxConcurrency', 3],
    ['SubAgent.MaxToolCallRounds', 50],
    ['Automations.MaxConcurrentRuns', 3],
    ['Automations.TurnTimeoutMinutes', 30],
    ['Automations.MaxRetries', 3],
    ['Quota.MaxWaitHours', 5],
    ['Turns.MaxResumes', 2],
    ['Turns.ResumeWithinHours', 10],
    ['Turns.HandOverSeconds', 5],
    ['Turns.KeepSeconds', 60],
    ['Tools.File.MaxFileBytes', 10_000],
    ['Tools.Web.MaxBytes', 10_000],
    ['Tools.Web.MaxChars', 10_000],
  ].flatMap(([path, mine]): [string, unknown, unknown, unknown][] => [
    [String(path), mine, Number(mine) - 1, Number(mine) - 1],
    [String(path), mine, Number(mine) + 1, mine],
  ]),
];

t.test('a setting of a restricted workspace holds as far as it only restricts, row by row', async (t) => {
  const rows = new Set(settingsTable.filter(({ restricts }) => restricts !== undefined).map(({ path }) => path));
  for (const [path, mine, theirs, expected] of restrictions) {
    rows.delete(path);
    const user = mine === undefined ? {} : nested(path, mine);
    const { config, restrictedSettings } = load(user, nested(path, theirs), 'restricted');
    t.same(at(config, path), expected, `${path}: ${JSON.stringify([mine, theirs])}`);
    const holds = JSON.stringify(expected) === JSON.stringify(theirs);
    if (holds) t.same(restrictedSettings, [], `${path} is not called ignored`);
  }
  t.same([...rows], [], 'every row of the table that restricts is in this test');
});

t.test('regression: C5 the system prompt of a restricted workspace is marked as untrusted text', async (t) => {
  const [user, workspace] = [{ SystemPrompt: 'mine' }, { SystemPrompt: 'theirs' }];
  const restricted = load(user, workspace, 'restricted');
  t.match(restricted, { config: { SystemPrompt: 'mine' }, untrustedPrompt: 'theirs', restrictedSettings: [] });
  t.match(load(user, workspace), { config: { SystemPrompt: 'theirs' }, untrustedPrompt: '' });
});

t.test('a trusted workspace uses its sensitive settings', async (t) => {
  const weakening = ['Tools.Web.AllowedHosts', 'Turns', 'Quota'];
  for (const [path, settings] of Object.entries(wanted)) {
    if (weakening.includes(path)) continue;
    const { config, warnings, restrictedSettings } = load({}, settings);
    t.match(config, settings, path);
    t.same([warnings, restrictedSettings], [[], []], path);
  }
});

/** Path, value of the user (undefined: unset), value of the trusted workspace, effective value. */
const combinations: readonly [string, unknown, unknown, unknown][] = [
  ['Tools.Shell.Sandbox', 'required', 'off', 'required'],
  ['Tools.Shell.Sandbox', 'required', 'auto', 'required'],
  ['Tools.Shell.Sandbox', 'auto', 'off', 'auto'],
  ['Tools.Shell.Sandbox', 'off', 'required', 'required'],
  ['Tools.Shell.Sandbox', 'auto', 'required', 'required'],
  ['Tools.Shell.Network', undefined, 'allow', 'deny'],
  ['Tools.Shell.Network', 'allow', 'deny', 'deny'],
  ['Tools.Shell.Network', 'allow', 'allow', 'allow'],
  ['Permissions.DefaultApprovalPolicy', 'interrupt', 'autoApprove', 'interrupt'],
  ['Permissions.DefaultApprovalPolicy', undefined, 'autoApprove', 'default'],
  ['Permissions.DefaultApprovalPolicy', 'autoApprove', 'default', 'default'],
  ['Permissions.DefaultApprovalPolicy', undefined, 'interrupt', 'interrupt'],
  ['Permissions.Rules', [never], [always], [never, always]],
  ['Permissions.Rules', [never], [], [never]],
  ['Permissions.BlockedPaths', ['mine'], ['theirs'], ['mine', 'theirs']],
  ['Permissions.BlockedPaths', ['mine'], [], ['mine']],
  ['Permissions.BlockedPaths', undefined, ['theirs'], ['theirs']],
  ['Permissions.WorktreeRoot', undefined, '/', ''],
  ['Permissions.WorktreeRoot', '/mine', '/', '/mine'],
  ['EnabledTools', ['ReadFile'], ['readfile', 'Exec'], ['ReadFile']],
  ['EnabledTools', ['ReadFile'], [], ['ReadFile']],
  ['EnabledTools', undefined, ['Exec'], ['Exec']],
  ['Api.EnabledTools', ['ReadFile', 'Exec'], ['Exec'], ['Exec']],
  ['Api.EnabledTools', ['ReadFile'], [], ['ReadFile']],
  ['Api.AutoApprove', false, true, false],
  ['Api.AutoApprove', undefined, false, false],
  ['Api.ApprovalMode', 'interactive', 'policy', 'interactive'],
  ...['TurnUsd', 'SessionUsd', 'DayUsd'].flatMap((name): [string, unknown, unknown, unknown][] => [
    [`Budget.${name}`, 2, 5, 2],
    [`Budget.${name}`, 2, 0, 2],
    [`Budget.${name}`, 2, 1, 1],
    [`Budget.${name}`, 0, 3, 3],
    [`Budget.${name}`, undefined, 3, 3],
  ]),
  ['Api.ApprovalMode', undefined, 'interactive', 'interactive'],
  ...['Api', 'AgUi', 'DashBoard', 'AppServer.WebSocket'].flatMap((face): [string, unknown, unknown, unknown][] => [
    [`${face}.Host`, undefined, '0.0.0.0', '127.0.0.1'],
    [`${face}.Host`, '10.0.0.1', '0.0.0.0', '10.0.0.1'],
    [`${face}.Host`, '0.0.0.0', '::1', '::1'],
  ]),
  ...['Api', 'AgUi', 'DashBoard', 'Automations'].flatMap((face): [string, unknown, unknown, unknown][] => [
    [`${face}.Enabled`, false, true, false],
    [`${face}.Enabled`, undefined, true, true],
    [`${face}.Enabled`, true, false, false],
  ]),
  ...['Api.ApiKey', 'AgUi.ApiKey', 'AppServer.WebSocket.Token'].flatMap(
    (path): [string, unknown, unknown, unknown][] => [
      [path, 'mine', 'theirs', 'mine'],
      [path, 'mine', '', 'mine'],
      [path, undefined, 'theirs', 'theirs'],
    ],
  ),
  ['Quota.Wait', undefined, 'never', 'never'],
  ['Quota.Wait', 'ask', 'auto', 'ask'],
  ['Turns.Resume', undefined, 'ask', 'ask'],
  ['Turns.Resume', 'ask', 'auto', 'ask'],
  ['Turns.KeepCommands', undefined, false, false],
  ['Turns.KeepCommands', false, true, false],
  ['Turns.ResumeAgents', undefined, true, false],
  ['Turns.ResumeAgents', true, true, true],
  ...[
    ['Quota.MaxWaitHours', 5],
    ['Turns.MaxResumes', 2],
    ['Turns.ResumeWithinHours', 10],
    ['Turns.HandOverSeconds', 5],
    ['Turns.KeepSeconds', 60],
  ].flatMap(([path, mine]): [string, unknown, unknown, unknown][] => [
    [String(path), mine, Number(mine) - 1, Number(mine) - 1],
    [String(path), mine, Number(mine) + 1, mine],
  ]),
  ['DashBoard.Auth', undefined, 'none', 'token'],
  ['DashBoard.Auth', 'none', 'token', 'token'],
  ['DashBoard.Username', undefined, 'theirs', ''],
  ['DashBoard.Password', 'mine', 'theirs', 'mine'],
  ['DashBoard.AllowedHosts', undefined, ['evil.example'], []],
  ['DashBoard.AllowedHosts', ['mine'], ['evil.example'], ['mine']],
  ['Tools.Shell.VisibleHome', undefined, ['.ssh'], []],
  ['Tools.Shell.VisibleHome', ['mine'], ['.ssh'], ['mine']],
  ['Tools.Web.AllowedHosts', undefined, ['evil.example'], []],
  ['Tools.Web.AllowedHosts', ['mine', 'other'], ['MINE', 'evil.example'], ['mine']],
  ['Supervision.PassEnvironment', undefined, ['SECRET'], []],
  ['Supervision.PassEnvironment', ['MINE'], ['SECRET'], ['MINE']],
  ['Place.Default', undefined, 'container', 'container'],
  ['Place.Default', 'container', 'local', 'container'],
  ['Place.Container.Network', 'none', 'bridge', 'none'],
  ['Place.Container.Engine', undefined, '/evil.sock', ''],
  ['Place.Container.MemoryMiB', undefined, 0, 4_096],
  ['Place.Container.Cpus', 1, 0, 1],
  ['Place.Container.Pids', 100, 1_000, 100],
  ['Place.Container.Mounts', undefined, ['/etc'], []],
  ['Place.Container.AllowRoot', undefined, true, false],
  ['Place.Pod', undefined, { Command: ['evil'], Kubeconfig: '/evil', AllowRoot: true }, undefined],
  ['Checkpoints', undefined, { Enabled: false, RetentionDays: 1 }, undefined],
  ['Telemetry', undefined, { Enabled: true, Endpoint: 'http://evil.example' }, undefined],
  ['Notifications', undefined, { Ntfy: { Url: 'https://evil.example/t' } }, undefined],
  ['Hub', undefined, { Port: 1 }, undefined],
  ['Hosts', undefined, { evil: { Ssh: 'ssh://evil' } }, undefined],
];

t.test('regression: H5 the stricter of user and trusted workspace holds, row by row', async (t) => {
  const rows = new Set(settingsTable.filter(({ combine }) => combine !== undefined).map(({ path }) => path));
  const defaults = load({}, {}).config;
  for (const [path, mine, theirs, expected] of combinations) {
    rows.delete(path);
    const { config } = load(mine === undefined ? {} : nested(path, mine), nested(path, theirs));
    const wanted = expected === undefined ? at(defaults, path) : expected;
    t.same(at(config, path), wanted, `${path}: ${JSON.stringify([mine, theirs])}`);
  }
  t.same([...rows], [], 'every row of the table is in this test');
});

t.test('an approval mode is compared together with AutoApprove', async (t) => {
  const mode = (user: Settings, workspace: Settings) => load({ Api: user }, { Api: workspace }).config.Api;
  const declines = { ApprovalMode: 'policy', AutoApprove: false };
  t.match(mode(declines, { ApprovalMode: 'interactive' }), declines, 'declining is stricter than asking');
  t.match(mode({ ApprovalMode: 'interactive' }, declines), declines);
  t.match(mode({ ApprovalMode: 'interactive', AutoApprove: false }, { ApprovalMode: 'policy' }), declines);
  t.match(mode({ ApprovalMode: 'interactive' }, { ApprovalMode: 'policy', AutoApprove: true }), {
    ApprovalMode: 'interactive',
  });
});

t.test('lists of tools without a common one are refused, because an empty list enables all', async (t) => {
  t.throws(() => load({ EnabledTools: ['ReadFile'] }, { EnabledTools: ['Exec'] }), {
    name: 'ConfigError',
    file: 'workspace.json',
    keyPath: 'EnabledTools',
  });
});

t.test('a dropped setting of a trusted workspace is reported', async (t) => {
  const { warnings } = load(
    { Tools: { Shell: { Sandbox: 'required' } } },
    { Tools: { Shell: { Sandbox: 'off' } }, Hub: {} },
  );
  t.match(warnings, [/Tools\.Shell\.Sandbox .*your own configuration is stricter/, /Hub is not read here/]);
});

t.test('an invalid value is reported with its file', async (t) => {
  const bad = { Tools: { Shell: { Sandbox: 'sometimes' } } };
  const good = { Tools: { Shell: { Sandbox: 'off' } } };
  t.throws(() => load(good, bad), { name: 'ConfigError', file: 'workspace.json', keyPath: 'Tools.Shell.Sandbox' });
  t.throws(() => load(bad, good), { name: 'ConfigError', file: 'user.json', keyPath: 'Tools.Shell.Sandbox' });
  t.equal(load(good, bad, 'restricted').config.Tools.Shell.Sandbox, 'off', 'what is ignored cannot be wrong');
});

/* Everything a file can say about sensitive settings, right and wrong. */
const host = fc.constantFrom('127.0.0.1', '::1', 'localhost', '0.0.0.0', '10.0.0.1', 'example.com', ' ');
const key = fc.constantFrom('', 'k1', 'k2');
const tools = fc.subarray(['ReadFile', 'Exec', 'WebFetch', 'exec']);
const names = fc.subarray(['A', 'B', 'C']);
const optional = <T>(shape: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(shape, { requiredKeys: [] });
const url = fc.constantFrom('http://one.example', 'http://two.example', '');
const sensible = optional({
  EndPoint: url,
  ApiKey: fc.constantFrom('', 'key-1', 'key-2', '$' + '{SECRET}'),
  EnabledTools: tools,
  McpServers: fc.dictionary(
    fc.constantFrom('a', 'b'),
    fc.oneof(
      fc.record({ transport: fc.constant('stdio'), command: fc.constantFrom('x', 'y'), envVars: names }),
      fc.record({
        transport: fc.constant('streamableHttp'),
        url: fc.constantFrom('http://one.example', 'http://two.example'),
        httpHeaders: fc.dictionary(fc.constantFrom('x-key'), fc.constantFrom('h1', 'h2')),
      }),
    ),
  ),
  Permissions: optional({
    DefaultApprovalPolicy: fc.constantFrom('default', 'autoApprove', 'interrupt'),
    BlockedPaths: names,
    WorktreeRoot: fc.constantFrom('', '/', '/w'),
  }),
  Tools: optional({
    Shell: optional({ Sandbox: fc.constantFrom('off', 'auto', 'required') }),
    Web: optional({
      AllowedHosts: names,
      SearchProvider: fc.constantFrom('none', 'searxng', 'brave'),
      SearchUrl: url,
      SearchApiKey: fc.constantFrom('', 's1', 's2'),
    }),
  }),
  Api: optional({
    Enabled: fc.boolean(),
    Host: host,
    ApiKey: key,
    AutoApprove: fc.boolean(),
    EnabledTools: tools,
    ApprovalMode: fc.constantFrom('policy', 'interactive'),
  }),
  AgUi: optional({ Enabled: fc.boolean(), Host: host, ApiKey: key }),
  DashBoard: optional({
    Enabled: fc.boolean(),
    Host: host,
    Auth: fc.constantFrom('token', 'none'),
    Username: key,
    Password: key,
    AllowedHosts: names,
  }),
  AppServer: optional({ WebSocket: optional({ Host: host, Token: key }) }),
  Supervision: optional({ PassEnvironment: names, MaxRestarts: fc.nat(5) }),
  Telemetry: optional({ Enabled: fc.boolean(), Endpoint: url }),
  Automations: optional({ Enabled: fc.boolean() }),
});

const rank = (order: readonly unknown[], value: unknown): number => order.indexOf(value);
const isLocal = (value: string): boolean => ['127.0.0.1', '::1', 'localhost'].includes(value);
const approval = ({ ApprovalMode, AutoApprove }: Config['Api']): number =>
  ApprovalMode === 'interactive' ? 1 : AutoApprove ? 0 : 2;
const enables = (list: readonly string[], tool: string): boolean => list.length === 0 || list.includes(tool);

/** Everything in which `effective` is weaker than `user`, written down independently of the table. */
function weaknesses(effective: Config, user: Config): string[] {
  const found: string[] = [];
  const check = (name: string, isFine: boolean) => {
    if (!isFine) found.push(name);
  };
  const sandbox = ['off', 'auto', 'required'];
  check('sandbox', rank(sandbox, effective.Tools.Shell.Sandbox) >= rank(sandbox, user.Tools.Shell.Sandbox));
  const policies = ['autoApprove', 'default', 'interrupt'];
  const [now, mine] = [effective.Permissions, user.Permissions];
  check('policy', rank(policies, now.DefaultApprovalPolicy) >= rank(policies, mine.DefaultApprovalPolicy));
  check(
    'blocked',
    mine.BlockedPaths.every((path) => now.BlockedPaths.includes(path)),
  );
  check('worktrees', now.WorktreeRoot === mine.WorktreeRoot);
  check('approval', approval(effective.Api) >= approval(user.Api));
  for (const tool of ['ReadFile', 'Exec', 'WebFetch'] as const) {
    check('tools', !enables(effective.EnabledTools, tool) || enables(user.EnabledTools, tool));
    check('api tools', !enables(effective.Api.EnabledTools, tool) || enables(user.Api.EnabledTools, tool));
  }
  for (const [name, face, own] of [
    ['api', effective.Api, user.Api],
    ['agui', effective.AgUi, user.AgUi],
    ['dashboard', effective.DashBoard, user.DashBoard],
    ['socket', effective.AppServer.WebSocket, user.AppServer.WebSocket],
  ] as const) {
    check(`${name} host`, face.Host === own.Host || isLocal(face.Host));
  }
  check('api key', user.Api.ApiKey === '' || effective.Api.ApiKey === user.Api.ApiKey);
  check('agui key', user.AgUi.ApiKey === '' || effective.AgUi.ApiKey === user.AgUi.ApiKey);
  const [token, own] = [effective.AppServer.WebSocket.Token, user.AppServer.WebSocket.Token];
  check('socket token', own === '' || token === own);
  const [page, mypage] = [effective.DashBoard, user.DashBoard];
  check('auth', page.Auth === 'token' || mypage.Auth === 'none');
  check('log-in', page.Username === mypage.Username && page.Password === mypage.Password);
  check('page hosts', page.AllowedHosts.join() === mypage.AllowedHosts.join());
  check(
    'web hosts',
    effective.Tools.Web.AllowedHosts.every((each) => user.Tools.Web.AllowedHosts.includes(each)),
  );
  check('environment', effective.Supervision.PassEnvironment.join() === user.Supervision.PassEnvironment.join());
  check('telemetry', JSON.stringify(effective.Telemetry) === JSON.stringify(user.Telemetry));
  check('automations', user.Automations.Enabled || !effective.Automations.Enabled);
  return found;
}

/** Whether a key would be sent to an address of another file. */
function leaks(effective: Config, user: Settings, workspace: Settings, env: Readonly<Record<string, string>>): boolean {
  const expanded = (value: unknown) => (value === '$' + '{SECRET}' ? env['SECRET'] : value);
  const { ApiKey, EndPoint } = effective;
  const sources = [user, workspace].filter((layer) => expanded(layer['ApiKey']) === ApiKey);
  const isFromOneFile = sources.some((layer) => (layer['EndPoint'] ?? '') === EndPoint);
  const { SearchApiKey, SearchProvider, SearchUrl } = effective.Tools.Web;
  const holders = [user, workspace].filter((layer) => at(layer, 'Tools.Web.SearchApiKey') === SearchApiKey);
  const search = holders.some(
    (layer) =>
      (at(layer, 'Tools.Web.SearchProvider') ?? 'none') === SearchProvider &&
      (at(layer, 'Tools.Web.SearchUrl') ?? '') === SearchUrl,
  );
  const servers = Object.entries(effective.McpServers).every(([name, settings]) =>
    [user, workspace].some((layer) => {
      const own = at(layer, `McpServers.${name}`) as Settings | undefined;
      if (own === undefined || own['transport'] !== settings.transport) return false;
      if (settings.transport === 'stdio') return own['command'] === settings.command;
      return own['url'] === settings.url && JSON.stringify(own['httpHeaders']) === JSON.stringify(settings.httpHeaders);
    }),
  );
  return (ApiKey !== '' && !isFromOneFile) || (SearchApiKey !== '' && !search) || !servers;
}

t.test('regression: H5 with any two files, the effective value is never weaker than the user’s', async () => {
  const env = { SECRET: 'key-of-the-environment' };
  let [loaded, refused] = [0, 0];
  fc.assert(
    fc.property(sensible, sensible, fc.constantFrom('trusted', 'restricted'), (user, workspace, trust) => {
      let own: Config;
      try {
        own = load(user, {}, 'restricted', env).config;
      } catch {
        return true;
      }
      try {
        const { config } = load(user, workspace, trust, env);
        loaded++;
        const problems = weaknesses(config, own);
        if (problems.length > 0) throw new Error(problems.join());
        if (trust === 'restricted' && leaks(config, user, {}, env)) throw new Error('a restricted leak');
        return !leaks(config, user, workspace, env);
      } catch (error) {
        if ((error as Error).name !== 'ConfigError') throw error;
        refused++;
        return true;
      }
    }),
    { numRuns: 3_000 },
  );
  t.ok(loaded > 500, `${loaded} loaded, ${refused} refused`);
});
