import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { discoverHub, type RecordAnswer } from '../client/index.ts';
import { workspaceAbove } from '../config/index.ts';
import type { CommandContext } from './command.ts';
import { canConfirm, confirm } from './confirm.ts';
import { CliError } from './errors.ts';
import { withHub } from './hub.ts';
import { inLine } from './render.ts';
import { isWorkspace } from './workspace.ts';

/** A workspace that the command line does not name, and the reason for its choice. */
interface Chosen {
  readonly path: string;
  readonly because: string;
}

/**
 * Adds the workspace to the context as `--workspace`: the named one, else that of the current directory or of a parent. A command
 * that may offer another one asks the person at the terminal about the workspace that the Hub knows or has started last. It offers
 * none with `--yes` and without a terminal.
 *
 * @throws CliError workspaceNotFound, for a workspace of another user, and for an offer that the person declines
 */
export async function inChosenWorkspace(
  context: CommandContext,
  { mayOffer }: { readonly mayOffer: boolean },
): Promise<CommandContext> {
  const { options, cwd, home, output } = context;
  if (typeof options['workspace'] === 'string' || (cwd !== undefined && isWorkspace(cwd, home))) return context;
  const above = cwd === undefined ? undefined : chosenAbove(cwd, home);
  // Undimmed, because the reader may expect the current directory.
  if (above) output.note(`· Workspace ${inLine(above.path)}: ${above.because}`);
  const isOffering = mayOffer && options['yes'] !== true && canConfirm();
  const chosen = above ?? (isOffering ? await offeredWorkspace(context) : undefined);
  return chosen ? { ...context, options: { ...options, workspace: chosen.path } } : context;
}

/** @throws CliError workspaceNotFound, when the person declines */
async function offeredWorkspace(context: CommandContext): Promise<Chosen | undefined> {
  const { cwd, output, signal } = context;
  const known = await knownWorkspace(context);
  if (!known) return undefined;
  const what = `${cwd === undefined ? 'The current directory' : inLine(cwd)} is not an Oratorio workspace.`;
  const question = `${what}\nUse ${inLine(known.path)}, ${known.because}?`;
  if (await confirm(output, question, signal)) return known;
  const hint = 'Make this directory one with `oratorio init`, or name another one with `--workspace <dir>`.';
  throw new CliError('workspaceNotFound', what, hint, 'workspaceNotFound');
}

function chosenAbove(cwd: string, home: string): Chosen | undefined {
  const path = workspaceAbove(cwd, { home });
  return path === undefined ? undefined : { path, because: 'the current directory is in it' };
}

const startOf = ({ lastStartedAt }: RecordAnswer): number => Date.parse(lastStartedAt ?? '') || 0;

async function knownWorkspace(context: CommandContext): Promise<Chosen | undefined> {
  const { home, signal } = context;
  const hasRun = existsSync(join(home, 'hub', 'appservers.json'));
  // A Hub that has never run knows no workspace: starting one would only delay the refusal.
  if (!hasRun && (await discoverHub({ home, signal })).kind === 'none') return undefined;
  const all = await withHub(context, ({ hub }) => hub.list({ signal }));
  const records = all.filter(({ canonicalWorkspacePath }) => isWorkspace(canonicalWorkspacePath, home));
  const [last] = records.toSorted((one, other) => startOf(other) - startOf(one));
  if (!last) return undefined;
  const because = records.length === 1 ? 'the only one the Hub knows' : 'the one started last';
  return { path: last.canonicalWorkspacePath, because };
}
