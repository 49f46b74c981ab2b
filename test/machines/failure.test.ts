import t from 'tap';
import { failureOf } from '../../machines/index.ts';

t.test('any thrown value becomes a failure that is not retryable', async (t) => {
  const bug = { code: 'internalError', isRetryable: false };
  t.same(failureOf(new Error('x')), { ...bug, message: 'x' });
  t.same(failureOf(null), { ...bug, message: 'null' });
  t.same(failureOf(undefined), { ...bug, message: 'undefined' });
  t.same(failureOf('text'), { ...bug, message: 'text' });
  t.same(failureOf({ code: 7, message: 'm', isRetryable: 'yes', retryAfterMs: '5' }), { ...bug, message: 'm' });
});

t.test('code, retryability and pause are read from the fields of an error', async (t) => {
  const fields = { code: 'c', message: 'm', isRetryable: true, retryAfterMs: 5 };
  t.same(failureOf({ ...fields, other: 'x' }), fields);
  t.same(failureOf(Object.assign(new Error('m'), { code: 'c' })), { code: 'c', message: 'm', isRetryable: false });
});
