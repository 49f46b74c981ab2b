/** Words of the switch of notices, for every state of its machine. */
import t from 'tap';
import { pushSwitchMachine } from '../../machines/index.ts';
import { failureInWords, obstacleInWords, switchWords } from '../../src/ui/views/inbox/notices/words.ts';

t.test('each state has its words, and a button exactly when the user can leave it', async (t) => {
  const explained = ['failed', 'unsupported'];
  const states = Object.keys(pushSwitchMachine.states);
  t.same([...Object.keys(switchWords), ...explained].sort(), states.sort());
  for (const [state, { action }] of Object.entries(switchWords)) {
    const events = Object.keys(pushSwitchMachine.states[state as 'off']?.config.on ?? {});
    t.equal(action === undefined || events.includes(action.event), true, state);
    t.equal(action === undefined, events.length === 0, `${state} has a button exactly when it can be left`);
  }
  const { text, action } = failureInWords('The server cannot be reached.');
  t.match([text, action?.event], [/The server cannot be reached\.$/, 'CHECK']);
});

t.test('a page at an address that is not secure names the tunnel with its own port', async (t) => {
  const words = obstacleInWords('insecureAddress', { host: 'laptop.lan:7717', port: '7717' });
  t.match(words, /laptop\.lan:7717 .* ssh -L 7717:127\.0\.0\.1:7717 .* at 127\.0\.0\.1:7717,/);
  t.match(obstacleInWords('insecureAddress', { host: 'laptop.lan', port: '' }), /ssh -L 80:127\.0\.0\.1:80/);
  t.match(obstacleInWords('noWebPush', { host: 'x', port: '' }), /Home Screen/);
});
