// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the placeholders of configuration files look like those of TypeScript
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import {
  Config,
  type ConfigError,
  configJsonSchema,
  loadConfig,
  referencedVariables,
  resolveConfig,
  secretsIn,
  toolNames,
  trustWorkspace,
  usableConfig,
} from '../../src/config/index.ts';
import { defaults } from '../../src/protocol/index.ts';

const resolve = (settings: unknown, env: Record<string, string> = {}) =>
  resolveConfig([{ file: 'config.json', settings: settings as Record<string, unknown> }], env);

/** The error that `work` throws. */
function failure(work: () => unknown): ConfigError {
  try {
    work();
  } catch (error) {
    return error as ConfigError;
  }
  throw new Error('nothing was thrown');
}

/** A home and a workspace with these files. */
function places(t: { testdir(): string }, user: string | undefined, workspace?: string) {
  const home = t.testdir();
  const root = join(home, 'work');
  mkdirSync(join(root, '.oratorio'), { recursive: true });
  if (user !== undefined) writeFileSync(join(home, 'config.json'), user);
  if (workspace !== undefined) writeFileSync(join(root, '.oratorio', 'config.json'), workspace);
  return { home, workspace: root };
}

t.test('specification 2.1: defaults', async (t) => {
  const { config, warnings, files, referencedVariables: names } = loadConfig({ ...places(t, undefined), env: {} });
  t.same([warnings, files, names], [[], [], []]);
  t.match(config.Api, {
    Enabled: false,
    Host: '127.0.0.1',
    Port: 8080,
    ApiKey: '',
    AutoApprove: true,
    EnabledTools: [],
  });
  t.same(config.Permissions, {
    DefaultApprovalPolicy: 'default',
    ApprovalTimeoutSeconds: 300,
    BlockedPaths: [],
    Rules: [],
    WorktreeRoot: '',
  });
  t.same([config.EnabledTools, config.McpServers, config.SubAgent.MaxDepth], [[], {}, 1]);
  t.same([config.ApiKey, config.Model, config.EndPoint], ['', '', '']);
  t.same(config.Hub, { Host: '127.0.0.1', Port: 0, AllowedHosts: [] });
  t.match(config.AgUi, { Enabled: false, Path: '/ag-ui' });
  t.same(config.DashBoard, {
    Enabled: true,
    Host: '127.0.0.1',
    Port: 8080,
    Auth: 'token',
    Username: '',
    Password: '',
    AllowedHosts: [],
  });
  t.same(config.AppServer, { WebSocket: { Host: '127.0.0.1', Port: 0, Token: '' } });
  t.same(config.Supervision, {
    Restart: 'onFailure',
    MaxRestarts: defaults.supervise.maxRestarts,
    WithinSeconds: 120,
    BackoffBaseMs: 500,
    BackoffCapMs: 30_000,
    ProbeIntervalMs: 30_000,
    ProbeTimeoutMs: 3_000,
    LivenessFailures: 3,
    UnhealthyGraceMs: 15_000,
    StartDeadlineMs: 30_000,
    IdleStopMinutes: 30,
    PassEnvironment: [],
  });
});

t.test('the dashboard is enabled by default on a loopback address only', async (t) => {
  for (const [Host, expected] of Object.entries({
    '127.0.0.1': true,
    localhost: true,
    '::1': true,
    '127.8.0.1': true,
    '0.0.0.0': false,
    'example.com': false,
  })) {
    t.equal(resolve({ DashBoard: { Host } }).config.DashBoard.Enabled, expected, Host);
  }
  t.equal(resolve({ DashBoard: { Host: '0.0.0.0', Enabled: true } }).config.DashBoard.Enabled, true);
  t.equal(resolve({ DashBoard: { Enabled: false } }).config.DashBoard.Enabled, false);
});

