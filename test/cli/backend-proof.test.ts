/** Commands of the review backend: another program on its port receives nothing. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import t, { type Test } from 'tap';
import { runCommandLine } from '../../src/cli/run.ts';
import { stealPort, type Theft } from '../port-thief.ts';
import { unusedPort } from '../ports.ts';
import { place, start } from '../review/backend/process.ts';

/** Runs a command in this process, with the state directory of a backend. */
async function command(home: string, state: string, ...args: string[]) {
  let text = '';
  const stream = () =>
    Object.assign(
      new Writable({
        write(chunk, _encoding, done) {
          text += String(chunk);
          done();
        },
      }),
      { isTTY: false },
    );
  const env = { ORATORIO_HOME: home, ORATORIO_STATE_ROOT: state, NO_COLOR: '1' };
  const code = await runCommandLine(args, {
    stdout: stream(),
    stderr: stream(),
    env,
    cwd: home,
    interruption: () => ({ signal: new AbortController().signal, exit: () => 'interrupted' }),
  });
  return { code, text };
}

/** @param count so many questions were asked */
async function expectQuestionsOnly(t: Test, thief: Theft, token: string, count: number): Promise<void> {
  await thief.until(count);
  t.ok(thief.requests.length > 0, 'it was asked to prove itself');
  for (const { line, text } of thief.requests) {
    t.equal(line, 'GET /api/v1/proof');
    t.notMatch(text, token);
    t.notMatch(text, /authorization/i);
    // The nonce and the id of the key are random letters.
    t.notMatch(text.replaceAll(/\b(nonce|key)=[\w-]+/g, ''), 'acme');
  }
}

t.test('regression: H3 a program on the port of a stopped backend gets neither token nor command', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'oratorio-h3-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const here = place(t);
  here.configure({});
  const port = await unusedPort();
  const backend = start(t, here, ['--port', String(port)], { ORATORIO_HTTP_ADAPTER: 'node' });
  const { url } = await backend.ready;
  t.equal(url, `http://127.0.0.1:${port}`);
  const ask = (...args: string[]) => command(home, here.state, ...args, '--url', url);
  t.match(await ask('backend', 'status'), { code: 0, text: /Review backend/ }, 'the real backend is asked');
  t.match(await ask('review', 'acme/site#1'), { text: /acme\/site is not a repository/ });

  backend.child.kill('SIGTERM');
  await backend.ended;
  t.match(await ask('backend', 'status'), { code: 1, text: /No review backend answers/ });
  const answers = { '/api/v1/proof': { proof: 'x'.repeat(43), use: 'token', instance: 'x' }, '*': [] };
  const thief = await stealPort({ port, answers });
  t.teardown(() => thief.close());
  t.match(await ask('backend', 'status'), { code: 1, text: /served by another program.*nothing was sent/s });
  t.match(await ask('review', 'acme/site#1'), { code: 1, text: /served by another program/ });
  await expectQuestionsOnly(t, thief, here.token(), 2);
  await thief.close();

  const again = start(t, here, ['--port', String(port)], { ORATORIO_HTTP_ADAPTER: 'node' });
  await again.ready;
  t.match(await ask('backend', 'status'), { code: 0 }, 'the real backend is back');
});

t.test('a relay to the backend and a backend with another token get no token', async (t) => {
  const here = place(t);
  here.configure({});
  const backend = start(t, here);
  const { url } = await backend.ready;
  const relay = await stealPort({ port: 0, relayTo: Number(new URL(url).port) });
  t.teardown(() => relay.close());
  const ask = (state: string, at: string) => command(here.home, state, 'backend', 'status', '--url', at);
  t.match(await ask(here.state, `http://127.0.0.1:${relay.port}`), { code: 1, text: /reports another address/ });
  await expectQuestionsOnly(t, relay, here.token(), 1);
  const other = join(here.home, 'other');
  mkdirSync(other);
  writeFileSync(join(other, 'service.token'), 'y'.repeat(43));
  t.match(await ask(other, url), { code: 1, text: /does not know the service token/ });
  t.match(await ask(here.state, url), { code: 0 });
});

t.test('a backend published under another address proves the address of its environment', async (t) => {
  const here = place(t);
  here.configure({});
  const port = await unusedPort();
  const backend = start(t, here, [], { ORATORIO_PUBLISHED_AS: `127.0.0.1:${port}` });
  const { url } = await backend.ready;
  const proxy = await stealPort({ port, relayTo: Number(new URL(url).port) });
  t.teardown(() => proxy.close());
  const ask = () => command(here.home, here.state, 'backend', 'status', '--url', `http://127.0.0.1:${port}`);
  t.match(await ask(), { code: 0, text: /Review backend/ });
});
