/** Settings: what is shown of them, and changing the workspace's own file. */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { secretKeyPaths } from '../../src/config/schema.ts';
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

t.test('the schema of a form: every setting with title, description and default; secrets are write-only', async (t) => {
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

t.test('values: merged, of each file, and never a secret', async (t) => {
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
      Telemetry: { Headers: {} },
      McpServers: { one: { command: 'tool', args: { set: true }, env: { set: true } } },
      EndPoint: 'https://…:…@model.example/v1?…',
    },
    workspace: { Api: { Port: 9000 } },
    user: {},
    warnings: [/Telemetry is not read here/, /unknown key Unknown/],
  });
});

t.test('a change: only what was asked for, the rest of the file as it was', async (t) => {
  const place = await scene(t);
  const before = '{\n\t"ApiKey": "sk-secret",\n\t"Mine": [1,   2],\n\t"api": { "Port": 9000 }\n}\n';
  writeFileSync(fileOf(place), before);
  const answer = await put(place, {
    'api.port': 9001,
    Model: 'big',
    'Api.Enabled': false,
  });
  t.match(answer, { status: 200, body: { restartNeededFor: ['Api.Port', 'Model'] } });
  const text = textOf(place);
  t.match(text, '"Mine": [1,   2],\n\t"api": { "Port": 9001');
  t.same(JSON.parse(text), {
    ApiKey: 'sk-secret',
    Mine: [1, 2],
    api: { Port: 9001, Enabled: false },
    Model: 'big',
  });
  t.equal(statSync(fileOf(place)).mode & 0o777, 0o600);
  t.equal((await place.ask('/dashboard/api/config')).body.revision, answer.body.revision);
  t.match(await put(place, { Model: null, 'Api.Port': null, ApiKey: null }), { status: 200 });
  t.match(JSON.parse(textOf(place)), { Mine: [1, 2] });
  t.notOk('ApiKey' in JSON.parse(textOf(place)));
  t.match(place.log.join(''), /"msg":"settings changed","keys":\[.*"by":"token"/);
  t.notMatch(place.log.join(''), '9001');
});

t.test('a change that cannot be is refused, says why for each setting, and changes nothing', async (t) => {
  const place = await scene(t);
  const before = textOf(place);
  const cases: [unknown, string[]][] = [
    [{ 'Api.Port': 'eighty' }, ['Api.Port']],
    [{ 'Api.Port': 70_000, 'Compaction.ContextWindow': 1 }, ['Compaction.ContextWindow', 'Api.Port']],
    [{ Nothing: 1 }, ['Nothing']],
    [{ 'Api.Nothing': 1, 'Api.Port.x': 2 }, ['Api.Nothing', 'Api.Port.x']],
    [{ Api: {} }, ['Api']],
    [{ 'McpServers.evil': { transport: 'stdio', command: 'sh' } }, ['McpServers.evil']],
    [{ McpServers: {} }, ['McpServers']],
    [{ '': 1 }, ['']],
    [{ '__proto__.x': 1 }, ['__proto__.x']],
    [{ 'constructor.prototype': 1 }, ['constructor.prototype']],
    [{ 'Telemetry.Endpoint': 'https://collector.example' }, ['Telemetry.Endpoint']],
    [{ 'Telemetry.Headers.': 'x' }, ['Telemetry.Headers.']],
    [{ ApiKey: '${NOT_SET_ANYWHERE}' }, ['ApiKey']],
    [{ ApiKey: 5 }, ['ApiKey']],
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

t.test('a file that is no JSON is shown as such and not overwritten; one that is not there is made', async (t) => {
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

t.test('a file that can be neither read nor written is told', async (t) => {
  const change = { method: 'PUT', body: { set: { Model: 'y' } } };
  const place = await scene(t);
  rmSync(fileOf(place));
  mkdirSync(fileOf(place));
  const { body } = await place.ask('/dashboard/api/config');
  t.match(body, { revision: '', readOnly: /must be a readable file, but is not readable \(EISDIR\)/, effective: {} });
  const unread = await place.ask('/dashboard/api/config', { ...change, headers: { 'if-match': 'any' } });
  t.match(unread, { status: 503, body: { error: { code: 'storageFailed', message: /EISDIR/ } } });

  const home = temporaryDirectory(t);
  const gone = await bare(t, 'node', { config: { home, workspace: join(home, 'gone'), env: {} } });
  const { revision } = (await gone.ask('/dashboard/api/config')).body;
  t.match(await gone.ask('/dashboard/api/config', { ...change, headers: { 'if-match': revision } }), {
    status: 503,
    body: { error: { code: 'storageFailed', details: { code: 'ENOENT' } } },
  });
});
