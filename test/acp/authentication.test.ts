/** Log-in as editors do it, and errors after which a user logs in. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { hasModel } from '../../src/acp/index.ts';
import { ModelError } from '../../src/agent/index.ts';
import { says, scripted } from '../agui/model.ts';
import { attach, inSession, introduce, surroundings } from './harness.ts';

t.test(
  'an editor with a terminal gets a terminal method that runs this program; others a method to check',
  async (t) => {
    const where = await surroundings(t, scripted(says('hi')));
    const withTerminal = await introduce(attach(t, where), { auth: { terminal: true } });
    t.match(withTerminal.authMethods, [{ type: 'terminal', id: 'oratorio-login', args: ['--login'] }]);
    const editor = attach(t, where);
    const { authMethods } = await introduce(editor);
    t.match(authMethods, [{ id: 'oratorio-login', description: /oratorio login/ }]);
    t.notMatch(authMethods, [{ type: 'terminal' }]);
    t.strictSame(await editor.agent.request('authenticate', { methodId: 'oratorio-login' }), {});
    await t.rejects(editor.agent.request('authenticate', { methodId: 'other' }), { code: -32_602 });
  },
);

t.test('after a log-out new sessions are refused until the editor authenticates; open sessions continue', async (t) => {
  const where = await surroundings(t, scripted(says('hi'), says('ho')));
  const editor = await inSession(t, where);
  t.match(await introduce(attach(t, where)), { agentCapabilities: { auth: { logout: {} } } });
  t.strictSame(await editor.agent.request('logout', {}), {});
  const cwd = where.workspace;
  for (const [method, params] of [
    ['session/new', { cwd, mcpServers: [] }],
    ['session/load', { cwd, mcpServers: [], sessionId: editor.sessionId }],
    ['session/resume', { cwd, sessionId: editor.sessionId }],
  ] as const)
    await t.rejects(editor.agent.request(method, params as never), { code: -32_000, message: /logged out/ });
  t.match(await editor.prompt('hi'), { stopReason: 'end_turn' });
  await editor.agent.request('authenticate', { methodId: 'oratorio-login' });
  t.match(await editor.agent.request('session/new', { cwd, mcpServers: [] }), { sessionId: String });
});

t.test('authenticate names the next step while no model is connected', async (t) => {
  const where = await surroundings(t, scripted(says('hi')));
  const editor = attach(t, where, { isLoggedIn: false });
  await introduce(editor);
  await t.rejects(editor.agent.request('authenticate', { methodId: 'oratorio-login' }), {
    code: -32_000,
    message: /oratorio login/,
  });
});

t.test('a prompt whose key is refused asks for a log-in', async (t) => {
  const refuses = scripted(() => {
    throw new ModelError('upstreamUnauthorized', 'The provider refuses the key.');
  });
  const editor = await inSession(t, await surroundings(t, refuses));
  await t.rejects(editor.prompt('hi'), {
    code: -32_000,
    message: /refuses the key/,
    data: { code: 'upstreamUnauthorized' },
  });
});

t.test('a model is connected by a key, a command, an address or an agent', async (t) => {
  const home = join(t.testdir(), '.oratorio');
  mkdirSync(home, { mode: 0o700 });
  const isConnected = (settings: unknown) => {
    writeFileSync(join(home, 'config.json'), JSON.stringify(settings), { mode: 0o600 });
    return hasModel(home, { ORATORIO_HOME: home });
  };
  t.equal(await isConnected({}), false);
  for (const settings of [
    { ApiKey: 'k' },
    { ApiKeyCommand: ['pass', 'key'] },
    { EndPoint: 'http://127.0.0.1:9/v1' },
    { Agent: { Name: 'codex' } },
  ])
    t.equal(await isConnected(settings), true, JSON.stringify(settings));
});
