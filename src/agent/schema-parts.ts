/** Parts of JSON schemas: combinations in one schema, and the targets of references. */
export type Schema = Readonly<Record<string, unknown>>;

/** Joins two schemas that both hold, as far as one schema can express it. */
export function joined(one: Schema, other: Schema): Schema {
  const properties = { ...(other['properties'] as Schema | undefined), ...(one['properties'] as Schema | undefined) };
  const required = new Set([...names(one), ...names(other)]);
  return {
    ...other,
    ...one,
    ...((one['properties'] ?? other['properties']) !== undefined && { properties }),
    ...(required.size > 0 && { required: [...required] }),
  };
}

/** Joins alternative objects: all properties; a property is required only if every object requires it. */
export function eitherOf(objects: readonly Schema[]): Schema {
  const schemas = new Map<string, Schema[]>();
  for (const { properties } of objects) {
    for (const [name, schema] of Object.entries((properties ?? {}) as Readonly<Record<string, Schema>>)) {
      schemas.set(name, [...(schemas.get(name) ?? []), schema]);
    }
  }
  const entries = [...schemas].map(([name, all]) => {
    const different = [...new Map(all.map((schema) => [JSON.stringify(schema), schema])).values()];
    return [name, different.length === 1 ? different[0] : { anyOf: different }] as const;
  });
  const required = objects.map(names).reduce((both, each) => both.filter((name) => each.includes(name)));
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
