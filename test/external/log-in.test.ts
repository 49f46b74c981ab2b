/** Log-in of an external agent: the next step in a failed turn, and `oratorio login --agent`. */
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { AgentLoginError, logInToAgent } from '../../src/external/index.ts';
import { program, programEnvironment } from '../programs.ts';
import { stubAgent, Talk } from './talk.ts';

t.test('a turn without a log-in names the next command', async (t) => {
  const failure = async (flags: string) => (await (await Talk.begin(t, flags)).talk.say('say x')).error;
  t.match(await failure('login'), {
    code: 'agentLoginRequired',
    message: /run oratorio login --agent stub \(In a browser\)/,
  });
  t.match(await failure('login terminal'), {
    code: 'agentLoginRequired',
    message: /run STUB_LOGIN=1 \S*node\S* \S+stub-agent\.mjs --login\./,
  });
});

const logIn = (flags: string, method?: string, signal = new AbortController().signal) =>
  logInToAgent({
    agent: stubAgent(flags).Agent,
    ...{ env: process.env, passEnvironment: [], cwd: process.cwd(), signal, method },
    onBug: (error) => {
      throw error;
    },
  });

t.test('an agent logs its user in, or names the program that does', async (t) => {
  t.strictSame(await logIn('login'), { kind: 'done', method: 'In a browser' });
  t.match(await logIn('login terminal'), { kind: 'terminal', command: [/node/, /stub-agent/, '--login'] });
  t.strictSame(await logIn('login terminal', 'browser'), { kind: 'done', method: 'In a browser' });
});

t.test('a log-in that fails says why, and leaves no process', async (t) => {
  await t.rejects(logIn(''), { message: /offers no login method/ });
  await t.rejects(logIn('login', 'other'), { message: /Choose one of: browser/ });
  await t.rejects(logIn('login refuses'), { code: -32_000, message: /browser was closed/ });
  await t.rejects(logIn('broken'), AgentLoginError);
  const ending = new AbortController();
  const pending = logIn('mute', undefined, ending.signal);
  ending.abort(new Error('no more'));
  await t.rejects(pending, { message: 'no more' });
});

t.test('oratorio login --agent runs the way of the agent; oratorio acp --login asks for a provider', async (t) => {
  const home = t.testdir();
  const own = join(home, 'o');
  mkdirSync(own, { mode: 0o700 });
  const run = (flags: string, ...args: string[]) => {
    writeFileSync(join(own, 'config.json'), JSON.stringify(stubAgent(flags)), { mode: 0o600 });
    const env = { ...programEnvironment, HOME: home, ORATORIO_HOME: own };
    const words = ['--disable-warning=ExperimentalWarning', program('src/cli/main.ts'), ...args];
    return new Promise<string>((resolve) => {
      const child = execFile(process.execPath, words, { env, cwd: home }, (error, stdout, stderr) =>
        resolve(`${error?.code ?? 0} ${stdout}${stderr}`),
      );
      child.stdin?.end();
    });
  };
  t.match(await run('login', 'login', '--agent', 'stub'), /^0 [\s\S]*stub: In a browser/);
  t.match(await run('login terminal', 'login', '--agent', 'stub'), /^0 logged in with 1/);
  t.match(
    await run('login refuses', 'login', '--agent', 'stub'),
    /^1 [\s\S]*stub did not log you in: .*browser was closed/,
  );
  t.match(await run('login', 'login', '--agent', 'none'), /^2 [\s\S]*There is no agent none/);
  t.match(await run('login', 'acp', '--login'), /^2 [\s\S]*login needs a provider/);
});
