import { dirname } from 'node:path';
import type { GitLimits } from './limits.ts';

/** Transport to the remote: `none` makes every transport, and so every lazy fetch of a missing object, fail. */
export type Protocol = 'https' | 'http' | 'file' | 'none';

export interface EnvironmentOptions {
  /** Where programs are looked for. */
  readonly path: string;
  /** An empty read-only directory: home of git, and its directory of hooks. */
  readonly emptyDirectory: string;
  readonly limits: GitLimits;
  readonly protocol: Protocol;
  /** Names the process and all its children, so that they are found again. */
  readonly marker: { readonly name: string; readonly value: string };
  /** Configuration of this one command, after ours. The one place where a token may be. */
  readonly config?: readonly (readonly [key: string, value: string])[];
  readonly extra?: Readonly<Record<string, string>>;
}

/**
 * The whole environment of a git process, made from nothing: no `GIT_*` variable, no home, no agent, no system or user
 * configuration reaches it. What could run a program, prompt, or change what is shown is switched off at command scope, which
 * wins over the files of a repository.
 */
export function gitEnvironment(options: EnvironmentOptions): Record<string, string> {
  const { path, emptyDirectory, protocol, marker, config = [], extra = {} } = options;
  return {
    PATH: path,
    HOME: emptyDirectory,
    XDG_CONFIG_HOME: emptyDirectory,
    LC_ALL: 'C',
    LANGUAGE: 'C',
    TZ: 'UTC',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'false',
    SSH_ASKPASS: 'false',
    GIT_SSH_COMMAND: 'false',
    GIT_PAGER: 'cat',
    GIT_EDITOR: 'false',
    GIT_ALLOW_PROTOCOL: protocol,
    // Known from git 2.45 on; the protocol above does the same before.
    ...(protocol === 'none' && { GIT_NO_LAZY_FETCH: '1' }),
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_CEILING_DIRECTORIES: dirname(emptyDirectory),
    // Later versions of git have other defaults: refs are read as files, names are SHA-1.
    GIT_DEFAULT_REF_FORMAT: 'files',
    GIT_DEFAULT_HASH: 'sha1',
    [marker.name]: marker.value,
    ...extra,
    ...commandConfig([...hardening(options), ...config]),
  };
}

/** As if given with `-c`, but not seen in the list of processes. */
function commandConfig(entries: readonly (readonly [string, string])[]): Record<string, string> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(entries.length) };
  for (const [index, [key, value]] of entries.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = key;
    variables[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return variables;
}

/** Bytes of a pack mapped at a time, and of blobs that one thread compares for deltas. */
const packWindowBytes = 32 * 1_024 * 1_024;
const deltaWindowBytes = 64 * 1_024 * 1_024;

function hardening({ emptyDirectory, limits }: EnvironmentOptions): [string, string][] {
  return [
    ['core.hooksPath', emptyDirectory],
    ['core.fsmonitor', 'false'],
    ['core.sshCommand', 'false'],
    ['core.askPass', 'false'],
    ['core.pager', 'cat'],
    ['core.editor', 'false'],
    ['core.symlinks', 'false'],
    ['core.attributesFile', '/dev/null'],
    ['core.excludesFile', '/dev/null'],
    ['core.protectHFS', 'true'],
    ['core.protectNTFS', 'true'],
    ['core.bigFileThreshold', String(limits.bigFileBytes)],
    // Mapped packs are no heap, but memory all the same.
    ['core.packedGitLimit', String(limits.memoryBytes)],
    ['core.packedGitWindowSize', String(packWindowBytes)],
    ['pack.windowMemory', String(deltaWindowBytes)],
    ['pack.threads', '2'],
    ['credential.helper', ''],
    ['submodule.recurse', 'false'],
    ['fetch.recurseSubmodules', 'false'],
    ['fetch.unpackLimit', '1'],
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
    ['protocol.version', '2'],
    // A redirect would carry the token to any host that the remote names.
    ['http.followRedirects', 'false'],
    ['http.sslVerify', 'true'],
    ['http.lowSpeedLimit', String(limits.lowSpeedBytes)],
    ['http.lowSpeedTime', String(limits.lowSpeedSeconds)],
  ];
}
