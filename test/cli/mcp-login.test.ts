/** `oratorio mcp login`, `logout` and `status`, with the authorization server of the official SDK. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { GuardedServer } from '../mcp/oauth-helpers.ts';
import { program, programEnvironment } from '../programs.ts';
import { runAt } from './in-process.ts';

async function place(t: Test) {
  const { url } = await GuardedServer.start(t);
  const McpServers = {
    tracker: { transport: 'streamableHttp', url },
    own: { transport: 'streamableHttp', url, httpHeaders: { Authorization: 'Bearer mine' } },
    program: { transport: 'stdio', command: 'true' },
  };
  const base = t.testdir({ home: { 'config.json': JSON.stringify({ McpServers }) } });
  const env = { ...programEnvironment, HOME: base, ORATORIO_HOME: join(base, 'home'), NO_COLOR: '1' };
  const mcp = (...args: string[]) => runAt({ cwd: base, env }, 'mcp', ...args);
  return { mcp, env, base };
}

t.test('a log-in prints its address, waits for the browser, and is shown until the log-out', async (t) => {
  const { mcp, env, base } = await place(t);
  t.match(
    (await mcp('status')).stdout,
    /tracker +no log-in.*oratorio mcp login tracker[\s\S]*own +has its own credential/,
  );
  const conditions = ['--disable-warning=ExperimentalWarning', '--conditions=development'];
  const child = spawn(
    process.execPath,
    [...conditions, program('src/cli/main.ts'), 'mcp', 'login', 'tracker', '--json'],
    {
      cwd: base,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const exited = once(child, 'exit');
  const printed = text(child.stdout);
  let shown = '';
  for await (const chunk of child.stderr) {
    shown += String(chunk);
    const address = /http:\/\/\S+\/authorize\S+(?=\s)/.exec(shown)?.[0];
    if (address !== undefined && shown.includes('Waiting')) t.equal((await fetch(address)).status, 200);
  }
  t.same(await exited, [0, null]);
  t.match(JSON.parse(await printed), { server: 'tracker', state: 'loggedIn', scope: 'tools', isRenewed: true });
  t.notMatch(shown + (await printed), /access-|refresh-/);
  const [status] = JSON.parse((await mcp('status', 'tracker', '--json')).stdout);
  t.match(status, { state: 'loggedIn', issuer: /^http/, next: null });
  t.same(JSON.parse((await mcp('logout', 'tracker', '--json')).stdout), {
    server: 'tracker',
    wasLoggedIn: true,
    isRevoked: true,
  });
  t.match((await mcp('logout', 'tracker')).stdout, 'You are not logged in to tracker.');
});

t.test(
  'the pasted last address of a browser on another machine logs in, and a wrong address is reported',
  async (t) => {
    const { env, base } = await place(t);
    const conditions = ['--disable-warning=ExperimentalWarning', '--conditions=development'];
    const child = spawn(process.execPath, [...conditions, program('src/cli/main.ts'), 'mcp', 'login', 'tracker'], {
      cwd: base,
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const exited = once(child, 'exit');
    const printed = text(child.stdout);
    let shown = '';
    let last: string | null = null;
    for await (const chunk of child.stderr) {
      shown += String(chunk);
      const address = /http:\/\/\S+\/authorize\S+(?=\s)/.exec(shown)?.[0];
      if (last === null && address !== undefined && shown.includes('paste')) {
        last = (await fetch(address, { redirect: 'manual' })).headers.get('location');
        child.stdin.write(`http://127.0.0.1:1/callback?code=x\n${last}\n`);
      }
    }
    t.same(await exited, [0, null]);
    t.match(shown, /does not belong to this log-in/);
    t.equal(await printed, 'Logged in to tracker.\n');
  },
);

t.test('a server without a log-in and an unknown server are named with the next step', async (t) => {
  const { mcp } = await place(t);
  t.match(await mcp('login', 'program'), { code: 8, stderr: /needs no log-in/ });
  t.match(await mcp('login', 'nobody'), { code: 1, stderr: /no MCP server nobody[\s\S]*tracker, own, program/ });
  t.match(await mcp('login'), { code: 2, stderr: /needs the name of a server/ });
  t.match((await mcp('status', 'program')).stdout, /is a program/);
});
