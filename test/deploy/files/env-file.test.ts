import fc from 'fast-check';
import t from 'tap';
import { DeployError } from '../../../src/deploy/errors.ts';
import { changeEnv, newEnv, parseEnv } from '../../../src/deploy/files/index.ts';
import { composeConfig, compositionOf, writeStack } from './compose.ts';

const codes = (text: string) => parseEnv(text).problems.map(({ code }) => code);
const valuesOf = (text: string) => Object.fromEntries(parseEnv(text).values);

t.test('reads the same values as Compose', (t) => {
  const cases: readonly (readonly [text: string, values: Record<string, string>])[] = [
    ['', {}],
    ['A=plain', { A: 'plain' }],
    ["A='sq$x'\n", { A: 'sq$x' }],
    ['A="a b"', { A: 'a b' }],
    ['A="a\\"b"', { A: 'a"b' }],
    ['A=has#hash', { A: 'has#hash' }],
    ['A=has #comment', { A: 'has' }],
    ["A='x' # it's\nB=2", { A: 'x', B: '2' }],
    ['  export A = 1\r\n#B=2\r\n\r\nC=3\r\n', { A: '1', C: '3' }],
    ['\ufeffA=1\nB=2', { A: '1', B: '2' }],
    ["A='one\n two'\nB=2", { A: 'one\n two', B: '2' }],
    ['A=', { A: '' }],
    ["A=''", { A: '' }],
    ['A=a=b', { A: 'a=b' }],
  ];
  for (const [text, values] of cases) {
    t.strictSame(valuesOf(text), values, JSON.stringify(text));
    t.strictSame(codes(text), [], JSON.stringify(text));
  }
  t.end();
});

t.test('of two lines with one name the later one holds, and a problem is reported', (t) => {
  const { values, problems } = parseEnv('A=1\n# x\nA=2\n');
  t.equal(values.get('A'), '2');
  t.match(problems, [{ code: 'duplicate', line: 3, key: 'A', message: /^Line 3 of \.env \(A\) is set a second time/ }]);
  t.end();
});

t.test('lines whose value Compose changes are reported, and nothing is expanded', (t) => {
  const cases: readonly (readonly [text: string, code: string])[] = [
    ['A=dq$x', 'expansion'],
    ['A="dq$x"', 'expansion'],
    ["A='it'\\''s'", 'malformed'],
    ["A='a\\\\b'", 'ambiguous'],
    ['A="a\\nb"', 'ambiguous'],
    ["A=it's", 'ambiguous'],
    ["A='open", 'unterminated'],
    ['A', 'noValue'],
    ['export A', 'noValue'],
    ['not a line', 'malformed'],
    ['A: b', 'malformed'],
    ["A='x'y", 'malformed'],
  ];
  for (const [text, code] of cases) {
    t.strictSame(codes(`${text}\n`), [code], text);
    const after = parseEnv(`${text}\nB=2\n`);
    t.equal(after.values.get('B'), '2', 'the next line is read');
    t.strictSame(
      after.problems.map(({ line }) => line),
      [1],
    );
  }
  t.equal(parseEnv('A=dq$x').values.get('A'), 'dq$x');
  t.end();
});

t.test('the message of a problem does not contain the value', (t) => {
  const { problems } = parseEnv('A="hunter2$x"\nB=\'hunter2\nhunter2\n');
  t.match(problems, [
    { key: 'A', code: 'expansion' },
    { key: 'B', code: 'unterminated' },
  ]);
  t.strictSame(
    parseEnv('hunter2\n').problems.map(({ key }) => key),
    [null],
  );
  t.notOk(JSON.stringify(problems).includes('hunter2'));
  t.end();
});

t.test('a value is changed in place, and everything else stays', (t) => {
  const text = '# mine\nexport A=1 # why\n\nUNKNOWN=\'x y\'\nB = "two"\nA=3\n';
  t.equal(
    changeEnv(text, { A: 'n$w', B: '' }),
    "# mine\nexport A=1 # why\n\nUNKNOWN='x y'\nB = ''\nA='n$w'\n",
    'of two lines the later one',
  );
  t.equal(changeEnv(text, { A: null }), '# mine\n\nUNKNOWN=\'x y\'\nB = "two"\n', 'both lines go');
  t.equal(changeEnv('export A=1 # why\r\nB=2', { A: 'x', C: 'y' }), "export A='x' # why\r\nB=2\r\nC='y'\r\n");
  t.equal(changeEnv('\ufeff', { A: 'x' }), "\ufeffA='x'\n");
  t.equal(changeEnv('', { A: 'x', B: null }), "A='x'\n");
  t.equal(changeEnv("A='open\nB=2\n", { A: 'x' }), "A='x'\nB=2\n", 'a broken line is mended');
  t.equal(changeEnv('export A\n', { A: 'x' }), "A='x'\n");
  t.equal(changeEnv("A='it'\\''s'\n", { A: 'x' }), "A='x'\n");
  t.end();
});

