import { isUsersAlone } from './combine.ts';
import { isJsonObject, type JsonObject } from './parse.ts';
import { Config, secretKeyPaths } from './schema.ts';
import { givesRights, ruleOf } from './settings-table.ts';

/** JSON Schema (draft 7) of the configuration file that a user may write, for editors. */
export async function configJsonSchema(): Promise<Record<string, unknown>> {
  const { toJsonSchema } = await import('@valibot/to-json-schema');
  return { ...toJsonSchema(Config, { typeMode: 'input', errorMode: 'ignore' }), title: 'Oratorio configuration' };
}

/** Settings whose change is applied to a server that runs. The rest holds from its next start on. */
const liveKeyPaths: ReadonlySet<string> = new Set();

/**
 * Explains why a form of a workspace's settings cannot change this one; undefined: it can. A setting that gives rights is
 * changed in the file only: a dashboard's token must not be worth more than the dashboard.
 */
export function whyReadOnly(keyPath: string): string | undefined {
  if (keyPath.split('.')[0] === 'McpServers') return 'MCP servers have methods of their own, which keep their secrets';
  const rule = ruleOf(keyPath);
  if (rule?.combine === isUsersAlone) return 'only your own config.json decides it';
  if (!givesRights(keyPath)) return undefined;
  return 'it gives rights, so edit .oratorio/config.json of the workspace and run: oratorio trust';
}

/** Whether a change of this setting waits for a restart. */
export const needsRestart = (keyPath: string): boolean => !liveKeyPaths.has(keyPath);

/**
 * JSON Schema of the settings for a form: every setting has a `title`, `x-restart` when it needs a restart, `writeOnly` when its
 * value is a secret, which is never shown, `readOnly` (and why: `x-read-only`) when it is changed elsewhere.
 */
export async function settingsJsonSchema(): Promise<JsonObject> {
  return annotated(await configJsonSchema(), '');
}

function annotated(schema: JsonObject, path: string): JsonObject {
  const { properties } = schema;
  if (!isJsonObject(properties)) return { ...schema, ...annotationsOf(path) };
  const inner = Object.entries(properties).map(([key, property]) => {
    const keyPath = path === '' ? key : `${path}.${key}`;
    return [key, isJsonObject(property) ? { title: titleOf(key), ...annotated(property, keyPath) } : property];
  });
  return { ...schema, properties: Object.fromEntries(inner) };
}

function annotationsOf(keyPath: string): JsonObject {
  return {
    ...(needsRestart(keyPath) && { 'x-restart': true }),
    ...(secretKeyPaths.has(keyPath) && { writeOnly: true }),
    ...(whyReadOnly(keyPath) !== undefined && { readOnly: true, 'x-read-only': whyReadOnly(keyPath) }),
  };
}

/** Words that people write in capitals. */
const initials: ReadonlySet<string> = new Set(['api', 'mcp', 'url', 'ui']);

/** Keys with a spelling of their own. */
const titles: Readonly<Record<string, string>> = { AgUi: 'AG-UI', DashBoard: 'Dashboard', EndPoint: 'Endpoint' };

/** `ApprovalTimeoutSeconds` → `Approval timeout seconds`, `ApiKey` → `API key`. */
function titleOf(key: string): string {
  const known = titles[key];
  if (known !== undefined) return known;
  const words = key.replace(/([a-z0-9])([A-Z])/g, '$1 $2').split(' ');
  return words
    .map((word, index) => {
      if (initials.has(word.toLowerCase())) return word.toUpperCase();
      return index === 0 ? word : word.toLowerCase();
    })
    .join(' ');
}
