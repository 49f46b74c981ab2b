import t from 'tap';
import { countsOf, failuresOf, fileReport, isWorthShowing, summaryReport } from '../../scripts/tap-output.mjs';

t.test('the counts are those of the last summary', async (t) => {
  t.strictSame(countsOf('ok 1\n# { total: 3, pass: 3 }\n'), { passed: 3, failed: 0 });
  t.strictSame(countsOf('# { total: 1, pass: 1 }\n# { total: 5, pass: 3, fail: 2 }\n# time=1ms'), {
    passed: 3,
    failed: 2,
  });
  t.equal(countsOf('ok 1\nok 2\n'), undefined, 'a run that broke off has no counts');
});

t.test('a log shows files and failures', async (t) => {
  const isShown = isWorthShowing();
  const lines = [
    'TAP version 14',
    '# Subtest: a.test.ts',
    '    ok 1 - fine',
    '    not ok 2 - broken',
    '      ---',
    '      diff: x',
    '      ...',
    '    ok 3 - fine',
    '    not ok 4 - later # TODO',
    '    1..4',
    'not ok 1 - a.test.ts',
    'ok 2 - b.test.ts',
    '# slow:    1.0 s  a.test.ts',
    '# costly:  0.5 s of CPU  a.test.ts',
    '# failed: a.test.ts › broken',
    '# cpu: 0.50',
  ];
  t.strictSame(lines.filter(isShown), [
    '    not ok 2 - broken',
    '      ---',
    '      diff: x',
    '      ...',
    'not ok 1 - a.test.ts',
    'ok 2 - b.test.ts',
    '# slow:    1.0 s  a.test.ts',
    '# costly:  0.5 s of CPU  a.test.ts',
    '# failed: a.test.ts › broken',
  ]);
});

t.test('failures are named by the titles that lead to them, without tests to do or skipped', async (t) => {
  const tap = [
    '    not ok 1 - later # TODO',
    '        ok 1 - fine',
    '        not ok 2 - inner # time=3ms',
    '    not ok 2 - outer # time=5ms',
    '    not ok 3 - second',
    'not ok 1 - all # time=9ms',
    'ok 2 - fine',
    'not ok 3 - last',
  ];
  t.strictSame(failuresOf(tap.join('\n')), ['all › outer › inner', 'all › second', 'last']);
});

const ended = { exitCode: 0, signal: null, isTimedOut: false };
const passed = { ...ended, name: 'a.ts', isGood: true, counts: { passed: 2, failed: 0 }, milliseconds: 1_234 };

t.test('the report of a file is its TAP as a subtest, with the end of the process when it fails', async (t) => {
  t.equal(
    fileReport({ ...passed, output: 'ok 1 - x\n\n1..1\n' }, 3),
    '# Subtest: a.ts\n    ok 1 - x\n\n    1..1\nok 3 - a.ts # time=1234ms\n\n',
  );
  t.match(fileReport({ ...passed, cpuSeconds: 0.456, output: '' }, 3), /^ok 3 - a\.ts # time=1234ms cpu=0\.46s$/m);
  const dead = {
    ...passed,
    isGood: false,
    exitCode: null,
    signal: 'SIGTERM',
    isTimedOut: true,
    output: 'ok 1',
  } as const;
  t.match(
    fileReport(dead, 4),
    /^ {4}ok 1\nnot ok 4 - a\.ts # time=1234ms\n {2}---\n[\s\S]*signal: SIGTERM\n {2}timeout: true/m,
  );
});

t.test(
  'the report of a run sums the assertions and names ten files by time, ten by processor time and all failures',
  async (t) => {
    const results = Array.from({ length: 12 }, (_, n) => ({
      ...passed,
      name: `${n}.ts`,
      milliseconds: n * 1_000,
      cpuSeconds: 12 - n,
      output: '',
    }));
    const failed = {
      ...passed,
      name: 'bad.ts',
      isGood: false,
      counts: { passed: 1, failed: 4 },
      output: '    not ok 1 - x\n',
    };
    const dead = { ...passed, name: 'dead.ts', isGood: false, counts: { passed: 0, failed: 1 }, output: '' };
    const slow = { ...dead, name: 'slow.ts', isTimedOut: true, output: '    ok 1 - fine # time=3ms\n' };
    const lines = summaryReport([...results, failed, dead, slow]).split('\n');
    t.equal(lines.filter((line) => line.startsWith('# slow: ')).length, 10);
    t.equal(lines[0], '# slow:   11.0 s  11.ts');
    t.equal(lines.filter((line) => line.startsWith('# costly: ')).length, 10);
    t.equal(lines[10], '# costly: 12.0 s of CPU  0.ts');
    t.strictSame(lines.slice(-6), [
      '# failed: bad.ts › x',
      '# failed: dead.ts',
      '# failed: slow.ts › took too long, and was ended after “fine”',
      '1..15',
      '# { total: 31, pass: 25, fail: 6 }',
      '',
    ]);
  },
);
