import { mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import * as v from 'valibot';
import { AgentError } from '../agent/index.ts';
import {
  ConfigError,
  type Layer,
  mergeDeep,
  resolveConfig,
  setMember,
  userConfigFile,
  workspaceConfigFile,
} from '../config/index.ts';
import { McpServerName, McpServerSettings } from '../protocol/index.ts';
import { writeFileAtomicAsync } from '../supervise/index.ts';
import type { Environment } from './connection.ts';
import { unmaskSettings } from './secrets.ts';

export interface SettingsFilesOptions {
  /** The user's home of Oratorio. */
  readonly home: string;
  readonly workspacePath: string;
  readonly env: Environment;
}

type RawServers = Readonly<Record<string, unknown>>;

/** Where MCP servers are written down: the user's configuration, which is not ours to change, and the workspace's. */
export class SettingsFiles {
  readonly #userFile: string;
  readonly #workspaceFile: string;
  readonly #env: Environment;

  constructor({ home, workspacePath, env }: SettingsFilesOptions) {
    this.#userFile = userConfigFile(home);
    this.#workspaceFile = workspaceConfigFile(workspacePath);
    this.#env = env;
  }

  /** Whether the workspace's file has this server: only then it can be changed from here. */
  isOwned(name: string): boolean {
    return Object.hasOwn(serversIn(readLayer(this.#workspaceFile)), name);
  }

  /** What the files say of a server, `${VARIABLES}` as they are written; undefined: they do not have it. */
  stored(name: string): unknown {
    const [user = {}, own = {}] = [this.#userFile, this.#workspaceFile].map((file) => serversIn(readLayer(file)));
    const merged = mergeDeep(user, own);
    return Object.hasOwn(merged, name) ? merged[name] : undefined;
  }

  /**
   * Writes or removes (`undefined`) a server, when all settings are still valid with it. Nothing else in the file changes.
   * @returns the settings of this server that are in force from now on; undefined: none
   * @throws AgentError `mcpServerInvalid`, and nothing has changed
   */
  async write(name: string, settings: McpServerSettings | undefined): Promise<McpServerSettings | undefined> {
    const user = readLayer(this.#userFile);
    const written = settings && (Object.hasOwn(serversIn(user), name) ? settings : withoutDefaults(settings));
    const source = this.#change(name, written);
    const inForce = this.#resolve(name, [user, { file: this.#workspaceFile, settings: JSON.parse(stripMark(source)) }]);
    mkdirSync(dirname(this.#workspaceFile), { recursive: true, mode: 0o700 });
    await writeFileAtomicAsync(this.#workspaceFile, source);
    return inForce;
  }

  /** Settings that are not written anywhere, as they would be in force. @throws AgentError `mcpServerInvalid` */
  expand(name: string, settings: McpServerSettings): McpServerSettings {
    const expanded = this.#resolve(name, [{ file: 'the settings', settings: { McpServers: { [name]: settings } } }]);
    if (!expanded) throw invalid(name, 'there are no settings');
    return expanded;
  }

  #change(name: string, settings: unknown): string {
    const source = readText(this.#workspaceFile) ?? '{}\n';
    try {
      const document: unknown = JSON.parse(stripMark(source));
      if (typeof document !== 'object' || document === null || Array.isArray(document)) throw new SyntaxError();
      return setMember(source, [sectionIn(document as RawServers) ?? 'McpServers', name], settings);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw invalid(name, `${this.#workspaceFile} is not a JSON object: correct it first`);
    }
  }

  #resolve(name: string, layers: readonly Layer[]): McpServerSettings | undefined {
    try {
      const { McpServers: servers } = resolveConfig(layers, this.#env).config;
      return Object.hasOwn(servers, name) ? servers[name] : undefined;
    } catch (error) {
      if (error instanceof ConfigError) throw invalid(name, error.message);
      throw error;
    }
  }
}

const invalid = (name: string, problem: string): AgentError =>
  new AgentError('mcpServerInvalid', { name, problem }, problem);

/**
 * Settings that somebody wants, checked, with stored values in place of masked ones.
 * @throws AgentError `mcpServerInvalid`
 */
export function checkSettings(name: string, settings: McpServerSettings, stored: unknown): McpServerSettings {
  if (!v.is(McpServerName, name)) throw invalid(name, 'the name must be 1 to 64 letters, digits, _ or -');
  const parsed = v.safeParse(McpServerSettings, settings);
  if (!parsed.success) {
    const [{ expected }] = parsed.issues;
    const where = v.getDotPath(parsed.issues[0]) ?? 'the settings';
    throw invalid(name, `${where}: ${expected ?? 'something else'} was expected`);
  }
  const unmasked = unmaskSettings(parsed.output, stored);
  if (!unmasked.ok) throw invalid(name, `${unmasked.missing} is masked, and nothing is stored for it`);
  return unmasked.settings;
}

/** Configuration keys are matched without case; of two that differ in case only, the later one counts. */
const sectionIn = (document: RawServers): string | undefined =>
  Object.keys(document).findLast((key) => key.toLowerCase() === 'mcpservers');

function serversIn({ settings }: Layer): RawServers {
  const servers = settings[sectionIn(settings) ?? ''];
  return typeof servers === 'object' && servers !== null && !Array.isArray(servers) ? (servers as RawServers) : {};
}

/** A file that is not there, or that cannot be used (which whoever loads the configuration is told), has no servers. */
function readLayer(file: string): Layer {
  try {
    const settings: unknown = JSON.parse(stripMark(readText(file) ?? '{}'));
    if (typeof settings === 'object' && settings !== null) return { file, settings: settings as RawServers };
  } catch {
    // As above.
  }
  return { file, settings: {} };
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

const stripMark = (source: string): string => (source.charCodeAt(0) === 0xfeff ? source.slice(1) : source);

/** What a user would have written: values that are the default anyway need no line. */
function withoutDefaults(settings: McpServerSettings): Readonly<Record<string, unknown>> {
  const { transport } = settings;
  const least = transport === 'stdio' ? { transport, command: '-' } : { transport, url: 'http://-' };
  const defaults: Readonly<Record<string, unknown>> = { ...v.parse(McpServerSettings, least), ...least };
  const needed = Object.entries(settings).filter(
    ([key, value]) => key in least || JSON.stringify(value) !== JSON.stringify(defaults[key]),
  );
  return Object.fromEntries(needed);
}
