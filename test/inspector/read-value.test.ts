import t from 'tap';
import { createFactReader } from '../../src/inspector/facts.ts';
import { limits } from '../../src/inspector/limits.ts';
import { maskByName } from '../../src/inspector/read-value.ts';

const { project, whole } = createFactReader(maskByName, () => 0);
const fail = (): never => {
  throw new Error('no');
};
const factsOf = (context: unknown) => project(context, 'machine');

t.test('plain values keep their type, other values become text', async (t) => {
  const at = new Date(0);
  class Cart {
    items = [1, 2];
  }
  const facts = factsOf({
    count: 3,
    isOpen: true,
    none: null,
    missing: undefined,
    name: 'Ada',
    at,
    big: 10n,
    symbol: Symbol('s'),
    run: function start() {},
    cart: new Cart(),
    nested: { list: [{ a: 'b' }, 1], date: new Date(0) },
    map: new Map([['a', 1]]),
    set: new Set([1, 2]),
    bytes: new Uint8Array(8),
    fault: new RangeError('too far'),
    pattern: /a+/g,
    promise: Promise.resolve(),
  });
  t.strictSame(facts, {
    count: 3,
    isOpen: true,
    none: null,
    missing: 'undefined',
    name: 'Ada',
    at,
    big: '10n',
    symbol: 'Symbol(s)',
    run: 'ƒ start',
    cart: 'Cart {items: [1, 2]}',
    nested: '{list: [{a: "b"}, 1], date: 1970-01-01T00:00:00.000Z}',
    map: 'Map(1) {"a" → 1}',
    set: 'Set(2) {1, 2}',
    bytes: 'Uint8Array(8 bytes)',
    fault: 'RangeError: too far',
    pattern: '/a+/g',
    promise: 'Promise',
  });
});

t.test('a context that is not an object is one fact', async (t) => {
  t.strictSame(factsOf(5), { context: '5' });
  t.strictSame(factsOf('text'), { context: '"text"' });
  t.strictSame(factsOf(null), { context: 'null' });
});

t.test('a circular reference is shown as circular', async (t) => {
  const circular: Record<string, unknown> = { name: 'a' };
  circular['self'] = circular;
  t.strictSame(factsOf({ circular }), { circular: '{name: "a", self: (circular)}' });
});

t.test('getters are not run, and throwing proxies are shown as unreadable', async (t) => {
  let runs = 0;
  const hostile = {
    get secret() {
      runs += 1;
      throw new Error('no');
    },
  };
  const proxy = new Proxy({}, { ownKeys: () => fail() });
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  t.strictSame(factsOf({ hostile, proxy, gone: revoked.proxy }), {
    hostile: '{secret: (getter)}',
    proxy: 'Object {… not listed}',
    gone: '(unreadable)',
  });
  t.strictSame(factsOf(hostile), { secret: '(getter)' });
  t.equal(runs, 0);
  t.strictSame(factsOf(revoked.proxy), { context: '(not listed)' });
});

t.test('texts under names of secrets are masked at any depth, including in the whole value', async (t) => {
  const context = { password: 'hunter2', user: { apiKey: 'sk-1', tokens: 3, name: 'Ada' } };
  t.strictSame(factsOf(context), {
    password: '(masked)',
    user: '{apiKey: "(masked)", tokens: 3, name: "Ada"}',
  });
  t.equal(whole(context, 'password'), '"(masked)"');
  t.notMatch(whole(context, 'user'), /sk-1/);
});

t.test('texts in lists and objects under names of secrets are masked, too', async (t) => {
  const context = {
    passwords: ['hunter2'],
    credentials: { user: { value: 'hunter2' } },
    cookies: new Map([['sid', 'hunter2']]),
    apiKeys: new Set(['hunter2']),
    tokens: { input: 3 },
  };
  const facts = factsOf(context);
  t.notMatch(JSON.stringify(facts), /hunter2/);
  t.equal(facts['tokens'], '{input: 3}');
  for (const name of Object.keys(context)) t.notMatch(whole(context, name), /hunter2/, name);
});

