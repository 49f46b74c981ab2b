/** Commands and mentions of `oratorio chat` and `exec`. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import * as v from 'valibot';
import { AppServerClient } from '../../src/client/index.ts';
import { atTerminal, hasTerminals, keys } from '../cli/terminal.ts';
import { command, makePlace, oratorio, oratorioJson } from './harness.ts';

const starts = 'call Exec {"command": "echo up; sleep 3400", "background": true}';

t.test('/ps lists the background processes of the agent, and ends one', async (t) => {
  t.ok(hasTerminals(), 'this test needs script(1) of util-linux');
  const place = makePlace(t);
  const workspace = place.workspace('site');
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
  await chat.answer('/ps [stop ID]', `/exit${keys.enter}`);
  t.match(await chat.ended, { code: 0 });
});

t.test('/plan has the agent only plan until /accept, and --plan does so for one prompt', async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site');
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
  const place = makePlace(t);
  const workspace = place.workspace('site');
  writeFileSync(join(workspace, 'a.txt'), 'hello');
  t.match(await oratorio(place, ['exec', 'echo see @a.txt and @b.txt', '--workspace', workspace]), { code: 0 });
  const { endpoints } = await oratorioJson(place, 'ensure', workspace);
  const client = await AppServerClient.connect(endpoints.appServerWebSocket);
  const Threads = v.object({ data: v.array(v.object({ id: v.string() })) });
  const [thread] = v.parse(Threads, await client.request('thread/list', {})).data;
  const read = await client.request('thread/read', { threadId: thread?.id, includeTurns: true });
  client.close();
  t.match(read, {
    thread: {
      turns: [
        {
          items: [
            {
              input: [
                { type: 'text', text: 'echo see ' },
                { type: 'fileRef', path: join(workspace, 'a.txt'), displayPath: 'a.txt' },
                { type: 'text', text: ' and @b.txt' },
              ],
            },
          ],
        },
      ],
    },
  });
});

t.test('commands get the tool chains of the shell in which exec runs, not those of the Hub', async (t) => {
  const place = makePlace(t);
  const workspace = place.workspace('site', { Permissions: { DefaultApprovalPolicy: 'autoApprove' } });
  const ask = ['exec', '--yes', 'run: echo "venv: $VIRTUAL_ENV"', '--workspace', workspace];
  t.match(await oratorio(place, ask), { code: 0, stdout: /venv: (?!\/)/ });
  const inShell = { ...place, env: { ...place.env, VIRTUAL_ENV: '/home/me/.venv' } };
  t.match(await oratorio(inShell, ask), { code: 0, stdout: /venv: \/home\/me\/\.venv/ });
});
