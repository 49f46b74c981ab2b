import { randomUUID } from 'node:crypto';
import { childEnvironment, markerVariable } from '../../../supervise/index.ts';
import { revealsSecret } from '../secrets.ts';

/** Where the environment of commands comes from, and what must stay out of it. */
export interface EnvironmentSettings {
  /** Ours, usually `process.env`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** `Supervision.PassEnvironment`: names handed on because the user says so. */
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
 * The environment of a command: what every child of ours gets, without secrets. A name that sounds like one stays out
 * unless the user passes it on; a value that is or contains one stays out whatever its name.
 *
 * @param marker who the command is: see `markerVariable`
 */
export function commandEnvironment(settings: EnvironmentSettings, marker: string): Record<string, string> {
  const { environment, passEnvironment, secrets } = settings;
  const passed = new Set(passEnvironment);
  const inherited = childEnvironment(environment, { pass: passEnvironment });
  const kept = Object.entries(inherited).filter(
    ([name, value]) =>
      (passed.has(name) || !secretName.test(name)) && !secrets.includes(value) && !revealsSecret(value, secrets),
  );
  return { ...Object.fromEntries(kept), ...plainOutput, [markerVariable]: marker };
}

/** A marker for one command, below that of this server: a sweep of the server's processes ends this one, too. */
export function newMarker(environment: EnvironmentSettings['environment']): string {
  const own = environment[markerVariable];
  return own ? `${own}/${randomUUID()}` : randomUUID();
}
