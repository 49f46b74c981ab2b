/** Settings routes: reading settings, and changing the file of the workspace. */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { trustWorkspace, workspaceTrust } from '../../src/config/index.ts';
import { secretKeyPaths } from '../../src/config/schema.ts';
import { reservedNames, settingsTable } from '../../src/config/settings-table.ts';
import { temporaryDirectory } from '../appserver/harness.ts';
import { bare } from './bare.ts';
import { type Body, type Scene, scene } from './harness.ts';

const fileOf = ({ path }: Scene) => join(path, '.oratorio', 'config.json');
const textOf = (scene: Scene) => readFileSync(fileOf(scene), 'utf8');

async function put(scene: Scene, set: unknown, revision?: string | null) {
  const { body } = await scene.ask('/dashboard/api/config');
  const wanted = revision === undefined ? body.revision : revision;
  const headers = wanted === null ? {} : { 'if-match': `"${wanted}"` };
  return scene.ask('/dashboard/api/config', { method: 'PUT', headers, body: { set } });
}

t.test('the schema has title, description and default of every setting, and secrets are write-only', async (t) => {
  const { ask } = await scene(t);
  const { body } = await ask('/dashboard/api/config/schema');
  t.match(body.properties.Api.properties.Port, {
    type: 'integer',
    minimum: 0,
    maximum: 65_535,
    default: 8080,
    title: 'Port',
    description: /port/,
    'x-restart': true,
  });
  const secrets: string[] = [];
  const incomplete: string[] = [];
  const visit = (schema: Body, path: string) => {
    for (const [key, property] of Object.entries<Body>(schema.properties ?? {})) {
      const at = path === '' ? key : `${path}.${key}`;
      if (property.properties) visit(property, at);
      else {
        if (property.writeOnly) secrets.push(at);
        if (!property.title || !property.description || property['x-restart'] !== true) incomplete.push(at);
      }
    }
  };
  visit(body, '');
  t.same(secrets.sort(), [...secretKeyPaths].sort());
  t.same(incomplete, []);
  t.match(body.properties.Permissions.properties.DefaultApprovalPolicy, {
    enum: ['default', 'autoApprove', 'interrupt'],
  });
  t.equal(body.properties.McpServers.readOnly, true);
});

t.test('values are returned merged and by file, without secrets', async (t) => {
  const secrets = [
    'sk-top-secret',
    'api-secret',
    'header-secret',
    'env-secret',
    'arg-secret',
    'url-secret',
    'pass-secret',
  ];
  const place = await scene(t, {
    ApiKey: secrets[0],
    api: { APIKEY: secrets[1], Port: 9000 },
    Telemetry: { Headers: { authorization: secrets[2] } },
    McpServers: {
      one: {
        transport: 'stdio',
        command: 'tool',
        args: ['--key', secrets[4]],
        env: { KEY: secrets[3] },
        enabled: false,
      },
      two: {
        transport: 'streamableHttp',
        url: `https://u:${secrets[5]}@mcp.example/x?key=${secrets[5]}`,
        enabled: false,
      },
    },
    EndPoint: `https://me:${secrets[6]}@model.example/v1?key=${secrets[6]}`,
    Unknown: 1,
  });
  const { text, body } = await place.ask('/dashboard/api/config');
  t.same(
    secrets.filter((secret) => text.includes(secret)),
    [],
  );
  t.match(body, {
    path: fileOf(place),
    effective: {
      ApiKey: { set: true },
      Api: { ApiKey: { set: true }, Port: 9000, Host: '127.0.0.1' },
      AgUi: { ApiKey: { set: false } },
      Telemetry: { Headers: { authorization: { set: true } } },
      McpServers: { one: { command: 'tool', args: { set: true }, env: { set: true } } },
      EndPoint: 'https://…:…@model.example/v1?…',
    },
    workspace: { Api: { Port: 9000 } },
    user: { Telemetry: { Headers: { authorization: { set: true } } } },
    warnings: [/unknown key Unknown/],
  });
});

