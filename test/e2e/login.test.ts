/** From a fresh home to the first answer of a connected model, at a real terminal. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { atTerminal, hasTerminals, keys } from '../cli/terminal.ts';
import { fakeKey, startFake } from '../providers/fake.ts';
import { anthropicFake } from '../providers/fakes/anthropic.ts';
import { command, makePlace, oratorio, type Place, runningHub } from './harness.ts';

t.setTimeout(600_000);
if (!hasTerminals()) t.bailout('There is no `script` of util-linux: apt-get install bsdutils');

function workspaceOf(place: Place): string {
  const workspace = join(place.root, 'site');
  mkdirSync(workspace);
  return workspace;
}

const at = (t: Test, place: Place, cwd: string, ...argv: string[]) =>
  atTerminal(t, [process.execPath, command, ...argv], { env: place.env, cwd });

t.test('chat on a terminal offers once to connect a model, and the demo names the commands for it', async (t) => {
  const place = makePlace(t);
  const workspace = workspaceOf(place);
  const made = await oratorio(place, ['init', workspace]);
  t.equal(made.code, 0);
  t.notMatch(made.stdout, /Connect/, 'nothing is asked without a terminal');
  const first = at(t, place, workspace, 'chat');
  await first.answer('No model is connected. Connect one now?', keys.down + keys.enter);
  await first.answer('Talking to the agent', `hello${keys.enter}`);
  await first.shows('oratorio login');
  await first.shows('oratorio model');
  first.type('\u0004');
  t.match(await first.ended, { code: 0 });
  const second = at(t, place, workspace, 'chat');
  await second.answer('Talking to the agent', '\u0004');
  t.match(await second.ended, { code: 0 });
  t.notMatch(second.screen(), /No model is connected/);
  await runningHub(place).shutdown();
});

t.test('regression: init takes no pasted line, and --no-login asks nothing', async (t) => {
  const place = makePlace(t);
  const workspace = workspaceOf(place);
  const init = `'${process.execPath}' '${command}' init`;
  const shell = atTerminal(t, ['/bin/sh', '-c', 'echo ready; read first; eval "$first"; read next; eval "$next"'], {
    env: place.env,
    cwd: workspace,
  });
  await shell.answer('ready', `${init}\necho pasted-line > second.txt\n`);
  await shell.shows('Connect one with: oratorio login');
  t.match(await shell.ended, { code: 0 });
  t.notMatch(shell.screen(), 'Connect one now?');
  t.equal(readFileSync(join(workspace, 'second.txt'), 'utf8'), 'pasted-line\n');

  const quiet = at(t, place, workspace, 'init', '--no-login');
  t.match(await quiet.ended, { code: 0 });
  t.notMatch(quiet.screen(), 'Connect one now?');
});

t.test('regression: login asks again for a key that the provider refuses', async (t) => {
  const place = makePlace(t);
  const fake = await startFake(t, anthropicFake());
  const login = at(t, place, workspaceOf(place), 'login', 'anthropic', '--end-point', fake.endPoint);
  await login.answer('Key (', `wrong-key${keys.enter}`);
  await login.shows('The provider refuses this key');
  await login.answer('Key (', `${fakeKey}${keys.enter}`);
  await login.answer('Which model?', keys.enter);
  await login.shows('Saved to');
  t.match(await login.ended, { code: 0 });
  t.notMatch(login.screen(), /Name of the model|wrong-key/);
});

t.test('init on a terminal connects a model, and chat, exec, --model and --effort reach it', async (t) => {
  const place = makePlace(t);
  const workspace = workspaceOf(place);
  const fake = await startFake(t, anthropicFake());
  const config = join(place.home, 'config.json');
  const terminal = at(t, place, workspace, 'init');
  await terminal.answer('No model is connected. Connect one now?', keys.enter);
  await terminal.answer('Which model provider?', keys.ctrlC);
  t.match(await terminal.ended, { code: 130 });
  t.ok(existsSync(join(workspace, '.oratorio')), 'the workspace is there');
  t.notOk(existsSync(config));

  const login = at(t, place, workspace, 'login', 'anthropic', '--end-point', fake.endPoint);
  await login.answer('Key (', `${fakeKey}${keys.enter}`);
  await login.answer('Which model?', keys.enter);
  await login.shows('Saved to');
  t.match(await login.ended, { code: 0 });
  t.equal(JSON.parse(readFileSync(config, 'utf8')).Provider, 'anthropic');

  const chat = at(t, place, workspace, 'chat');
  await chat.answer('Talking to the agent', `good day${keys.enter}`);
  await chat.shows('You said: good day');
  chat.type('\u0004');
  t.match(await chat.ended, { code: 0 });

  const asked = fake.answered.length;
  const options = ['--workspace', workspace, '--model', 'claude-opus-4-5', '--effort', 'high', '--json'];
  const { code, stdout, stderr } = await oratorio(place, ['exec', 'again', ...options]);
  t.equal(code, 0, stderr);
  t.match(JSON.parse(stdout), { text: 'You said: again', tokenUsage: { costUsd: Number } });
  t.match(fake.answered.slice(asked), [{ body: { model: 'claude-opus-4-5', thinking: { type: 'enabled' } } }]);
  const { threadId } = JSON.parse(stdout);
  const resumed = ['--workspace', workspace, '--thread', threadId, '--model', 'claude-sonnet-5-5'];
  t.match(await oratorio(place, ['exec', 'and now', ...resumed]), { code: 0, stdout: /You said: and now/ });
  t.match(fake.answered.at(-1), { body: { model: 'claude-sonnet-5-5' } });

  fake.faults.push({ status: 529, headers: { 'retry-after': '1' } });
  const waited = await oratorio(place, ['exec', 'patience', '--workspace', workspace]);
  t.match(waited, { code: 0, stdout: /You said: patience/, stderr: /· .*Trying again in 1\.0 s/ });
  await runningHub(place).shutdown();
});