t.test('settings of a trusted workspace override those of the user', async (t) => {
  const at = places(
    t,
    JSON.stringify({ Model: 'a', Api: { Port: 1, EnabledTools: ['Exec', 'ReadFile'] } }),
    JSON.stringify({ api: { maxConcurrentTurns: 2, enabledTools: ['exec'] }, SUPERVISION: { maxrestarts: 9 } }),
  );
  trustWorkspace(at);
  const { config, files } = loadConfig({ ...at, env: {} });
  t.equal(config.Model, 'a');
  t.match(config.Api, { Port: 1, MaxConcurrentTurns: 2 });
  t.same(config.Api.EnabledTools, ['Exec']);
  t.equal(config.Supervision.MaxRestarts, 9);
  t.same(files, [join(at.home, 'config.json'), join(at.workspace, '.oratorio', 'config.json')]);
  const { config: userOnly } = loadConfig({ home: at.home, env: {} });
  t.equal(userOnly.Api.Host, '127.0.0.1');
});

t.test('a workspace whose directory is the home has one file', async (t) => {
  const root = t.testdir({ '.oratorio': { 'config.json': '{"Model":"m","Nope":1}' } });
  const { files, warnings } = loadConfig({ home: join(root, '.oratorio'), workspace: root, env: {} });
  t.equal(files.length, 1);
  t.equal(warnings.length, 1);
});

