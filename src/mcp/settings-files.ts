import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import * as v from 'valibot';
import { AgentError } from '../agent/index.ts';
import {
  ConfigError,
  changeTrusted,
  type Layer,
  quotedPath,
  readUserSettings,
  readWorkspaceText,
  resolveConfig,
  TrustError,
  type TrustPlace,
  userLayers,
  workspaceConfigFile,
  workspaceTrust,
} from '../config/index.ts';
import { setMember } from '../lib/index.ts';
import { McpServerName, McpServerSettings } from '../protocol/index.ts';
import { writeFileAtomicAsync } from '../supervise/index.ts';
import type { Environment } from './open-link.ts';
import { unmaskSettings } from './secrets.ts';

export interface SettingsFilesOptions {
  /** The user's home of Oratorio. */
  readonly home: string;
  readonly workspacePath: string;
  readonly env: Environment;
}

type RawServers = Readonly<Record<string, unknown>>;

/** Reads MCP servers from both configuration files, and writes them to the file of a trusted workspace. */
export class SettingsFiles {
  readonly #place: TrustPlace;
  readonly #workspaceFile: string;
  readonly #env: Environment;

  constructor({ home, workspacePath, env }: SettingsFilesOptions) {
    this.#place = { home, workspace: workspacePath };
    this.#workspaceFile = workspaceConfigFile(workspacePath);
    this.#env = env;
  }

  /** Whether the server in force is defined in the workspace's file: only then it can be changed from here. */
  isOwned(name: string): boolean {
    return Object.hasOwn(this.#ownServers(), name);
  }

  /** Stored definition of a server, `${VARIABLES}` unexpanded; undefined: no file in force has it. */
  stored(name: string): unknown {
    const both = [this.#ownServers(), serversIn(readable(() => readUserSettings(this.#place.home)))];
    return both.find((servers) => Object.hasOwn(servers, name))?.[name];
  }

  /**
   * Writes or removes (`undefined`) a server, when all settings are still valid with it. Nothing else in the file changes,
   * and the workspace stays trusted.
   *
   * @returns the settings of this server that are in force from now on; undefined: none
   * @throws AgentError `mcpServerInvalid`, `workspaceRestricted`; nothing has changed then
   */
  async write(name: string, settings: McpServerSettings | undefined): Promise<McpServerSettings | undefined> {
    const { text = '{}\n', before } = this.#read(name);
    const source = setMember(text, [sectionIn(before) ?? 'McpServers', name], settings && withoutDefaults(settings));
    const after: RawServers = JSON.parse(stripMark(source));
    const inForce = this.#resolve(name, { file: this.#workspaceFile, settings: after });
    try {
      await changeTrusted(this.#place, { before, after }, async () => {
        mkdirSync(dirname(this.#workspaceFile), { recursive: true, mode: 0o700 });
        await writeFileAtomicAsync(this.#workspaceFile, source);
      });
    } catch (error) {
      if (error instanceof TrustError) throw restricted(this.#place.workspace, error);
      throw error;
    }
    return inForce;
  }

  /** Settings that are not written anywhere, as they would be in force. @throws AgentError `mcpServerInvalid` */
  expand(name: string, settings: McpServerSettings): McpServerSettings {
    const expanded = this.#resolve(name, { file: 'the settings', settings: { McpServers: { [name]: settings } } });
    if (!expanded) throw invalid(name, 'there are no settings');
    return expanded;
  }

  /** Servers of the workspace's file; none of a restricted workspace is in force. */
  #ownServers(): RawServers {
    if (workspaceTrust(this.#place).trust === 'restricted') return {};
    return serversIn(readable(() => parsed(readWorkspaceText(this.#place.workspace))));
  }

  #read(name: string): { readonly text: string | undefined; readonly before: RawServers } {
    try {
      const text = readWorkspaceText(this.#place.workspace);
      const before: unknown = JSON.parse(stripMark(text ?? '{}'));
      if (isObject(before)) return { text, before };
    } catch (error) {
      if (error instanceof ConfigError) throw invalid(name, error.message);
      if (!(error instanceof SyntaxError)) throw error;
    }
    throw invalid(name, `${this.#workspaceFile} is not a JSON object: correct it first`);
  }

  /** File of a trusted workspace; nothing is written for a restricted one. */
  #resolve(name: string, layer: Layer): McpServerSettings | undefined {
    const workspace = { path: this.#place.workspace, trust: 'trusted' } as const;
    try {
      const layers = [...userLayers(this.#place.home), { ...layer, workspace }];
      const { McpServers: servers } = resolveConfig(layers, this.#env).config;
      return Object.hasOwn(servers, name) ? servers[name] : undefined;
    } catch (error) {
      if (error instanceof ConfigError) throw invalid(name, error.message);
      throw error;
    }
  }
}

const restricted = (workspacePath: string, cause: TrustError): AgentError =>
  new AgentError(
    'workspaceRestricted',
    { workspacePath, problem: cause.message },
    `review and trust it first: oratorio trust ${quotedPath(workspacePath)}`,
  );

const invalid = (name: string, problem: string): AgentError =>
  new AgentError('mcpServerInvalid', { name, problem }, problem);

/**
 * Requested settings, checked, with stored values in place of masked ones.
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

const isObject = (value: unknown): value is RawServers =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function serversIn(settings: RawServers | undefined): RawServers {
  const servers = settings?.[sectionIn(settings) ?? ''];
  return isObject(servers) ? servers : {};
}

/** A missing or unusable file has no servers; the loader of the configuration reports the fault. */
function readable(read: () => RawServers | undefined): RawServers | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof ConfigError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function parsed(text: string | undefined): RawServers | undefined {
  const settings: unknown = text === undefined ? undefined : JSON.parse(stripMark(text));
  return isObject(settings) ? settings : undefined;
}

const stripMark = (source: string): string => (source.charCodeAt(0) === 0xfeff ? source.slice(1) : source);

/** Settings as a user would write them: default values are left out. */
function withoutDefaults(settings: McpServerSettings): Readonly<Record<string, unknown>> {
  const { transport } = settings;
  const least = transport === 'stdio' ? { transport, command: '-' } : { transport, url: 'http://-' };
  const defaults: Readonly<Record<string, unknown>> = { ...v.parse(McpServerSettings, least), ...least };
  const needed = Object.entries(settings).filter(
    ([key, value]) => key in least || JSON.stringify(value) !== JSON.stringify(defaults[key]),
  );
  return Object.fromEntries(needed);
}
