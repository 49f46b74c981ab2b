import { setTimeout as sleep } from 'node:timers/promises';
import type { HubClient } from '../../client/index.ts';
import { count } from '../../lib/index.ts';
import { hasMoveEnded, type MovePlace, type MoveRecord, placeName } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { during, withHub } from '../hub.ts';
import { inLine } from '../render.ts';
import { remoteWorkspace } from '../workspace.ts';

const pollMs = 200;
const mebibyte = 1_048_576;

/** `oratorio move` */
export async function run(context: CommandContext): Promise<number> {
  const { argument: thread, options, output } = context;
  if (options['list'] === true) return list(context);
  if (thread === undefined) throw usageError('move needs the id of a conversation and a place.', 'move');
  if (options['cancel'] === true) return cancel(context, thread);
  const to = placeIn(context, options['to']);
  return withHub(context, async ({ hub }) => {
    const from = await placeOf(context, hub, thread);
    const { moveId } = await hub.move({ threadId: thread, from, to }, { signal: context.signal });
    const ended = await during(context, `Moving ${thread} to ${placeName(to)}`, () => followed(context, hub, moveId));
    if (output.json) output.document(ended);
    if (ended.state !== 'moved') throw notMoved(ended);
    if (!output.json) for (const line of movedLines(ended)) output.line(line);
    return exitCodes.ok.code;
  });
}

async function list(context: CommandContext): Promise<number> {
  const { output, signal } = context;
  return withHub(context, async ({ hub }) => {
    const moves = await hub.moves({ signal });
    if (output.json) output.document(moves);
    else if (moves.length === 0) output.note('No moves yet. Move a conversation: oratorio move THREAD build:/srv/site');
    else for (const move of moves) output.line(lineOf(move));
    return exitCodes.ok.code;
  });
}

async function cancel(context: CommandContext, thread: string): Promise<number> {
  const { output, signal } = context;
  return withHub(context, async ({ hub }) => {
    const active = (await hub.moves({ signal })).find((move) => move.threadId === thread && !hasMoveEnded(move));
    if (!active)
      throw new CliError(
        'failure',
        `${thread} has no active move.`,
        'List the moves: oratorio move --list',
        'notFound',
      );
    await hub.cancelMove(active.moveId, { signal });
    const ended = await during(context, `Going back with ${thread}`, () => followed(context, hub, active.moveId));
    if (output.json) output.document(ended);
    else output.line(lineOf(ended));
    return exitCodes.ok.code;
  });
}

/** Waits for the end of a move. Without this program it continues. */
async function followed({ output, signal }: CommandContext, hub: HubClient, moveId: string): Promise<MoveRecord> {
  let said: string | null = null;
  for (;;) {
    const move = (await hub.moves({ signal })).find((each) => each.moveId === moveId);
    if (!move)
      throw new CliError('failure', 'The Hub no longer lists the move.', 'List the moves: oratorio move --list');
    if (hasMoveEnded(move)) return move;
    if (move.state === 'waiting' && move.reason !== said) {
      said = move.reason;
      const hint = `It continues without this command: oratorio move --list. To go back: oratorio move --cancel ${move.threadId}`;
      output.note(`Waiting: ${inLine(move.reason ?? '')} ${hint}`);
    }
    await sleep(pollMs, undefined, { signal });
  }
}

/** @throws CliError usage */
function placeIn({ absolute }: CommandContext, named: string | boolean | undefined): MovePlace {
  if (typeof named !== 'string')
    throw usageError('move needs a place such as build:/srv/site, or a directory of this machine.', 'move');
  const remote = remoteWorkspace(named);
  return remote ? { host: remote.host, workspacePath: remote.path } : { host: null, workspacePath: absolute(named) };
}

/** Place at which a conversation is. @throws CliError */
async function placeOf({ signal }: CommandContext, hub: HubClient, thread: string): Promise<MovePlace> {
  const { threads, workspaces, missing } = await hub.fleetThreads({ q: thread, signal });
  const found = threads.filter(({ threadId }) => threadId === thread);
  const [only] = found;
  if (found.length > 1)
    throw new CliError('failure', `${thread} is at ${found.length} places.`, 'List them: oratorio list', 'ambiguous');
  const workspace = workspaces.find(({ workspaceId, host }) => workspaceId === only?.workspaceId && host === only.host);
  if (only && workspace) return { host: only.host, workspacePath: workspace.workspacePath };
  const hint =
    missing.length > 0
      ? `Hosts that did not answer: ${missing.map(inLine).join(', ')}. Check: oratorio hosts`
      : 'Find its id: oratorio list';
  throw new CliError('failure', `There is no conversation ${thread} here or on a connected host.`, hint, 'notFound');
}

const sizeWords = (bytes: number): string => `${(bytes / mebibyte).toFixed(1)} MiB`;

function notMoved({ threadId, from, to, state, reason }: MoveRecord): CliError {
  const copy = state === 'unconfirmed' ? `, and ${placeName(to)} may have a copy` : '';
  const hint = `The conversation is at ${placeName(from)}${copy}. Correct the problem, then move it again.`;
  return new CliError('failure', `${threadId} was not moved. ${inLine(reason ?? '')}`, hint, 'moveRefused');
}

function movedLines({ threadId, to, entries, totalBytes }: MoveRecord): string[] {
  const place = placeName(to);
  return [
    `${threadId} is at ${place} now: ${count(entries, 'file')}, ${sizeWords(totalBytes)}`,
    `Continue there: oratorio chat --workspace ${inLine(place)} --thread ${threadId}`,
  ];
}

const lineOf = ({ threadId, from, to, state, sentBytes, totalBytes, reason }: MoveRecord): string =>
  [
    threadId,
    state,
    `${placeName(from)} → ${placeName(to)}`,
    `${sizeWords(sentBytes)} of ${sizeWords(totalBytes)}`,
    reason ?? '',
  ]
    .map(inLine)
    .join('\t')
    .trimEnd();
