import type { HostRefusal } from '../../machines/index.ts';
import { visible } from '../lib/index.ts';

/** Failure of a connection to a host. `refusal` is null for one that another attempt may resolve. */
export class HostFailure extends Error {
  override readonly name = 'HostFailure';
  readonly refusal: HostRefusal | null;

  constructor(refusal: HostRefusal | null, message: string) {
    super(message);
    this.refusal = refusal;
  }
}

/** Words of OpenSSH, which it never translates. The first match counts: a changed key is followed by a refused log-in. */
const sshWords: readonly (readonly [RegExp, HostRefusal])[] = [
  [/host key verification failed|remote host identification has changed|no \S+ host key is known/i, 'hostKey'],
  [
    /permission denied \(|permission denied, please try again|too many authentication failures|no supported authentication/i,
    'authentication',
  ],
];

const maxReason = 300;

/** Last line of a program of the other side, safe to show in one line. */
export function lastLine(text: string): string {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return visible(line.trim(), { multiline: false }).slice(0, maxReason);
}

/** The failure of an `ssh` that ended, by the end of its standard error. */
export function sshFailure(stderr: string): HostFailure {
  const [, refusal = null] = sshWords.find(([words]) => words.test(stderr)) ?? [];
  return new HostFailure(refusal, lastLine(stderr) || 'ssh ended without a message.');
}

export interface NextStepOf {
  readonly name: string;
  readonly ssh: string;
}

/** Next step of the user after a refusal. */
export function nextStep(refusal: HostRefusal, { name, ssh }: NextStepOf): string {
  const again = `then: oratorio hosts enable ${name}`;
  switch (refusal) {
    case 'hostKey':
      return `Connect once in a terminal and compare the key of the machine: ssh ${ssh}; ${again}`;
    case 'authentication':
      return `Give ssh a key that needs no prompt, e.g. with ssh-add. Test: ssh -o BatchMode=yes ${ssh} true; ${again}`;
    case 'noProgram':
      return `Install Oratorio there, or name its program: oratorio hosts add ${ssh} --name ${name} --program /path/to/oratorio`;
    case 'version':
      return `Install the same version on both machines; ${again}`;
    case 'notProven':
      return `Check on that machine: oratorio hub status; ${again}`;
  }
}