t.test('an invalid value is reported with file, key path, expectation and value', async (t) => {
  const cases: [unknown, string, RegExp, RegExp][] = [
    [{ hub: { host: '0.0.0.0' } }, 'Hub.Host', /loopback/, /"0\.0\.0\.0"/],
    [{ Hub: { Host: 'example.com' } }, 'Hub.Host', /loopback/, /example/],
    [{ Hub: { Port: '80' } }, 'Hub.Port', /0 to 65535/, /"80"/],
    [{ Hub: { Port: 65_536 } }, 'Hub.Port', /0 to 65535/, /65536/],
    [{ Hub: { Port: 1.5 } }, 'Hub.Port', /whole number/, /1\.5/],
    [{ Hub: { Port: -1 } }, 'Hub.Port', /whole number/, /-1/],
    [{ Hub: null }, 'Hub', /an object/, /null/],
    [{ Hub: [] }, 'Hub', /an object/, /a list/],
    [{ McpServers: [{ command: 'docs' }] }, 'McpServers', /an object/, /a list/],
    [{ Api: { Enabled: 'yes' } }, 'Api.Enabled', /true or false/, /"yes"/],
    [{ Api: { EnabledTools: 'Exec' } }, 'Api.EnabledTools', /list/, /"Exec"/],
    [{ Api: { EnabledTools: ['Exec', 'Format'] } }, 'Api.EnabledTools.1', /one of ReadFile/, /"Format"/],
    [{ Api: { Host: ' ' } }, 'Api.Host', /host name/, /""/],
    [{ AgUi: { Path: 'ag-ui' } }, 'AgUi.Path', /begins with \//, /"ag-ui"/],
    [{ EndPoint: 'ftp://x' }, 'EndPoint', /http or https/, /ftp/],
    [{ EndPoint: 'nowhere' }, 'EndPoint', /http or https/, /nowhere/],
    [{ Model: {} }, 'Model', /a string/, /an object/],
    [{ Supervision: { Restart: 'sometimes' } }, 'Supervision.Restart', /"onFailure"/, /"sometimes"/],
    [{ Supervision: { ProbeIntervalMs: 1e12 } }, 'Supervision.ProbeIntervalMs', /whole number/, /1000000000000/],
    [{ Supervision: { PassEnvironment: ['A=B'] } }, 'Supervision.PassEnvironment.0', /name/, /"A=B"/],
    [{ DashBoard: { Enabled: 1 } }, 'DashBoard.Enabled', /true or false/, /1/],
    [{ Agent: { Kind: 1 } }, 'Agent.Kind', /^"oratorio", "acp" or empty$/, /1/],
    [{ Hooks: { PreToolUse: [{}] } }, 'Hooks.PreToolUse.0.Command', /^set$/, /^missing$/],
    [{ Permissions: { Rules: [{}] } }, 'Permissions.Rules.0.Tool', /^set$/, /^missing$/],
    [{ McpServers: { a: { transport: 'stdio' } } }, 'McpServers.a.command', /^set$/, /^missing$/],
    [{ Permissions: { BlockedPaths: [1] } }, 'Permissions.BlockedPaths.0', /^a string$/, /1/],
    [{ Permissions: { BlockedPaths: [''] } }, 'Permissions.BlockedPaths.0', /^not empty$/, /""/],
    ...[' ', 'a b', 'a\n', 'ä', 'k'.repeat(513)].flatMap((ApiKey): [unknown, string, RegExp, RegExp][] => [
      [{ Api: { ApiKey } }, 'Api.ApiKey', /visible ASCII/, /./],
      [{ AgUi: { ApiKey } }, 'AgUi.ApiKey', /visible ASCII/, /./],
    ]),
  ];
  for (const [settings, keyPath, expected, received] of cases) {
    const error = failure(() => resolve(settings));
    t.match(error, { name: 'ConfigError', file: 'config.json', keyPath, expected, received }, JSON.stringify(settings));
    t.ok(error.message.startsWith(`config.json: ${keyPath} must be `), error.message);
  }
});

t.test('the user name and password of an address are in no error, valid or not', async (t) => {
  for (const EndPoint of ['htp://u:SECRET@h', 'u:SECRET@h', 'http//u:SE/CRET@h:80', 'ftp://SECRET@h/path']) {
    const { message } = failure(() => resolve({ EndPoint }));
    t.match(message, /EndPoint must be .*…@h/);
    t.notMatch(message, /SE.?CRET/);
  }
});

t.test('the error names the file of the value', async (t) => {
  const layers = [
    { file: 'user.json', settings: { Hub: { Port: 'x' }, Api: { EnabledTools: ['Nope'] } } },
    { file: 'workspace.json', settings: { hub: { host: '127.0.0.1' }, api: { Port: 1 } } },
  ];
  t.match(
    failure(() => resolveConfig(layers, {})),
    { file: 'user.json', keyPath: 'Api.EnabledTools.0' },
  );
  const over = [...layers, { file: 'last.json', settings: { Api: { enabledtools: ['Bad'] } } }];
  t.match(
    failure(() => resolveConfig(over, {})),
    { file: 'last.json' },
  );
});

t.test('messages contain no secrets', async (t) => {
  t.notMatch(failure(() => resolve({ ApiKey: 12_345_678 })).message, /12345678/);
  t.notMatch(failure(() => resolve({ AppServer: { WebSocket: { Token: 12_345_678 } } })).message, /12345678/);
  t.notMatch(
    failure(() => resolve({ EndPoint: '$' + '{S}' }, { S: 'hush-hush' })).message,
    /hush/,
    'nor what a variable brought',
  );
});

t.test('passwords of end points and proxies count as secrets', async (t) => {
  const address = (password: string) => `http://user:${password}@host.example/v1`;
  const Providers = { other: { EndPoint: address('second'), Proxy: address('third') } };
  const { config } = resolve({ EndPoint: address('fir%20st'), Providers, Proxy: address('fourth') });
  t.same(secretsIn(config).sort(), ['fir st', 'fourth', 'second', 'third']);
});

t.test('variables', async (t) => {
  const { config, referencedVariables: names } = resolve(
    { ApiKey: '${KEY}', Model: 'x-${A}-${B}-$${A}-$A', Api: { ApiKey: '${KEY}' } },
    { KEY: 'k${A}', A: '1', B: '' },
  );
  t.match(config, { ApiKey: 'k${A}', Model: 'x-1--${A}-$A', Api: { ApiKey: 'k${A}' } });
  t.same([...names].sort(), ['A', 'B', 'KEY']);
  const error = failure(() => resolve({ Api: { ApiKey: '${NOT_SET}' } }));
  t.match(error, { file: 'config.json', keyPath: 'Api.ApiKey', received: /NOT_SET, which is not set/ });
  const layers = [
    { file: 'user.json', settings: { ApiKey: '${OLD}' } },
    { file: 'workspace.json', settings: { ApiKey: 'plain' } },
  ];
  t.equal(resolveConfig(layers, {}).config.ApiKey, 'plain', 'a value that is covered is not expanded');
});

t.test('referencedVariables reads files and skips unreadable ones', async (t) => {
  const root = t.testdir({ a: '{"ApiKey":"${ONE}","x":["${TWO}"]}', b: '{"Model":"${ONE} ${THREE}"}', bad: '{' });
  const files = ['a', 'b', 'bad', 'missing'].map((name) => join(root, name));
  t.same(referencedVariables(files).sort(), ['ONE', 'THREE', 'TWO']);
});

t.test('unknown and duplicate keys cause a warning', async (t) => {
  const { warnings, config } = resolve({
    $schema: 'x',
    Modell: 1,
    Api: { Prot: 1, port: 5, PORT: 6 },
    Nope: { deep: 1 },
  });
  t.same(warnings, [
    'config.json: unknown key Modell',
    'config.json: unknown key Api.Prot',
    'config.json: Api.Port is there twice; the last one holds',
    'config.json: unknown key Nope',
  ]);
  t.equal(config.Api.Port, 6);
  t.notOk('Modell' in config);
});

t.test('an invalid JSON file is reported with line and column, without its text', async (t) => {
  const cases: [string, RegExp][] = [
    ['', /line 1, column 1/],
    ['{\n  "Model": "secret-text",\n}', /line 3, column 1/],
    ['{\n  // comment\n}', /line 2, column 3 \(comments are not JSON\)/],
    ['{ /* comment */ }', /line 1, column 3 \(comments/],
    ['{"a":1 "b":2}', /line 1, column 8/],
    ["{'a':1}", /line 1, column 2/],
    ['{"a":"x\ny"}', /line 1, column 6/],
    ['[1,]', /line 1, column 4/],
    ['{"a":01}', /line 1, column 7/],
    ['{"a":1}}', /line 1, column 8/],
    ['[]', /a JSON object, but is a list/],
    ['null', /a JSON object, but is null/],
    ['"x"', /a JSON object, but is a string/],
  ];
  for (const [text, message] of cases) {
    const at = places(t, text);
    const error = failure(() => loadConfig({ home: at.home, env: {} }));
    t.match(error, { name: 'ConfigError', file: join(at.home, 'config.json'), message }, JSON.stringify(text));
    t.notMatch(error.message, /secret-text/);
  }
  const at = places(t, '\ufeff{"Model":"m"}');
  t.equal(loadConfig({ home: at.home, env: {} }).config.Model, 'm', 'a byte order mark is skipped');
});

t.test('an unreadable file is an error', async (t) => {
  const at = places(t, undefined);
  mkdirSync(join(at.home, 'config.json'));
  t.throws(() => loadConfig({ home: at.home, env: {} }), {
    name: 'ConfigError',
    message: /must be a regular file of at most 1 MiB, but is another kind of file/,
  });
  if (process.getuid?.() === 0) return;
  const closed = places(t, '{}');
  chmodSync(join(closed.home, 'config.json'), 0);
  t.throws(() => loadConfig({ home: closed.home, env: {} }), { name: 'ConfigError', message: /EACCES/ });
});

t.test('the schema for editors describes every setting', async (t) => {
  const schema = (await configJsonSchema()) as { properties: Record<string, { properties: Record<string, unknown> }> };
  t.match(schema.properties['Api']?.properties['Port'], {
    type: 'integer',
    minimum: 0,
    maximum: 65_535,
    default: 8080,
  });
  t.same(Object.keys(schema.properties), [
    'Provider',
    'ApiKey',
    'ApiKeyCommand',
    'Model',
    'EndPoint',
    'Proxy',
    'Wire',
    'Providers',
    'FallbackModels',
    'ThoughtTags',
    'ReasoningEffort',
    'MaxOutputTokens',
    'Models',
    'Budget',
    'SystemPrompt',
    'EnabledTools',
    'MaxToolCallRounds',
    'MaxSessionQueueSize',
    'StreamUpstream',
    'UpstreamIdleMs',
    'UpstreamRetries',
    'Compaction',
    'Tools',
    'SubAgent',
    'Permissions',
    'Quota',
    'Turns',
    'Agent',
    'Hooks',
    'McpServers',
    'Api',
    'DashBoard',
    'AgUi',
    'Automations',
    'Tracing',
    'Checkpoints',
    'Telemetry',
    'Notifications',
    'Hub',
    'Hosts',
    'AppServer',
    'Supervision',
    'Place',
  ]);
  t.equal(toolNames.length, 9);
});

t.test('notices go only where the user says, and a token never in the clear over the internet', async (t) => {
  const settings = (url: string) => JSON.stringify({ Notifications: { Ntfy: { Url: url, Token: 'tk_secret' } } });
  for (const url of ['https://ntfy.sh/topic', 'http://127.0.0.1:2586/t', 'http://192.168.1.4/t', 'http://[fd00::1]/t'])
    t.equal(loadConfig({ ...places(t, settings(url)), env: {} }).config.Notifications.Ntfy.Url, url);
  for (const url of ['http://ntfy.sh/topic', 'https://ntfy.sh', 'ftp://ntfy.sh/topic', 'http://172.32.0.1/t', 'x'])
    t.throws(() => loadConfig({ ...places(t, settings(url)), env: {} }), /Notifications\.Ntfy\.Url/, url);
  const ofRepository = loadConfig({ ...places(t, undefined, settings('https://evil.example/t')), env: {} });
  t.equal(ofRepository.config.Notifications.Ntfy.Url, '');
});

t.test('the address of telemetry is taken from the user only', async (t) => {
  const telemetry = JSON.stringify({ telemetry: { Enabled: true, Endpoint: 'https://collector.example/v1/traces' } });
  const ofRepository = loadConfig({ ...places(t, undefined, telemetry), env: {} });
  t.match(ofRepository.config.Telemetry, { Enabled: false, Endpoint: '' });
  t.match(ofRepository.warnings, [/Telemetry is not read here/]);
  t.match(loadConfig({ ...places(t, telemetry), env: {} }).config.Telemetry, { Enabled: true });
});

t.test('a push subject whose domain cannot exist on the Internet is refused', async (t) => {
  for (const subject of [
    'mailto:me@host.local',
    'mailto:me@x.invalid',
    'https://x.test/a',
    'https://a.localhost',
    'mailto:me@printer',
    'https://10.0.0.1',
    'mailto:me@example.LOCAL.',
    'me@mail.org',
  ])
    t.notOk(v.safeParse(Config, { Notifications: { PushSubject: subject } }).success, subject);
  for (const subject of ['', 'mailto:me@mail.org', 'https://mail.co.uk/contact', 'mailto:a.b@local.dev'])
    t.ok(v.safeParse(Config, { Notifications: { PushSubject: subject } }).success, subject);
});

t.test('regression: unusable settings of a workspace leave the secrets of the user known', async (t) => {
  const user = '{ "ApiKey": "key-of-the-user" }';
  t.ok(secretsIn(usableConfig({ ...places(t, user, '{ broken'), env: {} })).includes('key-of-the-user'));
  const both = usableConfig({ ...places(t, '{ broken', '{ "ApiKey": "key-of-the-workspace" }'), env: {} });
  t.same(secretsIn(both), [], 'nothing can be read: the defaults');
});
