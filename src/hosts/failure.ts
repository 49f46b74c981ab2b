import type { HostRefusal } from '../../machines/index.ts';
import { messageOf, visible } from '../lib/index.ts';
import { isNewerVersion } from './version.ts';

/** Failure of a connection to a host. `refusal` is null if another attempt may succeed. */
export class HostFailure extends Error {
  override readonly name = 'HostFailure';
  readonly refusal: HostRefusal | null;
  /** Refused version of the remote Hub; null when it is unknown. */
  readonly remoteVersion: string | null;

  constructor(refusal: HostRefusal | null, message: string, remoteVersion: string | null = null) {
    super(message);
    this.refusal = refusal;
    this.remoteVersion = remoteVersion;
  }
}

/** Messages of OpenSSH, which are never translated. The first match counts: a refused log-in follows a changed host key. */
const sshWords: readonly (readonly [RegExp, HostRefusal])[] = [
  [/host key verification failed|remote host identification has changed|no \S+ host key is known/i, 'hostKey'],
  [
    /permission denied \(|permission denied, please try again|too many authentication failures|no supported authentication/i,
    'authentication',
  ],
];

const maxReason = 300;

/** Last line of a remote program's output, safe to show on one line. */
export function lastLine(text: string): string {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return visible(line.trim(), { multiline: false }).slice(0, maxReason);
}

/** Line that names the problem in the standard error of an Oratorio program; the last line of any other program. */
export function problemIn(stderr: string): string {
  const marked = stderr.split('\n').findLast((line) => line.startsWith('✖ '));
  return lastLine(marked?.slice(2) ?? stderr);
}

/** Converts an error of the start of `ssh`. */
export function startFailure(error: unknown): HostFailure {
  const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
  const words = isMissing
    ? 'This machine has no program ssh: install OpenSSH.'
    : `ssh could not be run: ${messageOf(error)}. Check the installation of OpenSSH.`;
  return new HostFailure(null, words);
}

/** Derives the failure of an ended `ssh` from the last line of its standard error. */
export function sshFailure(stderr: string): HostFailure {
  const [, refusal = null] = sshWords.find(([words]) => words.test(stderr)) ?? [];
  return new HostFailure(refusal, lastLine(stderr) || 'ssh ended without a message.');
}

export interface NextStepOf {
  readonly name: string;
  readonly ssh: string;
  /** Command that tries again. Default: `hosts enable`, for a host in the settings. */
  readonly command?: string;
}

/** Next step for the user after a refusal; null after a failure that another attempt may resolve. */
export function nextStep(
  { refusal, remoteVersion }: Pick<HostFailure, 'refusal' | 'remoteVersion'>,
  { name, ssh, command }: NextStepOf,
): string | null {
  const again = `then: ${command ?? `oratorio hosts enable ${name}`}`;
  const install = `oratorio hosts add ${ssh} --name ${name} --install`;
  switch (refusal) {
    case 'hostKey':
      return `Connect once in a terminal and compare the host key of the machine: ssh ${ssh}; ${again}`;
    case 'authentication':
      return `Give ssh a key that needs no prompt, e.g. with ssh-add. Test: ssh -o BatchMode=yes ${ssh} true; ${again}`;
    case 'noProgram':
      return `Install Oratorio on that machine: ${install}. Or name its command: --program /path/to/oratorio`;
    case 'version':
      return isNewerVersion(remoteVersion)
        ? `Update this machine: oratorio self-update; ${again}`
        : `Install the version of this machine there: ${install}`;
    case 'notProven':
      return `Check on that machine: oratorio hub status; ${again}`;
    case null:
      return null;
  }
}
