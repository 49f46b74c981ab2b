import type * as v from 'valibot';
import { isJsonObject, type JsonObject } from './parse.ts';
import { Config } from './schema.ts';
import { reservedNames } from './settings-table.ts';

/** One file's settings, keys spelt as the schema does. */
export interface Layer {
  readonly file: string;
  readonly settings: JsonObject;
  /** Set for the file of a workspace, which may come from a repository. */
  readonly workspace?: WorkspaceOrigin | undefined;
}

/** `restricted`: sensitive settings of the workspace's file are ignored (design §9). */
export type Trust = 'trusted' | 'restricted';

export interface WorkspaceOrigin {
  /** Root of the workspace. */
  readonly path: string;
  readonly trust: Trust;
  /** Why the user's decisions cannot be read. */
  readonly warning?: string | undefined;
}

/** Keys of a file that are not settings: editors read them. */
const ignored = new Set(['$schema']);

const reserved = new Map(reservedNames.map((name) => [name.toLowerCase(), name]));

/** The schemas of an object's keys, or undefined when the schema is of no object. Looks through `optional` and `pipe`. */
export function entriesOf(schema: unknown): Readonly<Record<string, unknown>> | undefined {
  const node = schema as { entries?: Record<string, unknown>; wrapped?: unknown; pipe?: readonly unknown[] };
  if (node.entries) return node.entries;
  if (node.wrapped) return entriesOf(node.wrapped);
  return undefined;
}

/**
 * Gives every known key the spelling of the schema, ignoring its case in the file, and warns about unknown keys. Of two
 * keys that differ in case only, the later one holds.
 */
export function canonical(layer: Layer, warn: (warning: string) => void): Layer {
  return { ...layer, settings: canonicalObject(layer.settings, entriesOf(Config) ?? {}, '') };

  function canonicalObject(object: JsonObject, entries: Readonly<Record<string, unknown>>, path: string): JsonObject {
    const spelling = new Map(Object.keys(entries).map((key) => [key.toLowerCase(), key]));
    const seen = new Set<string>();
    const renamed: [string, unknown][] = [];
    for (const [given, value] of Object.entries(object)) {
      if (path === '' && ignored.has(given)) continue;
      const key = spelling.get(given.toLowerCase());
      if (key === undefined) {
        warn(`${layer.file}: unknown key ${path}${given}`);
        renamed.push([path === '' ? (reserved.get(given.toLowerCase()) ?? given) : given, value]);
        continue;
      }
      if (seen.has(key)) warn(`${layer.file}: ${path}${key} is there twice; the last one holds`);
      seen.add(key);
      const inner = entriesOf(entries[key]);
      renamed.push([key, inner && isJsonObject(value) ? canonicalObject(value, inner, `${path}${key}.`) : value]);
    }
    return Object.fromEntries(renamed);
  }
}

/** Whether a setting is a table of entries that the user names. Looks through `optional` and `pipe`. */
function isTable(schema: unknown): boolean {
  const node = schema as { type?: unknown; wrapped?: unknown };
  return node.wrapped === undefined ? node.type === 'record' : isTable(node.wrapped);
}

/** Finds a list in place of a section or a table, because valibot accepts a list as an object with its indexes as keys. */
export function listInPlaceOfSection(settings: JsonObject): readonly string[] | undefined {
  return search(settings, entriesOf(Config) ?? {}, []);

  function search(
    object: JsonObject,
    entries: Readonly<Record<string, unknown>>,
    path: readonly string[],
  ): readonly string[] | undefined {
    for (const [key, value] of Object.entries(object)) {
      const schema = Object.hasOwn(entries, key) ? entries[key] : undefined;
      const inner = schema === undefined ? undefined : entriesOf(schema);
      if (Array.isArray(value) && (inner !== undefined || (schema !== undefined && isTable(schema))))
        return [...path, key];
      if (!inner) continue;
      const found = isJsonObject(value) ? search(value, inner, [...path, key]) : undefined;
      if (found) return found;
    }
    return undefined;
  }
}

/** `over` laid upon `under`: objects are merged key by key, everything else, lists too, is replaced. Changes neither. */
export function mergeDeep(under: JsonObject, over: JsonObject): JsonObject {
  const merged = new Map(Object.entries(under));
  for (const [key, value] of Object.entries(over)) {
    const below = merged.get(key);
    merged.set(key, isJsonObject(below) && isJsonObject(value) ? mergeDeep(below, value) : value);
  }
  return Object.fromEntries(merged);
}

/** The file that a merged value comes from: the last layer that has something at `path`, else the last layer. */
export function fileOf(layers: readonly Layer[], path: readonly (string | number)[]): string {
  const owner = layers.findLast(({ settings }) => has(settings, path)) ?? layers.at(-1);
  return owner?.file ?? 'the configuration';
}

/** Lists are replaced as a whole, so a path that leads into one belongs to the layer with the list. */
function has(value: unknown, path: readonly (string | number)[]): boolean {
  const [key, ...rest] = path;
  if (key === undefined || Array.isArray(value)) return true;
  return isJsonObject(value) && Object.hasOwn(value, key) && has(value[key], rest);
}

/** Path of the first problem that valibot found, as keys and indices. */
export function pathOf(issue: v.BaseIssue<unknown>): (string | number)[] {
  return (issue.path ?? []).map((item) => item.key as string | number);
}
