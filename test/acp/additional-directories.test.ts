/** Directories that an editor opens beside the workspace. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { furtherDirectory } from '../../src/config/index.ts';
import { calls, says, scripted } from '../agui/model.ts';
import { attach, choose, inSession, introduce, surroundings } from './harness.ts';

const read = (callId: string, path: string) => calls({ callId, name: 'ReadFile', args: { path } });

t.test('files of an additional directory are read without a question, and written after one', async (t) => {
  const outside = t.testdir({ docs: { 'a.txt': 'needle one' }, other: { 'b.txt': 'two' } });
  const [docs, other] = [join(outside, 'docs'), join(outside, 'other')];
  symlinkSync(join(other, 'b.txt'), join(docs, 'link.txt'));
  mkdirSync(join(docs, '.oratorio'));
  writeFileSync(join(docs, '.oratorio', 'state'), 'hidden');
  const provider = scripted(
    read('r1', join(docs, 'a.txt')),
    calls({ callId: 'g1', name: 'GrepFiles', args: { pattern: 'needle', path: docs } }),
    read('r2', join(docs, 'link.txt')),
    read('r3', join(other, 'b.txt')),
    read('r4', join(docs, '.oratorio', 'state')),
    calls({ callId: 'w1', name: 'WriteFile', args: { path: join(docs, 'a.txt'), content: 'changed' } }),
    says('Done.'),
  );
  const where = await surroundings(t, provider);
  const editor = attach(t, where, { permit: () => choose('decline') });
  await introduce(editor);
  const { agent } = editor;
  const cwd = where.workspace;
  const { sessionId } = await agent.request('session/new', { cwd, mcpServers: [], additionalDirectories: [docs] });
  await agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'look' }] });
  const outcome = (callId: string) =>
    editor.of('tool_call_update').findLast(({ toolCallId }) => toolCallId === callId)?.rawOutput;
  t.match(outcome('r1'), { outcome: 'completed', text: /needle one/ });
  t.match(outcome('g1'), { outcome: 'completed', text: /a\.txt/ });
  t.strictSame(
    editor.asked.map(({ toolCall }) => toolCall.toolCallId),
    ['r2', 'r3', 'w1'],
    'a link that leads out, another directory and a change are asked about',
  );
  t.match(outcome('r4'), { text: /belongs to Oratorio's own state/ });
  t.match(JSON.stringify(provider.requests[0]?.messages[0]), new RegExp(`Further directory.*${docs}`));
  t.match(await agent.request('session/list', { cwd }), { sessions: [{ additionalDirectories: [docs] }] });
});

t.test('a session that is opened again has the directories of this request only', async (t) => {
  const [one, other] = [t.testdir({ one: {}, other: {} })].flatMap((top) => [join(top, 'one'), join(top, 'other')]);
  const where = await surroundings(t, scripted(says('hi')));
  const { agent, sessionId, prompt } = await inSession(t, where);
  await prompt('hi');
  const cwd = where.workspace;
  const directories = async () => (await agent.request('session/list', { cwd })).sessions[0]?.additionalDirectories;
  const again = { sessionId, cwd, mcpServers: [] };
  await agent.request('session/load', { ...again, additionalDirectories: [one ?? '', other ?? ''] });
  t.strictSame(await directories(), [one, other]);
  await agent.request('session/resume', again);
  t.strictSame(await directories(), []);
});

t.test('a directory that is too much is refused', async (t) => {
  const home = t.testdir({ '.ssh': { id: 'key' }, code: { site: {} }, 'file.txt': '' });
  symlinkSync(join(home, '.ssh'), join(home, 'harmless'));
  t.equal(furtherDirectory(join(home, 'code', 'site'), home), join(home, 'code', 'site'));
  for (const path of [
    ...['/', home, join(home, '..'), join(home, '.ssh'), join(home, 'harmless'), join(home, 'file.txt')],
    ...['/etc', '/proc/self', 'code', join(home, 'none'), `${home}\0`, `/${'x'.repeat(5_000)}`],
  ]) {
    t.equal(furtherDirectory(path, home), undefined, path.slice(0, 80));
  }
  const where = await surroundings(t, scripted(says('hi')));
  const editor = attach(t, where);
  await introduce(editor);
  const open = (additionalDirectories: string[]) =>
    editor.agent.request('session/new', { cwd: where.workspace, mcpServers: [], additionalDirectories });
  await t.rejects(open(['/etc']), { code: -32_602, message: /additional directory/ });
  await t.rejects(open(Array.from({ length: 33 }, () => where.workspace)), { code: -32_602 });
});
