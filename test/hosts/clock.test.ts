import t from 'tap';
import { clockOffset, inLocalTime } from '../../src/hosts/clock.ts';

const now = Date.parse('2026-01-01T12:00:00.000Z');

t.test('a small difference, and a missing or an invalid time, count as equal clocks', async (t) => {
  for (const remote of ['2026-01-01T11:59:57.000Z', undefined, 'yesterday']) t.equal(clockOffset(remote, now), 0);
  t.equal(clockOffset('2026-01-01T11:00:00.000Z', now), 3_600_000);
  t.equal(clockOffset('2026-01-01T13:00:00.000Z', now), -3_600_000);
});

t.test('times of a record are shifted, other texts are not', async (t) => {
  const at = '2026-01-01T11:00:00.000Z';
  const record = {
    ...{ since: at, until: null, nextAttemptAt: at, displayName: at, lastError: `failed at ${at}`, pid: 7 },
    exits: [{ at, lastLine: at }],
    atNoon: at,
    expiresAt: 'soon',
  };
  const local = '2026-01-01T12:00:00.000Z';
  t.same(inLocalTime(record, 3_600_000), {
    ...{ ...record, since: local, nextAttemptAt: local },
    exits: [{ at: local, lastLine: at }],
  });
  t.equal(inLocalTime(record, 0), record);
  t.same(inLocalTime({ startedAt: '9999-99-99T00:00:00Z' }, 1e18), { startedAt: '9999-99-99T00:00:00Z' });
});
