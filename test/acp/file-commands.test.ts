/** `/undo` and `/diff` of editors, which have no other means to see and undo the changes of turns. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { fileCommandOf } from '../../src/acp/file-commands.ts';
import { calls, says, scripted } from '../agui/model.ts';
import { choose, inSession, surroundings } from './harness.ts';

const text = (words: string) => [{ type: 'text', text: words } as const];

t.test('a command about files is read, and one that is not understood changes nothing', (t) => {
  t.same(fileCommandOf(text('/undo')), { name: 'undo', turns: 1, force: false });
  t.same(fileCommandOf(text(' /undo  2 force\n')), { name: 'undo', turns: 2, force: true });
  t.same(fileCommandOf(text('/undo force')), { name: 'undo', turns: 1, force: true });
  t.same(fileCommandOf(text('/diff')), { name: 'diff', turnId: undefined });
  t.same(fileCommandOf(text('/diff turn_003')), { name: 'diff', turnId: 'turn_003' });
  for (const words of ['0', '-1', '1.5', '1 2', 'the last change', '1e3', '99999999999999999999'])
    t.match(fileCommandOf(text(`/undo ${words}`)), { name: 'usage' }, words);
  t.match(fileCommandOf(text('/diff a b')), { name: 'usage' });
  t.equal(fileCommandOf([...text('/undo'), { type: 'fileRef', path: '/a' }]), undefined);
  fc.assert(
    fc.property(fc.string(), (words) => {
      const first = words.trim().split(/\s+/)[0];
      return (fileCommandOf(text(words)) !== undefined) === (first === '/undo' || first === '/diff');
    }),
  );
  t.end();
});

t.test(
  'an editor shows the changes of turns, and takes them back without overwriting changes of the user',
  async (t) => {
    const write = (path: string, content: string) =>
      calls({ callId: path, name: 'WriteFile', args: { path, content } });
    const provider = scripted(write('a.txt', 'two\n```\n\u202e\n'), write('b.txt', 'new\n'), says('Done.'));
    const where = await surroundings(t, provider);
    const at = (name: string) => join(where.workspace, name);
    writeFileSync(at('a.txt'), 'one\n');
    execFileSync('mkfifo', [at('pipe')]);
    const editor = await inSession(t, where, { permit: () => choose('accept') });
    await editor.prompt('write them');
    const said = async (words: string) => {
      const before = editor.said().length;
      t.match(await editor.prompt(words), { stopReason: 'end_turn' });
      return editor.said().slice(before);
    };
    t.match(editor.of('available_commands_update').at(-1), {
      availableCommands: [{ name: 'undo', input: { hint: '[TURNS] [force]' } }, { name: 'diff' }],
    });
    const diff = await said('/diff');
    t.match(diff, /^````diff\n[\s\S]*-one\n\+two\n\+```\n\+<U\+202E>\n[\s\S]*\+new\n\n````\n$/);
    writeFileSync(at('a.txt'), 'mine\n');
    t.match(
      await said('/undo'),
      /not covered: pipe \(not a file, directory or link\)\nOutside of the workspace[\s\S]*Nothing was restored[\s\S]*a\.txt \(modified by you since\)\nTo overwrite these changes: \/undo force/,
    );
    t.same([readFileSync(at('a.txt'), 'utf8'), existsSync(at('b.txt'))], ['mine\n', true], 'nothing was overwritten');
    t.match(await said('/undo please'), 'Usage: /undo');
    t.match(await said('/undo force'), /The last turn is taken back[\s\S]*restored: a\.txt[\s\S]*--restore restore_1/);
    t.same([readFileSync(at('a.txt'), 'utf8'), existsSync(at('b.txt'))], ['one\n', false]);
    t.equal(provider.requests.length, 3, 'the model is not asked');
  },
);
