import { isJsonObject } from './parse.ts';

/** `${NAME}`, and `$${` for a literal `${`. */
const reference = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

type Path = readonly (string | number)[];

/** Calls `replace` for every string inside `value` and gives back a copy with the answers in their places. Keys stay. */
function mapStrings(value: unknown, replace: (text: string, path: Path) => string, path: Path = []): unknown {
  if (typeof value === 'string') return replace(value, path);
  if (Array.isArray(value)) return value.map((entry, index) => mapStrings(entry, replace, [...path, index]));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, mapStrings(entry, replace, [...path, key])]),
  );
}

/**
 * Puts the values of environment variables in place of `${NAME}`; the result is not expanded again.
 *
 * @param onMissing returns the text for a variable that is not set
 */
export function expand(
  value: unknown,
  env: Readonly<Record<string, string | undefined>>,
  onMissing: (name: string, path: Path) => string,
): unknown {
  return mapStrings(value, (text, path) =>
    text.replace(reference, (_, name: string | undefined) =>
      name === undefined ? '${' : ((Object.hasOwn(env, name) ? env[name] : undefined) ?? onMissing(name, path)),
    ),
  );
}

/** Names of the variables that `value` refers to, each once. */
export function variablesIn(value: unknown): string[] {
  const names = new Set<string>();
  mapStrings(value, (text) => {
    for (const [, name] of text.matchAll(reference)) if (name !== undefined) names.add(name);
    return text;
  });
  return [...names];
}

/** The first text inside `value` that `isMatch` accepts. */
export function findText(value: unknown, isMatch: (text: string) => boolean): string | undefined {
  let found: string | undefined;
  mapStrings(value, (text) => {
    if (found === undefined && isMatch(text)) found = text;
    return text;
  });
  return found;
}
