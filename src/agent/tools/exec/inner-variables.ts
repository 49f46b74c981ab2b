import { markerVariable } from '../../../supervise/index.ts';

/** Variables of a command in a sandbox, on their way through the programs that make or enter it. */
export interface InnerVariables {
  /** Environment of those programs. */
  readonly env: Readonly<Record<string, string>>;
  /** Words for `sh` in the sandbox: they give the variables their names. */
  readonly script: string;
}

const carried = 'ORATORIO_INNER_';
/** Names that no program before the sandbox obeys, and names that some shells cannot set. */
const plain = /^(?:HOME|USER|LOGNAME|TERM|NO_COLOR|TMPDIR|UID|EUID|PPID|GROUPS|SHELLOPTS|BASHOPTS)$/;
const isName = /^[A-Za-z_]\w*$/;

/**
 * Hides the variables of a project from the programs that run before the sandbox is closed: `LD_AUDIT`, `LD_LIBRARY_PATH` and others would
 * make them load a file of the workspace.
 */
export function innerVariables(variables: Readonly<Record<string, string>>): InnerVariables {
  const entries = Object.entries(variables).filter(([name]) => isName.test(name));
  const isPlain = (name: string) => plain.test(name) || name === markerVariable;
  const names = entries.map(([name]) => name).filter((name) => !isPlain(name));
  return {
    env: Object.fromEntries(entries.map(([name, value]) => [isPlain(name) ? name : `${carried}${name}`, value])),
    // With `command`, a name that the shell keeps for itself does not end it.
    script: names.map((name) => `command export ${name}="$${carried}${name}"; unset ${carried}${name}; `).join(''),
  };
}
