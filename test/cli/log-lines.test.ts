import { createColors } from 'picocolors';
import t from 'tap';
import { isWanted, logLine, sinceTime } from '../../src/cli/log-lines.ts';

const plain = createColors(false);
const line = JSON.stringify({
  at: '2026-01-01T12:03:04.000Z',
  level: 'warn',
  name: 'provider',
  msg: '401 from api.openai.com',
  threadId: 't_7f',
  reason: 'two words',
});

t.test('a record is one readable line: local time, level, name, message and fields', async (t) => {
  const clock = new Date('2026-01-01T12:03:04.000Z').toTimeString().slice(0, 8);
  const wanted = `${clock}  warn   provider  401 from api.openai.com  threadId=t_7f  reason="two words"`;
  t.equal(logLine(line, plain), wanted);
  t.equal(logLine('no record', plain), 'no record', 'other output is printed as it is');
});

t.test('lines are chosen by level, time and pattern', async (t) => {
  t.ok(isWanted(line, {}));
  t.ok(isWanted('no record', {}));
  t.notOk(isWanted('', {}));
  for (const [level, isShown] of [
    ['error', false],
    ['warn', true],
    ['info', true],
    ['debug', true],
  ] as const)
    t.equal(isWanted(line, { level }), isShown, level);
  t.notOk(isWanted('no record', { level: 'debug' }), 'without a level it is of none');
  t.ok(isWanted(line, { since: Date.parse('2026-01-01T12:03:04.000Z') }));
  t.notOk(isWanted(line, { since: Date.parse('2026-01-01T12:03:05.000Z') }));
  t.ok(isWanted(line, { grep: /OPENAI/i }));
  t.notOk(isWanted(line, { grep: /anthropic/ }));
});

t.test('a time is a span before now, or a point', async (t) => {
  const now = 10_000_000;
  t.equal(sinceTime('90s', now), now - 90_000);
  t.equal(sinceTime('10m', now), now - 600_000);
  t.equal(sinceTime('2026-01-01T00:00:00Z', now), Date.UTC(2026, 0, 1));
  t.equal(sinceTime('soon', now), undefined);
});
