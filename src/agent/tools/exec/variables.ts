import { markerVariable, toolChainEnvironment } from '../../../supervise/index.ts';
import type { ToolContext } from '../../tool.ts';
import { readingPath } from '../places.ts';
import { commandEnvironment, type EnvironmentSettings, isSecret } from './environment.ts';
import type { ShellEnvironment } from './shell-environment.ts';

/** Settings that decide about the environment of commands. */
export interface VariableSettings extends EnvironmentSettings {
  /** Variables of the workspace. Absent: none. */
  readonly shell?: Pick<ShellEnvironment, 'of'> | undefined;
}

type Place = Pick<ToolContext, 'workspacePath' | 'environment'>;

/** The whole environment of a command; `readingEnvironment` for a command that was allowed because it only reads. */
export async function environmentOf(
  settings: VariableSettings,
  context: Place & Pick<ToolContext, 'onlyReads'>,
  marker: string,
): Promise<Record<string, string>> {
  const whole = commandEnvironment(settings, marker, await variablesOf(settings, context));
  return context.onlyReads ? readingEnvironment(whole, context.workspacePath, marker) : whole;
}

/** `PATH` of commands, as `environmentOf` sets it. */
export async function searchPathOf(settings: VariableSettings, place: Place): Promise<string> {
  return commandEnvironment(settings, '', await variablesOf(settings, place))['PATH'] ?? '';
}

/** Variables of the workspace, and the tool chains of the shell that the user works in. */
async function variablesOf(
  settings: VariableSettings,
  { workspacePath, environment }: Place,
): Promise<Record<string, string>> {
  const own = (await settings.shell?.of(workspacePath)) ?? {};
  const chains = Object.entries(toolChainEnvironment(environment ?? {}));
  const users = Object.fromEntries(chains.filter(([name, value]) => !isSecret(name, value, settings)));
  // A profile must not hide where the user's shell, or the server, finds its programs.
  const PATH = [own['PATH'], users['PATH'] ?? settings.environment['PATH']].filter(Boolean).join(':');
  return { ...own, ...users, ...(PATH !== '' && { PATH }) };
}

/** Variables that make no program or shell load or run code. */
const harmless = /^(?:HOME|USER|LOGNAME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|NO_COLOR|TMPDIR)$/;

/** Programs are found outside of the workspace; no variable of the project or of a client makes them load other code. */
function readingEnvironment(
  whole: Readonly<Record<string, string>>,
  workspacePath: string,
  marker: string,
): Record<string, string> {
  return {
    ...Object.fromEntries(Object.entries(whole).filter(([name]) => harmless.test(name))),
    PATH: readingPath(workspacePath, whole['PATH'] ?? ''),
    [markerVariable]: marker,
  };
}
