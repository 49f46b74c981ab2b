import fc from 'fast-check';
import t from 'tap';
import { HttpError, type Route, text } from '../../src/http/index.ts';
import { Router } from '../../src/http/router.ts';
import { anyWebPath } from '../any-character.ts';

const route = (path: string, method: Route['method'] = 'GET') => ({ method, path, handler: () => text(200, path) });
const found = (router: Router, path: string) => {
  const match = router.find(path);
  return match && { path: match.resource.path, params: { ...match.params } };
};

t.test('the most exact pattern matches in any order of declaration', async (t) => {
  const paths = ['/a/*', '/a/:x', '/a/b', '/a/:x/c', '/a/b/:y', '/*'];
  const expected = {
    '/a/b': '/a/b',
    '/a/z': '/a/:x',
    '/a/b/c': '/a/b/:y',
    '/a/z/c': '/a/:x/c',
    '/a/z/d/e': '/a/*',
    '/a/': '/a/*',
    '/q': '/*',
  };
  fc.assert(
    fc.property(fc.shuffledSubarray(paths, { minLength: paths.length }), (order) => {
      const router = new Router(
        order.map((path) => route(path)),
        [],
      );
      return Object.entries(expected).every(([path, pattern]) => found(router, path)?.path === pattern);
    }),
  );
  t.pass('held');
});

t.test('a faulty table of routes fails the start', async (t) => {
  t.throws(() => new Router([route('/a'), route('/a')], []), /two routes/);
  t.throws(() => new Router([route('a')], []), /begins with a slash/);
});

t.test('any encoded value of a parameter is decoded unchanged', async (t) => {
  const router = new Router([route('/v/:value'), route('/w/*')], []);
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (value) => {
      const encoded = encodeURIComponent(value);
      return (
        found(router, `/v/${encoded}`)?.params['value'] === value &&
        found(router, `/w/${encoded}`)?.params['*'] === value
      );
    }),
  );
  t.pass('held');
});

t.test('a random path is matched, refused with 400, or unknown', async (t) => {
  const router = new Router([route('/v/:__proto__'), route('/w/*')], []);
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        anyWebPath,
        fc.string().map((rest) => `/v/${rest}`),
      ),
      (path) => {
        try {
          const match = found(router, path);
          return match === undefined || path.startsWith('/v/') || path.startsWith('/w/');
        } catch (error) {
          return error instanceof HttpError && error.status === 400;
        }
      },
    ),
    { numRuns: 2_000 },
  );
  t.equal(Object.hasOwn(Object.prototype, 'value'), false);
  t.equal(({} as Record<string, unknown>)['x'], undefined);
});

t.test(
  'a route that ignores case matches its words in any case, keeps values, and yields to exact spellings',
  async (t) => {
    const anyCase = (path: string) => ({ ...route(path), ignoreCase: true });
    const router = new Router(
      [
        anyCase('/Dash/api/:key/events'),
        anyCase('/dash/one'),
        route('/DASH/one'),
        anyCase('/Dash/*'),
        route('/exact/:x'),
      ],
      [],
    );
    t.same(found(router, '/dAsH/API/KeY/Events'), { path: '/Dash/api/:key/events', params: { key: 'KeY' } });
    t.equal(found(router, '/Dash/One')?.path, '/dash/one');
    t.equal(found(router, '/DASH/one')?.path, '/DASH/one');
    t.same(found(router, '/DASH/Any/Thing'), { path: '/Dash/*', params: { '*': 'Any/Thing' } });
    t.equal(found(router, '/Exact/x'), undefined);
    t.throws(() => new Router([anyCase('/a'), { ...anyCase('/A') }], []), /two routes/);
    t.throws(() => new Router([route('/a'), { ...anyCase('/a'), method: 'POST' }], []), /one case rule/);
  },
);
