import { setMember } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { writeFileAtomic } from '../../supervise/index.ts';
import type { ReviewStore } from '../store/index.ts';
import { changedPaths, needsRestart } from './changes.ts';
import { SettingsError } from './error.ts';
import { isJsonObject, type JsonObject, valueAt } from './json.ts';
import { hashOf, readSettingsFile, rootKey, rootOf, settingsOf } from './load.ts';
import { isSecret, rootSchema, shapeOf, spelled } from './shape.ts';
import type { SettingsSource } from './source.ts';

export type SettingsChangeCode =
  | 'configWritesForbidden'
  | 'configurationOfDeployment'
  | 'configurationRevisionMismatch'
  | 'configurationValidationFailed'
  | 'configurationWriteFailed';

export interface SettingsIssue {
  readonly path: string;
  readonly message: string;
}

/** A refused change. */
export class SettingsChangeError extends Error {
  override readonly name = 'SettingsChangeError';
  readonly code: SettingsChangeCode;
  readonly issues: readonly SettingsIssue[];

  constructor(code: SettingsChangeCode, message: string, issues: readonly SettingsIssue[] = []) {
    super(message);
    this.code = code;
    this.issues = issues;
  }
}

export interface SettingsChangeRequest {
  /** Revision that the client has read. */
  readonly baseRevision: string;
  /** Paths (`Review.MaxFindings`, in any case) with their new value; null removes the key from the file. */
  readonly set: Readonly<Record<string, unknown>>;
  /** Address of the client, for the audit. */
  readonly address: string;
}

export interface SettingsChanged {
  readonly revision: string;
  readonly changed: readonly string[];
  readonly restartNeededFor: readonly string[];
}

/**
 * Changes keys in the settings file without changing any other character of it, and applies them. All reads and writes
 * happen in one turn of the event loop: no other change of this process comes in between. Secrets are never
 * written here: they belong into files of their own or the environment.
 *
 * @throws SettingsChangeError
 */
export async function changeSettings(
  source: SettingsSource,
  request: SettingsChangeRequest,
  audit: { readonly store: Pick<ReviewStore, 'publish'>; readonly logger: Logger },
): Promise<SettingsChanged> {
  const { current, place } = source;
  if (!current.Settings.Writable)
    throw new SettingsChangeError(
      'configWritesForbidden',
      'Settings cannot be changed over the API of this deployment.',
    );
  const before = readable(() => readSettingsFile(place.file));
  if (hashOf(before ?? '') !== request.baseRevision)
    throw new SettingsChangeError(
      'configurationRevisionMismatch',
      'The settings have changed meanwhile: read them again.',
    );
  readable(() => rootOf(place.file, before));
  const targets = Object.entries(request.set).map(([path, value]) => ({ path, value, ...targetOf(path) }));
  const foreign = targets.filter(({ issue }) => issue === deploymentIssue);
  if (foreign.length > 0) {
    const names = foreign.map(({ path }) => path).join(', ');
    const issues = foreign.map(({ path }) => ({ path, message: deploymentIssue }));
    throw new SettingsChangeError('configurationOfDeployment', `${names}: ${deploymentIssue}.`, issues);
  }
  const issues = targets.flatMap(({ path, issue }) => (issue === undefined ? [] : [{ path, message: issue }]));
  if (issues.length > 0) throw invalid(issues);
  const text = targets.reduce(
    (edited, { keys, value }) => setMember(edited, spelledIn(edited, keys), value === null ? undefined : value),
    before === undefined || before.trim() === '' ? '{}\n' : before,
  );
  const planned = readable(() => settingsOf(place, text));
  const changed = changedPaths(current, planned.settings);
  write(place.file, text);
  source.reload();
  audit.logger.info('settings were changed over the API', { changed, by: request.address });
  const { revision } = planned;
  await audit.store
    .publish('source.changed', { what: 'settings', changed, revision, by: request.address })
    // The change is made and logged: a failure to publish it does not undo it.
    .catch((error: unknown) => audit.logger.warn('could not publish a change of the settings', { error }));
  return { revision, changed, restartNeededFor: changed.filter(needsRestart) };
}

const invalid = (issues: readonly SettingsIssue[]): SettingsChangeError =>
  new SettingsChangeError(
    'configurationValidationFailed',
    issues.map(({ path, message }) => `${path}: ${message}`).join('; '),
    issues,
  );

function readable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw invalid(error.problems.map(({ keyPath, expected }) => ({ path: keyPath, message: `must be ${expected}` })));
  }
}

function write(file: string, text: string): void {
  try {
    writeFileAtomic(file, text);
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new SettingsChangeError('configurationWriteFailed', `The settings file cannot be written (${code}).`);
  }
}

/**
 * Settings that only the deployment sets, by path or as a whole section: targets and sources of credentials, directories whose
 * programs run, and listeners. The holder of the service token must not get code execution from them.
 */
const ofDeployment: ReadonlySet<string> = new Set([
  'Settings',
  'Server',
  'Storage.ConnectionString',
  'Database',
  'GitHub.Endpoint',
  'GitHub.GitEndpoint',
  'GitHub.AppId',
  'GitHub.PrivateKeyPath',
  'GitHub.InstallationProfiles',
  'AgentServer.Agent',
  'AgentServer.RepositoryWorkspaceRoutes',
  'AgentServer.AppServerUrl',
  'AgentServer.HubDiscoveryEnabled',
  'AgentServer.ManagedWorktreesEnabled',
  'AgentServer.WorktreeRoot',
]);

const isOfDeployment = (keys: readonly string[]): boolean =>
  keys.some((_, index) => ofDeployment.has(keys.slice(0, index + 1).join('.')));

const deploymentIssue =
  'belongs to the deployment: set it in oratorio.config.json or the environment, then restart the backend';

interface Target {
  readonly keys: readonly string[];
  readonly issue?: string;
}

/** The keys of one setting in the spelling of the schema. */
function targetOf(path: string): Target {
  const keys: string[] = [];
  let schema: unknown = rootSchema;
  for (const word of path.split('.')) {
    const shape = shapeOf(schema);
    const key = shape.kind === 'section' ? spelled(shape.entries, word, keys.length === 0) : undefined;
    if (shape.kind !== 'section' || key === undefined) return { keys: [], issue: 'there is no such setting' };
    keys.push(key);
    schema = shape.entries[key];
  }
  if (shapeOf(schema).kind === 'section') return { keys: [], issue: 'this is a section: name one of its settings' };
  const canonicalPath = keys.join('.');
  if (isSecret(canonicalPath))
    return { keys: [], issue: 'secrets are not written by the API: use the environment or a file of their own' };
  if (isOfDeployment(keys)) return { keys: [], issue: deploymentIssue };
  return { keys };
}

/** Spells keys as the file does; of two that differ in case only the later one holds. */
function spelledIn(text: string, keys: readonly string[]): string[] {
  const document: unknown = JSON.parse(text.replace(/^\ufeff/, ''));
  const root = isJsonObject(document) ? (rootKey(document) ?? 'Oratorio') : 'Oratorio';
  const path = [root];
  for (const key of keys) {
    const inside = valueAt(document, path);
    path.push((isJsonObject(inside) ? lastSpelling(inside, key, path.length === 1) : undefined) ?? key);
  }
  return path;
}

const lastSpelling = (section: JsonObject, key: string, isTop: boolean): string | undefined =>
  Object.keys(section).findLast((each) => spelled({ [key]: null }, each, isTop) === key);
