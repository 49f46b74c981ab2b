import fc from 'fast-check';
import t from 'tap';
import { reviewToolSchema } from '../../src/agent/index.ts';
import { anySchema } from '../any-schema.ts';
import { refusalOfParameters } from '../providers/fakes/strict-schema.ts';

const text = { type: 'string' };
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

t.test('a schema that services accept stays, and nothing is reported', async (t) => {
  const schema = object(
    { x: { ...text, description: 'X.' }, list: { type: 'array', items: { type: ['integer', 'null'], minimum: 0 } } },
    { required: ['x'], additionalProperties: false },
  );
  t.same(reviewToolSchema(schema), { schema, problems: [] });
  t.same(reviewToolSchema({ type: 'object', $schema: 'http://json-schema.org/draft-07/schema#' }), {
    schema: object({}),
    problems: [],
  });
});

t.test('a schema that services refuse is mended, and the field is named', async (t) => {
  const cases: readonly [unknown, object, RegExp | undefined][] = [
    [undefined, object({}), /^inputSchema is missing$/],
    [null, object({}), /^inputSchema is missing$/],
    [
      object({ coin: text, required: ['coin'] }),
      object({ coin: text }),
      /^inputSchema\.properties\.required must be a schema, but is a list$/,
    ],
    [object({ x: { type: 'any' } }), object({ x: {} }), /^inputSchema\.properties\.x\.type must be .*"any"$/],
    [object({ x: { $ref: '#/nowhere' } }), object({ x: {} }), /^inputSchema\.properties\.x\.\$ref must lead/],
    [object({ x: text }, { required: 'x' }), object({ x: text }), /^inputSchema\.required must be a list/],
    [object({ x: text }, { required: ['x', 'y'] }), object({ x: text }, { required: ['x'] }), undefined],
    [object({ 'a b': text, x: text }), object({ x: text }), /has the name "a b", which services refuse$/],
    [object({ x: { type: 'array' } }), object({ x: { type: 'array', items: {} } }), undefined],
    [
      object({ x: { $ref: '#/$defs/a' } }, { $defs: { a: { ...text, format: 'uri' } } }),
      object({ x: { ...text, description: 'Format: uri.' } }),
      undefined,
    ],
    [
      {
        anyOf: [
          object({ a: text, c: text }, { required: ['a', 'c'] }),
          object({ b: text, c: text }, { required: ['c'] }),
        ],
      },
      object({ a: text, c: text, b: text }, { required: ['c'] }),
      undefined,
    ],
    [{ $ref: '#/definitions/in', definitions: { in: object({ a: text }) } }, object({ a: text }), undefined],
    [object({ child: { $ref: '#' }, name: text }), object({ child: { type: 'object' }, name: text }), undefined],
    [
      object({ n: { type: 'integer', enum: [1, 2] } }),
      object({ n: { type: 'integer', description: 'One of 1, 2.' } }),
      undefined,
    ],
  ];
  for (const [given, expected, problem] of cases) {
    const { schema, problems } = reviewToolSchema(given);
    t.same(schema, expected, JSON.stringify(given));
    t.match(problems, problem === undefined ? [] : [problem], JSON.stringify(given));
    t.equal(problems.length, problem === undefined ? 0 : 1);
  }
});

t.test('a tool without an object of arguments is left out with the reason', async (t) => {
  const cases: readonly [unknown, RegExp][] = [
    [text, /^inputSchema\.type must be "object", but is "string"$/],
    [[], /^inputSchema must be an object, but is a list$/],
    [{ anyOf: [text, { type: 'array', items: {} }] }, /^inputSchema\.anyOf must have a branch of type "object"$/],
    [object({ 'a b': text }, { required: ['a b'] }), /^inputSchema\.required has the name "a b"/],
    [object(Object.fromEntries(Array.from({ length: 9_000 }, (_, n) => [`property-${n}`, text]))), /longer than/],
  ];
  for (const [given, problem] of cases) {
    const { schema, problems } = reviewToolSchema(given);
    t.equal(schema, undefined);
    t.match(problems[0], problem);
  }
});

t.test('references that multiply and schemas that are deep stay within bounds', async (t) => {
  const levels = Array.from({ length: 30 }, (_, n) => [
    `l${n}`,
    object(Object.fromEntries(Array.from({ length: 4 }, (_, m) => [`p${m}`, { $ref: `#/$defs/l${n + 1}` }]))),
  ]);
  const bomb = object({ a: { $ref: '#/$defs/l0' } }, { $defs: { ...Object.fromEntries(levels), l30: text } });
  let deep: object = text;
  for (let level = 0; level < 20_000; level += 1) deep = level % 2 ? { allOf: [deep] } : object({ a: deep });
  for (const given of [bomb, object({ a: deep })]) {
    const { schema } = reviewToolSchema(given);
    t.ok(JSON.stringify(schema).length < 131_072);
    t.equal(refusalOfParameters(schema), undefined);
  }
});

t.test('any JSON in place of a schema gives one that services accept, or a reason', async (t) => {
  let refusedBefore = 0;
  let offered = 0;
  fc.assert(
    fc.property(anySchema, (given) => {
      const { schema, problems } = reviewToolSchema(given);
      if (refusalOfParameters(given) !== undefined) refusedBefore += 1;
      if (!schema) return problems[0].startsWith('inputSchema');
      offered += 1;
      const refusal = refusalOfParameters(schema);
      if (refusal !== undefined) throw new Error(refusal);
      return refusalOfParameters(JSON.parse(JSON.stringify(schema))) === undefined;
    }),
    { numRuns: 1_000 },
  );
  t.ok(refusedBefore > 300 && offered > 300, 'positive control: many of them are refused unmended');
});
