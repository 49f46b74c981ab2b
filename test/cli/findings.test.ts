/** Exit codes, codes and words of command lines that once were wrong. No Hub runs, except where one is the subject. */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import t, { type Test } from 'tap';
import { explain } from '../../src/cli/explain.ts';
import { parse } from '../../src/cli/parse.ts';
import { runCommandLine } from '../../src/cli/run.ts';
import { connectHub, HubUnavailableError, TurnFailedError } from '../../src/client/index.ts';
import { initWorkspace, loadConfig } from '../../src/config/index.ts';
import { programEnvironment } from '../programs.ts';

class Collected extends Writable {
  text = '';
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}

function temporaryHome(t: Test): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-findings-')));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

async function cli(home: string, ...argv: string[]) {
  const [stdout, stderr] = [new Collected(), new Collected()];
  const env = { ...programEnvironment, HOME: home, ORATORIO_HOME: join(home, 'o') };
  const interruption = () => ({ signal: new AbortController().signal, exit: () => 'interrupted' as const });
  const code = await runCommandLine(argv, { stdout, stderr, env, cwd: home, interruption });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** A port of the loopback that is in use. */
async function takenPort(t: Test): Promise<number> {
  const server: Server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

t.test('regression: a failed turn has the code of its reason, and the wait that the provider asks for', async (t) => {
  const refused = explain(new TurnFailedError('The upstream answered 401.', { code: 'upstreamUnauthorized' }));
  t.match(refused, { exitCode: 1, hint: /oratorio login/, body: { error: { code: 'upstreamUnauthorized' } } });
  const limited = explain(
    new TurnFailedError('The upstream answered 429.', { code: 'upstreamRateLimited', retryAfterMs: 120_000 }),
  );
  t.match(limited, { hint: /asks to wait 2 min/, body: { error: { details: { retryAfterMs: 120_000 } } } });
  for (const [hours, words] of [
    [1.5, '90 min'],
    [5.2, '6 h'],
    [24 * 365, '365 days'],
  ] as const) {
    const { hint } = explain(new TurnFailedError('x', { retryAfterMs: hours * 3_600_000 }));
    t.match(hint, `asks to wait ${words}:`, 'regression: a long wait is not stated in minutes');
  }
  t.match(explain(new TurnFailedError('x', { retryAfterMs: 1_200 })), {
    hint: /asks to wait 2 s/,
    body: { error: { code: 'turnFailed' } },
  });
});

t.test('regression: a taken port has exit code 7, for api, hub and up', async (t) => {
  const home = temporaryHome(t);
  const port = await takenPort(t);
  const site = join(home, 'site');
  initWorkspace(site, { HOME: home, ORATORIO_HOME: join(home, 'o') });
  mkdirSync(join(home, 'o'), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, 'o', 'config.json'), JSON.stringify({ Api: { Port: port }, Hub: { Port: port } }));
  t.match(await cli(home, 'api', '--workspace', site), {
    code: 7,
    stderr: new RegExp(`:${port}: the port is taken; see Api.Port`),
  });
  t.match(await cli(home, 'hub'), { code: 7, stderr: /oratorio doctor. Or change Hub.Port/ });
  const ended = { command: process.execPath, args: ['-e', 'process.exit(7)'] };
  const error = await connectHub({ home: join(home, 'o'), command: ended }).catch((reason: unknown) => reason);
  t.match(explain(error), { exitCode: 7, body: { error: { code: 'hubUnavailable' } } });
  t.equal(explain(new HubUnavailableError('no Hub')).exitCode, 3);
});

t.test('regression: a command of another tool suggests ours, and the help of a group exits with 0', async (t) => {
  for (const [word, meant] of [
    ['ps', 'list'],
    ['ls', 'list'],
    ['start', 'up'],
    ['down', 'hub stop'],
    ['logz', 'logs'],
  ] as const)
    t.throws(() => parse([word]), { message: `There is no command ${word}. Did you mean ${meant}?` });
  t.throws(() => parse(['xy']), { message: 'There is no command xy.' });
  for (const group of ['server', 'cron', 'task', 'service'])
    t.match(parse([group, '--help']), { kind: 'help', group }, `${group} --help`);
});

t.test('regression: a directory that is not a workspace starts no Hub', async (t) => {
  const home = temporaryHome(t);
  t.match(await cli(home, 'inspect', '/nope'), { code: 4, stderr: /oratorio init \/nope/ });
  t.match(await cli(home, 'logs'), { code: 4, stderr: /is not a workspace/ });
  t.notOk(existsSync(join(home, 'o', 'hub')));
});

t.test('regression: an MCP server without a transport is refused with the list of transports', async (t) => {
  const home = temporaryHome(t);
  writeFileSync(join(home, 'config.json'), JSON.stringify({ McpServers: { files: { command: 'x' } } }));
  t.throws(() => loadConfig({ home, env: {} }), {
    message: /must be "stdio" with a command, or "streamableHttp" with a url, but is missing/,
  });
});
