import t from 'tap';
import { Closers } from '../../../src/review/backend/closers.ts';
import { quiet } from '../store/databases.ts';

t.test('a part that never closes delays the others by its limit only', async (t) => {
  const closers = new Closers(quiet);
  const closed: string[] = [];
  closers.add('last', () => void closed.push('last'));
  closers.add('hung', () => new Promise(() => {}), 50);
  closers.add('failing', () => Promise.reject(new Error('no')));
  closers.add('first', async () => void closed.push('first'));
  await Promise.all([closers.close(), closers.close()]);
  t.strictSame(closed, ['first', 'last']);
});
