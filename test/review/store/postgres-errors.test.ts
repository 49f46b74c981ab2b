import t from 'tap';
import { postgresError } from '../../../src/review/store/postgres/errors.ts';

const failed = (code: string | undefined, during: 'connect' | 'statement') =>
  postgresError(Object.assign(new Error('failed'), { code }), during, 'Storage.ConnectionString');

t.test('a server that stops, starts, or has no room for a connection is an outage', (t) => {
  const states = [
    '57P01',
    '57P02',
    '57P03',
    '57P04',
    '57P05',
    '08000',
    '08001',
    '08004',
    '08006',
    '08P01',
    '53200',
    '53300',
  ];
  for (const state of [
    ...states,
    '25P03',
    undefined,
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
  ])
    for (const during of ['connect', 'statement'] as const)
      t.match(
        failed(state, during),
        { code: 'databaseUnavailable', isOutage: true, isRetryable: true },
        state ?? 'no code',
      );
  t.match(failed('25006', 'statement'), { code: 'databaseReadOnly', isOutage: true });
  t.match(failed('53100', 'statement'), { code: 'databaseFull', isOutage: true });
  t.end();
});

t.test('any refusal of a connection is an outage; an unknown failure of a statement is retried and counts', (t) => {
  for (const state of ['28P01', '28000', '3D000', '0A000', '42501', '55000', 'XX000']) {
    t.match(failed(state, 'connect'), { code: 'databaseUnavailable', isOutage: true }, state);
    t.match(failed(state, 'statement'), { code: 'databaseFailed', isOutage: false, isRetryable: true }, state);
  }
  t.end();
});
