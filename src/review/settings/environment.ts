import type { SettingsProblem } from './error.ts';
import { isJsonObject, type JsonObject, valueAt, withValue } from './json.ts';
import { rootSchema, secretOfFileKey, shapeOf, spelled } from './shape.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings of the environment. */
export interface EnvironmentLayer {
  readonly settings: JsonObject;
  /** Files that hold secrets, by the path of the secret. */
  readonly secretFiles: ReadonlyMap<string, string>;
  /** Name of the variable by the path of the setting. */
  readonly names: ReadonlyMap<string, string>;
  readonly warnings: readonly string[];
  readonly problems: readonly SettingsProblem[];
}

const prefix = 'oratorio__';
/** Variables with a separate name. */
const short: ReadonlyMap<string, string> = new Map([
  ['ORATORIO_SERVICE_TOKEN', 'Server__ServiceToken'],
  ['ORATORIO_GITHUB_WEBHOOK_SECRET', 'GitHub__WebhookSecret'],
]);
/** Highest index in the name of a variable. */
const maxIndex = 9_999;

interface Target {
  readonly keys: readonly string[];
  readonly schema: unknown;
}

/**
 * Lays the variables `Oratorio__Section__Key` (in any case; list elements by number: `…__Repositories__0`) upon `below`. An
 * empty variable sets a text to nothing. A list missing from the file begins empty and must get its elements without gaps.
 */
export function environmentLayer(env: Environment, below: JsonObject): EnvironmentLayer {
  let settings = below;
  const secretFiles = new Map<string, string>();
  const names = new Map<string, string>();
  const warnings: string[] = [];
  const problems: SettingsProblem[] = [];

  function set(name: string, rest: string, text: string): void {
    const source = `environment variable ${name}`;
    const words = rest.split('__');
    const secret = words.length === 2 ? secretOfFileKey(words[0] ?? '', words[1] ?? '') : undefined;
    if (secret !== undefined) {
      secretFiles.set(secret, text);
      names.set(`${secret}File`, name);
      return;
    }
    const target = targetOf(words);
    if (target === undefined) {
      warnings.push(`${source}: there is no such setting`);
      return;
    }
    const keyPath = target.keys.join('.');
    const value = converted(text, target.schema);
    if (value === undefined) {
      problems.push({ source, keyPath, expected: expectedOf(target.schema) });
      return;
    }
    names.set(keyPath, name);
    settings = withElement(settings, target.keys, value);
  }

  // In the order of their names: elements of a list come one after the other.
  const given = Object.entries(env).sort(([one], [other]) => one.localeCompare(other, 'en', { numeric: true }));
  for (const [name, text] of given) {
    const alias = short.get(name);
    if (text === undefined) continue;
    if (alias !== undefined) set(name, alias, text);
    else if (name.toLowerCase().startsWith(prefix)) set(name, name.slice(prefix.length), text);
  }
  problems.push(...gaps(settings, names));
  return { settings, secretFiles, names, warnings, problems };
}

/** The setting named by the words of a variable, lists by index. */
function targetOf(words: readonly string[]): Target | undefined {
  let schema: unknown = rootSchema;
  const keys: string[] = [];
  for (const word of words) {
    const shape = shapeOf(schema);
    if (shape.kind === 'section') {
      const key = spelled(shape.entries, word, keys.length === 0);
      if (key === undefined) return undefined;
      keys.push(key);
      schema = shape.entries[key];
    } else if (shape.kind === 'list' && /^\d{1,5}$/.test(word) && Number(word) <= maxIndex) {
      keys.push(String(Number(word)));
      schema = shape.item;
    } else return undefined;
  }
  const { kind } = shapeOf(schema);
  return kind === 'section' || kind === 'list' ? undefined : { keys, schema };
}

function converted(text: string, schema: unknown): unknown {
  const { kind } = shapeOf(schema);
  if (kind === 'other') return text;
  const word = text.trim();
  if (kind === 'boolean')
    return new Map([
      ['true', true],
      ['false', false],
    ]).get(word.toLowerCase());
  return /^-?\d{1,15}$/.test(word) ? Number(word) : undefined;
}

const expectedOf = (schema: unknown): string =>
  shapeOf(schema).kind === 'boolean' ? 'true or false' : 'a whole number';

/** Sets a value like `withValue`, through lists too: replaces or adds the element at an index. */
function withElement(value: JsonObject, keys: readonly string[], set: unknown): JsonObject {
  const at = keys.findIndex((key) => /^\d+$/.test(key));
  if (at < 0) return withValue(value, keys, set);
  const path = keys.slice(0, at);
  const found = valueAt(value, path);
  const list: unknown[] = Array.isArray(found) ? [...found] : [];
  const index = Number(keys[at]);
  const rest = keys.slice(at + 1);
  const element: unknown = list[index];
  list[index] = rest.length === 0 ? set : withValue(isJsonObject(element) ? element : {}, rest, set);
  return withValue(value, path, list);
}

/** Lists in which a variable has left a hole. */
function gaps(settings: JsonObject, names: ReadonlyMap<string, string>): SettingsProblem[] {
  return [...names].flatMap(([path, name]) => {
    const keys = path.split('.');
    const at = keys.findIndex((key) => /^\d+$/.test(key));
    const list = at < 0 ? undefined : valueAt(settings, keys.slice(0, at));
    if (!Array.isArray(list) || list.length === Object.keys(list).length) return [];
    return [{ source: `environment variable ${name}`, keyPath: path, expected: 'in a list without gaps' }];
  });
}
