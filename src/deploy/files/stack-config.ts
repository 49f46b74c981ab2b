import * as v from 'valibot';
import { isHttpUrl } from '../../lib/index.ts';
import { DeployError } from '../errors.ts';
import { stackFiles } from '../layout.ts';

/** Settings of `oratorio.config.json` that the deployment needs. The backend validates all others. */
const texts = v.optional(v.array(v.string('a text'), 'a list of texts'), []);
const Route = v.object({ Project: v.string('a repository'), WorkspacePath: v.string('an absolute path') }, 'an object');
const Profile = v.object(
  {
    Instance: v.optional(v.string('a host'), 'github.com'),
    Owner: v.string('a name'),
    InstallationId: v.pipe(v.number('a whole number'), v.integer('a whole number'), v.minValue(1, 'a whole number')),
  },
  'an object',
);
const Settings = v.object({
  GitHub: v.optional(
    v.object(
      {
        Endpoint: v.optional(
          v.pipe(v.string('an http or https URL'), v.check(isHttpUrl, 'an http or https URL')),
          'https://api.github.com',
        ),
        AppId: v.optional(
          v.union([v.string(), v.pipe(v.number(), v.integer(), v.minValue(1))], "the App's number or client id"),
        ),
        PrivateKeyPath: v.optional(v.string('a path'), ''),
        WritesEnabled: v.optional(v.boolean('true or false'), false),
        Repositories: texts,
        InstallationProfiles: v.optional(v.array(Profile, 'a list of objects'), []),
      },
      'an object',
    ),
    {},
  ),
  AgentServer: v.optional(
    v.object({ RepositoryWorkspaceRoutes: v.optional(v.array(Route, 'a list of objects'), []) }, 'an object'),
    {},
  ),
  Automation: v.optional(v.object({ AutoReviewRepositories: texts }, 'an object'), {}),
});
export type StackSettings = v.InferOutput<typeof Settings>;

type JsonObject = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Sections by other names that they have had. */
const aliases: ReadonlyMap<string, string> = new Map([['dotcraft', 'agentserver']]);
const folded = (key: string): string => aliases.get(key.toLowerCase()) ?? key.toLowerCase();

/** Text of `oratorio.config.json`, read. Keys are matched in any case; of two spellings the later one holds. @throws DeployError (invalidInput) */
export function settingsOf(text: string): StackSettings {
  const document = parsed(text);
  if (!isObject(document)) throw invalid('', 'a JSON object');
  const root = memberOf(document, 'Oratorio');
  if (root !== undefined && !isObject(root)) throw invalid('Oratorio', 'an object');
  const result = v.safeParse(Settings, spelledAs(Settings, root ?? {}));
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw invalid(v.getDotPath(issue) ?? '', issue.message);
}

/**
 * Keys in the spelling of the text, for callers that change it.
 * @param text valid, see `settingsOf`
 * @param keys in the spelling of the schema, `Oratorio` first
 */
export function spelledIn(text: string, keys: readonly string[]): string[] {
  let inside: unknown = parsed(text);
  return keys.map((key) => {
    const found = isObject(inside) ? (keyOf(inside, key) ?? key) : key;
    inside = isObject(inside) ? inside[found] : undefined;
    return found;
  });
}

const keyOf = (object: JsonObject, key: string): string | undefined =>
  Object.keys(object).findLast((each) => folded(each) === folded(key));
const memberOf = (object: JsonObject, key: string): unknown => {
  const found = keyOf(object, key);
  return found === undefined ? undefined : object[found];
};

/** `given` with those of its keys that a schema knows, spelt as the schema does. */
function spelledAs(schema: unknown, given: unknown): unknown {
  const { wrapped, entries, item } = schema as { wrapped?: unknown; entries?: JsonObject; item?: unknown };
  if (wrapped !== undefined) return spelledAs(wrapped, given);
  if (item !== undefined && Array.isArray(given)) return given.map((each) => spelledAs(item, each));
  if (entries === undefined || !isObject(given)) return given;
  return Object.fromEntries(
    Object.entries(entries).flatMap(([key, inner]) =>
      keyOf(given, key) === undefined ? [] : [[key, spelledAs(inner, memberOf(given, key))]],
    ),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    // The parser's message quotes the text, which may hold a secret: only the place is taken from it.
    const place = /line \d+ column \d+/.exec(error instanceof Error ? error.message : '')?.[0];
    throw new DeployError(
      'invalidInput',
      `${stackFiles.config} is not JSON${place === undefined ? '' : `: see ${place}`}.`,
    );
  }
}

const invalid = (keyPath: string, expected: string): DeployError =>
  new DeployError('invalidInput', `${stackFiles.config}${keyPath === '' ? '' : `: ${keyPath}`} must be ${expected}.`);
