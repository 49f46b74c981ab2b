import t from 'tap';
import { inputOf } from '../../src/acp/prompt.ts';
import { backTickFence } from '../../src/lib/index.ts';
import { fenced } from '../../src/review/agent/fence.ts';

/** More runs of back-ticks than a call may have arguments. */
const many = '`a'.repeat(200_000);

t.test('a fence is longer than every run in its text, and has at least three back-ticks', async (t) => {
  t.equal(backTickFence('plain'), '```');
  t.equal(backTickFence('a ``` b ````` c'), '``````');
});

t.test('a text with 200,000 runs of back-ticks is fenced: in a review, and in a prompt of an editor', async (t) => {
  t.ok(fenced('diff', many).startsWith('```diff\n`a'));
  const resource = { uri: 'file:///a.md', text: many.slice(0, 260_000) };
  t.match(inputOf([{ type: 'resource', resource }]), [{ text: /```/ }]);
});
