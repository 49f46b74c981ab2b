/** `oratorio chat` at real terminals, against the built product: one Hub and one workspace for all tests. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { atTerminal, hasTerminals, keys, plain } from '../cli/terminal.ts';
import { eventually } from '../hub/harness.ts';
import { command, makePlace, runningHub } from './harness.ts';

t.setTimeout(600_000);
if (!hasTerminals()) t.bailout('There is no `script` of util-linux: apt-get install bsdutils');

const place = makePlace(t, 'oratorio-chat-');
const workspace = place.workspace('site', { Provider: 'demo' });
const chat = (t: Test, ...argv: string[]) =>
  atTerminal(t, [process.execPath, command, 'chat', ...argv], { env: place.env, cwd: workspace });
const threadIn = (screen: string): string => /chat --thread (\S+)/.exec(plain(screen))?.[1] ?? '';

t.test('an answer ends with model and tokens, commands work, and leaving shows the command to continue', async (t) => {
  const terminal = chat(t);
  await terminal.answer('/help shows commands', `hello${keys.enter}`);
  await terminal.shows('Demo model');
  await terminal.answer(' tokens · ', `/help${keys.enter}`);
  await terminal.shows('/compact');
  await terminal.shows('/quit');
  await terminal.answer('› ', `one \\${keys.enter}two${keys.enter}`);
  await terminal.shows(' tokens · ');
  await terminal.answer('› ', `/undo${keys.enter}`);
  await terminal.shows('Outside of the workspace nothing is taken back');
  await terminal.shows('The last turn is taken back');
  await terminal.answer('› ', `/undo many${keys.enter}`);
  await terminal.shows('/undo takes a number of turns, not many');
  await terminal.answer('› ', `/resume${keys.enter}`);
  await terminal.shows('LAST ACTIVE');
  await terminal.shows(' hello');
  const listed = plain(terminal.screen());
  t.match(listed, /\* +thread_\w+ .* hello\s/, 'regression: lists conversations with their first words');
  await terminal.answer('› ', '\u0004');
  t.equal((await terminal.ended).code, 0);
  const screen = plain(terminal.screen()).replaceAll('\r', '');
  t.match(
    screen,
    /› \nContinue: oratorio chat --thread thread_\w+\n/,
    'regression: what follows begins on a line of its own',
  );
});

t.test('regression: an unknown command is refused with the nearest name; /cost, /diff and /new work', async (t) => {
  const terminal = chat(t);
  await terminal.answer('› ', `hello${keys.enter}`);
  await terminal.shows(' tokens · ');
  await terminal.answer('› ', `/comapct${keys.enter}`);
  await terminal.shows('There is no command /comapct; nothing was sent.');
  await terminal.shows('Did you mean /compact?');
  await terminal.answer('› ', `/cost${keys.enter}`);
  await terminal.shows(' · 1 turn');
  await terminal.answer('› ', `/diff${keys.enter}`);
  await terminal.shows('No files have changed.');
  await terminal.answer('› ', `/new${keys.enter}`);
  await terminal.shows('A new conversation: thread_');
  await terminal.answer('› ', `/cost${keys.enter}`);
  await terminal.shows('0 tokens');
  await terminal.answer('› ', `/etc/hosts is a path${keys.enter}`);
  await terminal.shows('Demo model');
  await terminal.shows(' tokens · ');
  await terminal.answer('› ', keys.ctrlC);
  t.equal((await terminal.ended).code, 0);
});

t.test('regression: a question about an edit shows its diff and the answers of the page', async (t) => {
  const terminal = chat(t);
  await terminal.answer('› ', `write greeting.txt: Good day${keys.enter}`);
  await terminal.shows('[c]ancel');
  const asked = plain(terminal.screen());
  t.match(asked, /May the agent write this\? \(WriteFile\)[\s\S]+│ @@ -0,0 \+1,1 @@[\s\S]+│ \+Good day/);
  t.match(asked, /\[y\]es +Allow once: this call only/);
  t.match(asked, /\[s\]ession +Allow edits of this file in this conversation: writing and editing the file/);
  t.match(asked, /\[n\]o +Decline: the agent continues without it\s+\[c\]ancel +Decline and stop/);
  t.notMatch(asked, '[a]lways', 'no rule is proposed');
  await terminal.answer('  › ', `y${keys.enter}`);
  await terminal.shows(' tokens · ');
  t.equal(readFileSync(join(workspace, 'greeting.txt'), 'utf8').trim(), 'Good day');
  await terminal.answer('› ', keys.ctrlC);
  t.equal((await terminal.ended).code, 0);
});

t.test('regression: text typed while an answer streams is shown with the next prompt', async (t) => {
  const terminal = chat(t);
  await terminal.answer('› ', `count to 400${keys.enter}`);
  await terminal.answer(' 12 ', 'typed ahead');
  await terminal.shows(' tokens · ');
  await terminal.answer('› typed ahead', keys.ctrlC);
  await terminal.answer('› ', keys.ctrlC);
  t.equal((await terminal.ended).code, 0);
  t.notMatch(plain(terminal.screen()).split(' tokens · ')[0]?.split('count to 400')[1], 'typed');
});

t.test(
  'regression: withdraws a question that another terminal has decided, and announces the call when it runs',
  async (t) => {
    const first = chat(t);
    await first.answer('› ', `hello${keys.enter}`);
    await first.shows(' tokens · ');
    await first.answer('› ', `/resume${keys.enter}`);
    await first.shows('* ');
    const thread = /\* +(thread_\w+)/.exec(plain(first.screen()))?.[1] ?? '';
    const second = chat(t, '--thread', thread);
    await second.shows('› ');
    first.type(`run: mkdir made-by-the-command${keys.enter}`);
    await Promise.all([first.shows('[c]ancel'), second.shows('[c]ancel')]);
    t.notMatch(plain(first.screen()), '▸ Exec');
    await second.answer('  › ', `y${keys.enter}`);
    await first.shows('Allowed in the terminal.');
    await first.shows('▸ Exec');
    await first.shows(' tokens · ');
    await first.answer('› ', `count to 3${keys.enter}`);
    await first.shows('1 2 3');
    await first.shows(' tokens · ');
    first.type(`/quit${keys.enter}`);
    t.equal((await first.ended).code, 0);
    t.equal(threadIn(first.screen()), thread);
    second.type('\u0004');
    t.equal((await second.ended).code, 0);
  },
);

t.test(
  'regression: a question whose agent server is killed is asked again, and answered, at the same terminal',
  async (t) => {
    const terminal = chat(t);
    const options = ['zod', 'valibot'].map((label) => ({ label }));
    const questions = [{ header: 'Library', question: 'Which one?', options }];
    await terminal.answer('› ', `call AskUser ${JSON.stringify({ questions })}${keys.enter}`);
    await terminal.shows('an empty line declines');
    const { pid } = await runningHub(place).client.ensure({ workspacePath: workspace });
    process.kill(Number(pid), 'SIGKILL');
    await terminal.shows('an empty line declines');
    await terminal.answer('  › ', `2${keys.enter}`);
    await terminal.shows('Library: valibot');
    await terminal.shows(' tokens · ');
    terminal.type('\u0004');
    t.equal((await terminal.ended).code, 0);
  },
);

t.test('regression: SIGTERM ends exec with 143, and SIGINT with 130', async (t) => {
  const started = join(workspace, 'started');
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const) {
    rmSync(started, { force: true });
    const child = spawn(process.execPath, [command, 'exec', '--yes', 'run: touch started && sleep 600'], {
      cwd: workspace,
      env: place.env,
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    await eventually(() => existsSync(started) || undefined, 'the command runs');
    child.kill(signal);
    t.equal((await ended)[0], code);
  }
  await runningHub(place).shutdown();
});
