import { dirname } from 'node:path';
import { type GitSetting, gitEnvironment } from '../../git/index.ts';
import type { GitLimits } from './limits.ts';

/** Transport to the remote: `none` makes every transport, and so every lazy fetch of a missing object, fail. */
export type Protocol = 'https' | 'http' | 'file' | 'none';

export interface EnvironmentOptions {
  /** Search path for programs. */
  readonly path: string;
  /** An empty read-only directory: home of git, and its directory of hooks. */
  readonly emptyDirectory: string;
  readonly limits: GitLimits;
  readonly protocol: Protocol;
  /** Marks the process and all its children, so that they can be found again. */
  readonly marker: { readonly name: string; readonly value: string };
  /** Configuration of this one command, after ours. The only place for a token. */
  readonly config?: readonly (readonly [key: string, value: string])[];
  readonly extra?: Readonly<Record<string, string>>;
}

/**
 * The whole environment of a git process, built only from the locked environment of `src/git`: no `GIT_*` variable, no home, no
 * agent, no system or user configuration reaches it.
 */
export function reviewEnvironment(options: EnvironmentOptions): Record<string, string> {
  const { path, emptyDirectory, protocol, marker, config = [], extra = {} } = options;
  const own = [...limitSettings(options), ...config];
  return {
    ...gitEnvironment({ PATH: path }, { transports: protocol === 'none' ? [] : [protocol], config: own }),
    HOME: emptyDirectory,
    XDG_CONFIG_HOME: emptyDirectory,
    LC_ALL: 'C',
    TZ: 'UTC',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_CEILING_DIRECTORIES: dirname(emptyDirectory),
    // Later versions of git have other defaults: refs are read as files, names are SHA-1.
    GIT_DEFAULT_REF_FORMAT: 'files',
    GIT_DEFAULT_HASH: 'sha1',
    [marker.name]: marker.value,
    ...extra,
  };
}

/** Bytes of a pack mapped at a time, and of blobs that one thread compares for deltas. */
const packWindowBytes = 32 * 1_024 * 1_024;
const deltaWindowBytes = 64 * 1_024 * 1_024;

/** Settings of reviews besides the locked ones. */
function limitSettings({ emptyDirectory, limits }: EnvironmentOptions): GitSetting[] {
  return [
    ['core.hooksPath', emptyDirectory],
    ['core.symlinks', 'false'],
    ['core.protectHFS', 'true'],
    ['core.protectNTFS', 'true'],
    ['core.bigFileThreshold', String(limits.bigFileBytes)],
    // Mapped packs are not on the heap, but use memory all the same.
    ['core.packedGitLimit', String(limits.memoryBytes)],
    ['core.packedGitWindowSize', String(packWindowBytes)],
    ['pack.windowMemory', String(deltaWindowBytes)],
    ['pack.threads', '2'],
    ['fetch.unpackLimit', '1'],
    ['protocol.version', '2'],
    // A redirect would carry the token to any host that the remote names.
    ['http.followRedirects', 'false'],
    ['http.sslVerify', 'true'],
    ['http.lowSpeedLimit', String(limits.lowSpeedBytes)],
    ['http.lowSpeedTime', String(limits.lowSpeedSeconds)],
  ];
}
