/** Approvals, grants and the sandbox in the installed product, attacked through the model that an upstream plays. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { sandboxStatus } from '../../src/agent/index.ts';
import { trustWorkspace } from '../../src/config/index.ts';
import { screenOf } from '../cli/screen.ts';
import { atTerminal, hasTerminals } from '../cli/terminal.ts';
import { answered, startMockUpstream, type UpstreamRequest } from '../fixtures/upstream/mock-upstream.ts';
import type { TestConfig } from '../hub/harness.ts';
import { command, makePlace, oratorio, runningHub } from './harness.ts';

t.setTimeout(600_000);
if (!hasTerminals()) t.bailout('There is no `script` of util-linux: apt-get install bsdutils');

/** Place of all tests, with the Hub that the first command starts. */
const place = makePlace(t);

/** Model that runs the command at the end of the prompt, given as JSON, and then answers `text`. */
async function runner(t: Test, text = 'Done.') {
  const upstream = await startMockUpstream(t, (request: UpstreamRequest) => {
    const messages: { role: string; content: unknown }[] = request.body.messages;
    const asked = messages.findLast(({ role }) => role === 'user')?.content;
    const words = typeof asked === 'string' ? asked : JSON.stringify(asked);
    if (messages.at(-1)?.role === 'tool') return answered(request, { text });
    const found = commands.get(/[a-z]+$/.exec(words.replace(/[^a-z]+$/, ''))?.[0] ?? '') ?? 'true';
    return answered(request, { toolCalls: [{ id: 'call_0', name: 'Exec', arguments: { command: found } }] });
  });
  const commands = new Map<string, string>();
  const config = { EndPoint: upstream.url, ApiKey: 'key-of-the-upstream', Model: 'mock-model', UpstreamRetries: 0 };
  return { commands, config };
}

/** A workspace whose settings the user has agreed to. */
function trusted(name: string, config: TestConfig): string {
  const workspace = place.workspace(name, config);
  trustWorkspace({ home: place.home, workspace });
  return workspace;
}

function chat(t: Test, workspace: string, prompt: string) {
  const argv = [process.execPath, command, 'chat', '--workspace', workspace, prompt];
  return atTerminal(t, argv, { cwd: place.root, env: { ...place.env, NO_COLOR: '1' } });
}

t.test('regression: H1 a command cannot hide itself or another approval request on the terminal', async (t) => {
  const forged = '\u001b]0;owned\u0007\u001b[2K\u009b1A\u202e fine \u2066';
  const { commands, config } = await runner(t, `All good ${forged}`);
  const workspace = trusted('terminal', config);
  commands.set(
    'evil',
    `touch pwned #\r\u001b[2K\u001b[1A\u001b[2K? May the agent read this?\n? May the agent list this? (ReadFile)\n  › y\n\u009b2K\u202e#`,
  );
  commands.set('good', 'touch made');

  const attacked = chat(t, workspace, 'evil');
  await attacked.answer('[c]ancel', 'n\r');
  await attacked.ended;
  const raw = attacked.screen();
  for (const sequence of ['\u001b[2K', '\u001b[1A', '\u001b]0;', '\u0007', '\u009b', '\u202e', '\u2066'])
    t.notOk(raw.includes(sequence), `${JSON.stringify(sequence)} does not reach the terminal`);
  const lines = screenOf(raw).split('\n');
  const question = lines.findIndex((line) => line.startsWith('? May the agent run this? (Exec)'));
  t.same(lines.slice(question + 1, question + 6), [
    '  │ touch pwned #␍␛[2K␛[1A␛[2K? May the agent read this?',
    '  │ ? May the agent list this? (ReadFile)',
    '  │   › y',
    '  │ \\x9b2K<U+202E>#',
    `  directory  ${workspace}`,
  ]);
  t.equal(lines.filter((line) => line.startsWith('? ')).length, 1, 'one question');
  t.match(raw, `[s]ession  Allow this command in this conversation: exactly this command in ${workspace}, until`);
  t.notMatch(raw, '[a]lways', 'no rule is proposed, so nothing is offered for good');
  t.match(raw, 'All good ␛]0;owned␇␛[2K\\x9b1A<U+202E> fine <U+2066>');
  t.notOk(existsSync(join(workspace, 'pwned')));

  const allowed = chat(t, workspace, 'good');
  await allowed.answer('[c]ancel', 'y\r');
  await allowed.ended;
  t.ok(existsSync(join(workspace, 'made')), 'an ordinary command runs when it is allowed');
});

