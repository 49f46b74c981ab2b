/** Commands of `oratorio chat` at a real terminal. */
import t from 'tap';
import { atTerminal, hasTerminals, keys } from '../cli/terminal.ts';
import { command, makePlace } from './harness.ts';

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
