/** `oratorio doctor` against a stand-in of the Hub and of a provider: its findings, their places, and that it changes nothing. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import t, { type Test } from 'tap';
import type { Finding } from '../../src/cli/doctor/index.ts';
import { runCommandLine } from '../../src/cli/run.ts';
import { fakeHub, lockOf, recordOf, sendJson, statusOf, writeLock } from '../client/fake-hub.ts';
import { programEnvironment } from '../programs.ts';

const apiKey = 'sk-secret-key-of-the-doctor-test';

class Collected extends Writable {
  text = '';
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

function temporaryHome(t: Test): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-doctor-')));
  chmodSync(home, 0o700);
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

async function doctor(home: string, ...argv: string[]) {
  const [stdout, stderr] = [new Collected(), new Collected()];
  const env = { ...programEnvironment, HOME: home, ORATORIO_HOME: home };
  const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
  const code = await runCommandLine(['doctor', ...argv], { stdout, stderr, env, cwd: home, interruption });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

async function doctorJson(home: string, ...argv: string[]) {
  const { code, stdout } = await doctor(home, ...argv, '--json');
  const document: { ok: boolean; failed: number; skipped: number; checks: Finding[] } = JSON.parse(stdout);
  const finding = (id: string, workspace: string | null = null) =>
    document.checks.find((each) => each.id === id && each.workspace === workspace);
  return { code, document, finding, stdout };
}

/** Every file below a directory with its rights and content. */
const contentOf = (directory: string): string[] =>
  readdirSync(directory, { withFileTypes: true, recursive: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return `${path} ${statSync(path).mode} ${entry.isFile() ? readFileSync(path, 'utf8') : ''}`;
  });

function workspace(home: string, name: string, config: string): string {
  const directory = join(home, name);
  mkdirSync(join(directory, '.oratorio'), { recursive: true });
  writeFileSync(join(directory, '.oratorio', 'config.json'), config);
  return directory;
}