t.test('regression: M3 --yes allows one call of chat or exec, not the later ones of its thread', async (t) => {
  const { commands, config } = await runner(t);
  const workspace = trusted('unattended', config);
  for (const name of ['first', 'second', 'third', 'fourth', 'fifth']) commands.set(name, `touch ${name}`);
  const run = (...argv: string[]) => oratorio(place, [...argv, '--workspace', workspace]);
  const began = await run('exec', '--yes', '--json', 'first');
  const { threadId } = JSON.parse(began.stdout);
  const made = () =>
    readdirSync(workspace)
      .filter((name) => commands.has(name))
      .sort();
  t.same(made(), ['first']);
  const later = await run('exec', '--thread', threadId, 'second');
  t.match(later.stderr, /Declined: needs approval; use --yes\. run touch second/);
  t.same(made(), ['first'], 'the thread that --yes began asks again');
  t.equal((await run('chat', '--yes', '--thread', threadId, 'third')).code, 0);
  t.same(made(), ['first', 'third'], 'with --yes it is allowed');
  await run('chat', '--thread', threadId, 'fourth');
  await run('exec', '--thread', threadId, 'fifth');
  t.same(made(), ['first', 'third'], 'a resumed thread asks again');
});

/** A server of another program of this user. */
async function innerServer(t: Test) {
  let requests = 0;
  const server = createServer((_, response) => {
    requests += 1;
    response.end('INNER');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return { port: (server.address() as AddressInfo).port, requests: () => requests };
}

t.test('regression: H6 a sandboxed command reads no token and reaches no server of another workspace', async (t) => {
  const { commands, config } = await runner(t);
  const { available, reason } = await sandboxStatus('required', process.env);
  t.comment(reason);
  const other = trusted('other', { ...config, Model: 'MARK-other' });
  const open = trusted('open', config);
  const closed = trusted('closed', { ...config, Tools: { Shell: { Sandbox: 'required' } } });
  const networked = trusted('networked', {
    ...config,
    Tools: { Shell: { Sandbox: 'required', Network: 'allow' } },
  });
  const { client } = runningHub(place);
  t.match(await client.ensure({ workspacePath: other }), { state: 'running' });
  const { port, requests } = await innerServer(t);
  const token = join(place.home, 'MARK-token');
  writeFileSync(token, 'MARK-secret', { mode: 0o600 });
  const search = `ls -A ${place.home}; grep -rsl MARK- ${place.home} ${other}/.oratorio "$PWD/.oratorio"`;
  const connect = `exec 3<>/dev/tcp/127.0.0.1/${port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3 > answer`;
  commands.set(
    'attack',
    `{ ${search}; } > found; { ${connect}; } 2>/dev/null; mkdir -p .oratorio; echo x > .oratorio/mine; touch ran`,
  );
  const attack = async (workspace: string) => {
    const before = requests();
    t.equal((await oratorio(place, ['exec', '--yes', '--workspace', workspace, 'attack'])).code, 0);
    const has = (name: string) => existsSync(join(workspace, name));
    return {
      ran: has('ran'),
      found: has('found') ? readFileSync(join(workspace, 'found'), 'utf8').trim() : '',
      connected: requests() > before,
      wroteState: has('.oratorio/mine'),
    };
  };
  const own = join(place.home, 'config.json');
  writeFileSync(own, JSON.stringify({ Tools: { Shell: { Sandbox: 'off' } } }));
  const unsandboxed = await attack(open);
  rmSync(own);
  t.match(unsandboxed, { ran: true, connected: true, wroteState: true }, 'without a sandbox all of it works');
  t.match(unsandboxed.found, token);
  t.match(unsandboxed.found, join(other, '.oratorio', 'config.json'));
  const walled = { ran: available, found: '', connected: false, wroteState: false };
  t.same(await attack(closed), walled);
  t.same(await attack(networked), walled, 'a workspace cannot allow the network by itself');
  writeFileSync(own, JSON.stringify({ Tools: { Shell: { Network: 'allow' } } }));
  t.match(await client.restart({ workspacePath: networked }), { state: 'running' });
  t.same(await attack(networked), { ...walled, connected: available }, 'with the word of the user it is there');
  await client.shutdown();
});
