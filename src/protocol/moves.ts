/** Moves of conversations between machines: `thread/move` of an agent server, `/v1/moves` of the Hub. */
import * as v from 'valibot';
import { HostName } from './hosts.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(0), v.description(description));
const path = v.pipe(v.string(), v.regex(/^\/[^\0]*$/, 'an absolute path'), v.maxLength(4_096));

/** Bytes of one piece of a transfer. */
export const movePieceBytes = 393_216;
/** Bytes of the conversation and of its files, at most. */
export const movePartBytes = { conversation: 268_435_456, files: 1_200_000_000 } as const;

/** Characters of the reason of a move, which may be the text of another machine. */
export const maxMoveReason = 2_000;
/** Active moves of one Hub. */
export const maxActiveMoves = 10;

export const MoveId = v.pipe(v.string(), v.regex(/^move_[0-9a-f]{16}$/, 'the id of a move'));
const ThreadId = v.pipe(v.string(), v.regex(/^[\w.-]{1,200}$/, 'the id of a conversation'));

export const moveParts = ['conversation', 'files'] as const;
export type MovePart = (typeof moveParts)[number];

const partSizes = (most: Readonly<Record<MovePart, number>>) =>
  v.strictObject({
    conversation: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(most.conversation)),
    files: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(most.files)),
  });
const Digest = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));

/** Parts of a transfer, with the facts that the target compares. */
export const MoveBundle = v.strictObject({
  version: v.literal(1),
  head: v.pipe(
    v.nullable(v.pipe(v.string(), v.regex(/^[0-9a-f]{40,64}$/))),
    v.description('Commit of git that the target must have; null: the files move as a whole.'),
  ),
  entries: count('Changed files and directories.'),
  bytes: partSizes(movePartBytes),
  sha256: v.strictObject({ conversation: Digest, files: Digest }),
});
export type MoveBundle = v.InferOutput<typeof MoveBundle>;

export const moveSteps = ['state', 'prepare', 'read', 'receive', 'write', 'commit', 'finish', 'cancel'] as const;
export type MoveStepName = (typeof moveSteps)[number];

const stepFields = {
  step: v.pipe(
    v.picklist(moveSteps),
    v.description(
      '`prepare`, `read` and `finish` are for the source, `receive`, `write` and `commit` for the target. `cancel` releases the source, or deletes the parts at the target. `state` reads.',
    ),
  ),
  moveId: MoveId,
  threadId: ThreadId,
  place: v.optional(
    v.pipe(v.string(), v.maxLength(4_200), v.description('With `prepare` and `commit`: the other place, for people.')),
  ),
  bundle: v.optional(MoveBundle),
  part: v.optional(v.picklist(moveParts)),
  offset: v.optional(count('First byte of the piece.')),
  data: v.optional(v.pipe(v.string(), v.maxLength(movePieceBytes * 2), v.base64(), v.description('Piece in base64.'))),
};
/** Parameters of `thread/move`. */
export const MoveStep = v.object(stepFields);
export type MoveStep = v.InferOutput<typeof MoveStep>;

/** A move as one end knows it. `none`: the conversation, if it is there, is free. */
export const moveEndStates = ['none', 'leaving', 'left', 'receiving', 'arrived'] as const;
export type MoveEndState = (typeof moveEndStates)[number];

/** Result of `thread/move`. */
export const MoveStepResult = v.object({
  state: v.pipe(v.picklist(moveEndStates), v.description('The move, as this end knows it after the step.')),
  bundle: v.optional(MoveBundle),
  data: v.optional(v.pipe(v.string(), v.maxLength(movePieceBytes * 2), v.base64(), v.description('Piece in base64.'))),
  received: v.optional(partSizes(movePartBytes)),
});
export type MoveStepResult = v.InferOutput<typeof MoveStepResult>;

/** Body of `POST /v1/moves/steps`. */
export const MoveStepInput = v.object({ workspacePath: path, ...stepFields });
export type MoveStepInput = v.InferOutput<typeof MoveStepInput>;

const MovePlace = v.strictObject({
  host: v.pipe(v.nullable(HostName), v.description('Name of the host; null: this machine.')),
  workspacePath: path,
});
export type MovePlace = v.InferOutput<typeof MovePlace>;

/** `build:/srv/site`; of this machine the path. */
export const placeName = ({ host, workspacePath }: MovePlace): string =>
  host === null ? workspacePath : `${host}:${workspacePath}`;

/** Body of `POST /v1/moves`. */
export const MoveInput = v.strictObject({ threadId: ThreadId, from: MovePlace, to: MovePlace });
export type MoveInput = v.InferOutput<typeof MoveInput>;

/** One move: `GET /v1/moves`. */
export const MoveRecord = v.object({
  moveId: MoveId,
  threadId: ThreadId,
  from: MovePlace,
  to: MovePlace,
  state: text('State of the move; `moved`, `cancelled` and `unconfirmed` are its ends.'),
  reason: v.pipe(
    v.nullable(v.pipe(v.string(), v.maxLength(maxMoveReason))),
    v.description('Reason for the wait or the cancellation; null otherwise.'),
  ),
  sentBytes: count('Bytes at the target.'),
  totalBytes: count('Bytes of conversation and files.'),
  entries: count('Changed files and directories.'),
  startedAt: text('Start, in ISO 8601.'),
});
export type MoveRecord = v.InferOutput<typeof MoveRecord>;

/** Whether a move has ended, at its target or back at its source. `unconfirmed`: the target may have a copy. */
export const hasMoveEnded = ({ state }: Pick<MoveRecord, 'state'>): boolean =>
  ['moved', 'cancelled', 'unconfirmed'].includes(state);
