import { createHash } from 'node:crypto';
import { type BigIntStats, statSync } from 'node:fs';
import type { SupervisionPolicy } from '../../machines/index.ts';
import {
  type Config,
  ConfigError,
  lineIn,
  loadConfig,
  type ReadTrust,
  readTrustFile,
  settingPlaces,
  trustFile,
  userConfigFile,
  type WorkspaceTrust,
  workspaceConfigFile,
  workspaceStateDirectory,
  workspaceTrust,
} from '../config/index.ts';
import type { Problem, SettingPlaces } from '../protocol/index.ts';
import { lostHistory } from '../supervise/index.ts';
import type { HubServices } from './facts.ts';
import { supervisionPolicyOf } from './policy.ts';

/** Trust and settings of one workspace as its next start will find them. */
export interface WorkspaceSettings extends WorkspaceTrust {
  readonly workspacePath: string;
  /** Hash of the effective settings; null when they cannot be used. */
  readonly hash: string | null;
  /** Supervision policy; null when the settings cannot be used. */
  readonly policy: SupervisionPolicy | null;
  /** Places of the settings that a failed turn may blame. */
  readonly places: SettingPlaces;
  /** Why they cannot be used; null when they can. */
  readonly problem: SettingsProblem | null;
  /** Hours within which an unfinished turn continues, 0: never; null when the settings cannot be used. */
  readonly resumeWithinHours: number | null;
  /** Loss of the workspace's history; null without one. */
  readonly lostHistory: Problem | null;
}

export interface SettingsProblem {
  readonly message: string;
  /** File and key. */
  readonly where: string;
  readonly file: string;
  readonly line: number | null;
  /** Empty for the file as a whole. */
  readonly key: string;
}

/** Trust and settings, cheap enough for every request. */
export interface SettingsView {
  /**
   * @param maxAgeMs age of the last check up to which no file is checked again; default: 0
   * @returns the same object until something changes
   */
  now(maxAgeMs?: number): WorkspaceSettings;
}

type Place = Pick<HubServices, 'home' | 'environment' | 'policy'>;

/** Makes the views of a Hub's workspaces. A change of the user's trust decisions is read once for all of them. */
export function settingsViews(place: Place): (workspacePath: string) => SettingsView {
  let trust: { readonly signature: string; readonly decided: ReadTrust } | null = null;
  const decidedAt = (signature: string): ReadTrust => {
    if (trust?.signature !== signature) trust = { signature, decided: readTrustFile(place.home) };
    return trust.decided;
  };
  return (workspacePath) => createSettingsView(place, workspacePath, decidedAt);
}

/**
 * Watches the files that decide about a workspace. They are read again only when one of them changes.
 *
 * @param decidedAt returns the trust decisions; its argument differs when their file does
 */
function createSettingsView(
  place: Place,
  workspacePath: string,
  decidedAt: (signature: string) => ReadTrust,
): SettingsView {
  const files = [
    ...[userConfigFile(place.home), workspaceConfigFile(workspacePath)],
    workspaceStateDirectory(place.home, workspacePath),
  ];
  let seen = '';
  let known = unread(workspacePath);
  let checkedAt = Number.NEGATIVE_INFINITY;

  function now(maxAgeMs = 0): WorkspaceSettings {
    const at = performance.now();
    if (at - checkedAt < maxAgeMs) return known;
    checkedAt = at;
    const trustSignature = signatureOf(trustFile(place.home));
    const found = [trustSignature, ...files.map(signatureOf)].join(' ');
    if (found !== seen) {
      known = settingsOf(place, workspacePath, decidedAt(trustSignature));
      seen = found;
    }
    return known;
  }

  return { now };
}

/** Fields of settings that cannot be used. */
const unusable = { hash: null, policy: null, places: {}, resumeWithinHours: null };

const unread = (workspacePath: string): WorkspaceSettings => ({
  workspacePath,
  trust: 'restricted',
  restrictedSettings: [],
  ...unusable,
  problem: null,
  lostHistory: null,
});

/** Reads trust and settings of a workspace now. @param decided trust decisions; default: read now */
export function settingsOf(
  place: Place,
  workspacePath: string,
  decided: ReadTrust = readTrustFile(place.home),
): WorkspaceSettings {
  const { overruled, isTrusted, ...settings } = readSettings(place, workspacePath, decided);
  const { trust, restrictedSettings } = isTrusted
    ? trustedFully
    : workspaceTrust({ home: place.home, workspace: workspacePath, decided });
  return {
    ...{ workspacePath, trust, ...settings },
    restrictedSettings: [...new Set([...restrictedSettings, ...overruled])],
    lostHistory: lostHistory(workspaceStateDirectory(place.home, workspacePath)) ?? null,
  };
}

const trustedFully: WorkspaceTrust = { trust: 'trusted', restrictedSettings: [] };

/** `overruled`: settings that the user's own file overrules in a restricted workspace. `isTrusted`: false for unusable settings, too. */
function readSettings(
  { home, environment, policy }: Place,
  workspace: string,
  decided: ReadTrust,
): Pick<WorkspaceSettings, 'hash' | 'policy' | 'places' | 'problem' | 'resumeWithinHours'> & {
  readonly overruled: readonly string[];
  readonly isTrusted: boolean;
} {
  try {
    const loaded = loadConfig({ home, workspace, env: environment, decided });
    const { Resume, ResumeWithinHours } = loaded.config.Turns;
    return {
      hash: configHash(loaded.config),
      policy: supervisionPolicyOf(loaded.config, policy),
      places: settingPlaces(loaded, home),
      problem: null,
      resumeWithinHours: Resume === 'never' ? 0 : ResumeWithinHours,
      overruled: loaded.restrictedSettings,
      isTrusted: loaded.trust === 'trusted',
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { message, file, keyPath: key } = error;
    const line = key === '' ? null : lineIn(file, key.split('.'));
    const where = key === '' ? file : `${file}: ${key}`;
    const problem = { message, where, file, line, key };
    return { ...unusable, overruled: [], isTrusted: false, problem };
  }
}

/** Differs when an effective setting of an agent server does. Only the Hub uses `Hosts`. */
export const configHash = ({ Hosts: _, ...config }: Config): string =>
  createHash('sha256').update(JSON.stringify(config)).digest('base64url').slice(0, 22);

/** Differs when a file does; every change of content or owner changes the time of change. */
function signatureOf(file: string): string {
  let stats: BigIntStats | undefined;
  try {
    stats = statSync(file, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    // A directory on the way that cannot be entered: the start of the workspace names it.
    return String((error as NodeJS.ErrnoException).code);
  }
  return stats === undefined ? 'none' : `${stats.ino}/${stats.size}/${stats.ctimeNs}/${stats.mtimeNs}`;
}
