import { butIs, type SettingsProblem } from './error.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import { rootSchema, secretOfFileKey, shapeOf, spelled } from './shape.ts';

/** Settings of a source, keys spelt as in the schema. */
export interface Canonical {
  readonly settings: JsonObject;
  /** Files that hold secrets, by the path of the secret. */
  readonly secretFiles: ReadonlyMap<string, string>;
  readonly warnings: readonly string[];
  readonly problems: readonly SettingsProblem[];
}

/** Keys that a file may have although they are not settings: editors read them. */
const ignored: ReadonlySet<string> = new Set(['$schema']);

/**
 * Gives every known key the spelling of the schema; reports unknown keys. Of two equal keys the later
 * one counts.
 */
export function canonical(source: string, given: JsonObject): Canonical {
  const warnings: string[] = [];
  const problems: SettingsProblem[] = [];
  const secretFiles = new Map<string, string>();

  function section(object: JsonObject, entries: Readonly<Record<string, unknown>>, path: string): JsonObject {
    const result: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(object)) {
      const at = path === '' ? name : `${path}.${name}`;
      const key = spelled(entries, name, path === '');
      const secret = key === undefined ? secretOfFileKey(path, name) : undefined;
      if (secret !== undefined) named(secret, at, value);
      else if (key === undefined) {
        if (!ignored.has(name)) warnings.push(`${source}: unknown key ${at}`);
      } else {
        if (Object.hasOwn(result, key)) warnings.push(`${source}: ${at} is there twice; the last one holds`);
        result[key] = converted(value, entries[key], path === '' ? key : `${path}.${key}`);
      }
    }
    return result;
  }

  function named(secret: string, at: string, value: unknown): void {
    if (typeof value === 'string') secretFiles.set(secret, value);
    else problems.push({ source, keyPath: at, expected: butIs('the path of a file', value) });
  }

  function converted(value: unknown, schema: unknown, path: string): unknown {
    const shape = shapeOf(schema);
    if (shape.kind === 'section') {
      if (isJsonObject(value)) return section(value, shape.entries, path);
      problems.push({ source, keyPath: path, expected: butIs('an object', value) });
      return {};
    }
    if (shape.kind === 'list' && Array.isArray(value))
      return value.map((each, index) => {
        const inner = shapeOf(shape.item);
        return inner.kind === 'section' ? converted(each, shape.item, `${path}.${index}`) : each;
      });
    return value;
  }

  const top = shapeOf(rootSchema);
  const settings = top.kind === 'section' ? section(given, top.entries, '') : {};
  return { settings, secretFiles, warnings, problems };
}
