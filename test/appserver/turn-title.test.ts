import t from 'tap';
import { turnTitle } from '../../src/appserver/inspection.ts';

const same = (text: string) => text;
const title = (text: string, clean = same) => turnTitle([{ type: 'text', text }], clean);

t.test('a turn is named by the first words of its prompt, on one line', async (t) => {
  t.equal(title('  run:\n  touch done  '), 'run: touch done');
  t.equal(title(''), '');
  t.equal(
    turnTitle(
      [
        { type: 'text', text: 'look' },
        { type: 'text', text: 'here' },
      ],
      same,
    ),
    'look here',
  );
});

t.test('a long prompt is cut between words to 60 characters', async (t) => {
  const long = title('word '.repeat(1_000));
  t.ok(long.length <= 60);
  t.match(long, /^(word )+word…$/);
  t.equal([...title('𝒳'.repeat(100))].length, 60, 'a letter of two code units is not divided');
});

t.test('control, bidirectional and invisible characters are left out', async (t) => {
  t.equal(title('a\u001b[31mb\u0000c\u202ed\u200be'), 'a[31mbcde');
});

t.test('secrets and credentials are left out', async (t) => {
  t.equal(
    title('say hunter2 twice', (text) => text.replaceAll('hunter2', '***')),
    'say *** twice',
  );
  t.notMatch(title('use token=sk-abcdefghijkl now'), /sk-abc/);
});
