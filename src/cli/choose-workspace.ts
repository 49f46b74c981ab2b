import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { discoverHub, type RecordAnswer } from '../client/index.ts';
import { workspaceAbove } from '../config/index.ts';
import type { CommandContext } from './command.ts';
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
 * that may guess falls back to the workspace that the Hub knows or has started last, and reports it. Approval for everything
 * (`--yes`) is never given to a guessed workspace.
 *
 * @throws CliError workspaceNotFound, for a workspace of another user
 */
export async function inChosenWorkspace(
  context: CommandContext,
  { mayGuess }: { readonly mayGuess: boolean },
): Promise<CommandContext> {
  const { options, cwd, home, output } = context;
  if (typeof options['workspace'] === 'string' || (cwd !== undefined && isWorkspace(cwd, home))) return context;
  const isGuessing = mayGuess && options['yes'] !== true;
  const chosen =
    (cwd === undefined ? undefined : chosenAbove(cwd, home)) ??
    (isGuessing ? await knownWorkspace(context) : undefined);
  if (!chosen) return context;
  // Undimmed, because the reader may expect the current directory.
  output.note(`· Workspace ${inLine(chosen.path)}: ${chosen.because}`);
  return { ...context, options: { ...options, workspace: chosen.path } };
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
  const records = await withHub(context, ({ hub }) => hub.list({ signal: context.signal }));
  const [last] = records.toSorted((one, other) => startOf(other) - startOf(one));
  if (!last) return undefined;
  const because =
    records.length === 1
      ? 'the only one the Hub knows'
      : 'the one started last; choose another one with --workspace <dir>';
  return { path: last.canonicalWorkspacePath, because };
}