t.test('a value that Compose does not read literally is refused by name and kind', (t) => {
  const secret = 'ORATORIO_MODEL_API_KEY';
  const cases: readonly (readonly [value: string, kind: string])[] = [
    ["hunter2'", 'a single quote'],
    ['hunter2\\', 'a backslash'],
    ['hunter2\n', 'a line break'],
    ['hunter2\r', 'a line break'],
    ['hunter2\t', 'a control character'],
    ['hunter2\x7f', 'a control character'],
    ['hunter2\0', 'a control character'],
    ['hunter2ü', 'a character outside of ASCII'],
    ['hunter2😀', 'a character outside of ASCII'],
  ];
  for (const [value, kind] of cases) {
    const refused = thrownBy(() => changeEnv('A=1\n', { [secret]: value }));
    t.match(refused, { code: 'secretRefused', message: `The value of ${secret} contains ${kind},` });
    t.notOk(`${refused.message}${refused.hint}`.includes('hunter2'));
  }
  t.match(
    thrownBy(() => changeEnv('', { ORATORIO_MODEL: "it's" })),
    { code: 'invalidInput' },
  );
  t.match(
    thrownBy(() => changeEnv('', { UNKNOWN: "it's" })),
    { code: 'secretRefused' },
    'nobody knows what it holds',
  );
  t.match(
    thrownBy(() => changeEnv('', { 'A=B': 'x' })),
    { code: 'invalidInput' },
  );
  t.end();
});

function thrownBy(act: () => unknown): DeployError {
  try {
    act();
  } catch (error) {
    if (error instanceof DeployError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

const value = fc
  .string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)), maxLength: 40 })
  .map((text) => text.replace(/['\\]/g, '_'));
const key = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,12}$/);

t.test('a value that was set is read back, and nothing else changes', (t) => {
  const line = fc.oneof(
    fc.tuple(key, value).map(([name, text]) => `${name}='${text}'`),
    fc.tuple(key, fc.stringMatching(/^[a-z0-9]{0,8}$/)).map(([name, text]) => `export ${name}=${text} # note`),
    fc.constantFrom('', '# a comment', '   ', 'no line'),
  );
  const file = fc.tuple(fc.array(line, { maxLength: 8 }), fc.constantFrom('\n', '\r\n'), fc.constantFrom('', '\ufeff'));
  fc.assert(
    fc.property(file, key, value, ([lines, newline, bom], name, text) => {
      const before = bom + lines.join(newline);
      const after = changeEnv(before, { [name]: text });
      t.equal(parseEnv(after).values.get(name), text);
      const others = (of: string) => [...parseEnv(of).values].filter(([each]) => each !== name);
      t.strictSame(others(after), others(before));
      t.equal(changeEnv(after, { [name]: text }), after, 'a second time changes nothing');
      t.notOk(parseEnv(changeEnv(after, { [name]: null })).values.has(name));
    }),
    { numRuns: 300 },
  );
  t.end();
});

/** Every value as Compose hands it to a container. */
const asComposed = async (directory: string, text: string, names: readonly string[]) => {
  const compose = `services:\n  one:\n    image: none\n    environment:\n${names.map((name) => `      ${name}: "\${${name}}"\n`).join('')}`;
  writeStack(directory, { 'docker-compose.yml': compose, '.env': text });
  const ran = await composeConfig(directory, ['docker-compose.yml']);
  if (ran.exitCode !== 0) throw new Error(ran.stderr);
  return compositionOf(ran.stdout, directory).services['one']?.environment ?? {};
};

t.test('Compose reads every value unchanged', async (t) => {
  const edges = [
    '',
    ' ',
    '  x  ',
    '#',
    ' #x',
    '$',
    '$$',
    '$x',
    '${x}',
    '"',
    '""',
    '`id`',
    '{}',
    '!',
    '%s',
    'a=b',
    'export A=1',
  ];
  const values = [...edges, ...fc.sample(value, { numRuns: 400, seed: 6 })];
  const wanted = Object.fromEntries(values.map((text, index) => [`V${index}`, text]));
  t.strictSame(await asComposed(t.testdir({}), changeEnv('', wanted), Object.keys(wanted)), wanted);
});

t.test('Compose reads other lines as we do, unless we report them', async (t) => {
  const sign = fc.constantFrom(...'ab0 =:#$"\'\\-/,.{}[]()!?*&|<>~@%^;`'.split(''));
  const written = fc.oneof(
    fc.string({ unit: sign, maxLength: 12 }),
    fc.string({ unit: sign, maxLength: 12 }).map((text) => `'${text}'`),
    fc.string({ unit: sign, maxLength: 12 }).map((text) => `"${text}" # note`),
  );
  const lines = fc
    .sample(fc.tuple(fc.constantFrom('', 'export ', '  '), fc.constantFrom('=', ' = ', '= '), written), {
      numRuns: 1_500,
      seed: 6,
    })
    .map(([lead, equals, text], index) => ({ name: `V${index}`, line: `${lead}V${index}${equals}${text}` }))
    .filter(({ line }) => parseEnv(line).problems.length === 0);
  t.ok(lines.length > 300, `${lines.length} lines`);
  const wanted = Object.fromEntries(lines.map(({ name, line }) => [name, parseEnv(line).values.get(name)]));
  const text = lines.map(({ line }) => line).join('\n');
  t.strictSame(await asComposed(t.testdir({}), text, Object.keys(wanted)), wanted);
});

t.test('a new .env has every variable with its purpose, and the given values', (t) => {
  const text = newEnv({ ORATORIO_MODEL: 'a model', ORATORIO_AGENT_TOKEN: 'tok$en' });
  t.match(valuesOf(text), {
    ORATORIO_MODEL: 'a model',
    ORATORIO_AGENT_TOKEN: 'tok$en',
    ORATORIO_BACKEND_PORT: '5087',
    ORATORIO_UID: '10001',
    ORATORIO_SERVICE_TOKEN: '',
  });
  t.strictSame(codes(text), []);
  t.match(text, /# Name of the model\.\nORATORIO_MODEL='a model'\n/);
  t.throws(() => newEnv({ ORATORIO_MODEL: "it's" }), { code: 'invalidInput' });
  t.end();
});
