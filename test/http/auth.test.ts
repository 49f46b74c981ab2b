import t from 'tap';
import { bearer, bearerToken, HttpError, sameSecret } from '../../src/http/index.ts';

const request = (authorization: string | undefined) => ({
  header: (name: string) => (name === 'authorization' ? authorization : undefined),
  query: new URLSearchParams('token=secret'),
  path: '/',
  method: 'GET' as const,
});

t.test('the token is parsed from an Authorization header', async (t) => {
  t.equal(bearerToken('Bearer abc'), 'abc');
  t.equal(bearerToken('bEaReR  abc '), 'abc');
  for (const header of [undefined, '', 'Bearer', 'Bearer ', 'Basic abc', 'Bearerabc', 'abc']) {
    t.equal(bearerToken(header), undefined, String(header));
  }
});

t.test('only the exact token is accepted', async (t) => {
  const auth = bearer('secret');
  t.equal(auth(request('Bearer secret')), undefined);
  for (const header of [
    'Bearer secre',
    'Bearer secrets',
    'Bearer Secret',
    'Bearer sécret',
    'Basic secret',
    undefined,
  ]) {
    t.throws(() => auth(request(header)), { message: 'The bearer token is missing or wrong.' }, String(header));
  }
});

t.test('a token getter is called for each request, and an empty token accepts no request', async (t) => {
  let token = 'one';
  const auth = bearer(() => token);
  auth(request('Bearer one'));
  token = 'two';
  t.throws(() => auth(request('Bearer one')), HttpError);
  auth(request('Bearer two'));
  token = '';
  t.throws(() => auth(request('Bearer x')), HttpError);
  t.throws(() => auth(request('Bearer ')), HttpError);
});

t.test('secrets of any length can be compared', async (t) => {
  t.ok(sameSecret('a', 'a'));
  t.notOk(sameSecret('a', 'ab'));
  t.notOk(sameSecret('', 'a'));
});
