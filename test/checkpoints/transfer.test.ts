/** Files of a conversation from another machine: transfers of a hostile sender, and changes of the target. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { hashOf } from '../../src/checkpoints/content-reader.ts';
import { bench, checkpointsOf, stateOf } from './tree-of-files.ts';

const file = (content: string, mode = 0o644) => ({
  ...{ kind: 'file', mode, size: Buffer.byteLength(content), hash: hashOf(Buffer.from(content)), target: null },
});
const link = (target: string) => ({ kind: 'link', mode: 0, size: target.length, hash: null, target });
const line = (path: string, after: unknown, content = '', before: unknown = null) =>
  `${JSON.stringify({ path, before, after })}\n${content}`;

/** Transfers of a hostile sender. */
const hostile: Readonly<Record<string, string>> = {
  'a path above the workspace': line('../x', file('x'), 'x'),
  'an absolute path': line('/tmp/x', file('x'), 'x'),
  'a path with an empty name': line('a//x', file('x'), 'x'),
  'a hook of git': line('.git/hooks/pre-commit', file('x', 0o755), 'x'),
  'a repository in a directory': line('a/.GIT/config', file('x'), 'x'),
  'a name that some file systems read as .git': line('.g\u00e2\u0080\u008cit/config', file('x'), 'x'),
  'settings of the workspace': line('.oratorio/config.json', file('{}'), '{}'),
  'a link to the root': line('l', link('/')),
  'a link above the workspace': line('a/l', link('../../x')),
  'a link that goes up after a name': line('l', link('a/../../x')),
  'a file with the rights of its owner': line('x', file('x', 0o4755), 'x'),
  'a content that is not the announced one': line('x', file('x'), 'y'),
  'a content that is cut off': line('x', { ...file('x'), size: 1_000 }, 'x'),
  'a size beyond the limit': line('x', { ...file('x'), size: 2 ** 40 }, 'x'),
  'a path twice': line('x', file('x'), 'x') + line('x', file('x'), 'x'),
  'a path with a NUL character': line('x\0y', file('x'), 'x'),
  'a line without an end': JSON.stringify({ path: 'x', before: null, after: null }),
  'a line that is too long': `{"path":"${'x'.repeat(700_000)}"}\n`,
  'no JSON': 'hello\n',
};

for (const [name, text] of Object.entries(hostile)) {
  t.test(`a transfer with ${name} is refused, and nothing changes`, async (t) => {
    const place = bench(t);
    place.write('mine.txt', 'mine');
    const { checkpoints } = checkpointsOf(t, place);
    const transfer = join(place.root, '..', 'transfer');
    writeFileSync(transfer, text);
    const before = stateOf(place.root);
    await t.rejects(checkpoints.arrive('thread', place.root, transfer));
    t.same(stateOf(place.root), before);
  });
}

t.test('a transfer never writes through a link of the target', async (t) => {
  const place = bench(t);
  const outside = join(place.root, '..', 'outside');
  mkdirSync(outside);
  symlinkSync(outside, place.at('a'));
  const { checkpoints } = checkpointsOf(t, place);
  const transfer = join(place.root, '..', 'transfer');
  writeFileSync(transfer, line('a/x', file('x'), 'x'));
  t.match(await checkpoints.arrive('thread', place.root, transfer), { kind: 'refused', conflicts: [{ path: 'a' }] });
  t.notOk(existsSync(join(outside, 'x')));
});

t.test('changes of the target are conflicts, and nothing changes', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'mine');
  place.write('b.txt', 'mine');
  const { checkpoints } = checkpointsOf(t, place);
  const transfer = join(place.root, '..', 'transfer');
  writeFileSync(
    transfer,
    line('a.txt', file('new'), 'new', file('old')) + line('b.txt', null) + line('c.txt', file('c'), 'c'),
  );
  const before = stateOf(place.root);
  t.match(await checkpoints.arrive('thread', place.root, transfer), {
    kind: 'refused',
    conflicts: [{ path: 'a.txt' }, { path: 'b.txt' }],
  });
  t.same(stateOf(place.root), before);
});

t.test('a transfer changes the files that the target has in their earlier state', async (t) => {
  const place = bench(t);
  place.write('a.txt', 'old', 0o664);
  const { checkpoints } = checkpointsOf(t, place);
  const transfer = join(place.root, '..', 'transfer');
  writeFileSync(transfer, line('a.txt', file('new', 0o600), 'new', file('old')) + line('e', file(''), ''));
  t.match(await checkpoints.arrive('thread', place.root, transfer), { kind: 'restored', restored: ['a.txt', 'e'] });
  t.equal(readFileSync(place.at('a.txt'), 'utf8'), 'new');
});