t.test(
  'each problem is reported with file, setting and next command, without a secret, and nothing is changed',
  async (t) => {
    const home = temporaryHome(t);
    let asked = 0;
    const provider = createServer((_, response) => {
      asked += 1;
      sendJson(response, 401, { error: { message: `Incorrect API key provided: ${apiKey}`, code: 'invalid_api_key' } });
    });
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
    t.teardown(() => provider.close());
    const endPoint = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`;
    writeFileSync(
      join(home, 'config.json'),
      JSON.stringify({ EndPoint: endPoint, ApiKey: apiKey, Model: 'some-model' }),
    );
    chmodSync(join(home, 'config.json'), 0o644);
    const site = workspace(home, 'site', '{}');
    const cfg = workspace(home, 'cfg', '{"MaxToolCallRounds": "many"}');
    const infra = workspace(home, 'infra', '{"McpServers": {"files": {"transport": "stdio", "command": "./run"}}}');
    const records = [
      recordOf(site, { endpoints: {} }),
      recordOf(cfg, { state: 'stopped', pid: null, endpoints: {} }),
      recordOf(infra, {
        state: 'exited',
        pid: null,
        endpoints: {},
        restartCount: 5,
        problems: [
          { code: 'gaveUp', what: 'ended 6 times within 120 s: SIGKILL', where: null, next: `oratorio logs ${infra}` },
          { code: 'restricted', what: 'Restricted', where: null, next: null },
        ],
      }),
    ];
    const hub = await fakeHub((request, response) =>
      request.url === '/v1/status' ? sendJson(response, 200, statusOf(hub.baseUrl)) : sendJson(response, 200, records),
    );
    t.teardown(() => hub.close());
    writeLock(home, lockOf(hub.baseUrl));
    chmodSync(join(home, 'hub'), 0o700);
    const before = contentOf(home);

    const { code, document, finding, stdout } = await doctorJson(home);
    t.equal(code, 9);
    t.notOk(document.ok);
    t.match(finding('home.rights'), {
      status: 'fail',
      where: join(home, 'config.json'),
      next: `chmod 600 ${home}/config.json`,
    });
    t.match(finding('hub'), { status: 'ok', saw: hub.baseUrl });
    t.match(finding('hub.version'), { status: 'warn', next: 'oratorio hub stop --detach && oratorio up' });
    t.match(finding('model', site), { status: 'fail', where: `${home}/config.json: ApiKey`, next: 'oratorio login' });
    t.match(finding('config', cfg), {
      status: 'fail',
      where: `${cfg}/.oratorio/config.json: MaxToolCallRounds`,
      next: `Correct the file, then: oratorio restart ${cfg}`,
    });
    t.match(finding('server', infra), {
      status: 'fail',
      saw: 'gave up, restarted 5 times after failures',
      next: `oratorio logs ${infra}`,
    });
    t.match(finding('server.gaveUp', infra), { status: 'fail', saw: /SIGKILL/, next: `oratorio logs ${infra}` });
    t.notOk(finding('server.restricted', infra), 'trust has a finding of its own');
    t.match(finding('trust', infra), { status: 'warn', saw: /McpServers/, next: `oratorio trust ${infra}` });
    t.equal(asked, 1, 'workspaces with one provider and key share one request');
    t.notMatch(stdout, apiKey);
    t.strictSame(contentOf(home), before, 'nothing was written or corrected');

    const text = await doctor(home, 'site');
    t.match(text, {
      code: 9,
      stdout: /✖ model +.*401[\s\S]*in .*ApiKey[\s\S]*next oratorio login[\s\S]*failed, \d+ warned, \d+ skipped/,
    });
    t.notMatch(text.stdout, /infra/, 'a named workspace is the only one');
  },
);

t.test('the model row names the address of the provider that the model names', async (t) => {
  const answering = async (name: string) => {
    const requests: string[] = [];
    const server = createServer((request, response) => {
      requests.push(`${request.headers.authorization}`);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const delta = {
        id: name,
        object: 'chat.completion.chunk',
        model: name,
        choices: [{ index: 0, delta: { content: 'yes' } }],
      };
      const end = { ...delta, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
      response.end(`data: ${JSON.stringify(delta)}\n\ndata: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => server.close());
    return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
  };
  const [main, other] = [await answering('main'), await answering('other')];
  const home = temporaryHome(t);
  const settings = (Model: string) => ({
    ...{ EndPoint: `http://${main.host}/v1`, ApiKey: 'key-a', Model },
    Providers: { pricey: { EndPoint: `http://${other.host}/v1`, ApiKey: 'key-b' } },
  });
  const rowFor = async (Model: string) => {
    writeFileSync(join(home, 'config.json'), JSON.stringify(settings(Model)), { mode: 0o600 });
    const site = workspace(home, 'site', '{}');
    return (await doctorJson(home, site)).finding('model', site);
  };
  t.match(await rowFor('pricey/large'), { status: 'ok', saw: new RegExp(`large at ${other.host} answered`) });
  t.same([main.requests, [...new Set(other.requests)]], [[], ['Bearer key-b']]);
  t.match(await rowFor('small'), { status: 'ok', saw: new RegExp(`small at ${main.host} answered`) }, 'control');
});

t.test('without a Hub and without a home it counts the skipped checks, and a healthy home exits with 0', async (t) => {
  const home = temporaryHome(t);
  const { code, document, finding } = await doctorJson(home);
  t.equal(code, 0);
  t.ok(document.skipped >= 2);
  t.match(finding('hub'), { status: 'skip', next: 'oratorio up' });
  t.match(finding('workspaces'), { status: 'skip', next: 'oratorio up --init' });
  const missing = await doctorJson(home, 'nowhere');
  t.equal(missing.code, 9);
  t.match(missing.finding('config', join(home, 'nowhere')), { status: 'fail', saw: 'it does not exist' });
});