t.test('code of the classes of a program is not run', async (t) => {
  let runs = 0;
  const run = (): never => {
    runs += 1;
    throw new Error('no');
  };
  class Own extends Map<string, number> {
    override get size(): number {
      return run();
    }
    override entries = run;
  }
  class Names extends Set<string> {
    override get size(): number {
      return run();
    }
    override values = run;
  }
  class Moment extends Date {
    override getTime = run;
    override toISOString = run;
  }
  const fault = Object.assign(new Error('x'), { message: { toString: run } });
  const own = new Own();
  own.set('a', 1);
  const list = [new Moment(0), fault];
  t.match(factsOf({ own, names: new Names(['a']), at: new Moment(0), list }), {
    own: 'Map(1) {"a" → 1}',
    names: 'Set(1) {"a"}',
    at: new Date(0),
    list: '[1970-01-01T00:00:00.000Z, Error: ]',
  });
  t.equal(runs, 0);
});

t.test('the mask of a program receives the path, and a value for which it throws is masked', async (t) => {
  const { project, whole } = createFactReader(
    ({ path, value }) => {
      if (path === 'bad') throw new Error('no');
      return path === 'user.name' || path === 'list.1' ? '…' : value;
    },
    () => 0,
  );
  const context = { user: { name: 'Ada', age: 36 }, list: ['a', 'b'], bad: 'secret' };
  t.strictSame(project(context, 'machine'), { user: '{name: "…", age: 36}', list: '["a", "…"]', bad: '(masked)' });
  t.equal(whole(context, 'bad'), '(masked)');
});

t.test('huge contexts stay within the limits of size and time', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`field${index}`, 'x'.repeat(5_000)]));
  let deep: unknown = 0;
  for (let depth = 0; depth < 100_000; depth += 1) deep = { deep };
  const contexts = [
    many,
    { list: Array.from({ length: 1_000_000 }, (_, index) => ({ index })) },
    { text: 'x'.repeat(50_000_000) },
    { control: Array.from({ length: 60 }, () => '\u0000'.repeat(1_000)) },
    { deep },
    { set: new Set(Array.from({ length: 100_000 }, (_, index) => index)) },
    { number: 2n ** 1_000_000n },
  ];
  for (const context of contexts) {
    const { project } = createFactReader(maskByName);
    const times = Array.from({ length: 21 }, () => {
      const began = performance.now();
      project(context, 'machine');
      return performance.now() - began;
    }).sort((a, b) => a - b);
    t.ok((times[10] ?? 9) <= 1, `${Object.keys(context)[0]}: ${times[10]?.toFixed(3)} ms`);
    const bytes = Buffer.byteLength(JSON.stringify(factsOf(context)));
    t.ok(bytes <= 64 * 1024, `${Object.keys(context)[0]}: ${bytes} bytes`);
  }
  t.equal(factsOf(many)['…'], `${200 - Object.keys(factsOf(many)).length + 1} more`);
});

t.test('an object with too many names is listed once, and never again at its path', async (t) => {
  const { project } = createFactReader(maskByName);
  const next = () => ({ byId: Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, index])) });
  project(next(), 'shop');
  t.strictSame(project(next(), 'shop'), { byId: 'Object {… not listed}' });
  t.match(project({ byId: { a: 1 } }, 'other'), { byId: '{a: 1}' });
});

t.test('a slow mask of the program ends the read', async (t) => {
  let now = 0;
  const { project } = createFactReader(
    ({ value }) => {
      now += 1;
      return value;
    },
    () => now,
  );
  const context = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`field${index}`, [index]]));
  t.match(project(context, 'machine'), { '…': /^4\d more$/ });
});

t.test('the whole value of a fact has a higher limit', async (t) => {
  const list = Array.from({ length: 2_000 }, (_, index) => index);
  t.match(factsOf({ list })['list'], /more\]$|…$/);
  t.match(whole({ list }, 'list'), /, 1999\]$/);
  t.ok((whole({ text: 'x'.repeat(10_000_000) }, 'text')?.length ?? 0) <= limits.wholeChars);
  let reads = 0;
  const interrupted = createFactReader(maskByName, () => (reads++ < 600 ? 0 : 200));
  t.match(
    interrupted.whole({ list }, 'list'),
    /, 1999\]$/,
    'regression: complete, although the machine paused the read',
  );
  t.ok(reads > 600);
  t.equal(whole({ list }, 'other'), null);
  t.equal(whole(undefined, 'context'), null, 'the actor has ended');
});
