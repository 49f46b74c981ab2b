import { randomUUID } from 'node:crypto';
import { childEnvironment, markerVariable } from '../../../supervise/index.ts';
import { revealsSecret } from '../secrets.ts';

/** Sources of the environment of commands, and the values that must stay out of it. */
export interface EnvironmentSettings {
  /** Ours, usually `process.env`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** `Supervision.PassEnvironment`: names that the user passes on. */
  readonly passEnvironment: readonly string[];
  /** Secret values of the configuration and of the launch: keys and tokens. */
  readonly secrets: readonly string[];
}

/** A command has no terminal and no user at the keyboard, and its reader pays for every character. */
const plainOutput = {
  TERM: 'dumb',
  NO_COLOR: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  GIT_TERMINAL_PROMPT: '0',
};

const secretName =
  /(^|_)(API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(_|$)|PASSWORD$|TOKEN$|SECRET$/i;
/**
 * The environment of a command: the variables of all our children, without secrets. A name that sounds like a secret stays out
 * unless the user passes it on; a value that is or contains a secret stays out under any name.
 *
 * @param marker identity of the command: see `markerVariable`
 * @param own variables of the workspace, see `ShellEnvironment`
 */
export function commandEnvironment(
  settings: EnvironmentSettings,
  marker: string,
  own: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const inherited = childEnvironment(settings.environment, { pass: settings.passEnvironment });
  const kept = Object.entries(inherited).filter(([name, value]) => !isSecret(name, value, settings));
  return { ...Object.fromEntries(kept), ...own, ...plainOutput, [markerVariable]: marker };
}

/** Whether a variable stays out of commands: by its name, unless the user passes it on, or by its value. */
export function isSecret(name: string, value: string, { passEnvironment, secrets }: EnvironmentSettings): boolean {
  if (secretName.test(name) && !passEnvironment.includes(name)) return true;
  return secrets.includes(value) || revealsSecret(value, secrets);
}

/** A marker for one command, below the marker of this server: a sweep of the server's processes ends this one, too. */
export function newMarker(environment: EnvironmentSettings['environment']): string {
  const own = environment[markerVariable];
  return own ? `${own}/${randomUUID()}` : randomUUID();
}
