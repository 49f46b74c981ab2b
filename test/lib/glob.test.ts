import fc from 'fast-check';
import t from 'tap';
import { expandBraces, nameTest, pathTest } from '../../src/lib/index.ts';

/** Tries everything: slow, but plainly right. `**` is any number of names, at the end at least one. */
function matchesSlowly([first, ...rest]: readonly string[], names: readonly string[]): boolean {
  if (first === undefined) return names.length === 0;
  if (first === '**' && rest.length === 0) return names.length > 0;
  if (first === '**') return names.some((_, at) => matchesSlowly(rest, names.slice(at))) || matchesSlowly(rest, []);
  const [name, ...others] = names;
  const expression = first.replaceAll(/\*+/g, '.*').replaceAll('?', '.').replaceAll('[!', '[^');
  return name !== undefined && new RegExp(`^${expression}$`).test(name) && matchesSlowly(rest, others);
}

t.test('a glob matches the same paths as a search of all divisions', async () => {
  const part = fc.constantFrom('a', 'b', '*', '?', '[ab]', '[!a]');
  const segment = fc.oneof(
    fc.constant('**'),
    fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('')),
  );
  const name = fc.stringMatching(/^[abc]{1,4}$/);
  fc.assert(
    fc.property(
      fc.array(segment, { minLength: 1, maxLength: 4 }),
      fc.array(name, { minLength: 1, maxLength: 5 }),
      (segments, names) => pathTest(segments.join('/'))(names.join('/')) === matchesSlowly(segments, names),
    ),
    { numRuns: 5_000 },
  );
});

t.test('no pattern takes exponential time', async (t) => {
  t.equal(pathTest(`${'*a'.repeat(200)}b`)('a'.repeat(250)), false);
  t.equal(pathTest(`${'**/a/'.repeat(100)}b`)(`${'a/'.repeat(1_000)}c`), false);
  t.equal(nameTest(`${'*a**'.repeat(60)}b`)('a'.repeat(250)), false);
});

t.test('a pattern of names matches by segment, text and character', async (t) => {
  const rows: readonly (readonly [string, string, boolean])[] = [
    ['main', 'main', true],
    ['main', 'main2', false],
    ['m.in', 'main', false],
    ['release/*', 'release/1.0', true],
    ['release/*', 'release/1/0', false],
    ['release/**', 'release/1/0', true],
    ['v?', 'v1', true],
    ['v?', 'v/', false],
    ['(a|b)', 'a', false],
    ['*', 'a/b', false],
    ['**', 'a/b', true],
  ];
  for (const [pattern, name, is] of rows) t.equal(nameTest(pattern)(name), is, `${pattern} ${name}`);
});

t.test('a pattern of names matches the same names as a regular expression', async () => {
  const part = fc.constantFrom('a', 'b', '/', '*', '**', '?', '[a]', '.', '{a,b}');
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 8 }).map((parts) => parts.join('')),
      fc.stringMatching(/^[ab/.[\]]{0,8}$/),
      (pattern, name) => {
        const source = pattern
          .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
          .replaceAll(/\*+|\?/g, (mark) => (mark === '?' ? '[^/]' : mark === '*' ? '[^/]*' : '.*'));
        return nameTest(pattern)(name) === new RegExp(`^${source}$`, 's').test(name);
      },
    ),
    { numRuns: 5_000 },
  );
});

t.test('characters outside the basic plane count as one', async (t) => {
  t.equal(pathTest('?.ts')('😀.ts'), true);
  t.equal(pathTest('[😀-😂].ts')('😁.ts'), true);
  t.equal(nameTest('?')('😀'), true);
});

t.test('braces are expanded as a shell does it', async (t) => {
  for (const [pattern, expected] of [
    ['a', ['a']],
    ['', ['']],
    ['a{b,c}d', ['abd', 'acd']],
    ['{a,b{c,d}}', ['a', 'bc', 'bd']],
    ['{a,b}{c,d}', ['ac', 'ad', 'bc', 'bd']],
    ['{a,}', ['a', '']],
    ['{a}', ['{a}']],
    ['{a{b,c}}', ['{ab}', '{ac}']],
    ['{a,b', ['{a,b']],
    ['a,b}', ['a,b}']],
    ['{x,{a,b}', ['{x,a', '{x,b']],
    ['\\{a,b}', ['\\{a,b}']],
  ] as const)
    t.same(expandBraces(pattern), expected, pattern);
});

t.test('braces with more than 256 alternatives are not expanded', async (t) => {
  t.equal(expandBraces('{a,b}'.repeat(8))?.length, 256);
  t.equal(expandBraces('{a,b}'.repeat(9)), undefined);
  t.equal(expandBraces('{a,'.repeat(100_000) + '}'.repeat(100_000)), undefined, 'deep');
  t.equal(expandBraces('{a,b}'.repeat(100_000)), undefined, 'long');
  t.same(expandBraces('{'.repeat(10_000)), ['{'.repeat(10_000)]);
});
