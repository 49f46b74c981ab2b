/** Plain scripts, as they are parsed here and as real shells run them. */
import { existsSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { parseScript } from '../../../src/agent/index.ts';
import { recorder } from './real-shells.ts';

/** More rounds: `ORATORIO_FUZZ_ROUNDS=300000`, which takes a minute and a half. */
const numRuns = Number(process.env['ORATORIO_FUZZ_ROUNDS'] ?? 6_000);
const shells = (['bash', 'dash'] as const).filter((shell) => existsSync(`/bin/${shell}`));

const programs = ['ls', 'cat', 'npm', 'git', 'rm', 'touch'];
const blanks = [' ', ' ', ' ', '  ', '\t', '\n', '\r', '\u00a0'];
const operators = [';', '&&', '||', '|', '&', '|&', '>', '<', '2>&1', '>/dev/null', '>&', '&>', '<<E\n', 'E\n', '#'];
const quotes = [
  '"',
  "'",
  '`',
  '$(',
  '${',
  '$x',
  '$',
  "$'",
  '(',
  ')',
  '{',
  '}',
  '\\',
  '\\ ',
  '\\\n',
  '"a b"',
  "'c d'",
  '""',
  'a"b"c',
];
const expansions = ['~', '*', '?', '[', ']', '=', 'x=~', 'A=1', '{a,b}', '!', '%%', '^', '@', '+'];
const words = [
  'a',
  'b',
  '-n',
  '--',
  '1',
  '2',
  'é',
  '/',
  '.',
  '..',
  ':',
  'time',
  'if',
  'then',
  'fi',
  'do',
  'done',
  'for',
  'in',
  'case',
  'esac',
];
const script = fc
  .array(fc.constantFrom(...programs, ...programs, ...blanks, ...operators, ...quotes, ...expansions, ...words), {
    minLength: 1,
    maxLength: 14,
  })
  .map((pieces) => pieces.join(''));

t.test(`no shell runs anything that is not listed, in ${numRuns} random scripts (property)`, async (t) => {
  t.ok(shells.length > 0);
  const { run, close } = recorder();
  t.teardown(close);
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(script, async (text) => {
      const { kind, commands } = await parseScript(text);
      if (kind !== 'plain' || commands.length === 0) return true;
      accepted += 1;
      const listed = new Set(commands.map((each) => JSON.stringify(each)));
      return shells.every((shell) => run(shell, text).every((each) => listed.has(JSON.stringify(each))));
    }),
    { numRuns },
  );
  t.ok(accepted > 10, `${accepted} of them are plain`);
});

t.test('the words of plain scripts are those that a shell makes of them', async (t) => {
  const { run, close } = recorder();
  t.teardown(close);
  for (const text of [
    'ls',
    'npm run build',
    'npm \'a b\' "c d" e',
    'npm a"b c"d\'e f\'g',
    'npm "" \'\'',
    'npm --flag=value a=b -x',
    'npm "it\'s" \'say "x"\'',
    'ls; cat a && npm b || git c',
    'ls a\ncat b\n\n\nnpm c # comment',
    'npm "two\nlines"',
    'npm é ü "ß"',
    'ls 2>&1 | cat',
    'npm a% b+ c@ d^ e: f, /g .h',
  ]) {
    const { kind, commands } = await parseScript(text);
    t.equal(kind, 'plain', text);
    const listed = commands.map((each) => JSON.stringify(each));
    for (const shell of shells) {
      for (const ran of run(shell, text))
        t.ok(listed.includes(JSON.stringify(ran)), `${shell}: ${JSON.stringify(ran)}`);
    }
  }
});
