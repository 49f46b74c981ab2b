/** Plain scripts: our parser against real shells. */
import { existsSync } from 'node:fs';
import { cachedDataVersionTag } from 'node:v8';
import fc from 'fast-check';
import t from 'tap';
import { parseScript } from '../../../src/agent/index.ts';
import { recorder } from './real-shells.ts';

/** More rounds: `ORATORIO_FUZZ_ROUNDS=300000`, which takes minutes. */
const numRuns = Number(process.env['ORATORIO_FUZZ_ROUNDS'] ?? 3_000);
const versionBefore = cachedDataVersionTag();
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

/** Words that stay plain, keywords and quoted signs among them. */
const safe = [...words, '"a b"', "'c d'", '""', 'a"b"c', "'$x'", '"it\'s"', 'A=1', 'a#b', '"#"', 'E'];
const joints = [';', ' && ', ' || ', '|', ' & ', '\n', ' |& ', ' 2>&1 | ', ' >/dev/null; '];
const odd = fc.constantFrom(...operators, ...quotes, ...expansions, ...blanks);
const mostly = (usual: readonly string[]) =>
  fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: odd });
/** Lists of commands with something odd here and there: four of ten are plain. */
const nearlyPlain = fc
  .array(fc.tuple(fc.constantFrom(...programs), fc.array(mostly(safe), { maxLength: 3 }), mostly(joints)), {
    minLength: 1,
    maxLength: 3,
  })
  .map((all) => all.map(([program, args, joint]) => `${[program, ...args].join(' ')}${joint}`).join(''));

for (const { kind: name, scripts, runs, fewest } of [
  { kind: 'random', scripts: script, runs: numRuns, fewest: 10 },
  { kind: 'nearly plain', scripts: nearlyPlain, runs: numRuns / 6, fewest: 100 },
]) {
  t.test(`no shell runs anything that is not listed, in ${runs} ${name} scripts (property)`, async (t) => {
    t.ok(shells.length > 0);
    const { run, close } = recorder();
    t.teardown(close);
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(scripts, async (text) => {
        const { kind, commands } = await parseScript(text);
        if (kind !== 'plain' || commands.length === 0) return true;
        // `. ls` reads the recorder of `ls` into the shell, where it looks like a call of `ls`.
        if (commands.some(([program]) => program === '.')) return true;
        accepted += 1;
        const listed = new Set(commands.map((each) => JSON.stringify(each)));
        return shells.every((shell) => run(shell, text).every((each) => listed.has(JSON.stringify(each))));
      }),
      { numRuns: runs, examples: [['./ls']] },
    );
    t.ok(accepted > fewest, `${accepted} of them are plain`);
  });
}

t.test('parsing a script does not change the flags of V8 under which compiled code is stored', async (t) => {
  await parseScript('ls');
  t.equal(cachedDataVersionTag(), versionBefore);
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
