/** Commands and mentions of `oratorio chat` and `exec`. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { AppServerClient } from '../../src/client/index.ts';
import { atTerminal, hasTerminals, keys } from '../cli/terminal.ts';
import { command, makePlace, oratorio, runningHub } from './harness.ts';

const place = makePlace(t);
/** Place of the tests that need no settings. */
const workspace = place.workspace('site');

const starts = 'call Exec {"command": "echo up; sleep 3400", "background": true}';

const Threads = v.object({ data: v.array(v.object({ id: v.string() })) });
const Item = v.looseObject({ type: v.string(), input: v.optional(v.array(v.unknown())) });
const Thread = v.object({ thread: v.object({ turns: v.array(v.object({ items: v.array(Item) })) }) });

/** Parts of all prompts in the latest conversation. */
async function promptsOf(): Promise<readonly unknown[]> {
  const { endpoints } = await runningHub(place).client.ensure({ workspacePath: workspace });
  const client = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '');
  try {
    const [latest] = v.parse(Threads, await client.request('thread/list', {})).data;
    const read = await client.request('thread/read', { threadId: latest?.id, includeTurns: true });
    const items = v.parse(Thread, read).thread.turns.flatMap((turn) => turn.items);
    return items.flatMap(({ type, input }) => (type === 'userMessage' ? [input] : []));
  } finally {
    client.close();
  }
}

t.test('/ps lists the background processes of the agent, and ends one', async (t) => {
  t.ok(hasTerminals(), 'this test needs script(1) of util-linux');
  const chat = atTerminal(t, [process.execPath, command, 'chat', '--yes', '--workspace', workspace], {
    env: place.env,
    cwd: place.root,
  });
  await chat.shows('Ctrl-D leaves');
  chat.type(`/ps${keys.enter}`);
  await chat.answer('No background processes.', `${starts}${keys.enter}`);
  await chat.shows('is running.');
  await chat.shows('› ');
  chat.type(`/ps${keys.enter}`);
  await chat.shows('echo up; sleep 3400');
  const [id = ''] = /proc_[0-9a-f]{8}/.exec(chat.screen()) ?? [];
  chat.type(`/ps stop ${id}${keys.enter}`);
  await chat.answer(`${id} has ended.`, `/ps stop proc_0${keys.enter}`);
  await chat.answer('Process not found', `/help${keys.enter}`);
  const image = join(place.root, 'my shot.png');
  writeFileSync(image, '');
  await chat.answer('/ps [stop ID]', `look at '${image}' now${keys.enter}`);
  await chat.shows('Demo model');
  chat.type(`/exit${keys.enter}`);
  t.match(await chat.ended, { code: 0 });
  t.match((await promptsOf()).at(-1), [
    { type: 'text', text: 'look at ' },
    { type: 'localImage', path: image, fileName: 'my shot.png' },
    { type: 'text', text: ' now' },
  ]);
});

t.test('/plan has the agent only plan until /accept, and --plan does so for one prompt', async (t) => {
  const chat = atTerminal(t, [process.execPath, command, 'chat', '--yes', '--workspace', workspace], {
    env: place.env,
    cwd: place.root,
  });
  await chat.shows('Ctrl-D leaves');
  chat.type(`/plan write a.txt: hello${keys.enter}`);
  await chat.shows('The agent only plans now.');
  await chat.answer('/accept carries the plan out', `/accept write a.txt: hello${keys.enter}`);
  await chat.shows('› ');
  chat.type(`/exit${keys.enter}`);
  t.match(await chat.ended, { code: 0 });
  const planned = await oratorio(place, ['chat', '--plan', '--yes', 'write b.txt: hello', '--workspace', workspace]);
  t.match(planned, { code: 0 });
  t.notOk(existsSync(join(workspace, 'b.txt')));
});

t.test('a file that a prompt mentions reaches the agent as a reference', async (t) => {
  writeFileSync(join(workspace, 'a.txt'), 'hello');
  t.match(await oratorio(place, ['exec', 'echo see @a.txt and @b.txt', '--workspace', workspace]), { code: 0 });
  t.match(await promptsOf(), [
    [
      { type: 'text', text: 'echo see ' },
      { type: 'fileRef', path: join(workspace, 'a.txt'), displayPath: 'a.txt' },
      { type: 'text', text: ' and @b.txt' },
    ],
  ]);
});

t.test('commands get the tool chains of the shell in which exec runs, not those of the Hub', async (t) => {
  const trusting = place.workspace('trusting', { Permissions: { DefaultApprovalPolicy: 'autoApprove' } });
  const ask = ['exec', '--yes', 'run: echo "venv: $VIRTUAL_ENV"', '--workspace', trusting];
  t.match(await oratorio(place, ask), { code: 0, stdout: /venv: (?!\/)/ });
  const inShell = { ...place, env: { ...place.env, VIRTUAL_ENV: '/home/me/.venv' } };
  t.match(await oratorio(inShell, ask), { code: 0, stdout: /venv: \/home\/me\/\.venv/ });
});
