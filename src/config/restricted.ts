import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { smaller } from './combine.ts';
import { isJsonObject, type JsonObject } from './parse.ts';
import { Config } from './schema.ts';
import { sensitivePaths, sensitiveSettings, settingsTable, valueAt, withValue } from './settings-table.ts';

/** Settings of a workspace that is not trusted. */
export interface RestrictedLayer {
  /** Settings that hold without trust: those that give no right, and values that only restrict. */
  readonly settings: JsonObject;
  /** Sensitive settings whose written value does not hold. */
  readonly ignored: readonly string[];
  /** `SystemPrompt`: shown to the model marked as untrusted. */
  readonly untrustedPrompt: string;
}

/** Settings that a workspace does not decide without trust. */
const decided: readonly string[] = [
  ...sensitivePaths,
  ...settingsTable.flatMap(({ path, isSensitiveWhen }) => (isSensitiveWhen ? [path] : [])),
];

/** @param user settings of the user, expanded: each value that holds is at least as strict */
export function restrictedLayer(given: JsonObject, user: JsonObject): RestrictedLayer {
  let settings = decided.reduce((left, path) => withValue(left, path, undefined), given);
  for (const { path, restricts } of settingsTable) {
    const workspace = valueAt(given, path);
    if (restricts === undefined || workspace === undefined) continue;
    if (restricts !== smaller && !isValid(path, workspace)) continue;
    const own = valueAt(user, path);
    const value = attempt(own, () =>
      restricts({
        user: own,
        workspace,
        fallback: valueAt(defaultsOf(), path),
        userAt: (other) => valueAt(user, other),
        workspaceAt: (other) => valueAt(given, other),
        // Lists without a common entry: the user's holds.
        refuse(): never {
          throw new NoCommonEntry();
        },
      }),
    );
    if (value !== undefined && !isDeepStrictEqual(value, own)) settings = withNested(settings, path, value);
  }
  const texts = new Set(settingsTable.flatMap(({ path, isText }) => (isText ? [path] : [])));
  const asked = new Set([...sensitiveSettings(given).keys(), ...['Model'].filter((path) => path in given)]);
  const ignored = [...asked].filter(
    (path) =>
      !texts.has(path) && !isDeepStrictEqual(valueAt(settings, path) ?? valueAt(user, path), valueAt(given, path)),
  );
  const { SystemPrompt } = given;
  return { settings, ignored, untrustedPrompt: typeof SystemPrompt === 'string' ? SystemPrompt : '' };
}

/** Lists of user and workspace have no common entry. */
class NoCommonEntry extends Error {}

function attempt(own: unknown, work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    if (error instanceof NoCommonEntry) return own;
    throw error;
  }
}

let knownDefaults: Config | undefined;

function defaultsOf(): Config {
  knownDefaults ??= v.parse(Config, {});
  return knownDefaults;
}

/** An ignored value cannot be wrong, so an invalid one is ignored. */
const isValid = (path: string, value: unknown): boolean => v.is(Config, withNested({}, path, value));

/** A copy with `value` at a dotted path; sections on the way are made. */
function withNested(settings: JsonObject, path: string, value: unknown): JsonObject {
  const [key = '', ...rest] = path.split('.');
  const inside = settings[key];
  const inner = rest.length === 0 ? value : withNested(isJsonObject(inside) ? inside : {}, rest.join('.'), value);
  return { ...settings, [key]: inner };
}
