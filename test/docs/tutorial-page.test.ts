import t from 'tap';
import { blocksOf, missingLine } from './tutorial-page.ts';

t.test('a page is read as its fenced blocks, with terminal and line', async (t) => {
  const page = 'Text\n\n```sh\nls\n```\n\n```text second\na\nb\n```\n';
  t.strictSame(blocksOf(page), [
    { kind: 'sh', terminal: 'first', text: 'ls\n', line: 3 },
    { kind: 'text', terminal: 'second', text: 'a\nb\n', line: 7 },
  ]);
});

t.test('a block in another language is an error', async (t) => {
  t.throws(() => blocksOf('```\nls\n```\n'), /line 1: a block in no language/);
  t.throws(() => blocksOf('```bash\nls\n```\n'), /line 1: a block in bash/);
});

t.test('expected lines match in order, and … matches any text', async (t) => {
  t.equal(missingLine('one\n…\nthree …\n', 'zero\none\ntwo\nthree 3  \n'), undefined);
  t.equal(missingLine('two\none\n', 'one\ntwo\n'), 'one', 'the order counts');
  t.equal(missingLine('on\n', 'one\n'), 'on', 'a line is compared as a whole');
  t.equal(missingLine('a.b\n', 'axb\n'), 'a.b', 'other characters stand for themselves');
});
