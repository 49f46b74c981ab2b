import type { ConfigView } from '../../../protocol/index.ts';

/** Part of JSON Schema that describes the configuration. Settings with other schemas are read-only. */
export interface Schema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly writeOnly?: boolean;
  readonly readOnly?: boolean;
  readonly 'x-restart'?: boolean | string;
  /** Reason for `readOnly`. */
  readonly 'x-read-only'?: string;
}

export type FieldKind = 'text' | 'secret' | 'choice' | 'number' | 'flag' | 'list' | 'other';

/** One setting of the form. */
export interface Setting {
  /** `Tools.Shell.TimeoutMs`. */
  readonly keyPath: string;
  readonly title: string;
  readonly schema: Schema;
  readonly kind: FieldKind;
}

export interface Section {
  /** `Tools › Shell`. */
  readonly title: string;
  readonly settings: readonly Setting[];
}

/** A change: the new value by key path; null removes the setting from the workspace's file. */
export type Edits = ReadonlyMap<string, unknown>;

/** Sections of a schema in its order; settings outside a section come first. */
export function sectionsOf(schema: Schema): readonly Section[] {
  const found: Section[] = [];
  collect(schema, [], ['General'], found);
  return found;
}

function collect(schema: Schema, keys: readonly string[], titles: readonly string[], found: Section[]): void {
  const properties = Object.entries(schema.properties ?? {});
  const settings = properties
    .filter(([, inner]) => !inner.properties)
    .map(([key, inner]) => settingOf([...keys, key].join('.'), inner));
  if (settings.length > 0) found.push({ title: titles.join(' › '), settings });
  for (const [key, inner] of properties) {
    if (inner.properties)
      collect(inner, [...keys, key], [...titles.slice(keys.length === 0 ? 1 : 0), inner.title ?? key], found);
  }
}

function settingOf(keyPath: string, schema: Schema): Setting {
  return { keyPath, title: schema.title ?? keyPath, schema, kind: kindOf(schema) };
}

/** Kinds by their schema; the first match wins. */
const kinds: readonly (readonly [kind: FieldKind, fits: (schema: Schema) => boolean])[] = [
  ['secret', ({ writeOnly, type }) => writeOnly === true && type === 'string'],
  ['choice', ({ enum: choices }) => choices?.every((choice) => typeof choice === 'string') === true],
  ['flag', ({ type }) => type === 'boolean'],
  ['number', ({ type }) => type === 'integer' || type === 'number'],
  ['list', ({ type, items }) => type === 'array' && items?.type === 'string'],
  ['text', ({ type }) => type === 'string'],
];

export const kindOf = (schema: Schema): FieldKind => kinds.find(([, fits]) => fits(schema))?.[0] ?? 'other';

/** Origin of a value. */
export type Origin = 'workspace' | 'user' | 'default';

export function originOf(config: ConfigView, keyPath: string): Origin {
  if (valueAt(config.workspace, keyPath) !== undefined) return 'workspace';
  return valueAt(config.user, keyPath) === undefined ? 'default' : 'user';
}

export function valueAt(settings: unknown, keyPath: string): unknown {
  return keyPath
    .split('.')
    .reduce<unknown>(
      (inside, key) =>
        typeof inside === 'object' && inside !== null ? (inside as Record<string, unknown>)[key] : undefined,
      settings,
    );
}

/** `file:line` of a set value, or of the section that has it. */
export const placeOf = ({ places = {} }: ConfigView, keyPath: string): string | undefined =>
  places[keyPath] ?? Object.entries(places).find(([path]) => keyPath.startsWith(`${path}.`))?.[1];

/** Reason why a setting cannot be changed in the form; undefined: it can. */
export const reasonOf = ({ readOnly, 'x-read-only': reason }: Schema): string | undefined =>
  readOnly === true ? (reason ?? 'it is read-only') : undefined;

/** Different reasons, in the order of the settings. */
export const reasonsOf = (sections: readonly Section[]): readonly string[] => [
  ...new Set(sections.flatMap(({ settings }) => settings.flatMap(({ schema }) => reasonOf(schema) ?? []))),
];

/** The effective value, before any edit. */
export const presentValue = (config: ConfigView, { keyPath, schema }: Setting): unknown =>
  valueAt(config.effective, keyPath) ?? schema.default;

/** Reason why a value is invalid: the cheap part of the server's checks. Undefined: no problem found. */
export function faultOf({ kind, schema }: Setting, value: unknown): string | undefined {
  if (kind !== 'number' || value === null) return undefined;
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema;
  if (typeof value !== 'number' || Number.isNaN(value)) return 'This must be a number.';
  if (schema.type === 'integer' && !Number.isInteger(value)) return 'This must be a whole number.';
  return value < minimum || value > maximum ? `This must be ${minimum} to ${maximum}.` : undefined;
}

/** Settings whose name, title or description has all the words. */
export function search(sections: readonly Section[], text: string): readonly Section[] {
  const wanted = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (wanted.length === 0) return sections;
  return sections.flatMap(({ title, settings }) => {
    const left = settings.filter((setting) => {
      const all = `${title} ${setting.title} ${setting.keyPath} ${setting.schema.description ?? ''}`.toLowerCase();
      return wanted.every((word) => all.includes(word));
    });
    return left.length > 0 ? [{ title, settings: left }] : [];
  });
}

/** Problems that the server found, by key path in lower case. `rest` belongs to no field. */
export function issuesOf(details: Readonly<Record<string, unknown>>, paths: readonly string[]) {
  const byPath = new Map<string, string>();
  const rest: string[] = [];
  const { issues } = details;
  for (const issue of Array.isArray(issues) ? issues : []) {
    const { path, message } = issue as { readonly path?: unknown; readonly message?: unknown };
    const at = paths.find((each) => String(path).toLowerCase().startsWith(each.toLowerCase()));
    if (at === undefined) rest.push(`${String(path)}: ${String(message)}`);
    else byPath.set(at, String(message));
  }
  return { byPath, rest };
}
