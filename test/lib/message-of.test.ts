import t from 'tap';
import { messageOf } from '../../src/lib/index.ts';

t.test('an error gives its message without its name', async (t) => {
  t.equal(messageOf(new RangeError('too long')), 'too long');
  t.equal(messageOf(new Error('')), '');
});

t.test('any other value gives its text', async (t) => {
  t.equal(messageOf('no'), 'no');
  t.equal(messageOf(undefined), 'undefined');
  t.equal(messageOf({ message: 'no error' }), '[object Object]');
});
