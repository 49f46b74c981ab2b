import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';
import type { Git } from './find-git.ts';
import { isOfRepository, parseRemote } from './remote.ts';

export interface CloneUrlOptions {
  /** Name of the source host: `github.com`. */
  readonly host?: string;
  readonly signal?: AbortSignal;
}

/** True for git's message that the repository is invisible to this user, or needs credentials. */
const isRefusal = (text: string): boolean =>
  /could not read (?:username|password)|authentication failed|terminal prompts disabled|repository .*not found|error: 40[134]|unable to read askpass/i.test(
    text,
  );

/**
 * The address a repository is cloned from: the one that is wanted, else https when that answers without a question (public, or a
 * credential helper knows more), else ssh.
 * @param repository `owner/name`
 * @throws DeployError secretRefused, invalidInput when `wanted` is not an address of this repository; cancelled
 */
export async function cloneUrlFor(
  git: Git,
  repository: string,
  wanted?: string,
  { host = 'github.com', signal }: CloneUrlOptions = {},
): Promise<string> {
  if (wanted !== undefined) return checkCloneUrl(wanted, repository);
  const https = `https://${host}/${repository}.git`;
  try {
    const asked = await git.run(['ls-remote', '--exit-code', https, 'HEAD'], {
      timeoutMs: defaults.timeouts.askMs,
      ...(signal && { signal }),
    });
    // Without a network, ssh would fail, too; the clone reports the problem. An empty repository has no HEAD (2).
    return isRefusal(asked.stderr) ? `git@${host}:${repository}.git` : https;
  } catch (error) {
    if (error instanceof DeployError && error.code === 'engineFailed') return https;
    throw error;
  }
}

/** @throws DeployError secretRefused, invalidInput */
export function checkCloneUrl(url: string, repository: string): string {
  if (isOfRepository(parseRemote(url), repository)) return url;
  throw new DeployError(
    'invalidInput',
    `The address to clone from is not one of ${repository}.`,
    `It ends with /${repository}.git, as on the source host.`,
  );
}
