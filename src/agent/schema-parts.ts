/** Parts of JSON schemas: combinations in one schema, and the targets of references. */
export type Schema = Readonly<Record<string, unknown>>;

/** Joins schemas that all hold, as far as one schema can express it. The first schema with a keyword decides it. */
export function joined(schemas: readonly Schema[]): Schema {
  const properties = schemas.flatMap(({ properties: own }) => (own === undefined ? [] : [own as Schema]));
  const required = new Set(schemas.flatMap(names));
  return {
    ...firstOfEach(schemas),
    ...(properties.length > 0 && { properties: firstOfEach(properties) }),
    ...(required.size > 0 && { required: [...required] }),
  };
}

/** Members of all objects: of equal names, the first. */
const firstOfEach = (objects: readonly Schema[]): Schema =>
  Object.fromEntries(objects.toReversed().flatMap((each) => Object.entries(each)));

/** Joins alternative objects: all properties; a property is required only if every object requires it. */
export function eitherOf(objects: readonly Schema[]): Schema {
  const schemas = new Map<string, Map<string, Schema>>();
  for (const { properties } of objects) {
    for (const [name, schema] of Object.entries((properties ?? {}) as Readonly<Record<string, Schema>>)) {
      const different = schemas.get(name) ?? new Map<string, Schema>();
      schemas.set(name, different.set(JSON.stringify(schema), schema));
    }
  }
  const entries = [...schemas].map(([name, different]) => {
    const [only] = different.values();
    return [name, different.size === 1 ? only : { anyOf: [...different.values()] }] as const;
  });
  const [first = [], ...others] = objects.map(names);
  const sets = others.map((each) => new Set(each));
  const required = first.filter((name) => sets.every((each) => each.has(name)));
  return { properties: Object.fromEntries(entries), required };
}

const names = ({ required }: Schema): readonly string[] => (Array.isArray(required) ? required : []);

/** Target of a JSON pointer in the same document (RFC 6901). */
export function pointedAt(root: unknown, reference: string): unknown {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined;
  const steps = reference.split('/').slice(1);
  return steps.reduce<unknown>((inside, step) => {
    const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
    return typeof inside === 'object' && inside !== null && Object.hasOwn(inside, key)
      ? (inside as Schema)[key]
      : undefined;
  }, root);
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
