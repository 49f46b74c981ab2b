import t from 'tap';
import { messageOf } from '../../src/lib/index.ts';

t.test('the text of an error is its message without its name', async (t) => {
  t.equal(messageOf(new RangeError('too long')), 'too long');
  t.equal(messageOf(new Error('')), '');
});

t.test('the text of any other value is its string form', async (t) => {
  t.equal(messageOf('no'), 'no');
  t.equal(messageOf(undefined), 'undefined');
  t.equal(messageOf({ message: 'no error' }), '[object Object]');
});
