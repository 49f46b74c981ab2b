export type JsonObject = { readonly [key: string]: unknown };

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Names the kind of a JSON value. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Reads the value at a path of keys; undefined when it is missing. */
export function valueAt(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((inside, key) => {
    if (Array.isArray(inside)) return inside[Number(key)];
    return isJsonObject(inside) && Object.hasOwn(inside, key) ? inside[key] : undefined;
  }, value);
}

/** Returns a copy with `value` at a path of keys; creates missing objects on the way. */
export function withValue(value: JsonObject, [key = '', ...rest]: readonly string[], set: unknown): JsonObject {
  const inner = Object.hasOwn(value, key) ? value[key] : undefined;
  const next = rest.length === 0 ? set : withValue(isJsonObject(inner) ? inner : {}, rest, set);
  return { ...value, [key]: next };
}