t.test('a change writes the requested settings and leaves the rest of the file unchanged', async (t) => {
  const place = await scene(t);
  const before = '{\n\t"ApiKey": "sk-secret",\n\t"Mine": [1,   2],\n\t"automations": { "MaxRetries": 9 }\n}\n';
  writeFileSync(fileOf(place), before);
  trustWorkspace({ home: place.home, workspace: place.path });
  const answer = await put(place, {
    'automations.maxretries': 8,
    Model: 'big',
    'Automations.MaxConcurrentRuns': 3,
  });
  t.match(answer, { status: 200, body: { restartNeededFor: ['Automations.MaxRetries', 'Model'] } });
  const text = textOf(place);
  t.match(text, '"Mine": [1,   2],\n\t"automations": { "MaxRetries": 8');
  t.same(JSON.parse(text), {
    ApiKey: 'sk-secret',
    Mine: [1, 2],
    automations: { MaxRetries: 8, MaxConcurrentRuns: 3 },
    Model: 'big',
  });
  t.equal(statSync(fileOf(place)).mode & 0o777, 0o600);
  t.equal((await place.ask('/dashboard/api/config')).body.revision, answer.body.revision);
  t.match(await put(place, { Model: null, 'Automations.MaxRetries': null }), { status: 200 });
  t.same(JSON.parse(textOf(place)), { ApiKey: 'sk-secret', Mine: [1, 2], automations: { MaxConcurrentRuns: 3 } });
  t.match(place.log.join(''), /"msg":"settings changed","keys":\[.*"by":"token"/);
  t.notMatch(place.log.join(''), '"big"');
});

t.test('an invalid change is refused with a reason for each setting, without a change', async (t) => {
  const place = await scene(t);
  const before = textOf(place);
  const cases: [unknown, string[]][] = [
    [{ MaxToolCallRounds: 'eighty' }, ['MaxToolCallRounds']],
    [{ MaxToolCallRounds: 0, 'Compaction.ContextWindow': 1 }, ['Compaction.ContextWindow', 'MaxToolCallRounds']],
    [{ Nothing: 1 }, ['Nothing']],
    [{ 'Tracing.Nothing': 1, 'Tracing.Enabled.x': 2 }, ['Tracing.Nothing', 'Tracing.Enabled.x']],
    [{ Tracing: {} }, ['Tracing']],
    [{ 'McpServers.evil': { transport: 'stdio', command: 'sh' } }, ['McpServers.evil']],
    [{ McpServers: {} }, ['McpServers']],
    [{ '': 1 }, ['']],
    [{ '__proto__.x': 1 }, ['__proto__.x']],
    [{ 'constructor.prototype': 1 }, ['constructor.prototype']],
    [{ 'Telemetry.Endpoint': 'https://collector.example' }, ['Telemetry.Endpoint']],
    [{ 'Telemetry.Headers.': 'x' }, ['Telemetry.Headers.']],
    [{ Model: '${NOT_SET_ANYWHERE}' }, ['Model']],
    [{ Model: 5 }, ['Model']],
  ];
  for (const [set, paths] of cases) {
    const { status, body, text } = await put(place, set);
    t.equal(status, 400, JSON.stringify(set));
    t.same(body.error.code, 'invalidConfig', text);
    t.same(body.error.details.issues.map(({ path }: Body) => path).sort(), [...paths].sort());
  }
  for (const body of [undefined, 'nonsense', [], { set: 1 }, {}]) {
    const { revision } = (await place.ask('/dashboard/api/config')).body;
    const answer = await place.ask('/dashboard/api/config', { method: 'PUT', headers: { 'if-match': revision }, body });
    t.equal(answer.status, 400, JSON.stringify(body));
  }
  t.match(await put(place, { Model: 'x' }, null), { status: 428, body: { error: { code: 'revisionRequired' } } });
  t.match(await put(place, { Model: 'x' }, 'another'), { status: 412, body: { error: { code: 'revisionStale' } } });
  const large = await put(place, { Model: 'x'.repeat(300_000) });
  t.equal(large.status, 413);
  t.equal(textOf(place), before);
});

t.test('an invalid JSON file is reported and not overwritten, and a missing file is created', async (t) => {
  const place = await scene(t);
  writeFileSync(fileOf(place), '{ // a comment\n "Model": "x" }');
  const { body } = await place.ask('/dashboard/api/config');
  t.match(body, {
    readOnly: /must be valid JSON/,
    workspace: {},
    warnings: [/line 1, column 3 \(comments are not JSON\)/],
  });
  t.match(await put(place, { Model: 'y' }), { status: 400, body: { error: { code: 'invalidConfig' } } });
  t.match(textOf(place), 'a comment');
  rmSync(fileOf(place));
  t.match(await put(place, { Model: 'y' }), { status: 200 });
  t.same(JSON.parse(textOf(place)), { Model: 'y' });
});

t.test('a file that can be neither read nor written is reported', async (t) => {
  const change = { method: 'PUT', body: { set: { Model: 'y' } } };
  const place = await scene(t);
  rmSync(fileOf(place));
  mkdirSync(fileOf(place));
  const { body } = await place.ask('/dashboard/api/config');
  t.match(body, {
    revision: '',
    readOnly: /must be a regular file of yours of at most 1 MiB, but is another kind of file/,
    effective: {},
  });
  const unread = await place.ask('/dashboard/api/config', { ...change, headers: { 'if-match': 'any' } });
  t.match(unread, { status: 503, body: { error: { code: 'storageFailed', message: /another kind of file/ } } });

  const home = temporaryDirectory(t);
  const gone = await bare(t, 'node', { config: { home, workspace: join(home, 'gone'), env: {} } });
  const { revision } = (await gone.ask('/dashboard/api/config')).body;
  t.match(await gone.ask('/dashboard/api/config', { ...change, headers: { 'if-match': revision } }), {
    status: 503,
    body: { error: { code: 'storageFailed', details: { code: 'ENOENT' } } },
  });
});

/** One value for every setting that gives rights, a new one each. */
const rights: Readonly<Record<string, unknown>> = {
  EndPoint: 'http://evil.example/v1',
  ApiKey: 'k',
  'McpServers.evil': { transport: 'stdio', command: 'sh' },
  'Permissions.DefaultApprovalPolicy': 'autoApprove',
  'Permissions.BlockedPaths': [],
  'Tools.Shell.Sandbox': 'off',
  'Tools.Web.AllowedHosts': ['127.0.0.1'],
  'Tools.Web.SearchProvider': 'brave',
  'Tools.Web.SearchUrl': 'http://evil.example',
  'Tools.Web.SearchApiKey': 'k',
  'Supervision.PassEnvironment': ['SECRET'],
  'Api.Enabled': true,
  'Api.AutoApprove': true,
  'AgUi.Enabled': true,
  'DashBoard.Auth': 'none',
  Provider: 'openai',
  Providers: { evil: { EndPoint: 'http://evil.example' } },
  Proxy: 'http://evil.example',
  ApiKeyCommand: ['evil'],
  Wire: 'chat',
  FallbackModels: ['evil/model'],
  ReasoningEffort: 'xhigh',
  MaxOutputTokens: 100_000,
  'Budget.TurnUsd': 5,
  Models: { m: { ContextWindow: 1000 } },
  'AppServer.WebSocket.Host': '0.0.0.0',
  'Telemetry.Endpoint': 'http://evil.example',
  'Agent.Name': 'codex',
  'Agent.Command': ['touch', '/tmp/x'],
  'Hub.Port': 1,
  'Turns.Resume': 'auto',
  'Place.Container.Image': 'evil',
  'Quota.Wait': 'auto',
};

t.test('a log-in at an MCP server requires the name of the server and the page token', async (t) => {
  const { ask } = await scene(t, { McpServers: { files: { transport: 'stdio', command: 'true', enabled: false } } });
  const send = (body: unknown, more = {}) => ask('/dashboard/api/mcp/login', { method: 'POST', body, ...more });
  t.match(await send({ server: 'files' }, { token: null }), { status: 401 });
  t.match(await send({ server: 'files' }), { status: 409, body: { error: { message: /needs no log-in/ } } });
  t.match(await send({ server: 'nobody' }), { status: 404, body: { error: { code: 'mcpServerNotFound' } } });
  t.match(await send({}), { status: 400 });
  const open = await scene(t, { DashBoard: { Auth: 'none' } });
  t.match(await open.ask('/dashboard/api/mcp/login', { method: 'POST', body: { server: 'x' } }), { status: 403 });
});

t.test('regression: H2 settings that give rights cannot be changed through the dashboard', async (t) => {
  const place = await scene(t);
  const before = textOf(place);
  const covered = new Set<string>();
  for (const [path, value] of Object.entries(rights)) {
    const row = settingsTable.find(
      (each) => each.isSensitive && (path === each.path || path.startsWith(`${each.path}.`)),
    );
    if (row) covered.add(row.path);
    const { status, body } = await put(place, { [path]: value });
    t.equal(status, 400, path);
    t.match(body, { error: { code: 'invalidConfig', details: { issues: [{ path }] } } }, path);
    t.match(body.error.message, `${fileOf(place)} is not changed here`, path);
  }
  const known = settingsTable.filter(
    ({ path, isSensitive, isOnPage }) => isSensitive && !isOnPage && !reservedNames.includes(path),
  );
  t.same([...covered].sort(), known.map(({ path }) => path).sort(), 'every sensitive setting is in this test');
  t.equal(textOf(place), before);
  t.match(
    await put(place, { 'aPi.aUtOaPpRoVe': true, Model: 'x' }),
    { status: 400 },
    'in any case, beside another one',
  );
  t.equal(textOf(place), before);
  t.match(await put(place, { Model: 'x' }), { status: 200 }, 'a harmless one can be changed');
  t.match(await put(place, { SystemPrompt: 'x', MaxToolCallRounds: 7 }), { status: 200 }, 'and one that only costs');
  t.equal(workspaceTrust({ home: place.home, workspace: place.path }).trust, 'trusted');
  const { body } = await place.ask('/dashboard/api/config/schema');
  t.match(body.properties.Api.properties.AutoApprove, {
    readOnly: true,
    'x-read-only': /gives rights.*oratorio trust/,
  });
  t.notOk(body.properties.Model.readOnly);
});
