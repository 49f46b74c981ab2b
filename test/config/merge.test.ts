import fc from 'fast-check';
import t from 'tap';
import { mergeDeep, resolveConfig } from '../../src/config/index.ts';
import { firstProblem, isJsonObject, type JsonObject } from '../../src/config/parse.ts';

const json = fc.letrec((tie) => ({
  object: fc.dictionary(
    fc.oneof(fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor'), fc.string()),
    tie('value'),
    { maxKeys: 5 },
  ),
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(fc.integer()),
    tie('object'),
  ),
}));
/** Through JSON, as files are: `__proto__` is then a key like any other. */
const object = json.object.map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);

/** Every path through objects to a value that is not an object. */
function leaves(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (!isJsonObject(value) || Object.keys(value).length === 0) return [path];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
}

const at = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (inside, key) => (isJsonObject(inside) && Object.hasOwn(inside, key) ? inside[key] : undefined),
    value,
  );

t.test('merging keeps every value of the upper layer', async () => {
  fc.assert(
    fc.property(object, object, (under, over) => {
      const merged = mergeDeep(under, over);
      return leaves(over).every((path) => {
        const expected = at(over, path);
        const found = at(merged, path);
        return isJsonObject(expected) ? isJsonObject(found) : JSON.stringify(found) === JSON.stringify(expected);
      });
    }),
  );
});

t.test('merging drops a key of the lower layer only where the upper layer has another value', async () => {
  fc.assert(
    fc.property(object, object, (under, over) => {
      const merged = mergeDeep(under, over);
      return leaves(under).every((path) => {
        const isCovered = path.some((_, index) => {
          const above = at(over, path.slice(0, index + 1));
          return above !== undefined && (index === path.length - 1 || !isJsonObject(above));
        });
        const expected = at(under, path);
        const found = at(merged, path);
        return isCovered || isJsonObject(expected)
          ? isCovered || isJsonObject(found)
          : JSON.stringify(found) === JSON.stringify(expected);
      });
    }),
  );
});

t.test('merging with an empty layer changes nothing, and no prototype is modified', async () => {
  fc.assert(
    fc.property(object, object, (one, other) => {
      const before = JSON.stringify([one, other]);
      const same =
        JSON.stringify(mergeDeep(one, {})) === JSON.stringify(one) &&
        JSON.stringify(mergeDeep({}, one)) === JSON.stringify(one);
      mergeDeep(one, other);
      return (
        same &&
        JSON.stringify([one, other]) === before &&
        Object.getPrototypeOf(mergeDeep(one, other)) === Object.prototype
      );
    }),
  );
});

/** Settings with every key in another case. */
function recased(value: unknown, flips: readonly boolean[]): unknown {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      Array.from(key, (letter, index) =>
        flips[index % flips.length] ? letter.toUpperCase() : letter.toLowerCase(),
      ).join(''),
      recased(inner, flips),
    ]),
  );
}

t.test('keys are equal in any case', async (t) => {
  const settings = {
    ApiKey: 'k',
    Model: 'm',
    Api: { Port: 1234, AutoApprove: false, EnabledTools: ['Exec'] },
    DashBoard: { Host: '0.0.0.0' },
    AppServer: { WebSocket: { Port: 99 } },
    Supervision: { MaxRestarts: 7, PassEnvironment: ['Foo'] },
  };
  const { config } = resolveConfig([{ file: 'f', settings }], {});
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), (flips) => {
      const other = resolveConfig([{ file: 'f', settings: recased(settings, flips) as JsonObject }], {});
      t.same(other.warnings, []);
      return JSON.stringify(other.config) === JSON.stringify(config);
    }),
    { numRuns: 50 },
  );
});

t.test('any file results in a configuration or a ConfigError', async () => {
  const settings = fc.record(
    { Api: json.value, hub: json.value, Supervision: json.object, model: json.value, other: json.value },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(settings, object, (some, more) => {
      try {
        resolveConfig(
          [
            { file: 'a', settings: some },
            { file: 'b', settings: more },
          ],
          {},
        );
        return true;
      } catch (error) {
        return (error as Error).name === 'ConfigError';
      }
    }),
  );
});

t.test('the position of the first problem is found in every broken text', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string()), fc.nat(), fc.string({ maxLength: 2 }), (text, where, put) => {
      const cut = where % (text.length + 1);
      const broken = text.slice(0, cut) + put + text.slice(cut + 1);
      try {
        JSON.parse(broken);
        return true;
      } catch {
        const { offset, line, column } = firstProblem(broken);
        return offset <= broken.length && line >= 1 && column >= 1;
      }
    }),
    { numRuns: 1_000 },
  );
});
