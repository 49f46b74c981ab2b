import fc from 'fast-check';
import t from 'tap';
import { gitignore, marked, ownershipOf } from '../../../src/deploy/files/index.ts';

t.test('a file of ours is known as ours until anything of it is changed', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(), fc.string({ minLength: 1 }), (text, at, typed) => {
      const file = marked(text);
      if (ownershipOf(file) !== 'ours') return false;
      const body = file.indexOf('\n') + 1;
      const place = body + (at % (text.length + 1));
      return ownershipOf(file.slice(0, place) + typed + file.slice(place)) === 'edited';
    }),
    { numRuns: 300 },
  );
  t.end();
});

t.test('a file without our first line is foreign', (t) => {
  const file = marked('services: {}\n');
  t.match(file, /^# Managed by oratorio server; checksum [0-9a-f]{64}\nservices: \{\}\n$/);
  for (const foreign of ['', 'services: {}\n', `\n${file}`, `\ufeff${file}`, file.replace('oratorio', 'another')])
    t.equal(ownershipOf(foreign), 'foreign', JSON.stringify(foreign.slice(0, 40)));
  t.equal(ownershipOf(file.replace('\n', '\r\n')), 'foreign', 'line ends of another system');
  t.equal(ownershipOf(file.slice(0, -1)), 'edited');
  t.end();
});

t.test('a repository made of a stack ignores secrets, checkouts and our records', (t) => {
  t.equal(ownershipOf(gitignore()), 'ours');
  t.strictSame(gitignore().split('\n').slice(1), ['/.env', '/secrets/', '/workspace/', '/.server/', '']);
  t.end();
});
