import t from 'tap';
import { countsOf, isWorthShowing } from '../../scripts/tap-output.mjs';

t.test('the counts are those of the last summary', async (t) => {
  t.strictSame(countsOf('ok 1\n# { total: 3, pass: 3 }\n'), { passed: 3, failed: 0 });
  t.strictSame(countsOf('# { total: 1, pass: 1 }\n# { total: 5, pass: 3, fail: 2 }\n# time=1ms'), {
    passed: 3,
    failed: 2,
  });
  t.throws(() => countsOf('ok 1\nok 2\n'), /no summary/, 'a run that broke off has no counts');
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
  ];
  t.strictSame(lines.filter(isShown), [
    '    not ok 2 - broken',
    '      ---',
    '      diff: x',
    '      ...',
    'not ok 1 - a.test.ts',
    'ok 2 - b.test.ts',
  ]);
});
