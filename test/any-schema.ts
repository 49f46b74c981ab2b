import fc from 'fast-check';

/** Any JSON in place of a JSON schema: mostly schemas with odd parts. */
export const { schema: anySchema } = fc.letrec<{ schema: unknown; json: unknown }>((tie) => ({
  json: fc.constantFrom<unknown>('any', 'object', [], {}, null, ['x'], [1], { a: 1 }, -1, 2.5, true, false, '\ud800'),
  schema: fc.oneof(
    { maxDepth: 3 },
    { weight: 1, arbitrary: tie('json') },
    {
      weight: 6,
      arbitrary: fc.record(
        {
          type: fc.oneof(
            fc.constantFrom('object', 'array', 'string', 'integer', 'any', ['string', 'null'], ['file'], 7),
            tie('json'),
          ),
          properties: fc.oneof(
            {
              weight: 5,
              arbitrary: fc.dictionary(
                fc.oneof(fc.constantFrom('a', 'b', '__proto__', 'required'), fc.string()),
                tie('schema'),
                { maxKeys: 4 },
              ),
            },
            { weight: 1, arbitrary: tie('json') },
          ),
          required: fc.oneof(fc.array(fc.constantFrom('a', 'b', 'c')), tie('json')),
          items: tie('schema'),
          anyOf: fc.oneof(fc.array(tie('schema'), { maxLength: 3 }), tie('json')),
          oneOf: fc.array(tie('schema'), { maxLength: 3 }),
          allOf: fc.oneof(fc.array(tie('schema'), { maxLength: 3 }), tie('json')),
          enum: fc.oneof(fc.array(fc.constantFrom('a', '', 1, null)), tie('json')),
          const: tie('json'),
          $ref: fc.oneof(fc.constantFrom('#', '#/$defs/a', '#/properties/a', '#/%', 'http://x'), tie('json')),
          $defs: fc.record({ a: tie('schema') }),
          additionalProperties: tie('schema'),
          not: tie('schema'),
          minimum: tie('json'),
          pattern: tie('json'),
          description: tie('json'),
        },
        { requiredKeys: [] },
      ),
    },
  ),
}));
