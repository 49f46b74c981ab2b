import { outsideEnvironment } from '../supervise/index.ts';

/** Settings of one git process. */
export interface GitEnvironmentOptions {
  /**
   * Transports that may run: `https`, `ssh`, `file`, … Default: none, so that no address of a repository runs a helper, and a missing
   * object is not fetched.
   */
  readonly transports?: readonly string[] | undefined;
  /** The configuration of the user and the system holds, with its credentials. Default: git reads neither. */
  readonly hasUsersConfiguration?: boolean | undefined;
  /** Directory of a workspace: git and its helpers are never programs that lie below it. */
  readonly workspacePath?: string | undefined;
  /** Configuration of this process, which overrides every file. */
  readonly config?: readonly GitSetting[] | undefined;
}

export type GitSetting = readonly [key: string, value: string];

/**
 * Environment of every git process outside of the sandbox. A repository is hostile: no configuration file of it names a program
 * that runs, no address a helper, no hook a script. Settings stand in the environment, as `-c` would set them: they override all
 * files, and processes that git starts itself have them, too.
 *
 * Filters have names of their own, which `runGit` reads and empties.
 *
 * @param source finds git with its `PATH`; variables of git in it are dropped
 */
export function gitEnvironment(
  source: Readonly<Record<string, string | undefined>>,
  { transports = [], hasUsersConfiguration = false, workspacePath, config = [] }: GitEnvironmentOptions = {},
): Record<string, string> {
  const inherited = Object.entries(outsideEnvironment(workspacePath, source)).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(?:GIT_|(?:SSH|SUDO)_ASKPASS$)/i.test(entry[0]),
  );
  return {
    ...Object.fromEntries(inherited),
    ...messages,
    ...programs,
    ...(!hasUsersConfiguration && { ...withoutUser, ...withoutPrompt }),
    GIT_ALLOW_PROTOCOL: transports.join(':'),
    // Known from git 2.45 on; without transports older versions do the same.
    ...(transports.length === 0 && { GIT_NO_LAZY_FETCH: '1' }),
    ...asVariables([...locked, ...(hasUsersConfiguration ? [] : withoutCredentials), ...config]),
  };
}

const messages = { LC_ALL: 'C.UTF-8', LANGUAGE: 'C', GIT_OPTIONAL_LOCKS: '0' };
const programs = { GIT_PAGER: 'cat', GIT_EDITOR: 'false', GIT_SEQUENCE_EDITOR: 'false' };
/** Git before 2.32 does not know the two variables, but finds no file in this home. */
const withoutUser = {
  HOME: '/dev/null',
  XDG_CONFIG_HOME: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
};
const withoutPrompt = {
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: 'false',
  SSH_ASKPASS: 'false',
  GIT_SSH_COMMAND: 'false',
  GIT_PROXY_COMMAND: 'false',
};

/** Settings of a repository that could run a program, or reach another repository. */
const locked: readonly GitSetting[] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.alternateRefsCommand', 'false'],
  ['core.pager', 'cat'],
  ['core.editor', 'false'],
  ['sequence.editor', 'false'],
  ['diff.external', 'false'],
  // A status in a submodule reads the configuration of another repository.
  ['diff.ignoreSubmodules', 'dirty'],
  ['status.submoduleSummary', 'false'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['push.recurseSubmodules', 'no'],
  ['commit.gpgSign', 'false'],
  ['tag.gpgSign', 'false'],
  ['log.showSignature', 'false'],
  ['merge.verifySignatures', 'false'],
  ['gpg.program', 'false'],
  ['gpg.openpgp.program', 'false'],
  ['gpg.x509.program', 'false'],
  ['gpg.ssh.program', 'false'],
  ['gpg.ssh.defaultKeyCommand', 'false'],
  ['safe.bareRepository', 'explicit'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
];
const withoutCredentials: readonly GitSetting[] = [
  ['core.sshCommand', 'false'],
  ['core.askPass', 'false'],
  ['credential.helper', ''],
  ['core.attributesFile', '/dev/null'],
  ['core.excludesFile', '/dev/null'],
];

/** Like `-c`, but hidden from the list of processes, and for keys that contain `=`. */
function asVariables(settings: readonly GitSetting[]): Record<string, string> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) };
  for (const [index, [key, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = key;
    variables[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return variables;
}
